"""Access rules (ACLs) of the cluster, each with the id by which the log takes it away."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.protocol.messages.metadata.access_control_entry_record import AccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)


class Acls:
    """Every rule that is in force, in the order in which they were created."""

    def __init__(self) -> None:
        self._by_id: dict[bytes, Rule] = {}
        self._ids: dict[Rule, bytes] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acls) and self._by_id == other._by_id

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def rules(self) -> Mapping[bytes, Rule]:
        """The rules by id."""
        return MappingProxyType(self._by_id)

    def id_of(self, rule: Rule) -> bytes | None:
        """Return the id of a rule; None where it is not in force."""
        return self._ids.get(rule)

    def copy(self) -> "Acls":
        copy = Acls()
        copy._by_id, copy._ids = dict(self._by_id), dict(self._ids)
        return copy

    def replay(self, record: AccessControlEntryRecord | RemoveAccessControlEntryRecord) -> None:
        if isinstance(record, AccessControlEntryRecord):
            rule = rule_of(record)
            self._by_id[record.id] = rule
            self._ids[rule] = record.id
            return
        assert record.id in self._by_id, f"an access rule is taken away that was never given: {record.id.hex()}"
        rule = self._by_id.pop(record.id)
        if self._ids.get(rule) == record.id:
            del self._ids[rule]

    def records(self) -> Iterator[AccessControlEntryRecord]:
        for rule_id, rule in self._by_id.items():
            yield AccessControlEntryRecord(rule_id, *rule)


def rule_of(record: AccessControlEntryRecord) -> Rule:
    """Return the rule that a record puts in force."""
    return Rule(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
