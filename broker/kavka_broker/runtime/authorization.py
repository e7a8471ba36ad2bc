"""The authorizer of this node, which follows the access rules of the metadata.

Until the node has caught up with its cluster the rules may be those of yesterday: only super users are let in.
"""

from collections.abc import Sequence

from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.authorization.authorizer import Authorizer
from kavka_broker.core.authorization.settings import settings_of
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.acls import Acls, rule_of
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.access_control_entry_record import AccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)


def authorizer_of(config: BrokerConfig) -> Authorizer | None:
    """Return the authorizer that the configuration asks for; None where none is. Raises ConfigError."""
    if not config["authorizer.class.name"]:
        return None
    settings = settings_of(config.given)
    return Authorizer(settings.super_users, allows_unruled=settings.allows_unruled)


class AclFollower:
    """Keeps an authorizer at the rules of the committed image."""

    def __init__(self, authorizer: Authorizer, acls: Acls) -> None:
        self._authorizer = authorizer
        self._rules: dict[bytes, Rule] = {}
        authorizer.is_ready = False
        for rule_id, rule in acls.rules.items():
            self._add(rule_id, rule)

    def caught_up(self) -> None:
        """Let in whom the rules let in from now on."""
        self._authorizer.is_ready = True

    def apply(self, records: Sequence[Message]) -> None:
        """Follow committed records. A snapshot tells rules again that are known."""
        for record in records:
            if isinstance(record, AccessControlEntryRecord):
                if record.id not in self._rules:
                    self._add(record.id, rule_of(record))
            elif isinstance(record, RemoveAccessControlEntryRecord):
                rule = self._rules.pop(record.id, None)
                if rule is not None:
                    self._authorizer.remove(rule)

    def _add(self, rule_id: bytes, rule: Rule) -> None:
        self._rules[rule_id] = rule
        self._authorizer.add(rule)
