"""Losses and duplicates between tiers are found to the record, also where they would cancel each other out."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kavka_audit.completeness import reports
from kavka_audit.completeness.offset_ranges import Ranges, bucket_of
from kavka_audit.completeness.reports import Report, decode, encode, parts
from kavka_audit.lake.completeness_results import stale
from kavka_audit.lake.directory import Lake
from kavka_audit.report.answers import answer
from tests.unit.analytics.books import BUCKET_MS, Books, Logged, balanced, verdicts
from tests.unit.analytics.trail import NOW_MS

MINUTE_MS = 60_000
LATER_MS = BUCKET_MS + 10 * MINUTE_MS


def test_a_loss_and_a_duplicate_do_not_cancel_out(tmp_path: Path) -> None:
    """Ten acknowledged, of which the log lacks two; three stand there that nobody says to have written."""
    books = Books()
    log, producer = books.with_log(), books.teller()
    log.fill(0, [BUCKET_MS] * 13)
    producer.add(0, BUCKET_MS, *range(10))
    producer.tell()
    del log.records[0][4], log.records[0][7]
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (10, 2, 3)}


def test_the_log_is_compared_with_each_group(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS] * 6 + [LATER_MS] * 4)
    whole, lacking = books.teller("consumer", "whole"), books.teller("consumer", "lacking")
    for offset in range(10):
        whole.add(0, BUCKET_MS if offset < 6 else LATER_MS, offset)
    whole.tell()
    lacking.add(0, BUCKET_MS, 2, 3, 3, 3, 5)
    lacking.tell()
    assert verdicts(tmp_path, books) == {
        (BUCKET_MS, "whole"): (6, 0, 0),
        (LATER_MS, "whole"): (4, 0, 0),
        (BUCKET_MS, "lacking"): (4, 1, 2),  # from the first that it told of
        (LATER_MS, "lacking"): (4, 4, 0),
    }


def test_a_partition_that_a_group_does_not_read_is_missing(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS] * 2)
    books.with_log().fill(1, [BUCKET_MS - 600_000, BUCKET_MS])
    producer, reader = books.teller(), books.teller("consumer", "g")
    producer.add(0, BUCKET_MS, 0, 1)
    producer.add(1, BUCKET_MS - 600_000, 0)
    producer.add(1, BUCKET_MS, 1)
    producer.tell()
    reader.add(0, BUCKET_MS, 0, 1)
    reader.tell()
    assert verdicts(tmp_path, books)[BUCKET_MS, "g"] == (3, 1, 0)
    assert (BUCKET_MS - 600_000, "g") not in verdicts(tmp_path, books)


def test_two_producers_that_were_told_the_same_offset_have_lost_a_record(tmp_path: Path) -> None:
    """An election cut the log, and others wrote where it was cut: the log is whole, and one record is gone."""
    books = Books()
    books.with_log().fill(0, [BUCKET_MS, BUCKET_MS, LATER_MS])
    first, second = books.teller(instance="1"), books.teller(instance="2")
    first.add(0, BUCKET_MS, 0, 1, 2)
    second.add(0, BUCKET_MS, 1)
    second.add(0, LATER_MS, 2)
    first.tell()
    second.tell()
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (4, 2, 0), (LATER_MS, ""): (1, 0, 0)}


def test_records_without_an_offset_are_matched_by_number(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS] * 5 + [LATER_MS])
    producer = books.teller()
    producer.add(0, BUCKET_MS, 0, 1, -1, -1)
    producer.add(0, LATER_MS, -1, -1, -1)
    producer.tell()
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (4, 0, 1), (LATER_MS, ""): (3, 2, 0)}


def test_a_report_that_stands_twice_counts_once_and_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS] * 3)
    producer = books.teller()
    for offset in range(3):
        producer.add(0, BUCKET_MS, offset)
        producer.tell(times=2)
    del books.kept.records[0][2:4]
    books.kept.records[0] = [found._replace(offset=place) for place, found in enumerate(books.kept.records[0])]
    found = balanced(tmp_path, books)
    (row,) = found["completeness"].dicts()
    assert (row["expected"], row["missing"], row["duplicates"]) == (2, 0, 1)
    gaps = [(row["gap"], row["place"], row["entries"]) for row in found["audit_gaps"].dicts()]
    assert gaps == [("untold", "producer shop producer shop", 1)]


def test_late_records_open_their_bucket_again(tmp_path: Path) -> None:
    books = Books()
    log, producer, reader = books.with_log(), books.teller(), books.teller("consumer", "g")
    log.fill(0, [BUCKET_MS] * 2)
    producer.add(0, BUCKET_MS, 0, 1)
    producer.tell(told_ms=BUCKET_MS)
    reader.add(0, BUCKET_MS, 0)
    reader.tell(told_ms=BUCKET_MS)
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (2, 0, 0), (BUCKET_MS, "g"): (2, 1, 0)}
    log.fill(0, [BUCKET_MS])
    producer.add(0, BUCKET_MS, 2)
    producer.tell(told_ms=BUCKET_MS + 11 * MINUTE_MS)
    reader.add(0, BUCKET_MS, 1, 2)
    reader.tell(told_ms=BUCKET_MS + 11 * MINUTE_MS)
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (3, 0, 0), (BUCKET_MS, "g"): (3, 0, 0)}
    rows = balanced(tmp_path, books)["completeness"].dicts()
    assert {row["name"]: row["late"] for row in rows} == {"": 1, "g": 2}


def test_a_bucket_is_judged_a_minute_after_its_end(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS])
    producer = books.teller()
    producer.add(0, BUCKET_MS, 0)
    producer.tell()
    closed_ms = BUCKET_MS + 11 * MINUTE_MS
    assert verdicts(tmp_path, books, closed_ms - 1) == {}
    assert answer(balanced(tmp_path, books, closed_ms - 1)["completeness"]) == "No bucket is closed yet."
    assert verdicts(tmp_path, books, closed_ms) == {(BUCKET_MS, ""): (1, 0, 0)}


def test_what_was_there_before_clients_told_is_not_balanced(tmp_path: Path) -> None:
    """Three records before the first that was told; in the other partition nobody has told anything at first."""
    books = Books()
    log, producer = books.with_log(), books.teller()
    log.fill(0, [BUCKET_MS] * 5)
    log.fill(1, [BUCKET_MS] * 4)
    producer.add(0, BUCKET_MS, 3, 4)
    producer.tell()
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (2, 0, 0)}
    log.fill(1, [BUCKET_MS] * 2)
    producer.add(1, BUCKET_MS, 4)
    producer.tell()
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (3, 0, 1)}


def test_what_retention_deletes_while_it_is_counted_is_no_loss(tmp_path: Path) -> None:
    books = Books()
    log, producer = books.with_log(), books.teller()
    log.fill(0, [BUCKET_MS] * 10)
    log.cuts[0] = (2, 6)
    producer.add(0, BUCKET_MS, *range(10))
    producer.tell()
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (6, 0, 0)}


def test_what_retention_has_deleted_before_it_was_counted_is_not_balanced(tmp_path: Path) -> None:
    books = Books()
    log, producer, reader = books.with_log(), books.teller(), books.teller("consumer", "g")
    log.fill(0, [BUCKET_MS] * 5)
    log.begins[0] = 2
    producer.add(0, BUCKET_MS, *range(5))
    producer.tell()
    reader.add(0, BUCKET_MS, *range(5))
    reader.tell()
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (3, 0, 0), (BUCKET_MS, "g"): (3, 0, 0)}


@pytest.mark.parametrize("problem", ["it may not be read", ""])
def test_a_topic_that_cannot_be_counted_is_not_balanced(tmp_path: Path, problem: str) -> None:
    books = Books()
    producer = books.teller()
    if problem:
        books.with_log().fill(0, [BUCKET_MS])
        books.with_log().problem = problem
    producer.add(0, BUCKET_MS, 0)
    producer.tell()
    assert verdicts(tmp_path, books) == {}
    assert set(books.untold) == {problem} - {""}


def test_counts_of_the_counts_are_not_balanced(tmp_path: Path) -> None:
    books = Books()
    books.logs[reports.TOPIC] = Logged(reports.TOPIC, books.kept.topic_id, ends={0: 5})
    producer = books.teller()
    producer.add(0, BUCKET_MS, 0, topic=reports.TOPIC)
    for _ in range(2):
        producer.tell()
        assert verdicts(tmp_path, books) == {}
        producer.add(0, BUCKET_MS, 1)
    assert len(Lake(tmp_path).files("counts")) == 2


def test_a_group_that_has_long_told_nothing_is_not_balanced(tmp_path: Path) -> None:
    books = Books()
    log, reader = books.with_log(), books.teller("consumer", "g")
    days_later_ms = BUCKET_MS - 2 * 86_400_000
    log.fill(0, [days_later_ms, BUCKET_MS])
    reader.add(0, days_later_ms, 0)
    reader.tell(told_ms=days_later_ms)
    assert verdicts(tmp_path, books) == {(days_later_ms, "g"): (1, 0, 0)}


def test_a_verdict_outlives_what_it_was_made_from(tmp_path: Path) -> None:
    """Two weeks later the reports are deleted; the days stay as they were judged, also where late records come."""
    books, day_ms = Books(), 86_400_000
    log, producer, found = books.with_log(), books.teller(), verdicts(tmp_path, Books())
    for part in range(3):
        log.fill(0, [BUCKET_MS + part] * 4)
        producer.add(0, BUCKET_MS, *range(5 * part, 5 * part + 5))
        producer.tell()
        found = verdicts(tmp_path, books)
    later_ms = NOW_MS + 20 * day_ms
    for _ in range(2):
        log.fill(0, [BUCKET_MS])
        producer.add(0, BUCKET_MS, 999)
        producer.tell()
        assert verdicts(tmp_path, books, later_ms) == found
    lake = Lake(tmp_path)
    assert len(lake.files("counts")) == 3  # of ten: the newest reports, and what was counted lately
    assert verdicts(tmp_path, books, NOW_MS + 500 * day_ms) == {}


def test_a_day_without_news_is_not_judged_again(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS])
    producer = books.teller()
    producer.add(0, BUCKET_MS, 0)
    producer.tell()
    found = verdicts(tmp_path, books)
    assert len(stale(Lake(tmp_path), NOW_MS)) == 0
    later_ms = BUCKET_MS + 86_400_000
    producer.add(0, later_ms, 1)
    producer.tell()
    assert verdicts(tmp_path, books, later_ms) == found
    days = [row["day_ms"] for row in stale(Lake(tmp_path), later_ms)]
    assert days == [later_ms - later_ms % 86_400_000]  # its bucket is open
    closed_ms = later_ms + 11 * MINUTE_MS
    assert verdicts(tmp_path, books, closed_ms) == found | {(later_ms, ""): (1, 1, 0)}


def test_a_run_that_dies_before_its_verdict_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS])
    producer = books.teller()
    producer.add(0, BUCKET_MS, 0)
    producer.tell()
    verdicts(tmp_path, books)
    producer.add(0, BUCKET_MS, 1)
    producer.tell()
    with monkeypatch.context() as patch:
        patch.setattr("kavka_audit.engine.ask", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            balanced(tmp_path, books)
    assert verdicts(tmp_path, books) == {(BUCKET_MS, ""): (2, 1, 0)}


RECORDS = st.lists(
    st.tuples(
        st.integers(0, 2),  # partition
        st.integers(0, 2),  # bucket
        st.sampled_from(["whole", "whole", "whole", "lost", "twice"]),
        st.integers(0, 3),  # how often it is read
        st.booleans(),  # whether the clients tell after it
    ),
    min_size=1,
    max_size=60,
)


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)  # each judges a lake of its own, for half a second
@given(RECORDS, st.integers(1, 3))
def test_each_loss_and_each_duplicate_is_counted_in_its_bucket(
    records: list[tuple[int, int, str, int, bool]], times: int
) -> None:
    """`lost`: acknowledged and not in the log; `twice`: in the log once more than anybody says to have written."""
    books = Books()
    log, producer, reader = books.with_log(), books.teller(), books.teller("consumer", "g")
    written, read = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for partition in range(3):
        # So that the group is judged from the first offset of each partition.
        log.fill(partition, [BUCKET_MS])
        producer.add(partition, BUCKET_MS, 0)
        reader.add(partition, BUCKET_MS, 0)
    written[BUCKET_MS, "expected"] = read[BUCKET_MS, "expected"] = 3
    for partition, number, fate, reads, is_told in records:
        moment = BUCKET_MS + number * 600_000 + 1
        bucket = bucket_of(moment)
        offset = log.ends[partition]
        log.fill(partition, [moment] * (2 if fate == "twice" else 1))
        producer.add(partition, moment, offset)
        written[bucket, "expected"] += 1
        if fate == "lost":
            del log.records[partition][offset]
            written[bucket, "missing"] += 1
        else:
            offsets = [offset, offset + 1] if fate == "twice" else [offset]
            for one in offsets:
                reader.add(partition, moment, *[one] * reads)
            read[bucket, "expected"] += len(offsets)
            read[bucket, "missing"] += len(offsets) * (reads == 0)
            read[bucket, "duplicates"] += len(offsets) * max(reads - 1, 0)
        written[bucket, "duplicates"] += fate == "twice"
        if is_told:
            producer.tell(times=times)
            reader.tell(times=times)
    producer.tell()
    reader.tell()
    with TemporaryDirectory() as directory:
        found = verdicts(Path(directory), books)
    names = "expected", "missing", "duplicates"
    assert found == {
        (bucket, group): tuple(counts[bucket, name] for name in names)
        for group, counts in (("", written), ("g", read))
        for bucket in {bucket for bucket, _ in counts if any(counts[bucket, name] for name in names)}
    }


def test_runs_are_divided_among_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "RUNS_MAX", 3)
    ranges = Ranges()
    for offset in range(0, 16, 2):
        ranges.add("a", 0, 0, offset)
    ranges.add("a", 0, 0, -1)
    ranges.add("b", 0, 0, 1)
    found = list(parts(ranges))
    assert [sum(len(counted.runs) for counted in part) for part in found] == [3, 3, 3]
    assert sum(counted.unplaced for part in found for counted in part) == 1


GOOD = json.loads(encode(Report("producer", "shop", "one", 0, NOW_MS, ())))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("tier", "broker"),
        ("name", None),
        ("name", "x" * 300),
        ("sequence", -1),
        ("told_ms", 2**70),
        ("counts", {}),
        ("counts", [3]),
    ],
)
def test_a_malformed_report_is_dead_with_the_field(tmp_path: Path, field: str, value: object) -> None:
    books = Books()
    books.kept.add(0, [], json.dumps(GOOD | {field: value}).encode())
    with pytest.raises(ValueError, match=f"^{field}: "):
        decode(books.kept.records[0][0].value)
    found = balanced(tmp_path, books)
    assert [(row["gap"], row["entries"]) for row in found["audit_gaps"].dicts()] == [("dead", 1)]
    assert found["completeness"].count == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bucket_ms", 1),
        ("ranges", [[2, 1]]),
        ("ranges", [[1]]),
        ("ranges", [["a", 1]]),
        ("unplaced", 1.5),
        ("topic", 3),
    ],
)
def test_a_malformed_count_makes_its_report_dead(field: str, value: object) -> None:
    count = {"topic": "t", "partition": 0, "bucket_ms": 0, "ranges": [[0, 1]], "unplaced": 0}
    assert decode(json.dumps(GOOD | {"counts": [count]}).encode()).counts[0].runs == [(0, 1)]
    with pytest.raises(ValueError, match=f"^{field}: "):
        decode(json.dumps(GOOD | {"counts": [count | {field: value}]}).encode())


@example(b"\x01\x00\x00\x01\x00\x00\x00\x00\x00")  # taken for UTF-16 that is cut off
@given(
    st.none()
    | st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(GOOD)), inner, max_size=3),
    ).map(lambda found: json.dumps(found).encode())
)
def test_no_record_is_anything_but_a_report_or_refused(value: bytes | None) -> None:
    with pytest.raises(ValueError, match=r"^(\w+: |Expecting|Extra data|Invalid|Unterminated|'utf-\d)"):
        decode(value)
    with pytest.raises(ValueError, match="deep"):
        decode(b"[" * 100_000)


def test_the_answer_says_where_and_how_many(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS] * 3)
    producer = books.teller()
    producer.add(0, BUCKET_MS, *range(4))
    producer.tell()
    line = answer(balanced(tmp_path, books)["completeness"])
    assert line == "No: 1 missing and 0 twice of 4 (orders, 2026-09-21 13:10:00Z, from producers to the log)."
