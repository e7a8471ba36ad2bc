"""What an authorizer remembers and forgets; the question about some resource of a type; operations as bits."""

from sys import getsizeof

import pytest

from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.authorization.acl_types import Operation, PatternType, Permission, ResourceType
from kavka_broker.core.authorization.authorizer import Authorizer
from kavka_broker.core.authorization.decision_cache import DECISIONS_BYTES_MAX, DecisionCache
from kavka_broker.core.authorization.hosts import plain_address
from kavka_broker.core.authorization.index import OfType

TOPIC = ResourceType.TOPIC
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
ASKED = ("User:a", "10.0.0.1", Operation.READ, TOPIC)


def rule(name: str, permission: Permission = ALLOW, pattern: PatternType = LITERAL, host: str = "*") -> Rule:
    return Rule(TOPIC, name, pattern, "User:a", host, Operation.READ, permission)


def knowing(*rules: Rule) -> Authorizer:
    authorizer = Authorizer()
    for known in rules:
        authorizer.add(known)
    return authorizer


@pytest.mark.parametrize(
    ("rules", "some"),
    [
        ([], False),
        ([rule("t")], True),
        ([rule("t"), rule("t", DENY)], False),
        ([rule("t"), rule("u", DENY)], True),
        ([rule("t"), rule("t", DENY, PREFIXED)], False),
        ([rule("to"), rule("t", DENY, PREFIXED)], False),
        ([rule("t"), rule("to", DENY, PREFIXED)], True),
        ([rule("t", ALLOW, PREFIXED), rule("t", DENY, PREFIXED)], False),
        ([rule("t", ALLOW, PREFIXED), rule("t", DENY)], True),
        ([rule("*"), rule("hardcode", DENY)], True),
        ([rule("t"), rule("*", DENY)], False),
    ],
)
def test_some_resource_is_open_unless_a_denial_covers_each_that_is(rules: list[Rule], some: bool) -> None:
    assert knowing(*rules).allows_some(*ASKED) is some


def test_nobody_but_super_users_has_some_resource_before_the_rules_are_known() -> None:
    authorizer = Authorizer(["User:root"])
    authorizer.add(rule("t"))
    authorizer.is_ready = False
    assert not authorizer.allows(*ASKED, "t")
    assert not authorizer.allows_some(*ASKED)
    assert authorizer.allows_some("User:root", *ASKED[1:])
    authorizer.is_ready = True
    assert authorizer.allows(*ASKED, "t")
    assert authorizer.allows_some(*ASKED)


def test_a_decision_is_remembered_until_a_rule_changes() -> None:
    decisions = DecisionCache(decisions_max=2)
    authorizer = Authorizer(decisions=decisions)
    assert not authorizer.allows(*ASKED, "t")
    authorizer.add(rule("t"))
    assert authorizer.allows(*ASKED, "t")
    assert decisions.get((*ASKED, "t")) is True
    assert not authorizer.allows(*ASKED, "u")
    assert len(decisions) == 2
    assert not authorizer.allows(*ASKED, "v")
    assert len(decisions) == 1
    authorizer.remove(rule("t"))
    assert not authorizer.allows(*ASKED, "t")


def test_operations_are_bits() -> None:
    authorizer = knowing(rule("t"))
    expected = 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert authorizer.operations(*ASKED[:2], TOPIC, "t") == expected
    assert authorizer.operations(*ASKED[:2], TOPIC, "u") == 0
    assert Authorizer(["User:root"]).operations("User:root", "::1", ResourceType.GROUP, "g") == 0b1101_0100_1000


def test_an_index_without_rules_keeps_nothing() -> None:
    """Two rules may say the same host in two ways, and two prefixes may have one length."""
    rules = [
        rule("ab", pattern=PREFIXED, host="10.0.0.0/8"),
        rule("ab", pattern=PREFIXED, host="10.1.1.1/8"),
        rule("ab", DENY, PREFIXED, "10.0.0.0/8"),
        rule("cd", pattern=PREFIXED, host="10.0.0.1"),
        rule("cd", pattern=PREFIXED),
        rule("t", host="::1"),
        rule("t", host="0::1"),
    ]
    index = OfType()
    for known in rules:
        index.count(known, 1)
    assert dict(index.lengths) == {2: 2}
    hosts = index.prefixed["ab"]["User:a"]
    assert dict(hosts.sizes) == {(32, 8): 1}
    for known in rules[:2]:
        index.count(known, -1)
    assert hosts.counts.total() == 1
    assert dict(hosts.sizes) == {(32, 8): 1}
    index.count(rules[2], -1)
    assert (dict(hosts.sizes), dict(hosts.counts)) == ({}, {})
    assert dict(index.lengths) == {2: 1}
    for known in rules[3:]:
        index.count(known, -1)
    assert (index.literal, index.prefixed, dict(index.lengths), index.by_principal) == ({}, {}, {}, {})


def test_an_address_has_one_form() -> None:
    assert plain_address("::ffff:10.0.0.1") == "10.0.0.1"
    assert plain_address("0:0:0:0:0:0:0:1") == plain_address("::1%lo") == "::1"
    assert plain_address("host") == "host"


def test_decisions_about_names_that_no_topic_has_are_not_remembered() -> None:
    decisions = DecisionCache()
    authorizer = Authorizer(decisions=decisions)
    for name in ("x" * 250, "x" * 32_000):
        assert not authorizer.allows("User:nobody", "127.0.0.1", Operation.DESCRIBE, ResourceType.GROUP, name)
        assert len(decisions) == 0
    authorizer.allows("User:nobody", "127.0.0.1", Operation.DESCRIBE, ResourceType.GROUP, "x" * 249)
    assert len(decisions) == 1


def test_what_is_remembered_of_decisions_is_bounded_in_bytes() -> None:
    decisions, wide, kept = DecisionCache(), "\U0001f600" * 240, list[tuple[str, str]]()
    authorizer, sizes = Authorizer(decisions=decisions), list[int]()
    for number in range(10_000):
        asked = f"User:{number}{wide}", "127.0.0.1", Operation.DESCRIBE, ResourceType.GROUP, f"{number}{wide}"
        authorizer.allows(*asked)
        if len(decisions) == 1:
            kept.clear()
        kept.append((asked[0], asked[-1]))
        if number % 1_000 == 0:
            sizes.append(sum(getsizeof(principal) + getsizeof(name) for principal, name in kept))
    assert max(sizes) <= DECISIONS_BYTES_MAX
    assert decisions.size_bytes <= DECISIONS_BYTES_MAX
    topic, user = (ResourceType.TOPIC, "t", PatternType.LITERAL), ("User:alice", "*")
    authorizer.add(Rule(*topic, *user, Operation.READ, Permission.ALLOW))
    assert (len(decisions), decisions.size_bytes) == (0, 0)
