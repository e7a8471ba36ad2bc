"""What the questions find: planted situations, all of them and no others, and sums that agree with plain Python."""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.engine import DuckDB
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested
from kavka_audit.questions.query_runner import Settings, Table, questions
from kavka_audit.report.answers import answer
from kavka_audit.report.metrics import metrics
from kavka_audit.report.severity import weight
from kavka_broker.core.audit.chain import Chain
from kavka_broker.core.audit.changes import Change, transaction_aborted
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.events import Changed, Denied, LoggedIn
from kavka_broker.core.audit.usage import MINUTE_MS, Throttling, Use
from tests.unit.analytics.delta import lake_in
from tests.unit.analytics.few_questions import Answers, asked
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, ROWS_MAX, At, Kept, answers, chain_of

LONG_AGO = NOW_MS - 90 * DAY_MS
BROKERS: list[dict[str, object]] = [{"node": 1}]


def use(
    principal: str, operation: str, topic: str, size: int = 100, *, end_ms: int = NOW_MS, address: str = "::1"
) -> At:
    records = 1 if operation == "WRITE" else None
    return At(Use(f"User:{principal}", address, "app", operation, topic, size, records), end_ms - MINUTE_MS, end_ms)


def trail_of(*happenings: At) -> Kept:
    trail = Kept()
    trail.write(0, chain_of(1, happenings)[1])
    return trail


def topic(name: str, *, size: int = 1, is_internal: bool = False) -> dict[str, object]:
    return {"topic": name, "partitions": 1, "bytes": size, "is_internal": is_internal}


def grant(principal: str, operation: str, resource: str, **others: str) -> dict[str, object]:
    given: dict[str, object] = {"host": "*", "resource_type": "topic", "pattern_type": "LITERAL", "permission": "ALLOW"}
    return {"principal": principal, "operation": operation, "resource": resource} | given | others


def column(table: Table, name: str) -> list[object]:
    return [row[name] for row in table.dicts()]


def test_each_question_has_a_title_and_an_explanation() -> None:
    assert len(questions()) == 16
    assert all(question.title.endswith("?") and question.explanation for question in questions())


def test_every_table_has_whole_numbers_where_they_are_whole(tmp_path: Path) -> None:
    held = Throttling("User:a", "::1", "app", "produce", '{"user": "a"}', 1024.0, 5, 5)
    trail = trail_of(use("a", "WRITE", "t"), use("b", "READ", "t"), At(held))
    found = answers(tmp_path, trail)
    for name in found:
        relation = duckdb.read_parquet(str(tmp_path / "tables" / f"{name}.parquet"))
        for column_name, kind in zip(relation.columns, relation.types, strict=True):
            is_fraction = column_name in (
                "completeness",
                "share",
                "times_the_mean",
                "rate",
                "demand",
                "quota_limit",
                "fitting_limit",
            )
            assert str(kind) in ("VARCHAR", "BIGINT", "INTEGER", "BOOLEAN", *(["DOUBLE"] if is_fraction else [])), name


def test_topics_that_nobody_uses_may_be_deleted(tmp_path: Path) -> None:
    trail = trail_of(
        use("a", "WRITE", "begun", end_ms=LONG_AGO),
        use("a", "WRITE", "left", end_ms=LONG_AGO + DAY_MS),
        use("b", "READ", "left", end_ms=LONG_AGO),
        use("a", "WRITE", "written"),
        use("a", "READ", "read"),
    )
    names = ("begun", "left", "never", "written", "read")
    topics = [*map(topic, names), topic("__consumer_offsets", is_internal=True)]
    found = Answers(tmp_path, trail, {"topics": topics, "brokers": BROKERS})["deletable_topics"]
    assert sorted(map(str, column(found, "topic"))) == ["begun", "left", "never"]
    last = {row["topic"]: row["last_principal"] for row in found.dicts()}
    assert last == {"begun": "User:a", "left": "User:a", "never": None}


