"""Makes the sheets that the console has beside those of `kavka top`: clusters, a topic, a group, users, access rules.

Pure, as those are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kavka_operator.domain import units
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.kafka.broker_metrics import TOPIC_IN, TOPIC_OUT
from kavka_operator.kafka.offsets_and_lag import Group
from kavka_operator.live_views.model import History, Look, total
from kavka_operator.live_views.tables.groups import lag
from kavka_operator.web_page import cells
from kavka_operator.web_page.documents import Document, facts
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

UNKNOWN = "unknown"
NO_MEMBERS = "Kafka's API does not tell the members of groups of KIP-848 here."
CLUSTERS = (
    Column("CLUSTER", is_flexible=True),
    Column("STATE"),
    Column("BROKERS", is_number=True),
    Column("TOPICS", is_number=True),
    Column("PARTITIONS", is_number=True),
    Column("UNDER-REPLICATED", is_number=True),
    Column("OFFLINE", is_number=True),
    Column("GROUPS", is_number=True),
    Column("HIGHEST LAG", is_number=True),
    Column("RECORDS/S", is_number=True),
    Column("BOOTSTRAP", is_flexible=True),
)
PARTITIONS = (
    Column("PARTITION", is_number=True, is_ascending=True),
    Column("LEADER", is_number=True, is_ascending=True),
    Column("REPLICAS"),
    Column("IN SYNC"),
    Column("END", is_number=True),
    Column("RECORDS/S", is_number=True),
    Column("SIZE", is_number=True),
    Column("STATE"),
)
READERS = (
    Column("GROUP", is_flexible=True),
    Column("STATE"),
    Column("MEMBERS", is_number=True),
    Column("LAG", is_number=True),
)
MEMBERS = (Column("CLIENT ID", is_flexible=True), Column("HOST", is_flexible=True))
OFFSETS = (
    Column("TOPIC", is_flexible=True),
    Column("PARTITION", is_number=True, is_ascending=True),
    Column("COMMITTED", is_number=True),
    Column("END", is_number=True),
    Column("LAG", is_number=True),
    Column("LAG GROWS/S", is_number=True),
)
USERS = (Column("USER", is_flexible=True), Column("MECHANISMS"), Column("ACLS", is_number=True))
RULES = (
    Column("PRINCIPAL", is_flexible=True),
    Column("PERMISSION"),
    Column("OPERATION"),
    Column("RESOURCE"),
    Column("NAME", is_flexible=True),
    Column("PATTERN"),
    Column("HOST", is_flexible=True),
)

Histories = Mapping[str, tuple[str, History | None, str]]
"""Clusters by name: bootstrap addresses, looks, and why the last look failed, if it did."""


def clusters(found: Histories) -> Sheet:
    """The sheet of all clusters, a row each."""
    rows = [_cluster_row(name, *parts) for name, parts in found.items()]
    return Sheet("clusters", CLUSTERS, tuple(rows), 0)


def _cluster_row(name: str, bootstrap: str, history: History | None, trouble: str) -> Row:
    first, last = cells.name(name), Cell(units.printable(bootstrap), bootstrap)
    if history is None:
        state = Cell("does not answer", "3", Tone.BAD) if trouble else Cell("…", None, Tone.FAINT)
        return Row(name, (first, state, *(UNTOLD,) * (len(CLUSTERS) - 3), last))
    look = history.now
    groups = look.groups
    lags = [found for group in groups or () if (found := lag(look, group)) is not None]
    return Row(
        name,
        (
            first,
            _cluster_state(look, trouble),
            cells.number(len(look.members.brokers)),
            cells.number(len(history.by_topic)),
            cells.number(len(look.members.partitions)),
            _alarming(under_replicated(look), Tone.NEAR),
            _alarming(offline(look), Tone.BAD),
            cells.number(len(groups)) if groups is not None else UNTOLD,
            cells.number(max(lags, default=0)) if groups is not None else UNTOLD,
            cells.number(records_per_second(history), awaited=history.before is None and look.ends is not None),
            last,
        ),
    )


def _cluster_state(look: Look, trouble: str) -> Cell:
    if trouble:
        return Cell("does not answer", "3", Tone.BAD)
    if offline(look):
        return Cell("partitions offline", "2", Tone.BAD)
    if under_replicated(look):
        return Cell("under-replicated", "1", Tone.NEAR)
    return Cell("in sync", "0", Tone.GOOD)


def _alarming(value: int, tone: Tone) -> Cell:
    return Cell(units.count(value), float(value), tone if value else Tone.FAINT)


def under_replicated(look: Look) -> int:
    """The partitions that lack a replica in sync."""
    return sum(len(partition.isr) < len(partition.replicas) for partition in look.members.partitions)


def offline(look: Look) -> int:
    """The partitions without a leader."""
    return sum(partition.leader is None for partition in look.members.partitions)


def records_per_second(history: History) -> float | None:
    """The records that a cluster takes in a second; None where an end is not told."""
    return history.per_second(_end(history.now), _end(history.before) if history.before is not None else None)


def _end(look: Look) -> int | None:
    return sum(look.ends.values()) if look.ends is not None else None


def cluster_facts(history: History) -> list[Document]:
    """The facts that stand above the sheets of a cluster."""
    look, behind, missing = history.now, under_replicated(history.now), offline(history.now)
    rate = records_per_second(history)
    moved = [_moved(history, is_in=is_in) for is_in in (True, False)]
    return facts(
        (
            ("Brokers", str(len(look.members.brokers)), ""),
            ("Controller", UNKNOWN if look.controller is None else f"node {look.controller}", ""),
            ("Topics", units.count(len(history.by_topic)), ""),
            ("Partitions", units.count(len(look.members.partitions)), ""),
            ("Under-replicated", str(behind), "warn" if behind else ""),
            ("Offline", str(missing), "bad" if missing else ""),
            ("Groups", UNKNOWN if look.groups is None else str(len(look.groups)), ""),
            ("Records in", _rate_text(rate, _per_second, history), ""),
            ("Bytes in", _rate_text(moved[0], units.rate, history), ""),
            ("Bytes out", _rate_text(moved[1], units.rate, history), ""),
        )
    )


def _rate_text(rate: float | None, shown: Callable[[float], str], history: History) -> str:
    """The rate; `unknown` where the cluster does not tell it, and an ellipsis before the second look."""
    if rate is None:
        return UNKNOWN if history.before is not None else "…"
    return shown(rate)


def _per_second(rate: float) -> str:
    return f"{units.count(rate)}/s"


def _moved(history: History, *, is_in: bool) -> float | None:
    """Bytes a second of clients, as the metrics pages of all brokers tell them; `is_in` of producers."""
    before = history.before.pages if history.before is not None else {}
    return total(
        history.per_second(
            sum((now.topics_in if is_in else now.topics_out).values()),
            sum((before[name].topics_in if is_in else before[name].topics_out).values()),
        )
        for name, now in history.now.pages.items()
        if name in before
    )


def partitions(history: History, topic: str) -> Sheet:
    """The sheet of a topic's partitions."""
    found = sorted(history.by_topic.get(topic, []), key=lambda partition: partition.index)
    return Sheet("partitions", PARTITIONS, tuple(_partition_row(history, partition) for partition in found), 0)


