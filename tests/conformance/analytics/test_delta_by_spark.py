"""Spark writes the Delta tables that DuckDB writes, row by row, wherever it dies and whichever engine goes on."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka_audit.delta.chain_rows import replace_chains
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.ingest import Ingested
from tests.conformance.analytics.planted import Drawn
from tests.conformance.analytics.spark_frames import executed_plan, hadoop_settings
from tests.unit.analytics.delta import chains, contents, entries, lake_in
from tests.unit.analytics.test_lake import USE
from tests.unit.analytics.trail import CLUSTER, NOW_MS, At, Kept, chain_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

KINDS = "partition int, offset bigint, headers array<struct<key: string, value: binary>>, value binary"
FOREVER = 10_000


def clock() -> float:
    return NOW_MS / 1000


class FileStream:
    """A topic in memory as a query without an end reads one: a micro-batch has so many records of each partition."""

    def __init__(self, directory: Path, kept: Kept) -> None:
        self._directory, self._kept, self._files = directory, kept, 0

    def grow(self, spark: Any, size: int = FOREVER) -> None:
        """Have the stream give what the topic has and was not given."""
        longest = max(map(len, self._kept.records.values()))
        for first in range(0, longest, size):
            records = [
                (one.partition, one.offset, list(one.headers) or None, one.value)
                for found in self._kept.records.values()
                for one in found[first : first + size]
                if one.offset >= self._kept.begin(one.partition)
            ]
            place = self._directory / f"{self._files}.parquet"
            spark.createDataFrame(records, KINDS).coalesce(1).write.parquet(f"file://{place}")
            (file,) = place.glob("*.parquet")
            self._files += 1
            os.utime(file, (self._files, self._files))  # the order in which they are read
            file.rename(self._directory / f"{self._files}.snappy.parquet")

    def delete(self, spark: Any) -> None:
        """Delete all records that the stream has given, or would have."""
        empty = self._directory / "empty"
        spark.createDataFrame([], KINDS).coalesce(1).write.parquet(f"file://{empty}")
        (nothing,) = empty.glob("*.parquet")
        for file in self._directory.glob("*.snappy.parquet"):
            file.write_bytes(nothing.read_bytes())

    def stream(self, spark: Any, begins: Mapping[int, int], batch_records_max: int) -> Any:
        assert begins.keys() == self._kept.records.keys()
        assert batch_records_max > 0
        files = f"file://{self._directory / '*.snappy.parquet'}"
        return spark.readStream.schema(KINDS).option("maxFilesPerTrigger", 1).parquet(files)


def take_in(directory: Path, engine: Any, kept: Kept) -> tuple[Lake, Ingested]:
    lake = lake_in(directory)
    with lake.held(CLUSTER):
        return lake, [Ingested(), *engine.ingest(lake, kept)][-1]


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Callable[..., Any]:
    """Makes an engine that reads a topic in micro-batches of so many records of a partition."""
    from kavka_audit.spark.delta_engine import DeltaSpark

    def made(kept: Kept, size: int = FOREVER, name: str = "stream") -> Any:
        (tmp_path / name).mkdir()
        stream = FileStream(tmp_path / name, kept)
        stream.grow(spark, size)
        return DeltaSpark(spark, stream, clock)

    return made


def test_the_tables_are_the_same(tmp_path: Path, engine: Callable[..., Any]) -> None:
    kept = Drawn(7).trail(120)
    kept.begins = {0: 5}
    by_spark, taken = take_in(tmp_path / "spark", engine(kept), kept)
    by_duckdb, expected = take_in(tmp_path / "duckdb", DeltaDuckDB(clock), kept)
    assert contents(by_spark) == contents(by_duckdb)
    assert entries(by_spark) == entries(by_duckdb)
    assert (taken.records, taken.dead, taken.missed) == (expected.records, expected.dead, expected.missed)
    assert taken.missed == 5
    assert taken.dead > 0


class Died(Exception):
    """The run is ended here."""


def dying(monkeypatch: pytest.MonkeyPatch, commit: int) -> list[str]:
    """Have the run die behind its commit of that number; returns the tables that were committed to."""
    from kavka_audit.spark import delta_query

    append, names = delta_query.Query._append, list[str]()

    def planted(name: str, do: Callable[[], None]) -> None:
        names.append(name)
        do()
        if len(names) == commit:
            raise Died

    def appended(query: Any, table: Any, *given: Any) -> None:
        planted(table.name, lambda: append(query, table, *given))

    monkeypatch.setattr(delta_query.Query, "_append", appended)
    monkeypatch.setattr(delta_query, "replace_chains", lambda *given: planted("chains", lambda: replace_chains(*given)))
    return names


def test_a_run_that_dies_at_any_commit_leaves_nothing_twice_and_nothing_out(
    tmp_path: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Drawn(3).trail(45)
    reading = engine(kept, 30)
    with monkeypatch.context() as patch:
        names = dying(patch, 0)
        whole, _ = take_in(tmp_path / "whole", reading, kept)
    assert {*names} == {"dead_letters", "events", "chains"}
    second = len(names) - names[::-1].index("dead_letters")
    for commit in range(second, second + 3):
        directory = tmp_path / f"{commit}"
        with monkeypatch.context() as patch:
            dying(patch, commit)
            with pytest.raises(Died):
                take_in(directory, reading, kept)
        lake, _ = take_in(directory, reading, kept)
        assert contents(lake) == contents(whole), commit


def test_either_engine_goes_on(tmp_path: Path, engine: Callable[..., Any]) -> None:
    kept = Drawn(5).trail(45)
    growing = Kept(kept.topic_id)
    engines = [engine(growing_to(growing, kept, 1), name="one"), DeltaDuckDB(clock)]
    take_in(tmp_path / "shared", engines[0], growing)
    growing_to(growing, kept, 2)
    take_in(tmp_path / "shared", engines[1], growing)
    growing_to(growing, kept, 3)
    lake, taken = take_in(tmp_path / "shared", with_rest(engines[0]), growing)
    assert taken.records > 0
    assert entries(lake) == entries(take_in(tmp_path / "whole", DeltaDuckDB(clock), kept)[0])


def growing_to(growing: Kept, kept: Kept, third: int) -> Kept:
    for partition, records in kept.records.items():
        growing.records[partition] = records[: len(records) * third // 3]
    return growing


def with_rest(engine: Any) -> Any:
    """The engine, whose stream gives all that the topic has by now, what it has given before too."""
    engine._source.grow(engine._spark)
    return engine


def test_a_half_batch_of_the_other_engine_is_said(
    tmp_path: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Drawn(6).trail(30)
    reading = engine(kept)
    with monkeypatch.context() as patch:
        dying(patch, 2)
        with pytest.raises(Died):
            take_in(tmp_path / "spark", reading, kept)
    with pytest.raises(LakeError, match="go on with the engine that wrote it"):
        take_in(tmp_path / "spark", DeltaDuckDB(clock), kept)
    take_in(tmp_path / "spark", reading, kept)

    with monkeypatch.context() as patch:
        patch.setattr("kavka_audit.delta.ingest.replace_chains", raise_died)
        with pytest.raises(Died):
            take_in(tmp_path / "duckdb", DeltaDuckDB(clock), kept)
    with pytest.raises(LakeError, match="has a batch that DuckDB has not ended"):
        take_in(tmp_path / "duckdb", reading, kept)
    take_in(tmp_path / "duckdb", DeltaDuckDB(clock), kept)
    assert contents(lake_in(tmp_path / "duckdb")) == contents(lake_in(tmp_path / "spark"))


def raise_died(*_: Any) -> None:
    raise Died


def test_a_checkpoint_that_is_gone_is_begun_again_from_the_tables(tmp_path: Path, engine: Callable[..., Any]) -> None:
    kept = Drawn(8).trail(30)
    lake, _ = take_in(tmp_path / "lake", engine(kept), kept)
    before = contents(lake)
    (tmp_path / "lake" / "checkpoint").rename(tmp_path / "gone")
    _, taken = take_in(tmp_path / "lake", engine(kept, name="again"), kept)
    assert taken.records == 0
    assert contents(lake) == before


def test_a_lake_stands_here_under_any_name_whatever_the_default_file_system_is(
    spark: Any, tmp_path: Path, engine: Callable[..., Any]
) -> None:
    kept = Drawn(9).trail(30)
    reading, settings = engine(kept), hadoop_settings(spark)
    before = settings.get("fs.defaultFS")
    settings.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    try:
        by_spark, _ = take_in(tmp_path / "100% Prüfung", reading, kept)
    finally:
        settings.set("fs.defaultFS", before)
    assert contents(by_spark) == contents(take_in(tmp_path / "duckdb", DeltaDuckDB(clock), kept)[0])


def test_tables_that_were_removed_are_not_gone_on_with_by_the_checkpoint(
    tmp_path: Path, engine: Callable[..., Any]
) -> None:
    kept = Drawn(8).trail(30)
    reading = engine(kept)
    lake, _ = take_in(tmp_path / "lake", reading, kept)
    before = contents(lake)
    for name in ("events", "dead_letters", "chains"):
        (tmp_path / "lake" / name).rename(tmp_path / name)
    with pytest.raises(LakeError, match="is ahead of chains, as where tables were restored or removed; remove it"):
        take_in(tmp_path / "lake", reading, kept)
    (tmp_path / "lake" / "checkpoint").rename(tmp_path / "checkpoint")
    take_in(tmp_path / "lake", reading, kept)
    assert contents(lake) == before


@pytest.mark.parametrize("commit", [1, 2])
def test_a_half_batch_whose_records_are_deleted_hides_nothing_of_the_next_one(
    spark: Any, tmp_path: Path, engine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, commit: int
) -> None:
    _, found = chain_of(1, [At(USE)] * 12)
    kept = Kept()
    kept.write(0, found[:10])
    kept.add(0, [], b"dead")
    reading = engine(kept)
    with monkeypatch.context() as patch:
        names = dying(patch, commit)
        with pytest.raises(Died):
            take_in(tmp_path / "lake", reading, kept)
    assert names == ["dead_letters", "events"][:commit]
    kept.begins[0] = 11
    reading._source.delete(spark)
    kept.write(0, found[10:])
    with_rest(reading)
    lake, taken = take_in(tmp_path / "lake", reading, kept)
    before = [(0, "missed")] if commit == 1 else [(0, "head"), *((offset, "event") for offset in range(1, 10))]
    after = [(offset, "event") for offset in (11, 12, 13)]
    assert sorted((row[1], row[2]) for row in entries(lake)) == [*before, (10, "dead"), *after]
    state = chains(lake)["1-1"]
    assert (state.verdict, state.last_sequence) == ("sound", 12)
    assert taken.missed == (11 if commit == 1 else 0)


def test_no_record_goes_to_python(spark: Any) -> None:
    from kavka_audit.delta.columns import IN_EVENTS
    from kavka_audit.spark.chain_runs import link_columns, steps_of
    from kavka_audit.spark.delta_columns import to_delta
    from kavka_audit.spark.delta_query import LINKS
    from kavka_audit.spark.rows import rows_of
    from tests.conformance.analytics.planted import KeptSource

    kept = Drawn(1).trail(30)
    rows = rows_of(KeptSource(kept).records(spark, kept.ranges(), FOREVER), link_columns())
    for frame in (rows.select(to_delta(IN_EVENTS, "first", NOW_MS)), steps_of(rows.select(*LINKS))):
        plan = executed_plan(frame).toString()
        assert "Project" in plan
        assert not [name for name in ("Python", "MapInPandas", "ArrowEval") if name in plan]