@pytest.mark.parametrize("brokers", [[{"node": 1}, {"node": 2}], []])
def test_no_topic_may_be_deleted_where_a_broker_keeps_no_trail(
    tmp_path: Path, brokers: list[dict[str, object]]
) -> None:
    trail = trail_of(use("a", "WRITE", "left", end_ms=LONG_AGO))
    found = Answers(tmp_path, trail, {"topics": [topic("left")], "brokers": brokers})
    assert found["deletable_topics"].count == 0


def test_no_topic_may_be_deleted_where_the_trail_is_younger(tmp_path: Path) -> None:
    trail = Kept()
    chain, _ = chain_of(1, [])
    trail.write(0, [chain.head(NOW_MS - 5 * DAY_MS)])
    found = Answers(tmp_path / "a", trail, {"topics": [topic("left")], "brokers": BROKERS})
    assert found["deletable_topics"].count == 0
    fewer = Answers(tmp_path / "b", trail, {"topics": [topic("left")], "brokers": BROKERS}, Settings(NOW_MS, 4))
    assert column(fewer["deletable_topics"], "topic") == ["left"]


def test_rules_that_nobody_needed_are_unused(tmp_path: Path) -> None:
    trail = trail_of(use("a", "READ", "orders", address="10.0.0.1"), use("b", "WRITE", "bills-eu"))
    needed = [
        grant("User:a", "READ", "orders"),
        grant("User:a", "ALL", "orders"),
        grant("User:*", "READ", "*"),
        grant("User:b", "WRITE", "bills-", pattern_type="PREFIXED"),
        grant("User:a", "READ", "orders", host="10.0.0.1"),
        grant("User:a", "READ", "orders", host="10.0.0.0/8"),
        grant("User:a", "DESCRIBE", "other"),
        grant("User:a", "READ", "group", resource_type="group"),
        grant("User:a", "READ", "other", permission="DENY"),
    ]
    unused = [
        grant("User:a", "WRITE", "orders"),
        grant("User:a", "READ", "order"),
        grant("User:c", "READ", "orders"),
        grant("User:b", "WRITE", "bill_", pattern_type="PREFIXED"),
        grant("User:a", "READ", "orders", host="10.0.0.2"),
    ]
    found = Answers(tmp_path, trail, {"grants": [*needed, *unused]})["unused_grants"].dicts()
    assert {tuple(row.values()) for row in found} == {tuple(rule[key] for key in found[0]) for rule in unused}


OLD_USE = use("a", "WRITE", "old", end_ms=LONG_AGO)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (use("(others)", "WRITE", "precious", address=""), ["old"]),
        (use("(others)", "WRITE", "(others)", address=""), []),
        (use("(others)", "WRITE", "(others)", address="", end_ms=LONG_AGO), ["precious", "old"]),
    ],
    ids=["its topic is named", "it may be any topic", "long ago"],
)
def test_use_that_is_told_together_leaves_no_topic_for_deletion(tmp_path: Path, other: At, named: list[str]) -> None:
    """A broker with more than a thousand pairs of client and topic had its topics in use named as deletable."""
    trail = trail_of(OLD_USE, other)
    found = Answers(tmp_path, trail, {"topics": [topic("precious", size=9), topic("old")], "brokers": BROKERS})
    assert column(found["deletable_topics"], "topic") == named
    unnamed = [row for row in found["audit_gaps"].dicts() if row["gap"] == "unnamed"]
    is_unnamed = other.happening.topic == "(others)"  # type: ignore[union-attr]
    assert unnamed == ([{"gap": "unnamed", "place": "WRITE (others)", "entries": 1}] if is_unnamed else [])


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (use("(others)", "READ", "t", address=""), [("User:b", "WRITE", "t"), ("User:b", "READ", "u")]),
        (use("(others)", "READ", "(others)", address=""), [("User:b", "WRITE", "t")]),
    ],
    ids=["its topic is named", "it may be any topic"],
)
def test_use_that_is_told_together_may_have_needed_any_rule(
    tmp_path: Path, other: At, named: list[tuple[str, str, str]]
) -> None:
    rules = [grant("User:b", "READ", "t", host="10.0.0.1"), grant("User:b", "WRITE", "t"), grant("User:b", "READ", "u")]
    found = Answers(tmp_path, trail_of(OLD_USE, other), {"grants": rules})["unused_grants"]
    assert [(row["principal"], row["operation"], row["resource"]) for row in found.dicts()] == named


