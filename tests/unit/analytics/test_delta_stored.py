"""Delta tables in a store are those of a directory, wherever a run dies and whatever is left of its work directory."""

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest
from deltalake import DeltaTable

from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.delta.ingest import ingest
from kavka_audit.delta.tables import Tables
from kavka_audit.engine import DUCKDB
from kavka_audit.lake.directory import Lake, LakeError, TablePlace
from kavka_audit.lake.ingest import Ingested
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings
from kavka_audit.store.lease import LEASE_SECONDS
from kavka_audit.store.mirror import Mirror
from kavka_audit.store.objects import StoreError
from tests.unit.analytics import trail as parquet
from tests.unit.analytics.deaths import death_behind
from tests.unit.analytics.delta import NAMES, contents, taken_in
from tests.unit.analytics.interrupted_runs import trail_of
from tests.unit.analytics.stored import NAME, Connection, Objects, Time, lease_of
from tests.unit.analytics.stored import lake_in as stored_in
from tests.unit.analytics.test_delta_tables import small_batches
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, ROWS_MAX, Kept


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    monkeypatch.setattr("os.fsync", lambda _: None)  # no machine fails here
    small_batches(monkeypatch)
    (tmp_path / "tables").mkdir()
    return Objects(tables=tmp_path / "tables")


def lake_of(objects: Objects, directory: Path, time: Time | None = None) -> Lake:
    return stored_in(Connection(objects), directory, time, "delta")


def takes_in(lake: Lake, trail: Kept) -> Ingested:
    with lake.held(CLUSTER):
        return [Ingested(), *ingest(lake, trail, NOW_MS)][-1]


