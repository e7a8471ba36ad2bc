"""The trail gets into the Delta tables once, wherever a run dies, and with the rows that the lake's own files have."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable, QueryBuilder

from kavka_audit.delta.daily_tables import refresh
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.delta.ingest import ingest
from kavka_audit.delta.tables import NUMBER, Table, Tables
from kavka_audit.engine import DUCKDB
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.ingest import Ingested
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings
from kavka_audit_run.main import Wanted, with_format
from tests.conformance.analytics.planted import Drawn
from tests.unit.analytics import trail as parquet
from tests.unit.analytics.deaths import WRITE, death_behind, written_by
from tests.unit.analytics.delta import NAMES, chains, contents, entries, lake_in, taken_in
from tests.unit.analytics.interrupted_runs import trail_of
from tests.unit.analytics.stored import Connection, Objects
from tests.unit.analytics.test_fast_parser import HAPPENINGS, ODD
from tests.unit.analytics.test_lake import USE
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, ROWS_MAX, At, Kept, chain_of
from tests.unit.operator.person import run

SMALL = 4
"""Records of a batch, where a test wants many batches."""


def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka_audit.delta.ingest.ROWS_MAX", SMALL)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_batches(monkeypatch)


def rows_of_parquet(directory: Path, trail: Kept) -> list[tuple[Any, ...]]:
    lake, _ = parquet.taken_in(directory, trail)
    return sorted(duckdb.read_parquet(lake.files()).fetchall(), key=repr)


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_those_of_the_files(tmp_path: Path, seed: int) -> None:
    trail = Drawn(seed).trail(200)
    trail.write(2, chain_of(3, [At(happening) for happening in (*HAPPENINGS, *ODD)])[1])
    lake, taken = taken_in(tmp_path / "delta", trail)
    assert entries(lake) == rows_of_parquet(tmp_path / "parquet", trail)
    assert taken.records == sum(map(len, trail.records.values()))
    assert taken.dead == len(contents(lake)["dead_letters"]) > 0


def test_other_readers_see_days_times_and_bytes(tmp_path: Path) -> None:
    taken_in(tmp_path, trail_of())
    tables = QueryBuilder()
    for name in NAMES:
        tables.register(name, DeltaTable(tmp_path / name))
    words = "SELECT day, count(*) AS events, max(start_time) AS latest FROM events WHERE kind = 'event' GROUP BY day"
    with duckdb.connect() as connection:
        for_duckdb = {
            "events": tables.execute(words).read_all(),
            "dead": tables.execute("SELECT record_value FROM dead_letters").read_all(),
        }
        for name, found in for_duckdb.items():
            connection.register(name, found)
        connection.execute("SET timezone = 'UTC'")
        assert connection.execute("SELECT CAST(day AS VARCHAR), events, epoch_ms(latest) FROM events").fetchall() == [
            ("2026-09-21", 21, NOW_MS - 60_000)
        ]
        assert connection.execute("SELECT record_value FROM dead").fetchall() == [(b"dead",)]


def commits_of(directory: Path, trail: Kept) -> int:
    """How many commits an undisturbed run makes."""
    names = list[str]()

    def write(table: Table, *given: Any) -> None:
        names.append(table.name)
        WRITE(table, *given)

    with written_by(write):
        taken_in(directory, trail)
    assert set(names) == set(NAMES)
    return len(names)


@pytest.mark.usefixtures("small")
def test_a_run_that_dies_at_any_commit_leaves_nothing_twice_and_nothing_out(tmp_path: Path) -> None:
    """To die behind a commit is to die before the next one."""
    trail = trail_of(4)
    commits = commits_of(tmp_path / "whole", trail)
    whole = contents(lake_in(tmp_path / "whole"))
    assert commits == 7
    for commit in range(1, commits + 1):
        directory = tmp_path / f"{commit}"
        with death_behind(commit):
            taken_in(directory, trail)
        lake, _ = taken_in(directory, trail)
        assert contents(lake) == whole, commit
        assert not list(directory.rglob("*.part"))


@pytest.mark.usefixtures("small")
def test_what_comes_after_a_death_is_another_batch(tmp_path: Path) -> None:
    """The range of the batch that was left half done is read again as it was, though the topic has grown."""
    short, long = trail_of(1), trail_of(9)
    for partition, records in short.records.items():
        longer = long.records[partition]
        longer[: len(records)] = records
        longer[:] = [record._replace(offset=place) for place, record in enumerate(longer)]
    with death_behind(1):
        taken_in(tmp_path / "died", short)
    lake, _ = taken_in(tmp_path / "died", long)
    assert entries(lake) == rows_of_parquet(tmp_path / "parquet", long)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("commit", [1, 3, 5, 6])
def test_a_half_batch_of_a_topic_that_was_made_again_is_ended(tmp_path: Path, commit: int) -> None:
    """It was refused by each run from then on: nothing reads that batch again. The fifth death is behind a commit of
    `dead_letters`, with whose rows `events` is behind.
    """
    with death_behind(commit):
        taken_in(tmp_path / "again", trail_of(4))
    before = entries(lake_in(tmp_path / "again"))
    second = trail_of(4)
    second.topic_id = "second"
    lake, taken = taken_in(tmp_path / "again", second)
    alone, taken_alone = taken_in(tmp_path / "alone", second)
    assert taken == taken_alone
    found, wanted = contents(lake), contents(alone)
    assert {name: [row for row in rows if "second" in row] for name, rows in found.items()} == wanted
    assert len(entries(lake)) == len(before) + len(entries(alone)), "what the tables had of the first topic stays"
    assert taken_in(tmp_path / "again", second)[1] == Ingested()


def test_a_batch_of_spark_that_is_half_done_is_said(tmp_path: Path) -> None:
    """Its commits hold its number alone; only Spark's checkpoint knows its range."""
    lake, _ = taken_in(tmp_path, trail_of())
    table = Tables(lake).events
    with duckdb.connect() as connection:
        nothing = connection.read_parquet(table.files(), hive_partitioning=True).filter("false")
        table.append(nothing, {NUMBER: table.number + 1})
    with pytest.raises(LakeError, match="events has a batch that chains does not have, of another engine"):
        taken_in(tmp_path, trail_of(9))