def test_a_first_use_is_new_only_where_the_trail_goes_back_further(tmp_path: Path) -> None:
    recent = use("b", "READ", "orders")
    found = Answers(tmp_path / "old", trail_of(use("a", "READ", "orders", end_ms=LONG_AGO), recent))["first_access"]
    assert {row["principal"]: row["is_new"] for row in found.dicts()} == {"User:a": False, "User:b": True}
    young = Answers(tmp_path / "young", trail_of(recent))["first_access"]
    assert column(young, "is_new") == [False]


def test_refusals_say_whether_they_were_allowed_at_another_time(tmp_path: Path) -> None:
    trail = trail_of(
        At(Denied("User:a", "::1", "READ", "topic", "orders"), times=3),
        At(Denied("User:a", "::1", "READ", "topic", "orders"), times=4),
        At(Denied("User:a", "::1", "WRITE", "topic", "orders")),
        At(LoggedIn(None, "::1", "EXTERNAL"), times=2),
        use("a", "READ", "orders"),
        use("a", "READ", "orders", address="::2"),
    )
    found = Answers(tmp_path, trail)["denied_operations"].dicts()
    told = {(row["principal"], row["operation"], row["times"], row["was_allowed"]) for row in found}
    assert told == {("User:a", "READ", 7, True), ("User:a", "WRITE", 1, False), (None, "LOGIN", 2, False)}


def test_a_group_is_not_the_topic_of_its_name_nor_one_of_several_the_other(tmp_path: Path) -> None:
    """What is told together names neither a principal nor a topic, and so no other use of both."""
    trail = trail_of(
        At(Denied("User:a", "::1", "READ", "group", "orders")),
        At(Denied("User:(others)", "", "READ", "topic", "(others)")),
        use("a", "READ", "orders"),
        use("(others)", "READ", "(others)", address=""),
    )
    assert column(Answers(tmp_path, trail)["denied_operations"], "was_allowed") == [False, False]


