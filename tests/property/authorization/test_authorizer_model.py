"""The authorizer against a model that looks at every rule, one after another, as Kafka's documentation words it."""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.authorization.acl_types import EVERYBODY, Operation, PatternType, Permission, ResourceType
from kavka_broker.core.authorization.authorizer import Authorizer

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
NAMES = ("a", "ab", "abc", "b", "hardcode")
PRINCIPALS = ("User:alice", "User:bob", "User:*")
ADDRESSES = ("10.0.0.1", "10.0.1.1", "192.0.2.7", "::1", "2001:db8::7", "::ffff:10.0.0.1")
HOSTS = (
    "*",
    "10.0.0.1",
    "10.0.0.0/8",
    "10.0.0.9/24",
    "0.0.0.0/0",
    "::1",
    "0:0:0:0:0:0:0:1",
    "2001:db8::/32",
    "::/0",
    "10.0.0.0/99",
    "host",
)
DESCRIBING = (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE)
USED = (
    Operation.READ,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.ALTER,
    Operation.CREATE,
)
PATTERNS = st.tuples(st.sampled_from((*NAMES, "*", "")), st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]))
RULES = st.builds(
    lambda kind, pattern, principal, host, operation, permission: Rule(
        kind, pattern[0], pattern[1], principal, host, operation, permission
    ),
    st.sampled_from([TOPIC, GROUP]),
    PATTERNS,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from((*USED, Operation.ALL)),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
SETS = st.lists(RULES, max_size=8, unique=True)
ASKED = st.tuples(
    st.sampled_from(("User:alice", "User:bob", "User:root")), st.sampled_from(ADDRESSES), st.sampled_from(USED)
)


def is_about(rule: Rule, kind: ResourceType, name: str) -> bool:
    if rule.resource_type != kind:
        return False
    if rule.pattern_type == PatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.resource_name in (name, "*")


def has_host(rule: Rule, address: str) -> bool:
    client = ip_address(address)
    client = getattr(client, "ipv4_mapped", None) or client
    if rule.host == "*":
        return True
    try:
        return client in ip_network(rule.host, strict=False)
    except ValueError:
        return False


def is_for(rule: Rule, principal: str, address: str) -> bool:
    return rule.principal in (principal, EVERYBODY) and has_host(rule, address)


def covers(rule: Rule, operation: Operation) -> bool:
    if rule.operation in (operation, Operation.ALL):
        return True
    if rule.permission == Permission.DENY:
        return False
    if operation == Operation.DESCRIBE:
        return rule.operation in DESCRIBING
    return operation == Operation.DESCRIBE_CONFIGS and rule.operation == Operation.ALTER_CONFIGS


def allowed(rules: Sequence[Rule], asked: tuple[str, str, Operation], name: str, *, unruled: bool) -> bool:
    principal, address, operation = asked
    if principal == "User:root":
        return True
    about = [rule for rule in rules if is_about(rule, TOPIC, name)]
    said = {rule.permission for rule in about if is_for(rule, principal, address) and covers(rule, operation)}
    if Permission.DENY in said:
        return False
    return Permission.ALLOW in said or (unruled and not about)


def allowed_some(rules: Sequence[Rule], asked: tuple[str, str, Operation], *, unruled: bool) -> bool:
    principal, address, operation = asked
    if allowed(rules, asked, "hardcode", unruled=unruled):
        return True
    mine = [
        rule
        for rule in rules
        if rule.resource_type == TOPIC
        and is_for(rule, principal, address)
        and rule.operation in (operation, Operation.ALL)
    ]
    denials = [rule for rule in mine if rule.permission == Permission.DENY]
    return any(
        not any(hides(denial, rule) for denial in denials) for rule in mine if rule.permission == Permission.ALLOW
    )


def hides(denial: Rule, rule: Rule) -> bool:
    """Whether a denial covers every name that the allowing rule covers, as Kafka looks at it."""
    is_everything = (denial.pattern_type, denial.resource_name) == (PatternType.LITERAL, "*")
    if is_everything or (rule.pattern_type, rule.resource_name) == (PatternType.LITERAL, "*"):
        return is_everything
    if denial.pattern_type == PatternType.LITERAL:
        return rule.pattern_type == PatternType.LITERAL and denial.resource_name == rule.resource_name
    return denial.resource_name != "" and rule.resource_name.startswith(denial.resource_name)


ROOT = ["User:root"]


@settings(max_examples=600)
@given(SETS, SETS, st.lists(ASKED, min_size=1, max_size=6), st.booleans())
@example(
    [Rule(TOPIC, "a", 3, "User:alice", "::1", 3, 3), Rule(TOPIC, "a", 3, "User:alice", "0::1", 3, 3)], [], [], True
)
def test_decides_as_the_model_while_rules_come_and_go(
    kept: list[Rule], removed: list[Rule], asked: list[tuple[str, str, Operation]], unruled: bool
) -> None:
    removed = [rule for rule in removed if rule not in kept]
    authorizer = Authorizer(ROOT, allows_unruled=unruled)
    for rule in (*removed, *kept):
        authorizer.add(rule)
    check(authorizer, [*removed, *kept], asked, unruled=unruled)
    for rule in removed:
        authorizer.remove(rule)
    check(authorizer, kept, asked, unruled=unruled)


def check(
    authorizer: Authorizer, rules: Sequence[Rule], asked: Sequence[tuple[str, str, Operation]], *, unruled: bool
) -> None:
    for principal, address, operation in asked:
        for name in NAMES:
            wanted = allowed(rules, (principal, address, operation), name, unruled=unruled)
            assert authorizer.allows(principal, address, operation, TOPIC, name) is wanted
        some = allowed_some(rules, (principal, address, operation), unruled=unruled)
        assert authorizer.allows_some(principal, address, operation, TOPIC) is some


@given(SETS)
def test_nothing_is_left_when_all_rules_are_gone(rules: list[Rule]) -> None:
    authorizer = Authorizer(allows_unruled=True)
    for rule in rules:
        authorizer.add(rule)
    for rule in reversed(rules):
        authorizer.remove(rule)

    assert authorizer.allows("User:alice", "10.0.0.1", Operation.READ, TOPIC, "a")
    assert not list(authorizer._index.patterns(TOPIC, "User:alice", "10.0.0.1"))