def rows_of(objects: Objects, directory: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of all tables, as a run with an empty work directory reads them."""
    lake = lake_of(objects, directory)
    with lake.held(CLUSTER):
        return contents(lake)


def versions(objects: Objects) -> list[int]:
    assert objects.tables is not None
    return [DeltaTable(objects.tables / name).version() for name in NAMES]


@pytest.mark.parametrize("commit", [1, 2, 3, 5, 7])
def test_a_run_that_dies_and_loses_its_directory_leaves_nothing_twice_and_nothing_out(
    objects: Objects, tmp_path: Path, commit: int
) -> None:
    trail, work = trail_of(4), tmp_path / "work"
    whole, _ = taken_in(tmp_path / "whole", trail)
    with death_behind(commit):
        takes_in(lake_of(objects, work), trail)
    rmtree(work)
    takes_in(lake_of(objects, work), trail)
    assert rows_of(objects, tmp_path / "another") == contents(whole)
    assert not [name for name in objects.kept if name.startswith(NAMES)], "a run keeps no rows beside the tables"


def test_the_directory_has_the_files_of_the_newest_version_alone(objects: Objects, tmp_path: Path) -> None:
    work = tmp_path / "work"
    takes_in(lake_of(objects, work), trail_of(4))
    lake = lake_of(objects, work)
    with lake.held(CLUSTER):
        (before,) = Tables(lake).chains.files()
        DeltaDuckDB().retain(lake, NOW_MS + 30 * DAY_MS, 5)
        assert Tables(lake).events.files() == []
        Tables(lake).chains.files()
    assert not [*work.glob("events/day=*/part-*")]
    assert not Path(before).exists()
    assert objects.tables is not None
    assert [*objects.tables.glob("events/day=*/part-*")], "readers of an older version have a week"


def test_answers_are_those_of_a_directory(objects: Objects, tmp_path: Path) -> None:
    trail, found = trail_of(4), []
    for lake in (lake_of(objects, tmp_path / "work"), Lake(tmp_path / "local", table_format="delta")):
        engine = DeltaDuckDB(lambda: NOW_MS / 1000)
        with lake.held(CLUSTER):
            list(engine.ingest(lake, trail))
            keep(lake, Snapshot(CLUSTER, {}))
            answers = engine.ask(lake, Settings(NOW_MS), ROWS_MAX)
        found.append({name: table.rows for name, table in answers.items()})
    assert found[0] == found[1]
    assert found[0]["audit_gaps"]


CHANGES: dict[str, Callable[[Lake], object]] = {
    "batch": lambda lake: list(ingest(lake, trail_of(4), NOW_MS)),
    "days": lambda lake: DeltaDuckDB().retain(lake, NOW_MS + 30 * DAY_MS, 5),
    "compaction": lambda lake: Tables(lake).events.compact("2026-09-21"),
    "tables": Tables,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_without_the_lease_changes_nothing(objects: Objects, tmp_path: Path, change: str) -> None:
    """A run that stood still for longer than the lease finds that another has taken it."""
    time = Time()
    lake = lake_of(objects, tmp_path / "slow", time)
    with lake.held(CLUSTER):
        next(ingest(lake, trail_of(4), NOW_MS))
        time.now += 2 * LEASE_SECONDS
        objects.kept["lease.json"] = b'{"held": true, "host": "elsewhere"}'
        before = versions(objects)
        with pytest.raises(StoreError, match="another run has taken"):
            CHANGES[change](lake)
        assert versions(objects) == before


def test_a_lake_of_its_own_is_no_work_directory(objects: Objects, tmp_path: Path) -> None:
    """Its rows were deleted, as the bucket did not have them."""
    whole, _ = taken_in(tmp_path / "delta", trail_of(4))
    kept = contents(whole)
    files, _ = parquet.taken_in(tmp_path / "parquet", trail_of(4))
    for name in ("delta", "parquet"):
        with (
            pytest.raises(LakeError, match="has a trail of its own, which is no copy of s3://bucket/audit"),
            lake_of(objects, tmp_path / name).held(CLUSTER),
        ):
            pass
    assert contents(whole) == kept
    assert all(Path(file).exists() for file in files.files())
    assert {*objects.kept} == {"lease.json"}


def test_a_copy_is_no_lake_of_its_own(objects: Objects, tmp_path: Path) -> None:
    """The next run of the store deleted what a run without it had taken in."""
    takes_in(lake_of(objects, tmp_path / "work"), trail_of(4))
    for table_format in ("delta", "parquet"):
        lake = Lake(tmp_path / "work", table_format=table_format)
        with pytest.raises(LakeError, match="is a copy of a bucket"), lake.held(CLUSTER):
            pass


def test_an_error_of_this_machine_is_none_of_the_table(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("kavka_audit.delta.tables.NamedTemporaryFile", nowhere)
    monkeypatch.setattr(Connection, "table_place", lambda _: TablePlace(str(objects.tables), {}, "a certificate"))
    with pytest.raises(LakeError, match=r"dead_letters: No such file or directory$"):
        takes_in(lake_of(objects, tmp_path / "work"), trail_of(4))


def test_a_copy_of_an_earlier_version_is_gone_on_with(objects: Objects, tmp_path: Path) -> None:
    """It has no mark; the default directory, which no user has chosen, was refused for good."""
    for name, connection in (("chosen", Connection(objects)), ("own", Connection(Objects()))):
        lake = stored_in(connection, tmp_path / name)
        with lake.held(CLUSTER):
            list(DUCKDB.ingest(lake, trail_of(4)))
        (tmp_path / name / "kavka-mirror.json").unlink()
    with stored_in(Connection(objects), tmp_path / "chosen").held(CLUSTER):
        pass
    emptied = Objects()
    mirror = Mirror(Connection(emptied), NAME, lease_of(Connection(emptied)), has_own_directory=True)
    with Lake(tmp_path / "own", mirror).held(CLUSTER):
        assert not [*(tmp_path / "own").glob("entries/*/*.parquet")]


def test_files_of_others_in_the_work_directory_stay(objects: Objects, tmp_path: Path) -> None:
    work = tmp_path / "work"
    others = [work / "events" / name for name in ("part-mine.parquet", "sub/part-of-my-thesis.parquet")]
    others += [work / name for name in ("trusted.pem", "answers.json")]
    for file in others:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    for _ in range(2):
        takes_in(lake_of(objects, work), trail_of(4))
    rows_of(objects, work)
    assert [file.read_text() for file in others] == [file.name for file in others]


def test_a_damaged_log_is_not_taken_for_a_store_that_does_not_answer(objects: Objects, tmp_path: Path) -> None:
    takes_in(lake_of(objects, tmp_path / "work"), trail_of(4))
    assert objects.tables is not None
    (objects.tables / "events/_delta_log/00000000000000000001.json").write_text("{")
    with pytest.raises(LakeError, match=r"s3://bucket/audit/events: .* its log is damaged"):
        takes_in(lake_of(objects, tmp_path / "work"), trail_of(9))


def test_of_two_runs_at_once_delta_refuses_one_where_the_lease_does_not(objects: Objects, tmp_path: Path) -> None:
    trail, lakes = trail_of(4), [lake_of(objects, tmp_path / name) for name in ("one", "two")]
    with lakes[0].held(CLUSTER):
        (tmp_path / "two/entries").mkdir(parents=True)
        lakes[1].keeper = lakes[0].keeper
        slower, faster = (ingest(lake, trail, NOW_MS) for lake in lakes)
        next(slower)
        next(faster)
        with pytest.raises(LakeError, match=r"another run has written to .*/events meanwhile"):
            next(slower)
        list(faster)
    whole, _ = taken_in(tmp_path / "whole", trail)
    assert rows_of(objects, tmp_path / "another") == contents(whole)


def test_an_error_of_the_store_is_told_in_its_words(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What deltalake says may hold what was signed."""

    def refused(*_: object, **__: object) -> None:
        raise OSError("<Code>SignatureDoesNotMatch</Code> secret")

    monkeypatch.setattr("kavka_audit.delta.tables.write_deltalake", refused)
    with pytest.raises(LakeError, match=r"s3://bucket/audit/\w+: the store says [0-9]+ characters$"):
        takes_in(lake_of(objects, tmp_path / "work"), trail_of(4))
