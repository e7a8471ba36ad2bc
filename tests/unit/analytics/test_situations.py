"""Twenty-five situations in one cluster, planted beside much that is sound: all are found, and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings, Table
from kavka_audit.run import refresh
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.events import Changed, Denied, LoggedIn
from kavka_broker.core.audit.usage import MINUTE_MS, Throttling
from tests.unit.analytics.books import BUCKET_MS, Books
from tests.unit.analytics.test_questions import grant, topic, use
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At, Kept, chain_of

LONG_AGO_MS: Final = NOW_MS - 90 * DAY_MS
Finding = tuple[Any, ...]
SOUND_USES: Final = [
    use(who, how, name, end_ms=NOW_MS - day * DAY_MS)
    for day in range(0, 100, 9)
    for name in ("orders", "bills")
    for who, how in (("shop", "WRITE"), ("billing", "READ"))
]
SOUND_GRANTS: Final = [
    grant("User:shop", "WRITE", "orders"),
    grant("User:billing", "READ", "*"),
    grant("User:shop", "WRITE", "bill", pattern_type="PREFIXED"),
    grant("User:stranger", "READ", "orders", permission="DENY"),
]
SOUND_PARTITIONS: Final[list[dict[str, object]]] = [
    {"topic": "orders", "partition": place, "leader": 1, "records": 5_000 + place} for place in range(4)
]
#: What there is to be found, by question.
PLANTED: Final[Mapping[str, set[Finding]]] = {
    "deletable_topics": {("never", None, None), ("left", "User:shop", "shop"), ("read-once", "User:billing", None)},
    "unused_grants": {
        ("User:gone", "READ", "orders"),
        ("User:shop", "WRITE", "payments-"),
        ("User:billing", "WRITE", "orders"),
    },
    "first_access": {("User:intruder", "READ", "bills"), ("User:shop", "READ", "orders")},
    "denied_operations": {
        ("User:stranger", "WRITE", "orders", 3, False),
        ("User:billing", "READ", "bills", 1, True),
        (None, "LOGIN", "EXTERNAL", 40, False),
    },
    "throttle_incidents": {
        ("User:shop", "produce", 60_000),
        ("User:shop", "produce", 30_000),
        ("User:etl", "request", 500),
    },
    "quota_recommendations": {("user=shop", 4 * 65_536)},
    "hot_partitions": {("skewed", 2)},
    "config_changes": {("ALTER_CONFIGS", "orders", "8", "9"), ("DELETE", "old", None, None)},
    "audit_gaps": {
        ("missing", "1-1", 2),
        ("lost", "2-1", 7),
        ("unended", "3-1", 0),
        ("dead", "partition 0", 1),
        ("untold", "producer shop producer shop", 1),
    },
    "completeness": {(BUCKET_MS, "", 2, 3), (BUCKET_MS + 600_000, "", 1, 0), (BUCKET_MS + 600_000, "billing", 1, 1)},
}
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "deletable_topics": ("topic", "last_principal", "owner"),
    "unused_grants": ("principal", "operation", "resource"),
    "first_access": ("principal", "operation", "topic"),
    "denied_operations": ("principal", "operation", "resource", "times", "was_allowed"),
    "throttle_incidents": ("principal", "quota_type", "throttle_time_ms"),
    "quota_recommendations": ("entity", "fitting_limit"),
    "hot_partitions": ("topic", "partition"),
    "config_changes": ("operation", "resource", "config_previous", "config_value"),
    "audit_gaps": ("gap", "place", "entries"),
    "completeness": ("bucket_ms", "name", "missing", "duplicates"),
}


def findings(tables: Mapping[str, Table]) -> dict[str, set[Finding]]:
    """What each question has to say that somebody should look at."""
    found = {}
    for name, columns in COLUMNS.items():
        rows = [
            row
            for row in tables[name].dicts()
            if row.get("is_new", True)
            and (name != "completeness" or (row["is_closed"] and row["missing"] + row["duplicates"] > 0))
        ]
        found[name] = {tuple(row[column] for column in columns) for row in rows}
        assert len(found[name]) == len(rows), name
    return found


def begin_again(trail: Kept, node: int) -> None:
    """A broker that has been started again, and goes on."""
    chain, entries = chain_of(node, [], epoch=2)
    trail.write(0, [*entries, chain.head(NOW_MS + 1)])


def sound_books() -> Books:
    """Two topics of which all clients tell, and nothing is wrong."""
    books = Books()
    producer, reader = books.teller(), books.teller("consumer", "billing")
    for name in ("orders", "bills"):
        books.with_log(name).fill(0, [BUCKET_MS] * 50 + [BUCKET_MS + 600_000] * 50)
        for client in (producer, reader):
            client.add(0, BUCKET_MS, *range(50), topic=name)
            client.add(0, BUCKET_MS + 600_000, *range(50, 100), topic=name)
    producer.tell()
    reader.tell()
    return books


def answered(directory: Path, trail: Kept, books: Books, **tables: list[dict[str, object]]) -> dict[str, set[Finding]]:
    snapshot = Snapshot(CLUSTER, tables)
    return findings(refresh(Lake(directory), trail, snapshot, Settings(NOW_MS), lambda _: None, books).tables)


def test_a_sound_cluster_has_no_finding(tmp_path: Path) -> None:
    trail = Kept()
    for node in (1, 2, 3):
        chain, entries = chain_of(node, SOUND_USES)
        trail.write(0, [*entries, chain.end(NOW_MS)])
        begin_again(trail, node)
    found = answered(
        tmp_path,
        trail,
        sound_books(),
        brokers=[{"node": node} for node in (1, 2, 3)],
        topics=[topic("orders"), topic("bills"), topic("__consumer_offsets", is_internal=True)],
        grants=SOUND_GRANTS,
        partitions=SOUND_PARTITIONS,
    )
    assert found == {name: set() for name in COLUMNS}


def held(minute: int, limit: float = 100_000.0) -> At:
    start_ms = NOW_MS - 60 * MINUTE_MS + minute * MINUTE_MS
    throttled = Throttling("User:shop", "::1", "app", "produce", '{"user": "shop"}', limit, 30_000, 15_000)
    return At(throttled, start_ms, start_ms + MINUTE_MS, 2)


def happenings() -> list[At]:
    """What brokers tell of the situations."""
    late_ms = NOW_MS - 60 * MINUTE_MS
    return [
        use("shop", "WRITE", "left", end_ms=LONG_AGO_MS + DAY_MS),
        use("billing", "READ", "left", end_ms=LONG_AGO_MS),
        use("billing", "READ", "read-once", end_ms=LONG_AGO_MS),
        use("intruder", "READ", "bills"),
        use("shop", "READ", "orders"),
        At(Denied("User:stranger", "::1", "WRITE", "topic", "orders"), times=3),
        At(Denied("User:billing", "::1", "READ", "topic", "bills")),
        At(LoggedIn(None, "::1", "EXTERNAL"), times=40),
        *(
            use("shop", "WRITE", "orders", 6_000_000, end_ms=late_ms + (minute + 1) * MINUTE_MS)
            for minute in (0, 1, 20)
        ),
        held(0),
        held(1),
        held(20),
        At(Throttling("User:etl", "::1", "etl", "request", '{"user": "etl"}', 50.0, 500, 500)),
        At(Changed("User:admin", "::1", "cli", Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", "9", "8"))),
        At(Changed("User:admin", "::1", "cli", Change("DELETE", "topic", "old"))),
    ]


def planted_trail() -> Kept:
    trail = Kept()
    chain, entries = chain_of(1, [*SOUND_USES, *happenings()])
    trail.write(0, [*entries[:4], *entries[6:], chain.end(NOW_MS)])  # two are gone, of uses that others tell too
    second, entries = chain_of(2, SOUND_USES)
    trail.write(0, [*entries, second.loss(7, NOW_MS), second.end(NOW_MS)])
    trail.write(0, chain_of(3, SOUND_USES)[1])  # killed
    for node in (1, 2, 3):
        begin_again(trail, node)
    trail.add(0, [], b"foreign")
    return trail


def planted_books() -> Books:
    """In the first bucket two are lost and three stand twice; in the second one is lost, and a group skips one."""
    books = sound_books()
    books.kept.records.clear()
    producer, reader = books.teller(), books.teller("consumer", "billing")
    log = books.logs["orders"]
    for name in ("orders", "bills"):
        for client in (producer, reader):
            client.add(0, BUCKET_MS, *range(50), topic=name)
            client.add(0, BUCKET_MS + 600_000, *range(50, 100), topic=name)
    log.fill(0, [BUCKET_MS] * 3 + [BUCKET_MS + 600_000])
    producer.add(0, BUCKET_MS + 600_000, 103, 104)
    producer.tell()
    producer.sequence += 1  # a report of nothing that matters got lost
    producer.add(0, BUCKET_MS + 600_000, topic="bills")
    producer.ranges.add("bills", 0, NOW_MS, 500)
    producer.tell()
    del log.records[0][7], log.records[0][8]
    reader.add(0, BUCKET_MS, 100, 101, 102)
    reader.add(0, BUCKET_MS + 600_000, 60)
    reader.tell()
    return books


def test_all_situations_are_found_and_nothing_else(tmp_path: Path) -> None:
    assert sum(len(found) for found in PLANTED.values()) >= 25
    labels: list[dict[str, object]] = [{"kind": "topic", "name": "left", "label": "owner", "value": "shop"}]
    skewed: list[dict[str, object]] = [
        {"topic": "skewed", "partition": place, "leader": 1, "records": (9_000, 9_000, 99_000)[place]}
        for place in range(3)
    ]
    found = answered(
        tmp_path,
        planted_trail(),
        planted_books(),
        brokers=[{"node": node} for node in (1, 2, 3)],
        topics=[topic(name) for name in ("orders", "bills", "never", "left", "read-once")],
        grants=[
            *SOUND_GRANTS,
            grant("User:gone", "READ", "orders"),
            grant("User:shop", "WRITE", "payments-", pattern_type="PREFIXED"),
            grant("User:billing", "WRITE", "orders", host="10.0.0.1"),
        ],
        partitions=[*SOUND_PARTITIONS, *skewed],
        labels=labels,
    )
    for name in COLUMNS:
        assert found[name] == PLANTED[name], name
