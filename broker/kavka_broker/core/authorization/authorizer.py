"""Whether a principal may do something: what Apache Kafka's StandardAuthorizer decides.

- A super user may do everything, whatever the rules say.
- A rule matches by resource type and pattern (the name, a prefix, or `*`), by principal (or `User:*`), and by host.
- A matching DENY of the operation, or of ALL, refuses it. Otherwise a matching ALLOW lets it through.
- An ALLOW implies more: of READ, WRITE, DELETE and ALTER also DESCRIBE; of ALTER_CONFIGS also DESCRIBE_CONFIGS. A DENY
  implies nothing.
- Where no rule matches the operation it is refused; but with `allow.everyone.if.no.acl.found` a resource that no rule
  names, for whatever principal, is open to all.

Decisions are remembered until a rule changes (`decision_cache`); they are no part of the metadata image.
"""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.authorization.acl_types import SUPPORTED, WILDCARD, Operation, PatternType, ResourceType
from kavka_broker.core.authorization.decision_cache import DecisionCache, Key
from kavka_broker.core.authorization.index import Index

ANY_NAME: Final = "hardcode"
"""The name by which Kafka asks whether a principal may do something with every resource of a type."""


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


_ALLOWS_DESCRIBE: Final = _bits(Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
#: By operation, the bits of the operations whose DENY, or ALLOW, decides about it.
DENYING: Final = {operation: _bits(Operation.ALL) | 1 << operation for operation in Operation}
ALLOWING: Final = {
    **DENYING,
    Operation.DESCRIBE: DENYING[Operation.DESCRIBE] | _ALLOWS_DESCRIBE,
    Operation.DESCRIBE_CONFIGS: DENYING[Operation.DESCRIBE_CONFIGS] | _bits(Operation.ALTER_CONFIGS),
}


class Authorizer:
    """Decides by the rules that it has been given."""

    def __init__(
        self, super_users: Iterable[str] = (), *, allows_unruled: bool = False, decisions: DecisionCache | None = None
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allows_unruled = allows_unruled
        self.is_ready = True  # otherwise the rules are not all here yet, and only super users are let in
        self._index = Index()
        self._decisions = DecisionCache() if decisions is None else decisions

    def add(self, rule: Rule) -> None:
        """Follow a rule that has come into force."""
        self._index.add(rule)
        self._decisions.clear()

    def remove(self, rule: Rule) -> None:
        """Follow a rule that has been taken away."""
        self._index.remove(rule)
        self._decisions.clear()

    def is_super(self, principal: str) -> bool:
        """Whether a principal may do everything."""
        return principal in self._super_users

    def allows(self, principal: str, address: str, operation: Operation, resource_type: int, name: str) -> bool:
        """Whether a principal at an address may do this with the resource of that name."""
        key = (principal, address, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._keep(key, self._decide(principal, address, operation, resource_type, name))
        return decision

    def allows_some(self, principal: str, address: str, operation: Operation, resource_type: int) -> bool:
        """Whether a principal may do this with at least one resource of the type, be it there or not."""
        key = (principal, address, operation, resource_type, None)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._keep(key, self._decide_some(principal, address, operation, resource_type))
        return decision

    def operations(self, principal: str, address: str, resource_type: ResourceType, name: str) -> int:
        """Return the operations that a principal has on a resource, as bits (KIP-430)."""
        return sum(
            1 << operation
            for operation in SUPPORTED[resource_type]
            if self.allows(principal, address, operation, resource_type, name)
        )

    def _keep(self, key: Key, decision: bool) -> bool:
        if self.is_ready:
            self._decisions.keep(key, decision)
        return decision

    def _decide(self, principal: str, address: str, operation: Operation, resource_type: int, name: str) -> bool:
        if principal in self._super_users or not self.is_ready:
            return principal in self._super_users
        said = self._index.said(resource_type, name, principal, address)
        if said.denied & DENYING[operation]:
            return False
        if said.allowed & ALLOWING[operation]:
            return True
        return self._allows_unruled and not said.is_ruled

    def _decide_some(self, principal: str, address: str, operation: Operation, resource_type: int) -> bool:
        """As Kafka does it, without what an ALLOW of another operation implies."""
        if self._decide(principal, address, operation, resource_type, ANY_NAME):
            return True
        if not self.is_ready:
            return False
        patterns = list(self._index.patterns(resource_type, principal, address))
        bits = DENYING[operation]
        denied = {(kind, name) for kind, name, no, _ in patterns if no & bits}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(
            yes & bits and ((kind, name) == (PatternType.LITERAL, WILDCARD) or not _is_dominated(kind, name, denied))
            for kind, name, _, yes in patterns
        )


def _is_dominated(kind: int, name: str, denied: set[tuple[int, str]]) -> bool:
    """Whether a denied pattern covers all that an allowed one does."""
    if kind == PatternType.LITERAL and (kind, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