def held(minute: int, limit: float = 100_000.0, delay_ms: int = 30_000) -> At:
    start_ms = NOW_MS + minute * MINUTE_MS
    throttled = Throttling("User:a", "::1", "app", "produce", '{"user": "a"}', limit, delay_ms, delay_ms // 2)
    return At(throttled, start_ms, start_ms + MINUTE_MS, 2)


def test_delays_within_five_minutes_are_one_incident(tmp_path: Path) -> None:
    trail = trail_of(held(0), held(1), held(5), held(11, limit=200_000.0), held(12))
    found = Answers(tmp_path, trail)["throttle_incidents"].dicts()
    told = sorted((row["start_ms"], row["end_ms"], row["requests"], row["throttle_time_ms"]) for row in found)
    ends = [NOW_MS + minute * MINUTE_MS for minute in (6, 13)]
    assert told == [(NOW_MS, ends[0], 6, 90_000), (NOW_MS + 11 * MINUTE_MS, ends[1], 4, 60_000)]


def test_the_limit_that_fits_is_that_of_the_demand(tmp_path: Path) -> None:
    """100 kB/s reached while held for half of the time is a demand of 200 kB/s."""
    size = 100_000 * 60
    uses = [use("a", "WRITE", "orders", size, end_ms=NOW_MS + (minute + 1) * MINUTE_MS) for minute in range(3)]
    others = [use("b", "WRITE", "orders", 9 * size, end_ms=NOW_MS + MINUTE_MS), use("a", "READ", "orders", size)]
    (row,) = Answers(tmp_path, trail_of(*uses, *others, *map(held, range(3))))["quota_recommendations"].dicts()
    assert (row["entity"], row["quota_type"], row["quota_limit"]) == ("user=a", "produce", 100_000)
    assert row["demand"] == pytest.approx(200_000)
    assert row["fitting_limit"] == 4 * 65_536
    assert (row["minutes"], row["node"], row["quota_entity"]) == (3, 1, '{"user":"a"}')
    assert row["rate"] == pytest.approx(100_000)


def test_shorter_windows_add_up_to_minutes(tmp_path: Path) -> None:
    """Ten windows of a second, the first with a burst: what counts is the rate over all of them."""
    begin_ms = NOW_MS - NOW_MS % MINUTE_MS
    trail = []
    for second in range(10):
        span = begin_ms + second * 1_000, begin_ms + (second + 1) * 1_000
        size = 550_000 if second == 0 else 50_000
        trail.append(At(Use("User:a", "::1", "app", "WRITE", "t", size, 1), *span))
        trail.append(At(Throttling("User:a", "::1", "app", "produce", '{"user": "a"}', 100_000.0, 500, 500), *span))
    (row,) = Answers(tmp_path, trail_of(*trail))["quota_recommendations"].dicts()
    assert row["demand"] == pytest.approx(200_000)
    assert row["minutes"] == 1


def test_a_partition_with_far_more_than_its_topic_is_hot(tmp_path: Path) -> None:
    def of(name: str, *counts: int) -> list[dict[str, object]]:
        return [
            {"topic": name, "partition": place, "leader": 1, "records": count} for place, count in enumerate(counts)
        ]

    partitions = [*of("even", 5_000, 5_000), *of("skewed", 100, 9_000, 100), *of("small", 1, 1, 100), *of("one", 9_000)]
    found = Answers(tmp_path, Kept(), {"partitions": partitions})["hot_partitions"].dicts()
    assert [(row["topic"], row["partition"]) for row in found] == [("skewed", 1)]


def test_changes_are_told_the_last_first(tmp_path: Path) -> None:
    change = Change("ALTER_CONFIGS", "topic", "orders", "retention.ms", "9", "8")
    early = At(Changed("User:a", "::1", "admin", change), NOW_MS - 10, NOW_MS - 9)
    late = At(Changed("User:b", "::1", "admin", Change("DELETE", "topic", "orders")))
    aborted = At(Changed("Broker:1", "", "", transaction_aborted("orders-0", "timeout")))
    found = Answers(tmp_path, trail_of(late, early, aborted, use("a", "READ", "orders")))["config_changes"].dicts()
    assert [(row["principal"], row["config_previous"], row["config_value"]) for row in found] == [
        ("User:b", None, None),
        ("User:a", "8", "9"),
    ]


def test_every_gap_is_found_and_no_other(tmp_path: Path) -> None:
    """Two entries missing within a chain and one at its start, losses, a killed broker, a silent one, dead records."""
    trail = Kept()
    chain, entries = chain_of(1, [use("a", "READ", "t")] * 6)
    entries += [chain.loss(4, NOW_MS), chain.loss(3, NOW_MS), chain.end(NOW_MS)]
    trail.write(0, [*entries[1:3], *entries[5:], entries[5]])  # one of them stands twice
    trail.write(1, chain_of(2, [use("a", "READ", "t")])[1])
    for node in (1, 2):
        second, begun = chain_of(node, [], epoch=2)
        trail.write(node - 1, [*begun, second.head(NOW_MS)])
    trail.add(1, [], b"foreign")
    brokers = [{"node": 1}, {"node": 2}, {"node": 3}]
    found = Answers(tmp_path, trail, {"brokers": brokers})["audit_gaps"].dicts()
    assert {(row["gap"], row["place"], row["entries"]) for row in found} == {
        ("missing", "1-1", 3),
        ("lost", "1-1", 7),
        ("unended", "2-1", 0),
        ("silent", "broker 3", 0),
        ("dead", "partition 1", 1),
    }


def test_a_chain_before_a_clock_was_set_back_is_the_earlier_one(tmp_path: Path) -> None:
    """The node was killed, and began another chain with a clock behind that of the first: the last one was unended."""
    trail = Kept()
    for epoch, end_ms in ((9, NOW_MS + 200_000), (10, NOW_MS)):
        trail.write(0, chain_of(1, [use("a", "READ", "t", end_ms=end_ms)], epoch=epoch)[1])
    for controller, written_ms in (("7-f0", NOW_MS), ("7-0e", NOW_MS + 1)):
        trail.write(0, [Chain(controller).head(written_ms)])
    found = Answers(tmp_path, trail)["audit_gaps"].dicts()
    assert [(row["gap"], row["place"]) for row in found] == [("unended", "1-9"), ("unended", "7-f0")]


@pytest.mark.parametrize("lake", [Lake, lake_in])
def test_a_repeated_event_hides_none_of_the_topic_before(tmp_path: Path, lake: Callable[[Path], Lake]) -> None:
    """The audit topic was deleted and created again, so that it has other records at the same offsets."""
    found, topics = lake(tmp_path), [Kept("first"), Kept("second")]
    chain, entries = chain_of(1, [use("a", "WRITE", "t", size) for size in (1, 2, 4)])
    topics[0].write(0, entries)
    topics[1].write(0, [entries[-1], *[entry := chain.loss(4, NOW_MS), entry], chain.end(NOW_MS)])
    engine = DuckDB() if found.table_format == "parquet" else DeltaDuckDB(lambda: NOW_MS / 1000)
    with found.held(CLUSTER):
        assert all([*engine.ingest(found, topic)] for topic in topics)
        with asked("audit_gaps", "top_talkers"):
            answers = engine.ask(found, Settings(NOW_MS), ROWS_MAX)
    assert column(answers["top_talkers"], "bytes") == [7]
    assert answers["audit_gaps"].rows == [("lost", "1-1", 4)]


def test_an_entry_that_stands_twice_counts_once(tmp_path: Path) -> None:
    """A batch may be written twice; all sums, the bill too, had its use twice."""
    trail = Kept()
    _, entries = chain_of(1, [use("a", "WRITE", "t", 1_000), use("b", "READ", "t", 1_000), use("a", "WRITE", "t", 1)])
    refused = chain_of(2, [At(Denied("User:c", "::1", "READ", "topic", "t"))])[1]
    trail.write(0, [*entries, *entries[1:3]])
    trail.write(1, [*refused, *refused, *refused])
    found = Answers(tmp_path, trail, settings=Settings(NOW_MS, bill_cents=2_001))
    talkers = {(row["principal"], row["bytes"], row["batches"]) for row in found["top_talkers"].dicts()}
    assert talkers == {("User:a", 1_001, 2), ("User:b", 1_000, 1)}
    assert {row["principal"]: row["cents"] for row in found["chargeback"].dicts()} == {"User:a": 1_001, "User:b": 1_000}
    (traffic,) = found["traffic"].dicts()
    assert (traffic["written_bytes"], traffic["read_bytes"], traffic["denied"]) == (1_001, 1_000, 1)
    assert column(found["denied_operations"], "times") == [1]
    assert found["audit_gaps"].count == 0


@pytest.mark.parametrize("lake", [Lake, lake_in])
def test_a_loss_that_stands_twice_counts_once(tmp_path: Path, lake: Callable[[Path], Lake]) -> None:
    """The events that it stands for were told to be lost twice."""
    chain, entries = chain_of(1, [use("a", "READ", "t")])
    lost, trail, found = chain.loss(4, NOW_MS), Kept(), lake(tmp_path)
    trail.write(0, [*entries, lost, lost])
    engine = DuckDB() if found.table_format == "parquet" else DeltaDuckDB(lambda: NOW_MS / 1000)
    with found.held(CLUSTER):
        assert [*engine.ingest(found, trail)]
        with asked("audit_gaps"):
            gaps = engine.ask(found, Settings(NOW_MS), ROWS_MAX)["audit_gaps"].rows
    assert gaps == [("lost", "1-1", 4)]


def test_an_entry_whose_event_cannot_be_read_is_dead_and_not_missing_too(tmp_path: Path) -> None:
    trail = Kept()
    _, entries = chain_of(1, [use("a", "READ", "t")] * 3)
    for entry in entries:
        trail.add(0, headers_of(entry), b"{}" if entry.sequence == 2 else entry.value)
    found = Answers(tmp_path, trail)["audit_gaps"].dicts()
    assert [tuple(row.values()) for row in found] == [("dead", "partition 0", 1)]


def test_records_that_were_deleted_before_are_a_gap(tmp_path: Path) -> None:
    trail = trail_of(use("a", "READ", "t"), use("a", "READ", "t"))
    trail.begins[0] = 2
    found = Answers(tmp_path, trail)["audit_gaps"].dicts()
    assert {(row["gap"], row["place"], row["entries"]) for row in found} == {
        ("missed", "partition 0", 2),
        ("missing", "1-1", 2),
    }


def test_a_clock_that_is_ahead_is_named_and_nothing_is_of_the_future(tmp_path: Path) -> None:
    """Its node told of a last use in 2028, and nothing said so."""
    trail, ahead_ms = Kept(), 400 * DAY_MS + 999
    trail.write(0, chain_of(1, [use("a", "READ", "t", end_ms=moment) for moment in (LONG_AGO, NOW_MS + 299_999)])[1])
    late = [use("a", "WRITE", "t", 5, end_ms=NOW_MS + DAY_MS), use("b", "READ", "t", 7, end_ms=NOW_MS + ahead_ms)]
    trail.write(1, chain_of(2, [use("a", "WRITE", "u", end_ms=LONG_AGO), *late])[1])
    found = Answers(tmp_path, trail, {"brokers": [{"node": 1}, {"node": 2}], "topics": [topic("t"), topic("u")]})
    assert [tuple(row.values()) for row in found["audit_gaps"].dicts()] == [("ahead", "node 2", 400 * 86_400)]
    assert answer(found["audit_gaps"]) == "ahead: node 2 (by 34560000.0 s)."
    assert weight(found["audit_gaps"]) == "wrong"
    told = metrics("c", NOW_MS, Ingested(), {name: found[name] for name in ("audit_gaps", "topic_completeness")})
    assert '\nkavka_analytics_clock_ahead_seconds{cluster="c",node="2"} 34560000\n' in told
    assert max(column(found["lineage"], "last_read_ms")) == NOW_MS  # type: ignore[type-var]
    assert column(found["deletable_topics"], "topic") == ["u"], "a use of the future is one of now"
    traffic = found["traffic"].dicts()
    assert [row["bucket_ms"] > NOW_MS for row in traffic] == [False, False]
    assert [(row["written_bytes"], row["read_bytes"]) for row in traffic] == [(5, 107), (100, 100)]


USES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "<default>", "ü'\"--"]),
        st.sampled_from(["READ", "WRITE"]),
        st.sampled_from(["orders", "bills"]),
        st.integers(1, 10**13),
        st.integers(0, 50),
    ),
    max_size=30,
)


