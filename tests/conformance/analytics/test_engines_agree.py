"""Spark and DuckDB: the same rows from the same records, and the same answers from the same rows, to the last one."""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kavka_audit.engine import DUCKDB
from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.completeness_ingest import balance
from kavka_audit.lake.completeness_results import stale
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import ingest
from kavka_audit.lake.rows import DEAD_BYTES_MAX, row_of
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings, Table, questions
from tests.conformance.analytics.planted import Drawn, KeptSource
from tests.conformance.analytics.spark_frames import executed_plan
from tests.unit.analytics import test_questions
from tests.unit.analytics.test_fast_parser import USUAL, damaged
from tests.unit.analytics.trail import CLUSTER, NOW_MS, ROWS_MAX, Kept, taken_in

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

SEEDS = range(2)
KIND, VALUE = list(ENTRIES).index("kind"), list(ENTRIES).index("record_value")
SITUATIONS = [
    test_questions.test_topics_that_nobody_uses_may_be_deleted,
    test_questions.test_no_topic_may_be_deleted_where_the_trail_is_younger,
    test_questions.test_rules_that_nobody_needed_are_unused,
    test_questions.test_a_first_use_is_new_only_where_the_trail_goes_back_further,
    test_questions.test_delays_within_five_minutes_are_one_incident,
    test_questions.test_the_limit_that_fits_is_that_of_the_demand,
    test_questions.test_shorter_windows_add_up_to_minutes,
    test_questions.test_a_partition_with_far_more_than_its_topic_is_hot,
    test_questions.test_changes_are_told_the_last_first,
    test_questions.test_every_gap_is_found_and_no_other,
    test_questions.test_records_that_were_deleted_before_are_a_gap,
    test_questions.test_a_clock_that_is_ahead_is_named_and_nothing_is_of_the_future,
    test_questions.test_a_topic_of_many_has_a_bounded_number_of_pairs,
    test_questions.test_names_of_clients_are_no_sql_and_no_html,
]
"""What is planted for the questions of DuckDB is found by Spark too."""


def engine_over(spark: Any, kept: Kept) -> Any:
    from kavka_audit.spark.engine import SparkEngine

    return SparkEngine(spark, KeptSource(kept))


def typed(row: Mapping[str, object]) -> tuple[object, ...]:
    """A row with all columns; numbers as the column has them."""
    return tuple(
        float(value) if kind == "DOUBLE" and isinstance(value := row.get(name), int) else row.get(name)
        for name, kind in ENTRIES.items()
    )


def rows_by_spark(spark: Any, kept: Kept) -> dict[tuple[int, int], tuple[object, ...]]:
    """The rows of all records, by partition and offset."""
    from kavka_audit.spark.rows import rows_of

    told = rows_of(KeptSource(kept).records(spark, kept.ranges(), 10_000)).collect()
    return {(row["partition"], row["offset"]): tuple(row) for row in told}


def rows_by_python(kept: Kept) -> dict[tuple[int, int], tuple[object, ...]]:
    records = [record for partition in kept.records.values() for record in partition]
    return {(record.partition, record.offset): typed(row_of(record)) for record in records}


