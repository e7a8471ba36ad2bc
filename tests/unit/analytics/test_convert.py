"""Parquet files of a lake become Delta tables with the same rows and answers, wherever a conversion is interrupted."""

from pathlib import Path
from typing import Any

import pytest

from kavka_audit.delta.convert import convert
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.delta.tables import Table
from kavka_audit.engine import DUCKDB
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.retention import merge
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings
from tests.conformance.analytics.planted import Drawn
from tests.unit.analytics import trail as parquet
from tests.unit.analytics.delta import chains, entries, lake_in
from tests.unit.analytics.test_delta_tables import rows_of_parquet
from tests.unit.analytics.test_lake import USE
from tests.unit.analytics.trail import CLUSTER, NOW_MS, ROWS_MAX, Kept
from tests.unit.operator.person import run


class Death(BaseException):
    """The process ends here."""


@pytest.fixture
def trail() -> Kept:
    found = Drawn(9).trail(60)
    found.begins[0] = 3
    return found


@pytest.fixture
def source(tmp_path: Path, trail: Kept, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake of several files."""
    monkeypatch.setattr("kavka_audit.lake.ingest.ROWS_MAX", 30)
    return parquet.taken_in(tmp_path / "source", trail)[0]


def converted_in(directory: Path) -> Lake:
    return Lake(directory, table_format="delta", is_converted=True)


def files_in(directory: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_the_rows_and_the_answers_are_the_same_and_the_source_stays(source: Lake, tmp_path: Path, trail: Kept) -> None:
    (source.directory / "entries" / "first" / f"0-{0:020}-{9:020}.parquet.part").write_bytes(b"half")
    before = files_in(source.directory)
    code, said = run("audit", "convert", str(source.directory), str(tmp_path / "delta"))
    assert code == 0, said
    assert f"{source.directory} is as it was" in said
    assert files_in(source.directory) == before
    target = lake_in(tmp_path / "delta")
    assert entries(target) == rows_of_parquet(tmp_path / "again", trail)
    assert {state.verdict for state in chains(target).values()} == {"unchecked"}
    found = []
    for lake, engine in ((source, DUCKDB), (target, DeltaDuckDB())):
        with lake.held(CLUSTER):
            keep(lake, Snapshot(CLUSTER, {}))
            answers = engine.ask(lake, Settings(NOW_MS), ROWS_MAX)
        found.append({name: sorted(table.rows, key=repr) for name, table in answers.items()})
    assert found[0] == found[1]


def test_a_conversion_that_dies_at_any_commit_goes_on(
    source: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where files were merged meanwhile, so that the batch that was half done is part of another one."""
    whole, write = converted_in(tmp_path / "whole"), Table._write
    names = list[str]()

    def written(table: Table, *given: Any) -> None:
        names.append(table.name)
        write(table, *given)
        if len(names) == last:
            raise Death

    monkeypatch.setattr(Table, "_write", written)
    last = 0
    with whole.held(CLUSTER):
        list(convert(source, whole, NOW_MS))
    commits, expected = len(names), entries(whole)
    assert {*names} == {"dead_letters", "events", "chains"}
    for commit in range(1, commits):
        lake = converted_in(tmp_path / f"{commit}")
        names.clear()
        last = commit
        with lake.held(CLUSTER), pytest.raises(Death):
            list(convert(source, lake, NOW_MS))
        last = 0
        with pytest.raises(LakeError, match="has a part of another directory"), lake_in(lake.directory).held(CLUSTER):
            pass
        if commit == commits - 1:
            monkeypatch.setattr("kavka_audit.lake.retention.MERGED_FILES_MIN", 2)
            assert merge(source)
        with lake.held(CLUSTER):
            list(convert(source, lake, NOW_MS))
        assert entries(lake) == expected, commit


def test_reading_goes_on_behind_what_was_converted(source: Lake, tmp_path: Path, trail: Kept) -> None:
    """Its chains are judged from there on, and are not taken for damaged because of what no row holds."""
    target, count = converted_in(tmp_path / "delta"), len(rows_of_parquet(tmp_path / "again", trail))
    honest = parquet.chain_of(9, [parquet.At(USE)] * 6)[1]
    trail.write(7, honest[:4])
    parquet.taken_in(source.directory, trail)
    with target.held(CLUSTER):
        list(convert(source, target, NOW_MS))
        trail.write(7, honest[4:])
        (*_, taken) = DeltaDuckDB(lambda: NOW_MS / 1000).ingest(target, trail)
    assert taken.records == len(honest) - 4
    assert len(entries(target)) == count + len(honest)
    state = chains(target)["9-1"]
    assert (state.verdict, state.first_sequence, state.last_sequence, state.restarts) == ("sound", 4, 6, 1)


@pytest.mark.parametrize("is_converted", [False, True])
def test_tables_that_are_there_are_no_target(source: Lake, tmp_path: Path, trail: Kept, is_converted: bool) -> None:
    words = ("audit", "convert", str(source.directory), str(tmp_path / "delta"))
    if is_converted:
        assert run(*words)[0] == 0
    else:
        target = lake_in(tmp_path / "delta")
        with target.held(CLUSTER):
            list(DeltaDuckDB(lambda: NOW_MS / 1000).ingest(target, trail))
    code, said = run(*words)
    assert code == 1
    assert "convert into a new directory" in said
    assert run("audit", "convert", str(tmp_path / "delta"), str(tmp_path / "more"))[1].endswith(
        "has Delta tables already\n"
    )


def test_a_store_is_refused(source: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _ = run("audit", "convert", str(source.directory), "s3://bucket/audit")
    assert code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_directory_of_others_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    code, said = run("audit", "convert", str(tmp_path / "notes"), str(tmp_path / "delta"))
    assert code == 1
    assert "no run has written here" in said
    assert not (tmp_path / "delta").exists()
    assert [*(tmp_path / "notes").iterdir()] == []