@pytest.mark.thorough
@settings(max_examples=12, deadline=None)
@given(USES, st.integers(0, 10**9))
def test_sums_agree_with_plain_python(uses: list[tuple[str, str, str, int, int]], bill_cents: int) -> None:
    happenings = [
        use(who, how, name, size, end_ms=NOW_MS + minute * MINUTE_MS) for who, how, name, size, minute in uses
    ]
    of_uses = asked("chargeback", "first_access", "lineage", "top_talkers", "traffic")
    with TemporaryDirectory() as directory, of_uses:
        after = Settings(NOW_MS + 60 * MINUTE_MS, bill_cents=bill_cents)
        found = answers(Path(directory), trail_of(*happenings), settings=after)
    talked, paid, buckets = Counter[tuple[str, str, str]](), Counter[str](), Counter[int]()
    writers, readers = defaultdict[tuple[str, str], int](int), defaultdict[tuple[str, str], int](int)
    for who, how, name, size, minute in uses:
        principal, start_ms = f"User:{who}", NOW_MS + (minute - 1) * MINUTE_MS
        talked[principal, how, name] += size
        paid[principal] += size
        buckets[start_ms // 600_000 * 600_000] += size
        (writers if how == "WRITE" else readers)[name, principal] += size
    top = found["top_talkers"].dicts()
    assert {(row["principal"], row["operation"], row["topic"]): row["bytes"] for row in top} == talked
    bills = found["chargeback"].dicts()
    assert {row["principal"]: row["written_bytes"] + row["read_bytes"] for row in bills} == paid
    assert sum(row["cents"] for row in bills) == (bill_cents if uses else 0)
    total = sum(paid.values())
    assert all(abs(row["cents"] - bill_cents * paid[row["principal"]] / total) < 1.001 for row in bills)
    pairs = {
        (name, writer, reader): (written, readers[of, reader])
        for (name, writer), written in writers.items()
        for of, reader in list(readers)
        if of == name
    }
    told = found["lineage"].dicts()
    assert {
        (row["topic"], row["writer"], row["reader"]): (row["written_bytes"], row["read_bytes"]) for row in told
    } == pairs
    traffic = found["traffic"].dicts()
    assert {row["bucket_ms"]: row["written_bytes"] + row["read_bytes"] for row in traffic} == buckets


@pytest.mark.thorough
@settings(max_examples=12, deadline=None)
@given(
    USES,
    st.dictionaries(
        st.tuples(st.sampled_from(["a", "b", "orders", "bills", ""]), st.sampled_from(["owner", "team"])),
        st.sampled_from("xyz"),
    ),
    st.integers(0, 10**9),
)
def test_parts_by_label_agree_with_plain_python(
    uses: list[tuple[str, str, str, int, int]], values: dict[tuple[str, str], str], bill_cents: int
) -> None:
    """The label of the principal counts, then that of the topic, then that of the cluster."""
    kinds = {"a": "principal", "b": "principal", "orders": "topic", "bills": "topic", "": "cluster"}
    labels: list[dict[str, object]] = [
        {"kind": kinds[name], "name": f"User:{name}" if len(name) == 1 else name, "label": label, "value": value}
        for (name, label), value in values.items()
    ]
    happenings = [use(who, how, name, size) for who, how, name, size, _ in uses]
    bill = Settings(NOW_MS, bill_cents=bill_cents)
    with TemporaryDirectory() as directory, asked("label_chargeback"):
        found = answers(Path(directory), trail_of(*happenings), {"labels": labels}, bill)["label_chargeback"].dicts()
    expected = Counter[tuple[str, str]]()
    for who, _, name, size, _ in uses:
        for label in {label for _, label in values}:
            chosen = (values.get((key, label)) for key in (who, name, ""))
            expected[label, next((value for value in chosen if value is not None), "")] += size
    assert {(row["label"], row["value"]): row["written_bytes"] + row["read_bytes"] for row in found} == expected
    for label in {label for label, _ in expected}:
        assert sum(row["cents"] for row in found if row["label"] == label) == bill_cents


def test_a_topic_of_many_has_a_bounded_number_of_pairs(tmp_path: Path) -> None:
    many = [use(f"{number:02}", how, "t", 100 + number) for number in range(60) for how in ("READ", "WRITE")]
    found = Answers(tmp_path, trail_of(*many, use("a", "READ", "other"), use("b", "WRITE", "other")))["lineage"]
    assert found.count == 50 * 50 + 1
    assert set(column(found, "reader")) == {"User:a", *(f"User:{number:02}" for number in range(10, 60))}


def test_names_of_clients_are_no_sql_and_no_html(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>'; DROP TABLE settings; --"
    trail = Kept()
    entries = chain_of(1, [At(Use(f"User:{name}", "::1", name, "WRITE", "t", 1, 1))])[1]
    for entry in entries:
        trail.add(0, headers_of(entry), entry.value)
    found = Answers(tmp_path, trail)
    assert column(found["top_talkers"], "client_id") == [name]