def dead(rows: Mapping[tuple[int, int], tuple[object, ...]]) -> int:
    return sum(row[KIND] == "dead" for row in rows.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_record_has_the_same_row(spark: Any, seed: int) -> None:
    kept = Drawn(seed).trail(600)
    found = rows_by_spark(spark, kept)
    assert found == rows_by_python(kept)
    assert 0 < dead(found) < len(found) / 4


def test_a_damaged_record_has_the_same_row(spark: Any) -> None:
    kept, chance = Kept(), random.Random(1)
    for record in USUAL * 20:
        kept.add(0, record.headers, damaged(record.value or b"", chance))
        place = chance.randrange(len(record.headers))
        name, value = record.headers[place]
        header = (name, damaged(value or b"", chance))
        kept.add(1, [*record.headers[:place], header, *record.headers[place + 1 :]], record.value)
    found = rows_by_spark(spark, kept)
    assert found == rows_by_python(kept)
    assert len(found) / 4 < dead(found) < len(found)


def test_what_a_later_version_tells_is_kept(spark: Any) -> None:
    """Its known fields are read, and its value stands beside them, whatever else is in it."""
    kept = Kept()
    for record in USUAL:
        event = json.loads(record.value or b"")
        event["metadata"]["version"] = "1.9.0"
        event["more"] = [{"than": ["is", "known"]}, None, 1e400, "x" * 99]
        kept.add(0, record.headers, json.dumps(event).encode())
    found = rows_by_spark(spark, kept)
    assert found == rows_by_python(kept)
    assert dead(found) == 0
    assert [row[VALUE] for row in found.values()] == [record.value for record in kept.records[0]]


def test_of_a_record_of_many_bytes_as_much_is_kept(spark: Any) -> None:
    kept, long = Kept(), b"\0" * (DEAD_BYTES_MAX + 1)
    kept.add(0, USUAL[0].headers, long)
    kept.add(0, [("more", long), *USUAL[0].headers], b"3")
    kept.add(0, [("more", b"\0" * (DEAD_BYTES_MAX // 4 * 3 - 1_000))], long[1:])
    found = rows_by_spark(spark, kept)
    assert (found == rows_by_python(kept)) is True  # what differs would be megabytes
    sizes = [len(row[VALUE]) for row in found.values()]  # type: ignore[arg-type]
    assert sizes == [DEAD_BYTES_MAX, 1, DEAD_BYTES_MAX]
    assert [row[VALUE - 1] is None for row in found.values()] == [False, True, False]


def test_no_record_goes_to_python(spark: Any) -> None:
    from kavka_audit.spark.rows import rows_of

    kept = Drawn(1).trail(60)
    frame = rows_of(KeptSource(kept).records(spark, kept.ranges(), 10_000))
    plan = executed_plan(frame).toString()
    assert "Project" in plan
    assert "Python" not in plan


def answers(directory: Path, engine: Any) -> dict[str, Table]:
    lake = Lake(directory)
    with lake.held(CLUSTER):
        found: dict[str, Table] = engine.ask(lake, Settings(NOW_MS, bill_cents=99_999), ROWS_MAX)
    return found


def described(directory: Path, name: str) -> list[tuple[str, str]]:
    relation = duckdb.read_parquet(str(directory / "tables" / f"{name}.parquet"))
    return list(zip(relation.columns, map(str, relation.types), strict=True))


def is_same(one: object, other: object) -> bool:
    """Whether values are equal; of fractions, which are sums in another order, to the twelfth digit."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return one == other and type(one) is type(other)


def differing(one: Sequence[Sequence[object]], other: Sequence[Sequence[object]]) -> Iterator[object]:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if not all(map(is_same, left, right)):
            yield place, left, right
    if len(one) != len(other):
        yield len(one), len(other)


@pytest.mark.parametrize("answering", ["duckdb", "spark"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_question_has_the_same_answer(
    spark: Any, tmp_path: Path, seed: int, answering: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them answers from what Spark has aggregated. The topic was created again, and begins with entries
    that the former one has at the same offsets.
    """
    if answering == "spark":
        monkeypatch.setattr("kavka_audit.spark.engine.LITTLE_ROWS_MAX", -1)
        monkeypatch.setattr("kavka_audit.spark.engine.ask", None)
    drawn = Drawn(100 + seed)
    kept = drawn.trail(900)
    lake, _ = taken_in(tmp_path, kept)
    again = Drawn(100 + seed).trail(200)
    again.topic_id = "second"
    with lake.held(CLUSTER):
        assert [*ingest(lake, again)]
        counted = [{"topic": topic} for topic in balance(lake, drawn.books(), NOW_MS, lambda _: None)]
        keep(lake, Snapshot(CLUSTER, {**drawn.tables(), "counted": counted, "stale": stale(lake, NOW_MS)}))
    by_duckdb = answers(tmp_path, DUCKDB)
    kinds = {name: described(tmp_path, name) for name in by_duckdb}
    by_spark = answers(tmp_path, engine_over(spark, kept))
    assert by_spark.keys() == by_duckdb.keys() == {question.name for question in questions()}
    for name, table in by_duckdb.items():
        assert list(differing(table.rows, by_spark[name].rows)) == [], name
        assert (by_spark[name].columns, by_spark[name].count) == (table.columns, table.count), name
        assert described(tmp_path, name) == kinds[name], name
    assert sum(table.count > 0 for table in by_duckdb.values()) >= len(by_duckdb) - 3
    assert not list(tmp_path.rglob("*.part"))


class Asked(dict[str, Table]):
    """Answers of Spark, each asked for when it is looked at: a test looks at one."""

    def __init__(self, lake: Lake, engine: Any, settings: Settings) -> None:
        super().__init__()
        self._lake, self._engine = lake, engine
        engine.see(lake, settings)
        engine.aggregate(lake)

    def __missing__(self, name: str) -> Table:
        question = next(one for one in questions() if one.name == name)
        table: Table = self._engine.answer(self._lake, question, ROWS_MAX)
        return self.setdefault(name, table)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__.removeprefix("test_"))
def test_what_is_planted_is_found(spark: Any, tmp_path: Path, situation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_spark(
        directory: Path, kept: Kept, tables: Any = None, settings: Settings | None = None
    ) -> Mapping[str, Table]:
        engine, lake = engine_over(spark, kept), Lake(directory)
        with lake.held(CLUSTER):
            keep(lake, Snapshot(CLUSTER, tables or {}))
            assert [so_far.files for so_far in engine.ingest(lake, kept)] or not kept.records
        return Asked(lake, engine, settings or Settings(NOW_MS))

    monkeypatch.setattr(test_questions, "answers", by_spark)
    situation(tmp_path)


def test_the_lake_is_the_same(spark: Any, tmp_path: Path) -> None:
    """What DuckDB writes of a record and what Spark writes of it, read by the same reader."""
    kept = Drawn(7).trail(300)
    tables = []
    for name, engine in (("duckdb", DUCKDB), ("spark", engine_over(spark, kept))):
        lake = Lake(tmp_path / name)
        with lake.held(CLUSTER):
            taken = [json.dumps([so_far.records, so_far.dead, so_far.missed]) for so_far in engine.ingest(lake, kept)]
        relation = duckdb.read_parquet(lake.files())
        kinds = list(map(str, relation.types))
        tables.append((relation.columns, kinds, sorted(relation.fetchall(), key=lambda row: row[:2]), taken[-1]))
    assert tables[0] == tables[1]