def test_a_topic_that_was_made_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    trail = trail_of(3)
    taken_in(tmp_path, trail)
    trail.topic_id = "second"
    lake, taken = taken_in(tmp_path, trail)
    assert taken.records == 7
    assert {row[1] for row in contents(lake)["events"]} == {"first", "second"}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ahead", [1, 3])
def test_of_two_runs_at_once_the_slower_one_says_so(tmp_path: Path, ahead: int) -> None:
    lake, trail = lake_in(tmp_path / "both"), trail_of()
    with lake.held(CLUSTER):
        slower, faster = ingest(lake, trail, NOW_MS), ingest(lake, trail, NOW_MS)
        next(slower)
        for _ in range(ahead):
            next(faster)
        with pytest.raises(LakeError, match=r"another run has written to .*/events meanwhile"):
            next(slower)
        list(faster)
    whole, _ = taken_in(tmp_path / "whole", trail)
    assert contents(lake) == contents(whole)


@pytest.mark.usefixtures("small")
def test_a_run_that_is_overtaken_within_a_batch_says_so(tmp_path: Path) -> None:
    """The faster run finds the events of a batch that the slower one has not committed to `chains`."""
    lake, trail, is_overtaken = lake_in(tmp_path / "both"), trail_of(), False

    def overtaken(table: Table, *given: Any) -> None:
        nonlocal is_overtaken
        if table.name == "chains" and not is_overtaken:
            is_overtaken = True
            list(ingest(lake, trail, NOW_MS))
        WRITE(table, *given)

    said = r"another run has written to .*/chains meanwhile"
    with written_by(overtaken), lake.held(CLUSTER), pytest.raises(LakeError, match=said):
        list(ingest(lake, trail, NOW_MS))
    whole, _ = taken_in(tmp_path / "whole", trail)
    assert contents(lake) == contents(whole)


FOREIGN = ("notes.txt", "day=2026-09-21/part-0.parquet", "day=2026-09-21/half.part", "more/deep/_SUCCESS", "x.parquet")


def test_files_of_others_stay(tmp_path: Path) -> None:
    others = {tmp_path / name / file: f"{name} {file}" for name in NAMES for file in FOREIGN}
    for file, text in others.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    trail = trail_of()
    lake, _ = taken_in(tmp_path, trail)
    with lake.held(CLUSTER):
        DeltaDuckDB().retain(lake, NOW_MS + 30 * DAY_MS, 5)
        keep(lake, Snapshot(CLUSTER, {}))
        DeltaDuckDB().ask(lake, Settings(NOW_MS), 1)
    assert {file: file.read_text() for file in others} == others
    assert entries(lake) == []


