"""Which rules a filter selects: a table, as the words of Kafka's ResourcePatternFilter have it."""

import pytest

from kavka_broker.core.authorization.access_rules import Rule, RuleFilter
from kavka_broker.core.authorization.acl_types import Operation, PatternType, Permission, ResourceType

EXACT = Rule(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)
PREFIX = EXACT._replace(resource_name="ord", pattern_type=PatternType.PREFIXED)
EVERY = EXACT._replace(resource_name="*", operation=Operation.ALL)
GROUP = EXACT._replace(resource_type=ResourceType.GROUP, permission=Permission.DENY, host="10.0.0.1")
RULES = {"exact": EXACT, "prefix": PREFIX, "every": EVERY, "group": GROUP}
ANY = RuleFilter(ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY)


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ({}, "exact prefix every group"),
        ({"resource_type": ResourceType.GROUP}, "group"),
        ({"resource_name": "orders"}, "exact group"),
        ({"resource_name": "orders", "pattern_type": PatternType.MATCH}, "exact prefix every group"),
        ({"resource_name": "ordinary", "pattern_type": PatternType.MATCH}, "prefix every"),
        ({"resource_name": "ord", "pattern_type": PatternType.PREFIXED}, "prefix"),
        ({"resource_name": "*", "pattern_type": PatternType.LITERAL}, "every"),
        ({"pattern_type": PatternType.LITERAL}, "exact every group"),
        ({"principal": "User:b"}, ""),
        ({"host": "10.0.0.1"}, "group"),
        ({"operation": Operation.ALL}, "every"),
        ({"permission": Permission.DENY}, "group"),
    ],
    ids=str,
)
def test_a_filter_selects_the_rules_that_match_it(changed: dict[str, object], selected: str) -> None:
    values = {name: getattr(ANY, name) for name in RuleFilter.__slots__}
    chosen = RuleFilter(**{**values, **changed})

    assert [name for name, rule in RULES.items() if chosen.selects(rule)] == selected.split()
