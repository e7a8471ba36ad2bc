"""Each record gets into the lake once by Spark, wherever a run dies, and whichever engine goes on."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from kavka_audit.engine import DUCKDB, EngineError
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.ingest import Ingested
from kavka_audit.questions.query_runner import Settings, questions
from tests.conformance.analytics.planted import Drawn, KeptSource
from tests.conformance.analytics.spark_frames import small_files
from tests.conformance.analytics.test_engines_agree import engine_over
from tests.unit.analytics.trail import CLUSTER, NOW_MS, ROWS_MAX, Kept

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]


@pytest.fixture(autouse=True)
def few_at_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small_files(monkeypatch, tasks_max=2)


def rows(lake: Lake) -> list[Any]:
    found = duckdb.read_parquet(lake.files(), union_by_name=True)
    return sorted(found.fetchall(), key=lambda row: row[:2])


def take_in(directory: Path, engine: Any, kept: Kept) -> tuple[Lake, Ingested]:
    lake = Lake(directory)
    with lake.held(CLUSTER):
        told = list(engine.ingest(lake, kept))
    return lake, told[-1] if told else Ingested()


class Died(Exception):
    """The run is ended here."""


def test_a_run_that_dies_at_any_commit_leaves_nothing_twice_and_nothing_out(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Drawn(3).trail(360)
    undisturbed = rows(take_in(tmp_path / "whole", engine_over(spark, kept), kept)[0])
    settle, commits, dies_at, is_done = Lake.settle, 0, 0, False

    def dying(lake: Lake, part: Path, place: Path) -> None:
        nonlocal commits
        commits += 1
        if is_done and commits == dies_at:
            settle(lake, part, place)
        if commits == dies_at:
            raise Died
        settle(lake, part, place)

    monkeypatch.setattr(Lake, "settle", dying)
    lake = Lake(tmp_path / "dying")
    deaths = 0
    while True:
        commits, dies_at, is_done = 0, 2 + deaths % 3, deaths % 2 == 0
        try:
            take_in(tmp_path / "dying", engine_over(spark, kept), kept)
            break
        except Died:
            deaths += 1
            found = {row[:2] for row in rows(lake)} if lake.files() else set()
            assert len(found) == len(rows(lake) if lake.files() else [])
    assert deaths >= 4
    assert rows(lake) == undisturbed
    assert not list((tmp_path / "dying").rglob("*.part"))


def test_an_answer_takes_its_place_whole_or_not_at_all(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [question for question in questions() if question.name in {"audit_gaps", "lineage", "traffic"}]
    monkeypatch.setattr("kavka_audit.spark.engine.questions", lambda: few)
    monkeypatch.setattr("kavka_audit.spark.engine.LITTLE_ROWS_MAX", -1)  # Spark answers itself
    kept = Drawn(4).trail(30)
    engine = engine_over(spark, kept)
    lake, _ = take_in(tmp_path, engine, kept)
    with lake.held(CLUSTER):
        before = engine.ask(lake, Settings(NOW_MS), ROWS_MAX)
    settle = Lake.settle

    def dying(lake: Lake, part: Path, place: Path) -> None:
        if place.stem == "lineage":
            raise Died
        settle(lake, part, place)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "settle", dying)
        with pytest.raises(Died), lake.held(CLUSTER):
            engine.ask(lake, Settings(NOW_MS), ROWS_MAX)
    assert len(list((tmp_path / "tables").glob("*.parquet"))) == len(before) == len(few)
    with lake.held(CLUSTER):
        assert {name: table.rows for name, table in engine.ask(lake, Settings(NOW_MS), ROWS_MAX).items()} == {
            name: table.rows for name, table in before.items()
        }


@pytest.mark.parametrize("order", [("spark", "duckdb", "spark"), ("duckdb", "spark", "duckdb")])
def test_a_lake_goes_on_with_another_engine(spark: Any, tmp_path: Path, order: tuple[str, ...]) -> None:
    kept = Drawn(5).trail(240)
    engines = {"spark": engine_over(spark, kept), "duckdb": DUCKDB}
    whole = rows(take_in(tmp_path / "whole", DUCKDB, kept)[0])
    growing = Kept(kept.topic_id)
    lake = Lake(tmp_path / "shared")
    for step, name in enumerate(order, 1):
        for partition, records in kept.records.items():
            growing.records[partition] = records[: len(records) * step // len(order)]
        take_in(tmp_path / "shared", engines[name], growing)
    assert rows(lake) == whole


def test_records_that_were_deleted_before_they_were_read_are_counted(spark: Any, tmp_path: Path) -> None:
    kept = Drawn(6).trail(90)
    kept.begins = {0: 7}
    engine = engine_over(spark, kept)
    lake, taken = take_in(tmp_path, engine, kept)
    assert taken.missed == 7
    assert taken.records == sum(map(len, kept.records.values())) - 7
    by_kind = [row for row in rows(lake) if row[2] == "missed"]
    assert [(row[0], row[1], row[7]) for row in by_kind] == [(0, 0, 7)]
    _, again = take_in(tmp_path, engine, kept)
    assert (again.missed, again.records) == (0, 0)


def test_offsets_without_a_record_are_not_looked_at_again(spark: Any, tmp_path: Path) -> None:
    """As of transactions, whose ends have offsets and are given to nobody."""
    kept = Drawn(8).trail(60)

    class Silent(Kept):
        def ranges(self) -> list[tuple[int, int, int]]:
            return [(partition, 0, 50) for partition in kept.records]

    silent = Silent(records={partition: [] for partition in kept.records})
    lake, taken = take_in(tmp_path, engine_over(spark, silent), silent)
    assert taken.records == 0
    assert lake.next_offsets(silent.topic_id) == dict.fromkeys(kept.records, 50)
    assert rows(lake) == []


def test_an_error_of_spark_is_one_line_and_changes_nothing(spark: Any, tmp_path: Path) -> None:
    kept = Drawn(9).trail(60)

    class Broken(KeptSource):
        def records(self, spark: Any, ranges: Any, task_records_max: int) -> Any:
            frame = super().records(spark, ranges, task_records_max)
            return frame.selectExpr("partition", "raise_error('the disk is gone') AS offset", "headers", "value")

    from kavka_audit.spark.engine import SparkEngine

    with pytest.raises(EngineError) as raised:
        take_in(tmp_path, SparkEngine(spark, Broken(kept)), kept)
    assert "the disk is gone" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert Lake(tmp_path).files() == []
    assert take_in(tmp_path, engine_over(spark, kept), kept)[1].records == sum(map(len, kept.records.values()))


def test_the_lake_of_another_cluster_is_refused(spark: Any, tmp_path: Path) -> None:
    kept = Drawn(1).trail(30)
    take_in(tmp_path, DUCKDB, kept)
    with pytest.raises(LakeError, match="holds the trail of cluster"), Lake(tmp_path).held("other"):
        pass