def test_a_table_of_others_is_refused(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        from deltalake import write_deltalake

        write_deltalake(tmp_path / "events", connection.sql("SELECT 1 AS number"))
    with pytest.raises(LakeError, match="events is a table with other columns than a run makes"):
        taken_in(tmp_path, trail_of())
    assert DeltaTable(tmp_path / "events").version() == 0


def test_directories_of_both_formats_do_not_mix(tmp_path: Path) -> None:
    taken_in(tmp_path / "delta", trail_of())
    with pytest.raises(LakeError, match="in the format delta, and parquet is asked for"):
        parquet.taken_in(tmp_path / "delta", trail_of())
    parquet.taken_in(tmp_path / "parquet", trail_of())
    with pytest.raises(LakeError, match="in the format parquet, and delta is asked for"):
        taken_in(tmp_path / "parquet", trail_of())


def test_a_run_goes_on_with_the_format_that_is_there(tmp_path: Path) -> None:
    """One that did not name the format of its directory was refused."""
    taken_in(tmp_path / "delta", trail_of())
    parquet.taken_in(tmp_path / "parquet", trail_of())
    found = {name: with_format(Wanted(tmp_path / name)).table_format for name in ("delta", "parquet", "new")}
    assert found == {"delta": "delta", "parquet": "parquet", "new": "parquet"}
    assert with_format(Wanted(tmp_path / "parquet", table_format="delta")).table_format == "delta"
    (tmp_path / "delta" / "lake.json").write_text("[]")
    with pytest.raises(LakeError, match="is not what a run has written"):
        with_format(Wanted(tmp_path / "delta"))


@pytest.mark.parametrize(
    ("claim", "table_format"),
    [(None, "parquet"), (b'{"table_format": "delta"}', "delta"), (b"{}", "parquet"), (b"[]", "parquet")],
)
def test_a_run_goes_on_with_the_format_that_a_store_has(
    monkeypatch: pytest.MonkeyPatch, claim: bytes | None, table_format: str
) -> None:
    store = Connection(Objects({} if claim is None else {"lake.json": claim}))
    monkeypatch.setattr("kavka_audit_run.destination.store_of", lambda _: ("s3://bucket/audit", store))
    assert with_format(Wanted("s3://bucket/audit")).table_format == table_format


def test_a_question_has_the_same_answer(tmp_path: Path) -> None:
    drawn = Drawn(100)
    trail = drawn.trail(400)
    tables = drawn.tables()
    found = []
    for lake, engine in ((Lake(tmp_path / "parquet"), DUCKDB), (lake_in(tmp_path / "delta"), DeltaDuckDB())):
        with lake.held(CLUSTER):
            list(engine.ingest(lake, trail))
            keep(lake, Snapshot(CLUSTER, tables))
            answers = engine.ask(lake, Settings(NOW_MS, bill_cents=99_999), ROWS_MAX)
        found.append({name: sorted(table.rows, key=repr) for name, table in answers.items()})
    assert found[0] == found[1]
    assert sum(map(bool, found[0].values())) >= len(found[0]) - 5


def test_times_that_no_broker_writes_make_few_days(tmp_path: Path) -> None:
    trail = Kept()
    moments = [0, 1, NOW_MS - 1000 * DAY_MS, NOW_MS, NOW_MS + 2 * DAY_MS, 2**62]
    trail.write(0, chain_of(1, [At(USE, 0, moment) for moment in moments])[1])
    lake, taken = taken_in(tmp_path, trail)
    assert taken.records == len(moments) + 1
    assert {str(row[0]) for row in contents(lake)["events"]} == {"2025-08-17", "2026-09-21", "2026-09-22"}


def of_days(days: int) -> Iterator[Kept]:
    """A trail that grows by an event a day."""
    chain, found = chain_of(1, [])
    trail = Kept()
    trail.write(0, found)
    moments = [NOW_MS - day * DAY_MS for day in reversed(range(days))]
    for entry in chain_of(1, [At(USE, moment - 1, moment) for moment in moments])[1][1:]:
        trail.write(0, [entry])
        yield trail
    assert chain.sequence == 1


def test_old_days_leave_and_are_no_gap(tmp_path: Path) -> None:
    *_, trail = of_days(40)
    lake, _ = taken_in(tmp_path, trail)
    with lake.held(CLUSTER):
        DeltaDuckDB().retain(lake, NOW_MS, 30)
        keep(lake, Snapshot(CLUSTER, {}))
        answers = DeltaDuckDB().ask(lake, Settings(NOW_MS), 100)
    assert [row[1] for row in entries(lake)] == list(range(10, 41))
    assert answers["audit_gaps"].rows == []
    assert taken_in(tmp_path, trail)[1].records == 0
    assert chains(lake)["1-1"].last_sequence == 40


def test_what_is_vacuumed_is_not_vacuumed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_in(tmp_path, trail_of())
    lake, vacuum = lake_in(tmp_path), DeltaTable.vacuum

    def at_once(table: DeltaTable, dry_run: bool) -> list[str]:
        return vacuum(table, 0, dry_run, enforce_retention_duration=False)

    monkeypatch.setattr(DeltaTable, "vacuum", at_once)
    versions = []
    for _ in range(3):
        with lake.held(CLUSTER):
            DeltaDuckDB().retain(lake, NOW_MS + 30 * DAY_MS, 5)
        versions.append([DeltaTable(tmp_path / name).version() for name in NAMES])
    assert versions[0] == versions[1] == versions[2]
    assert not [*(tmp_path / "events").glob("day=*/*.parquet")]


def test_many_files_of_a_day_become_one_and_hold_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka_audit.delta.ingest.ROWS_MAX", 1)
    monkeypatch.setattr("kavka_audit.delta.retention.DAY_FILES_MAX", 3)
    trail = Kept()
    trail.write(0, chain_of(1, [At(USE)] * 5)[1])
    lake, _ = taken_in(tmp_path, trail)
    before = contents(lake)
    with lake.held(CLUSTER):
        DeltaDuckDB().retain(lake, NOW_MS, 400)
    files = [Path(file).parent.name for file in Tables(lake).events.files()]
    assert files.count("day=2026-09-21") == 1
    assert contents(lake) == before


@pytest.mark.parametrize("name", ["a b", "Prüfung", "100% {sure}", "it's 1", 'a "b"; c+d&e'])
def test_a_directory_may_have_any_name_that_delta_holds(tmp_path: Path, name: str) -> None:
    directory, trail = tmp_path / name, trail_of()
    lake, _ = taken_in(directory, trail)
    assert entries(lake) == entries(taken_in(tmp_path / "plain", trail)[0])
    assert taken_in(directory, trail)[1] == Ingested()
    with lake.held(CLUSTER):
        DeltaDuckDB().retain(lake, NOW_MS + 30 * DAY_MS, 5)
    assert entries(lake) == []


@pytest.mark.parametrize("name", ["x[1]", "a|b", "a^b", "a\\b", "a%20b", "a*", "a?", "a#1", "a\nb", "a\udcffb"])
def test_a_name_that_delta_does_not_hold_is_refused_before_the_directory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("kavka_audit_run.main.lacking", lambda *_: None)
    words = ("--table-format", "delta", "--directory", str(tmp_path / name))
    code, said = run("audit", "run", "--bootstrap", "127.0.0.1:1", *words)
    assert code == 1
    assert "choose another directory" in said
    assert not [*tmp_path.iterdir()]


def test_spark_writes_no_tables_in_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka_audit_run.main.lacking", lambda *_: None)
    words = ("--table-format", "delta", "--directory", "s3://bucket/audit", "--engine", "spark")
    code, said = run("audit", "run", "--bootstrap", "127.0.0.1:1", *words)
    assert code == 1
    assert "in an S3 store DuckDB alone writes its tables" in said


def test_records_that_were_deleted_are_counted_once(tmp_path: Path) -> None:
    lake, taken = taken_in(tmp_path, trail_of())
    assert taken.missed == 2
    assert taken_in(tmp_path, trail_of())[1] == Ingested()
    assert [row[-1] for row in entries(lake) if row[2] == "missed"] == [None]


def test_a_commit_is_on_the_disk_before_the_next_table_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss of power left tables whose logs named files that were empty, or that were behind `chains`."""
    synced, fsync = set[Path](), os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def write(table: Table, *given: Any) -> None:
        for name in NAMES:
            if name != table.name and (tmp_path / name / "_delta_log" / f"{1:020}.json").exists():
                rows = {tmp_path / file for file in getattr(Tables(lake_in(tmp_path)), name).names()}
                assert {*rows, *(tmp_path / name / "_delta_log").glob("*[1-9].json")} <= synced, name
        WRITE(table, *given)

    monkeypatch.setattr("os.fsync", noted)
    with written_by(write):
        lake, _ = taken_in(tmp_path, trail_of(4))
    with lake.held(CLUSTER):
        refresh(lake)
    written = [file for file in tmp_path.rglob("*.parquet") if file.parent.name != "snapshot"]
    assert len(written) > 8
    assert {*written} <= synced
    assert {file.parent for file in written} <= synced
