"""Access rules, found by what a request asks: resource type, name, principal and address.

    type -> literal name, or prefix -> principal -> host -> two sets of operations, denied and allowed

The cost of a look-up does not grow with the rules. It grows with the lengths of the prefixes that rules have (names
have at most 249 characters) and with the lengths of networks (at most 33 and 129). A set of operations is an integer
with the bits `1 << operation`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.authorization.acl_types import EVERYBODY, WILDCARD, PatternType, Permission
from kavka_broker.core.authorization.hosts import Numbered, network, parsed, plain_address


class Said(NamedTuple):
    """Operations that the matching rules deny and allow, as bits; whether any rule is about the resource at all."""

    denied: int
    allowed: int
    is_ruled: bool


NOTHING_SAID: Final = (0, 0)
Host = str | Numbered  # an address, `*`, or a network


class Hosts:
    """What the rules of one pattern and principal deny and allow, by host.

    One host can be written in many ways, so rules are counted: an operation leaves with its last rule.
    """

    __slots__ = ("_said", "counts", "sizes")

    def __init__(self) -> None:
        self._said: dict[Host, tuple[int, int]] = {}  # denied, allowed
        self.sizes: Counter[tuple[int, int]] = Counter()  # of networks: bits and prefix
        self.counts: Counter[tuple[Host, int, int]] = Counter()

    def is_empty(self) -> bool:
        return not self._said

    def count(self, rule: Rule, by: int) -> None:
        """Put a rule in (1), or take it out (-1)."""
        host = network(rule.host) or plain_address(rule.host)
        key = (host, rule.operation, rule.permission)
        self.counts[key] += by
        assert self.counts[key] >= 0, f"{rule} is taken out and was never put in"
        if self.counts[key] == (by > 0):
            self._flip(host, 1 << rule.operation, is_denial=rule.permission == Permission.DENY)
        if not self.counts[key]:
            del self.counts[key]

    def _flip(self, host: Host, bit: int, *, is_denial: bool) -> None:
        before = self._said.get(host, NOTHING_SAID)
        after = (before[0] ^ bit, before[1]) if is_denial else (before[0], before[1] ^ bit)
        if isinstance(host, Numbered) and NOTHING_SAID in (before, after):
            size = (host.bits, host.prefix)
            self.sizes[size] += 1 if before == NOTHING_SAID else -1
            if not self.sizes[size]:
                del self.sizes[size]
        if after == NOTHING_SAID:
            del self._said[host]
        else:
            self._said[host] = after

    def said(self, address: str, number: Numbered | None) -> tuple[int, int]:
        """Return what is denied and allowed to a client at a plain address, which is also a number."""
        denied, allowed = self._said.get(WILDCARD, NOTHING_SAID)
        if (here := self._said.get(address)) is not None:
            denied, allowed = denied | here[0], allowed | here[1]
        for bits, prefix in self.sizes if number is not None else ():
            assert number is not None
            shift = bits - prefix
            here = self._said.get(Numbered(bits, prefix, number.number >> shift << shift))
            if here is not None and bits == number.bits:
                denied, allowed = denied | here[0], allowed | here[1]
        return denied, allowed


Patterns = dict[str, dict[str, Hosts]]


class OfType:
    """The rules about one type of resource."""

    __slots__ = ("by_principal", "lengths", "literal", "prefixed")

    def __init__(self) -> None:
        self.literal: Patterns = {}
        self.prefixed: Patterns = {}
        self.lengths: Counter[int] = Counter()  # how many prefixes have a length
        self.by_principal: dict[str, dict[tuple[int, str], Hosts]] = {}  # by pattern type and name

    def count(self, rule: Rule, by: int) -> None:
        """Put a rule in (1), or take it out (-1)."""
        is_prefix = rule.pattern_type == PatternType.PREFIXED
        patterns = self.prefixed if is_prefix else self.literal
        name, principal = rule.resource_name, rule.principal
        if is_prefix and name not in patterns:
            self.lengths[len(name)] += 1
        hosts = patterns.setdefault(name, {}).setdefault(principal, Hosts())
        self.by_principal.setdefault(principal, {})[rule.pattern_type, name] = hosts
        hosts.count(rule, by)
        if hosts.is_empty():
            self._forget(rule, patterns)

    def _forget(self, rule: Rule, patterns: Patterns) -> None:
        name, principal = rule.resource_name, rule.principal
        del patterns[name][principal]
        del self.by_principal[principal][rule.pattern_type, name]
        if not self.by_principal[principal]:
            del self.by_principal[principal]
        if patterns[name]:
            return
        del patterns[name]
        if patterns is self.prefixed:
            self.lengths[len(name)] -= 1
            if not self.lengths[len(name)]:
                del self.lengths[len(name)]

    def matching(self, name: str) -> Iterator[dict[str, Hosts]]:
        """Return the patterns that match a name, by principal."""
        if (found := self.literal.get(name)) is not None:
            yield found
        if name != WILDCARD and (found := self.literal.get(WILDCARD)) is not None:
            yield found
        size = len(name)
        for length in self.lengths:
            if length <= size and (found := self.prefixed.get(name[:length])) is not None:
                yield found


class Index:
    """All rules of a cluster."""

    def __init__(self) -> None:
        self._types: dict[int, OfType] = {}

    def add(self, rule: Rule) -> None:
        """Put in a rule that is not in."""
        self._types.setdefault(rule.resource_type, OfType()).count(rule, 1)

    def remove(self, rule: Rule) -> None:
        """Take out a rule that is in."""
        self._types[rule.resource_type].count(rule, -1)

    def said(self, resource_type: int, name: str, principal: str, address: str) -> Said:
        """Return what the rules say about a resource to a principal at an address."""
        of_type = self._types.get(resource_type)
        if of_type is None:
            return Said(0, 0, is_ruled=False)
        address, number = plain_address(address), parsed(address)
        denied = allowed = 0
        is_ruled = False
        for by_principal in of_type.matching(name):
            is_ruled = True
            for who in (principal, EVERYBODY):
                hosts = by_principal.get(who)
                if hosts is not None:
                    no, yes = hosts.said(address, number)
                    denied, allowed = denied | no, allowed | yes
        return Said(denied, allowed, is_ruled)

    def patterns(self, resource_type: int, principal: str, address: str) -> Iterator[tuple[int, str, int, int]]:
        """Return all patterns with rules for a principal at an address: pattern type, name, denied, allowed."""
        of_type = self._types.get(resource_type)
        address, number = plain_address(address), parsed(address)
        for who in dict.fromkeys((principal, EVERYBODY)) if of_type is not None else ():
            assert of_type is not None
            for (pattern_type, name), hosts in of_type.by_principal.get(who, {}).items():
                yield pattern_type, name, *hosts.said(address, number)