def _partition_row(history: History, partition: SeenPartition) -> Row:
    key = partition.key
    end = (history.now.ends or {}).get(key)
    before = (history.before.ends or {}).get(key) if history.before is not None else None
    sizes = [log_dirs.sizes[key] for log_dirs in history.now.log_dirs.values() if key in log_dirs.sizes]
    isr = Tone.PLAIN if len(partition.isr) == len(partition.replicas) else Tone.NEAR
    return Row(
        str(partition.index),
        (
            Cell(str(partition.index), partition.index, Tone.NAME),
            Cell("none", None, Tone.BAD) if partition.leader is None else Cell(str(partition.leader), partition.leader),
            Cell(text := ", ".join(map(str, partition.replicas)), text),
            Cell(text := ", ".join(map(str, partition.isr)), text, isr),
            _exact(end),
            cells.number(history.per_second(end, before), awaited=history.before is None and end is not None),
            cells.number(sum(sizes), units.size) if sizes else UNTOLD,
            _partition_state(partition),
        ),
    )


def _exact(value: int | None) -> Cell:
    return UNTOLD if value is None else Cell(units.exact(value), value)


def _partition_state(partition: SeenPartition) -> Cell:
    if partition.leader is None:
        return Cell("offline", "2", Tone.BAD)
    if len(partition.isr) < len(partition.replicas):
        return Cell("under-replicated", "1", Tone.NEAR)
    return Cell("in sync", "0", Tone.GOOD)


def readers(history: History, topic: str) -> Sheet:
    """The sheet of the groups that have committed offsets of a topic."""
    groups = history.now.groups
    found = ((name, _part(group, topic)) for name, group in (groups or {}).items())
    rows = tuple(_reader_row(history.now, name, group) for name, group in found if group.partitions)
    note = "this cluster does not tell its groups" if groups is None else ""
    return Sheet("readers", READERS, rows, 3, note)


def _part(group: Group, topic: str) -> Group:
    """The group with what it has committed of a topic alone."""
    return group.part([key for key in group.partitions if key[0] == topic])


def _reader_row(look: Look, name: str, group: Group) -> Row:
    return Row(
        name,
        (
            cells.name(name),
            Cell(group.state, group.state) if group.state else UNTOLD,
            cells.number(len(group.members)) if group.members is not None else UNTOLD,
            cells.number(group.total_lag(look.ends or {})),
        ),
    )


def members(group: Group) -> Sheet:
    """The sheet of a group's members."""
    found = sorted(group.members or ())
    rows = tuple(
        Row(f"{client_id}\0{host}\0{place}", (cells.name(client_id), Cell(units.printable(host), host)))
        for place, (client_id, host) in enumerate(found)
    )
    return Sheet("members", MEMBERS, rows, 0, NO_MEMBERS if group.members is None else "")


