"""Trails as brokers write them, drawn, and how a lake takes them in over several runs.

What stands in the topic is noted beside it as the happening that it tells, so that an oracle needs to parse nothing.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kavka_audit.delta.daily_tables import refresh
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.engine import DuckDB
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings
from kavka_broker.core.audit.chain import Chain, Entry
from kavka_broker.core.audit.changes import Change, transaction_aborted
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.events import Changed, Denied, Happening, Lifecycle, LoggedIn, Tally
from kavka_broker.core.audit.ocsf import event_of
from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.core.audit.usage import OTHERS, Throttling, Use
from kavka_broker.core.quota.entity import Entity
from tests.property.analytics.oracle import ALL_OTHERS, MINUTE_MS, OPERATOR, Known, Written
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At, Kept

NODES: Final = 1, 2, 3
PARTITIONS: Final = 2
USERS: Final = "alice", "bob", "ü'\"--", "Zoë\\n%_:x", "\N{PARTY POPPER}"
TOPICS: Final = "orders", "bills", "bills-eu", "bills_eu", "b"
CLIENTS: Final = "app", "", "%(x)s \t'", "ärger"
ADDRESSES: Final = "::1", "10.0.0.1", "10.0.0.12"
AHEAD_MS: Final = 0, 0, 0, 90_000, -7_000, 300_001 + 20 * MINUTE_MS, 3 * DAY_MS + 999
"""How far the clock of a node is ahead."""
SET_BACK_MS: Final = 20_000, 10 * MINUTE_MS, 2 * DAY_MS
"""How far the clock of a node was ahead until it was set back at its next start."""
FOREIGN, UNREADABLE = b"foreign", b"{}"


@dataclass
class Drawn:
    """A topic, and what each of its records is."""

    kept: Kept = field(default_factory=Kept)
    written: dict[int, list[Written]] = field(default_factory=dict)

    def add(self, partition: int, entry: Entry, told: At | None = None, *, is_readable: bool = True) -> None:
        """Write an entry, behind those before."""
        node = int(entry.source.partition("-")[0])
        kind = entry.kind.value if is_readable else "dead"
        written = Written(partition, kind, entry.lost, node, entry.source, entry.sequence, entry.time_ms, told)
        self.kept.add(partition, headers_of(entry), entry.value if is_readable else UNREADABLE)
        self.written.setdefault(partition, []).append(written)

    def add_foreign(self, partition: int) -> None:
        """Write a record that is no entry of a trail."""
        self.kept.add(partition, [], FOREIGN)
        self.written.setdefault(partition, []).append(Written(partition, "dead"))


@dataclass(frozen=True)
class Draw:
    """What a test knows of a cluster: its topics, tables and settings, and how the lake takes each topic in. Behind the
    first topic stands the one that was created when that was deleted.
    """

    topics: list[tuple[Drawn, list["Run"]]]
    tables: dict[str, list[dict[str, Any]]]
    settings: Settings


@dataclass(frozen=True)
class Run:
    """One run: what the topic has by then, where its partitions begin, and how long the lake keeps rows after it."""

    ends: dict[int, int]
    begins: dict[int, int]
    keep_days: int | None
    is_asked: bool


def draw(seed: int, events: int) -> Draw:
    """Draw a trail of so many windows a node, at least one, and what stands around it."""
    chance = random.Random(seed)
    nodes = chance.sample(NODES, chance.choice([1, 2, 3]))
    batches = {node: [*_batches(chance, node, events)] for node in nodes}
    # Those of several nodes stand in any order, and those of one in the order in which it wrote them.
    turns = [node for node, found in batches.items() for _ in found]
    chance.shuffle(turns)
    order = [(node, batches[node].pop(0)) for node in turns]
    topics = [*_topics(chance, order)]
    settings = Settings(NOW_MS, chance.choice([1, 5, 30]), chance.choice([1, 7]), chance.choice([0, 1, 999, 10**6]))
    taken = [(drawn, [*_runs(chance, drawn, is_last=drawn is topics[-1])]) for drawn in topics]
    return Draw(taken, _cluster(chance, nodes), settings)


Batch = list[tuple[Entry, At | None]]


def _topics(chance: random.Random, order: list[tuple[int, Batch]]) -> Iterator[Drawn]:
    """Give the topic that has all batches, or the one that was deleted in between and the one created then. The last
    batch before that may be written again behind it, as its answer was lost.
    """
    end = chance.randrange(1, len(order) + 1) if chance.random() < 0.4 else len(order)
    again = end - (chance.random() < 0.5)
    for topic_id, found in (("first", order[:end]), ("second", order[again:] if end < len(order) else [])):
        if found:
            drawn = Drawn(Kept(topic_id))
            for node, batch in found:
                _write(chance, drawn, node % PARTITIONS, batch)
            yield drawn


def _batches(chance: random.Random, node: int, events: int) -> Iterator[Batch]:
    """Give what a node writes, a batch at a time: chain behind chain, each later than the one before."""
    ahead_ms = chance.choice(AHEAD_MS)
    told = [found for _ in range(events) for found in _together(chance, node, ahead_ms)]
    told.sort(key=lambda found: found.end_ms)
    # Brokers number their starts, controllers do not.
    starts = chance.choice([("8", "9", "10", "11", "12"), ("8", "9", "10", "11", "12"), ("e", "a1", "c", "b", "d")])
    for start in starts[: chance.randrange(4)]:
        # Chains do not begin in the same millisecond.
        first_ms = chance.choice(told).end_ms
        if mine := [found for found in told if found.end_ms < first_ms]:
            is_set_back = start.isdecimal() and chance.random() < 0.2
            wrong_ms = chance.choice(SET_BACK_MS) if is_set_back else 0
            shifted = [At(happening, a + wrong_ms, b + wrong_ms, times) for happening, a, b, times in mine]
            yield from _chain(chance, f"{node}-{start}", shifted)
        told = told[len(mine) :]
    yield from _chain(chance, f"{node}-{starts[-1]}", told)


def _chain(chance: random.Random, source: str, told: list[At]) -> Iterator[Batch]:
    """Give the batches of a chain, with heads, losses, and often an end; some of its entries were deleted."""
    chain = Chain(source)
    found: Batch = [(chain.head(told[0].end_ms), None)]
    for event in told:
        value = event_of(Tally(event.happening, event.times, *event[1:3]), f"{source}-{chain.sequence}")
        found.append((chain.event(value, event.end_ms), event))
        if chance.random() < 0.1:
            found.append((chain.loss(chance.randrange(1, 9), event.end_ms), None))
        for _ in range(chance.choice([0, 0, 0, 1, 40 if chance.random() < 0.05 else 2])):
            found.append((chain.head(event.end_ms), None))
    if chance.random() < 0.5:
        found.append((chain.end(found[-1][0].time_ms), None))
    found = [entry for entry in found if chance.random() > 0.03]
    while found:
        size = chance.randrange(1, 6)
        yield found[:size]
        found = found[size:]


def _write(chance: random.Random, drawn: Drawn, partition: int, batch: Batch) -> None:
    """Write a batch, some of them twice, and what is no entry beside it."""
    unreadable = {entry.sequence for entry, told in batch if told is not None and chance.random() < 0.02}
    for _ in range(1 if chance.random() < 0.8 else 2):
        for entry, told in batch:
            drawn.add(partition, entry, told, is_readable=entry.sequence not in unreadable)
    if chance.random() < 0.05:
        drawn.add_foreign(partition)


def _together(chance: random.Random, node: int, ahead_ms: int) -> Iterator[At]:
    """Give what happens in a window: mostly one thing, or a delay and the use beside it."""
    ago_ms = chance.choice([0, 0, DAY_MS, 5 * DAY_MS, 7 * DAY_MS, 30 * DAY_MS, 45 * DAY_MS])
    end_ms = NOW_MS - ago_ms - chance.randrange(14) * MINUTE_MS + chance.choice([0, 0, 1, -1, 20_000])
    end_ms += ahead_ms if ago_ms == 0 else 0  # what is old was written before the clock was set wrong
    span = end_ms - chance.choice([1_000, MINUTE_MS, MINUTE_MS, 3 * MINUTE_MS]), end_ms
    user, client = chance.choice(USERS), chance.choice(CLIENTS)
    way = chance.random()
    if way < 0.2:
        # Of few clients, so that one is often held back again soon.
        user, client = chance.choice(USERS[1:3]), chance.choice(CLIENTS[2:])
        principal, address = f"User:{user}", chance.choice(ADDRESSES)
        for _ in range(chance.randrange(1, 3)):
            kind = chance.choice(["produce", "produce", "fetch", "request"])
            entity = entity_key(chance.choice([Entity(user, None), Entity(None, client)]))
            held_ms = chance.choice([0, 500, 7_000, 50_000])
            limit = chance.choice([1024.0, 65_536.0, 1e6])
            yield At(Throttling(principal, address, client, kind, entity, limit, held_ms, held_ms // 3), *span, 4)
        for _ in range(chance.randrange(3)):
            yield At(_use(chance, principal, address, client), *span, chance.randrange(1, 5))
    else:
        yield At(_happening(chance, node, way, user, client), *span, chance.randrange(1, 5))


def _use(chance: random.Random, principal: str, address: str, client: str) -> Use:
    operation, size = chance.choice(["READ", "WRITE"]), chance.choice([1, 100, chance.randrange(1, 10**9), 10**13])
    records = chance.randrange(1, 100) if operation == "WRITE" else None
    return Use(principal, address, client, operation, chance.choice(TOPICS), size, records)


def _happening(chance: random.Random, node: int, way: float, user: str, client: str) -> Happening:
    principal, address = f"User:{user}", chance.choice(ADDRESSES)
    if way < 0.6:
        return _use(chance, principal, address, client)
    if way < 0.75:
        kind = chance.choice(["topic", "topic", "group"])
        return Denied(principal, address, chance.choice(["READ", "WRITE", "DELETE"]), kind, chance.choice(TOPICS))
    if way < 0.82:
        return LoggedIn(chance.choice([None, user]), address, "EXTERNAL")
    if way < 0.92:
        return _change(chance, node, user, client, address)
    if way < 0.95:
        return Lifecycle("START", str(node), "1.0")
    return _others(chance)


def _change(chance: random.Random, node: int, user: str, client: str, address: str) -> Changed:
    if chance.random() < 0.2:
        return Changed(f"Broker:{node}", "", "", transaction_aborted(f"{user}-0", "timeout"))
    kind, name = chance.choice(["topic", "group", "user"]), chance.choice([*TOPICS, user])
    values = chance.choice(
        [("", None, None), ("retention.ms", "9", None), ("retention.ms", None, "8"), ("k", "ü", "'")]
    )
    principal = OPERATOR if chance.random() < 0.3 else f"User:{user}"
    return Changed(principal, address, client, Change(chance.choice(["ALTER", "DELETE"]), kind, name, *values))


def _others(chance: random.Random) -> Happening:
    """Return what is told of several clients together."""
    operation = chance.choice(["READ", "WRITE"])
    happenings: list[Happening] = [
        Use(ALL_OTHERS, "", "", operation, chance.choice(TOPICS), 77, 1 if operation == "WRITE" else None),
        Use(ALL_OTHERS, "", "", operation, OTHERS, 77, 1 if operation == "WRITE" else None),
        Denied(ALL_OTHERS, "", operation, "topic", OTHERS),
        Throttling(ALL_OTHERS, "", "", "produce", "", 2048.0, 900, 90),
    ]
    return chance.choice(happenings)


def _cluster(chance: random.Random, nodes: list[int]) -> dict[str, list[dict[str, Any]]]:
    principals = [f"User:{user}" for user in USERS]
    topics = [*TOPICS, "never", "__internal"]
    labels = {("cluster", "", "owner"), *(("topic", name, "owner") for name in TOPICS)}
    labels |= {("principal", name, label) for name in principals for label in ("owner", "team")}
    rules = {
        (
            chance.choice([*principals, "User:*"]),
            chance.choice(["*", "*", *ADDRESSES, "10.0.0.0/8"]),
            chance.choice(["READ", "WRITE", "ALL", "DESCRIBE"]),
            chance.choice(["topic", "topic", "topic", "group"]),
            *chance.choice([("LITERAL", "*"), ("PREFIXED", "bills"), ("PREFIXED", "bills_"), *LITERALS]),
            chance.choice(["ALLOW", "ALLOW", "ALLOW", "DENY"]),
        )
        for _ in range(chance.randrange(12))
    }
    keys = "principal", "host", "operation", "resource_type", "pattern_type", "resource", "permission"
    return {
        "brokers": [{"node": node} for node in (nodes if chance.random() < 0.8 else NODES)],
        "topics": [
            {"topic": name, "partitions": 1, "bytes": chance.choice([0, 9, 10**12]), "is_internal": name[0] == "_"}
            for name in topics
        ],
        "partitions": [
            {"topic": name, "partition": place, "leader": 1, "records": chance.choice([0, 0, 9, 999, 1_000, 10**9])}
            for name in topics
            for place in range(chance.randrange(1, 5))
        ],
        "grants": [dict(zip(keys, rule, strict=True)) for rule in sorted(rules)],
        "labels": [
            {"kind": kind, "name": name, "label": label, "value": chance.choice("xyz")}
            for kind, name, label in sorted(labels)
            if chance.random() < 0.5
        ],
        "verdicts": _verdicts(chance),
    }


LITERALS: Final = [("LITERAL", name) for name in TOPICS]


def _verdicts(chance: random.Random) -> list[dict[str, Any]]:
    """Return what an earlier run found of some buckets."""
    places = {
        (topic, NOW_MS - NOW_MS % 600_000 - chance.choice([1, 2, 3, 143, 144, 145]) * 600_000, *side)
        for topic in TOPICS[:2]
        for side in (("log", ""), ("consumer", "g"))
        for _ in range(chance.randrange(9))
    }
    rows = []
    for topic, bucket_ms, tier, name in sorted(places):
        counts = {key: chance.choice([0, 0, 3, 4, 10]) for key in ("expected", "missing", "duplicates", "late")}
        place = {"topic": topic, "bucket_ms": bucket_ms, "tier": tier, "name": name}
        rows.append(place | counts | {"completeness": 0.5, "is_closed": chance.random() < 0.8})
    return rows


def _runs(chance: random.Random, drawn: Drawn, *, is_last: bool) -> Iterator[Run]:
    """Give the runs that take a topic in, the last one all of it unless the topic was deleted before; some find that
    records were deleted before.
    """
    ends, begins = dict.fromkeys(drawn.written, 0), dict.fromkeys(drawn.written, 0)
    runs = chance.randrange(1, 4)
    for number in range(runs):
        for partition, records in drawn.written.items():
            taken = ends[partition]
            if number == runs - 1 and is_last:
                ends[partition] = len(records)
            else:
                ends[partition] = chance.randrange(taken, len(records) + 1)
            if chance.random() < 0.15:
                begins[partition] = chance.randrange(taken, ends[partition] + 1)
        keep_days = chance.choice([None, None, 40, 10])
        yield Run(dict(ends), dict(begins), keep_days, chance.random() < 0.5)


class Parquet:
    """A lake of Parquet files: one for each partition and run, which is deleted as a whole."""

    table_format: Final = "parquet"

    def __init__(self) -> None:
        self.engine = DuckDB()

    @staticmethod
    def old(files: list[list[Written]], limit_ms: int) -> list[list[Written]]:
        """Return what is deleted of the files of a partition: never the newest, nor one behind a file that stays."""
        old = list[list[Written]]()
        for file in files[:-1]:
            newest_ms = max((row.written_ms for row in file if row.written_ms is not None), default=NOW_MS)
            if newest_ms >= limit_ms:
                break
            old.append(file)
        return old

    def between(self, lake: Lake) -> None:
        """Do what happens between runs."""


class Delta:
    """A lake of Delta tables, whose rows are deleted by the day in which they were written."""

    table_format: Final = "delta"

    def __init__(self) -> None:
        self.engine = DeltaDuckDB(lambda: NOW_MS / 1000)

    @staticmethod
    def old(files: list[list[Written]], limit_ms: int) -> list[list[Written]]:
        """Return what is deleted: the rows of earlier days. What has no time is of the day of the run."""
        first_ms = limit_ms - limit_ms % DAY_MS
        return [[row for row in file if row.written_ms is not None and row.written_ms < first_ms] for file in files]

    def between(self, lake: Lake) -> None:
        """Keep the daily tables, so that the next run makes anew only what it changes."""
        refresh(lake)


def take_in(directory: Path, found: Draw, way: Parquet | Delta) -> tuple[Lake, Known]:
    """Have a lake take the trail in, run by run; returns it with what it is to have."""
    lake = Lake(directory, table_format=way.table_format)
    files = defaultdict[tuple[str, int], list[list[Written]]](list)
    deleted, reached = dict[str, int](), defaultdict[tuple[str, int], int](int)
    with lake.held(CLUSTER):
        for whole, run in ((whole, run) for whole, runs in found.topics for run in runs):
            records = {partition: some[: run.ends[partition]] for partition, some in whole.kept.records.items()}
            list(way.engine.ingest(lake, Kept(whole.kept.topic_id, records, run.begins)))
            for partition, end in run.ends.items():
                place = whole.kept.topic_id, partition
                if end > reached[place]:
                    first = max(reached[place], run.begins[partition])
                    lost = [Written(partition, "missed", first - reached[place])] * (first > reached[place])
                    files[place].append([*lost, *whole.written[partition][first:end]])
                    reached[place] = end
            if run.is_asked:
                way.between(lake)
            if run.keep_days is not None:
                way.engine.retain(lake, NOW_MS, run.keep_days)
                for of_partition in files.values():
                    _delete(of_partition, way.old(of_partition, NOW_MS - run.keep_days * DAY_MS), deleted)
        keep(lake, Snapshot(CLUSTER, found.tables))
    kept = [row for of_partition in files.values() for file in of_partition for row in file]
    return lake, Known(kept, deleted, found.tables, found.settings)


def _delete(files: list[list[Written]], old: list[list[Written]], deleted: dict[str, int]) -> None:
    """Take old rows away from the files, and note where they end in each chain."""
    for place, rows in enumerate(old):
        gone = {id(row) for row in rows}
        for row in rows:
            if row.source is not None and row.sequence is not None:
                deleted[row.source] = max(deleted.get(row.source, -1), row.sequence)
        files[place] = [row for row in files[place] if id(row) not in gone]
    if old and any(old):
        files[:] = [file for place, file in enumerate(files) if file or place == len(files) - 1]
