"""Access rules are created and deleted, as Apache Kafka's controller does it.

A rule that is in force already is created again without effect. A host with a slash must be a network (KIP-1276);
every other text is taken for a host, as Kafka takes it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kavka_broker.core.authorization.access_rules import Rule, RuleFilter
from kavka_broker.core.authorization.acl_types import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from kavka_broker.core.authorization.hosts import network
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.acls import Acls
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.access_control_entry_record import AccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)

DELETED_MAX: Final = 10_000
"""The rules that one request may delete, as in Apache Kafka."""
_RESOURCES: Final = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)
_PATTERNS: Final = (PatternType.LITERAL, PatternType.PREFIXED)
_OPERATIONS: Final = tuple(operation for operation in Operation if operation > Operation.ANY)
_PERMISSIONS: Final = (Permission.DENY, Permission.ALLOW)


def create(acls: Acls, rules: Sequence[Rule], ids: Iterable[bytes]) -> Decision[list[BrokerError | None]]:
    """Create rules under new ids; the answer has the refusal of each rule, or None."""
    new: dict[Rule, Message] = {}
    answers: list[BrokerError | None] = []
    for rule, rule_id in zip(rules, ids, strict=True):
        refusal = problem_with(rule)
        if refusal is None and acls.id_of(rule) is None and rule not in new:
            new[rule] = AccessControlEntryRecord(rule_id, *rule)
        answers.append(refusal)
    return Decision(list(new.values()), answers)


def problem_with(rule: Rule) -> BrokerError | None:
    """Say why a rule cannot be created; None where it can."""
    if rule.resource_type == ResourceType.CLUSTER and rule.resource_name != CLUSTER_NAME:
        return _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not rule.resource_name:
        return _invalid("Invalid empty resource name")
    for what, value, known in (
        ("resourceType", rule.resource_type, _RESOURCES),
        ("patternType", rule.pattern_type, _PATTERNS),
        ("operation", rule.operation, _OPERATIONS),
        ("permissionType", rule.permission, _PERMISSIONS),
    ):
        if value not in known:
            said = next((word.name for word in type(known[0]) if word == value), "UNKNOWN")
            return _invalid(f"Invalid {what} {said}; it is one of {', '.join(word.name for word in known)}")
    if ":" not in rule.principal:
        return _invalid(
            f"Could not parse principal from `{rule.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    if "/" in rule.host and network(rule.host) is None:
        return _invalid(f'"{rule.host}" is no network; write it like 192.0.2.0/24 or 2001:db8::/32')
    return None


def delete(
    acls: Acls, filters: Sequence[RuleFilter], deleted_max: int = DELETED_MAX
) -> Decision[list[list[Rule] | BrokerError]]:
    """Delete the rules that filters select; the answer has those of each filter, or its refusal."""
    gone: dict[bytes, Message] = {}
    answers: list[list[Rule] | BrokerError] = []
    for wanted in filters:
        found = selected(acls, wanted)
        more = {rule_id: RemoveAccessControlEntryRecord(rule_id) for rule_id, _ in found}
        if len(gone | more) > deleted_max:
            answers.append(_invalid(f"Cannot remove more than {deleted_max} acls in a single delete operation."))
            continue
        gone |= more
        answers.append([rule for _, rule in found])
    return Decision(list(gone.values()), answers)


def selected(acls: Acls, wanted: RuleFilter) -> list[tuple[bytes, Rule]]:
    """Return the rules that a filter selects, with their ids."""
    if (rule := exact(wanted)) is not None:
        rule_id = acls.id_of(rule)
        return [] if rule_id is None else [(rule_id, rule)]
    return [(rule_id, rule) for rule_id, rule in acls.rules.items() if wanted.selects(rule)]


def exact(wanted: RuleFilter) -> Rule | None:
    """Return the only rule that a filter can select; None where it may select more."""
    if (
        wanted.resource_name is None
        or wanted.principal is None
        or wanted.host is None
        or wanted.pattern_type not in _PATTERNS
        or wanted.resource_type == ResourceType.ANY
        or wanted.operation == Operation.ANY
        or wanted.permission == Permission.ANY
    ):
        return None
    return Rule(
        wanted.resource_type,
        wanted.resource_name,
        wanted.pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission,
    )


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