def offsets(history: History, name: str) -> Sheet:
    """The sheet of the partitions that a group has committed offsets of."""
    group = (history.now.groups or {}).get(name)
    before = (history.before.groups or {}).get(name) if history.before is not None else None
    keys = group.partitions if group is not None else []
    rows = [_offset_row(history, key, group, before) for key in keys if group is not None]
    return Sheet("offsets", OFFSETS, tuple(rows), 4)


def _offset_row(history: History, key: tuple[str, int], group: Group, before: Group | None) -> Row:
    offset, end = group.committed.get(key), (history.now.ends or {}).get(key)
    behind, growth = group.lag(key, history.now.ends or {}), None
    if before is not None and history.before is not None and key in before.partitions:
        behind_then = before.lag(key, history.before.ends or {})
        if behind is not None and behind_then is not None and history.seconds:
            growth = (behind - behind_then) / history.seconds
    growing = cells.number(growth, units.change, awaited=history.before is None and behind is not None)
    return Row(
        f"{key[0]}\0{key[1]:06}",  # in the order of their numbers
        (
            cells.name(key[0]),
            Cell(str(key[1]), key[1]),
            _exact(offset),
            _exact(end),
            _exact(behind),
            Cell(growing.text, growing.order, Tone.NEAR) if growth is not None and growth >= 1 else growing,
        ),
    )


def group_facts(history: History, name: str, group: Group) -> list[Document]:
    """The facts that stand above the sheets of a group."""
    behind = lag(history.now, name)
    return facts(
        (
            ("State", group.state or UNKNOWN, "good" if group.state == "Stable" else ""),
            ("Protocol", group.kind or UNKNOWN, ""),
            ("Members", UNKNOWN if group.members is None else str(len(group.members)), ""),
            ("Lag", UNKNOWN if behind is None else units.exact(behind), ""),
        )
    )


def topic_facts(history: History, topic: str) -> list[Document]:
    """The facts that stand above the sheets of a topic."""
    found = history.by_topic.get(topic, [])
    behind = sum(len(partition.isr) < len(partition.replicas) for partition in found)
    missing = sum(partition.leader is None for partition in found)
    pages = history.now.pages.values()
    is_told = any(topic in page.topics_in for page in pages)
    rates = [_topic_moved(history, topic, name) for name in (TOPIC_IN, TOPIC_OUT)] if is_told else [None, None]
    return facts(
        (
            ("Partitions", str(len(found)), ""),
            ("Replicas", str(max((len(partition.replicas) for partition in found), default=0)), ""),
            ("Under-replicated", str(behind), "warn" if behind else ""),
            ("Offline", str(missing), "bad" if missing else ""),
            ("Bytes in", _rate_text(rates[0], units.rate, history), ""),
            ("Bytes out", _rate_text(rates[1], units.rate, history), ""),
        )
    )


def _topic_moved(history: History, topic: str, name: str) -> float | None:
    before = history.before.pages if history.before is not None else {}
    field = "topics_in" if name == TOPIC_IN else "topics_out"
    return total(
        history.per_second(getattr(now, field).get(topic), getattr(before[node], field).get(topic))
        for node, now in history.now.pages.items()
        if node in before
    )


def users(credentials: Mapping[str, Mapping[str, int]], rules: Mapping[str, frozenset[Binding]] | None) -> Sheet:
    """The sheet of users with SCRAM credentials, and of those that rules name."""
    principals = {name.removeprefix("User:") for name in rules or {} if name.startswith("User:")} - {"*"}
    rows = [
        Row(
            name,
            (
                cells.name(name),
                Cell(text := ", ".join(sorted(credentials.get(name, ()))), text)
                if name in credentials
                else Cell("no SCRAM credential", "", Tone.FAINT),
                UNTOLD if rules is None else cells.number(len(rules.get(f"User:{name}", ()))),
            ),
        )
        for name in sorted({*credentials, *principals})
    ]
    return Sheet("users", USERS, tuple(rows), 0)


def access_rules(rules: Mapping[str, frozenset[Binding]] | None) -> Sheet:
    """The sheet of access rules."""
    note = "This cluster has no authorizer: every client may do everything." if rules is None else ""
    rows = [_rule_row(principal, rule) for principal, rule in _pairs(rules or {})]
    return Sheet("rules", RULES, tuple(rows), 0, note)


def _pairs(rules: Mapping[str, frozenset[Binding]]) -> Iterator[tuple[str, Binding]]:
    for principal in sorted(rules):
        for rule in sorted(rules[principal]):
            yield principal, rule


def _rule_row(principal: str, rule: Binding) -> Row:
    words: Sequence[str] = (
        rule.operation, rule.resource_type, units.printable(rule.name), rule.pattern_type, units.printable(rule.host)
    )  # fmt: skip
    permission = Cell(rule.permission, rule.permission, Tone.BAD if rule.permission == "Deny" else Tone.GOOD)
    return Row(f"{principal}\0{rule}", (cells.name(principal), permission, *(Cell(word, word) for word in words)))
