"""An access rule (ACL): which principal, from which host, may or may not do what with which resources.

A filter selects rules. A null part of it, or ANY, selects every value. A pattern of type MATCH selects the rules that
hold for a resource of that name: by the name itself, by a prefix of it, and by the wildcard.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kavka_broker.core.authorization.acl_types import WILDCARD, Operation, PatternType, Permission, ResourceType


class Rule(NamedTuple):
    """A rule as Kafka's protocol and its records have it. No two rules of a cluster are equal."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """Selects rules; see the head of this module."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def selects(self, rule: Rule) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, rule.resource_type)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self._selects_pattern(rule)
        )

    def _selects_pattern(self, rule: Rule) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, rule.pattern_type):
            return False
        name = self.resource_name
        if name is None or (self.pattern_type != PatternType.MATCH and name == rule.resource_name):
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if rule.pattern_type == PatternType.PREFIXED:
            return name.startswith(rule.resource_name)
        return rule.resource_name in (name, WILDCARD)
