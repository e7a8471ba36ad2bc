"""A lake in a store says the same as one in a directory, wherever a run is cut off from the store."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kavka_audit.lake.columns import SNAPSHOT
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings, Table
from kavka_audit.run import refresh
from tests.support.drawn import in_turn
from tests.unit.analytics.few_questions import Few, asked
from tests.unit.analytics.stored import NAME, Connection, Died, Objects, Time, lake_in, lease_of
from tests.unit.analytics.test_lake import USE
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At, Kept, chain_of

KEEP_DAYS = 30
DAYS_OLD = (44, 43, 42, 6, 5, 4, 3, 2, 1)
ASKED = ("audit_gaps", "completeness", "first_access", "top_talkers")
PARTS = 3  # of the requests that a run may die behind, of which a commit plays one
FILE = "entries/first/0-{:020}-{:020}.parquet"


def trail_of(events: int) -> Kept:
    """So much of a trail of nine events, of which three are too old to be kept."""
    trail = Kept()
    moments = [NOW_MS - days * DAY_MS for days in DAYS_OLD]
    entries = chain_of(1, [At(USE, moment - 1, moment) for moment in moments])[1][1:]
    trail.write(0, entries[:events])
    return trail


def ran(lake: Lake, events: int, others: dict[str, Table]) -> dict[str, Table]:
    """A run; the answers."""
    trail, engine = trail_of(events), Few(others)
    settings, snapshot = Settings(NOW_MS), Snapshot(CLUSTER, {})
    return refresh(lake, trail, snapshot, settings, lambda _: None, None, KEEP_DAYS, engine).tables


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """Answers to all questions."""
    return ran(Lake(tmp_path_factory.mktemp("lake")), 0, {})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, others: dict[str, Table]) -> Iterator[None]:
    """Small files, merged soon, and few of what is made again in each run."""
    assert others.keys() >= {*ASKED}
    monkeypatch.setattr("os.fsync", lambda _: None)  # no machine fails here
    monkeypatch.setattr("kavka_audit.lake.ingest.ROWS_MAX", 1)
    monkeypatch.setattr("kavka_audit.lake.retention.MERGED_FILES_MIN", 2)
    kept = {name: SNAPSHOT[name] for name in ("counted", "stale", "verdicts")}
    monkeypatch.setattr("kavka_audit.lake.snapshot.SNAPSHOT", kept)
    with asked(*ASKED):
        yield


def held(objects: Objects, directory: Path, prefix: str) -> list[tuple[object, ...]]:
    """The rows of all objects that begin so, in order."""
    found: list[tuple[object, ...]] = []
    for number, name in enumerate(objects.names(prefix)):
        file = directory / f"{number}.parquet"
        file.write_bytes(objects.kept[name])
        found += duckdb.read_parquet(str(file)).fetchall()
    return sorted(found, key=str)


def said(objects: Objects, directory: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a lake holds and has answered."""
    directory.mkdir(exist_ok=True)
    names = ("entries/", "cut.parquet", *(f"tables/{name}.parquet" for name in ASKED))
    return {name: held(objects, directory, name) for name in names}


@pytest.fixture
def undisturbed(tmp_path: Path, others: dict[str, Table]) -> dict[str, list[tuple[object, ...]]]:
    """What a lake says after two runs that nothing has disturbed."""
    objects = Objects()
    for events in (4, 9):
        ran(lake_in(Connection(objects), tmp_path / "undisturbed"), events, others)
    found = said(objects, tmp_path / "read")
    assert len(found["entries/"]) == 6, "three are too old"
    assert found["cut.parquet"]
    return found


def deaths(directory: Path, others: dict[str, Table], begin: int) -> Iterator[tuple[Objects, Path]]:
    """A store with a run done and a second one cut off behind each `PARTS`th of its requests, and its answer lost."""
    first = Objects()
    ran(lake_in(Connection(first), directory / "first"), 4, others)
    for count in itertools.count(begin, PARTS):
        objects, place = Objects({**first.kept}), directory / str(count)
        connection = Connection(objects, count, is_done=True)
        try:
            ran(lake_in(connection, place), 9, others)
        except Died:
            yield objects, place
            continue
        assert count > 30, "a run asks for more than that"
        return


@pytest.mark.thorough
@pytest.mark.parametrize("begin", in_turn(range(1, PARTS + 1), PARTS))
def test_a_run_that_dies_behind_any_request_is_gone_on_with(
    tmp_path: Path, undisturbed: dict[str, list[tuple[object, ...]]], others: dict[str, Table], begin: int
) -> None:
    for count, (objects, place) in enumerate(deaths(tmp_path, others, begin)):
        directory = place if count % 2 else tmp_path / f"another-{count}"
        time = Time()
        ran(lake_in(Connection(objects), directory, time), 9, others)
        assert said(objects, tmp_path / "read") == undisturbed, f"request {begin + PARTS * count}"
        assert time.now <= 160, "it waits for the lease of the dead, once"


def test_a_second_run_fetches_what_its_directory_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: dict[str, Table]
) -> None:
    monkeypatch.setattr("kavka_audit.lake.retention.MERGED_FILES_MIN", 100)
    objects = Objects()
    ran(lake_in(Connection(objects), tmp_path / "a"), 9, others)
    ranges = objects.names("entries/")
    again, elsewhere = Connection(objects), Connection(objects)
    ran(lake_in(again, tmp_path / "a"), 9, others)
    ran(lake_in(elsewhere, tmp_path / "b"), 9, others)
    assert not [asked for asked in again.asked if asked.startswith("fetch entries/")]
    assert sorted(asked for asked in elsewhere.asked if asked.startswith("fetch entries/")) == [
        f"fetch {name}" for name in ranges
    ]
    assert not [asked for asked in elsewhere.asked if asked.startswith("put entries/")]


def test_what_the_store_does_not_have_is_not_believed(tmp_path: Path, others: dict[str, Table]) -> None:
    """A bucket that was emptied gets all of the trail again."""
    ran(lake_in(Connection(Objects()), tmp_path), 9, others)
    objects = Objects()
    ran(lake_in(Connection(objects), tmp_path), 9, others)
    assert len(held(objects, tmp_path, "entries/")) == 6


def test_the_store_of_another_cluster_is_refused_and_stays_as_it_is(tmp_path: Path, others: dict[str, Table]) -> None:
    objects = Objects()
    ran(lake_in(Connection(objects), tmp_path / "a"), 9, others)
    before = {name: data for name, data in objects.kept.items() if name != "lease.json"}
    lake = lake_in(Connection(objects), tmp_path / "b")
    words = f"{NAME} holds the trail of cluster {CLUSTER}, and this is other; choose another place"
    with pytest.raises(LakeError, match=words), lake.held("other"):
        pass
    assert before == {name: data for name, data in objects.kept.items() if name != "lease.json"}


def test_files_that_overlap_are_named(tmp_path: Path) -> None:
    kept = {FILE.format(0, 10): b"", FILE.format(0, 3): b"", FILE.format(9, 12): b"", FILE.format(12, 15): b""}
    lake = lake_in(Connection(Objects(kept)), tmp_path)
    words = f"{FILE.format(0, 10)} and {FILE.format(9, 12)} hold some records both"
    with pytest.raises(LakeError, match=words), lake.held(CLUSTER):
        pass


def test_foreign_objects_are_left_alone(tmp_path: Path, others: dict[str, Table]) -> None:
    foreign = {"entries/../../../etc/passwd": b"x", "entries/first/readme.txt": b"x", "entries/a/0-1-2.parquet": b"x"}
    objects = Objects({**foreign})
    ran(lake_in(Connection(objects), tmp_path / "a"), 9, others)
    assert foreign.items() <= objects.kept.items()
    assert not [file for file in tmp_path.rglob("*") if file.name in ("passwd", "readme.txt", "0-1-2.parquet")]


def test_what_executors_of_a_dead_run_left_is_deleted_and_nothing_else(
    tmp_path: Path, others: dict[str, Table]
) -> None:
    left = f"spark-{'0f' * 16}-entries.part/0/part-0.parquet"
    objects = Objects({left: b"x", "spark-of-mine.part/0": b"x"})
    ran(lake_in(Connection(objects), tmp_path / "a"), 1, others)
    assert left not in objects.kept
    assert objects.kept["spark-of-mine.part/0"] == b"x"


def test_a_file_that_is_taken_within_the_store_is_here_when_it_is_asked_for(tmp_path: Path) -> None:
    objects = Objects({"beside.part/0": b"rows"})
    for directory in ("a", "b", "a"):
        connection = Connection(objects)
        lake = lake_in(connection, tmp_path / directory)
        with lake.held(CLUSTER):
            place = lake.place("first", 0, 0, 5)
            if not lake.files():
                lake.adopt("beside.part/0", place, 4)
            assert (place.read_bytes(), lake.size_bytes(place)) == (b"", 4)
            assert lake.next_offsets("first") == {0: 5}
            if directory == "b":
                assert Path(*lake.fetched([place])).read_bytes() == b"rows"
                assert [*lake.fetched([place])] == [str(place)]
                assert connection.asked.count(f"fetch {FILE.format(0, 5)}") == 1


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    objects, time = Objects(), Time()
    holder = lease_of(Connection(objects), time)

    class Renewing(Time):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            time.now += seconds
            if time.now > 30:
                holder.check()

    with holder.held():
        lake = lake_in(Connection(objects), tmp_path, Renewing())
        words = f"another run holds {NAME} \\(on here\\); wait for its end"
        with pytest.raises(LakeError, match=words), lake.held(CLUSTER):
            pass
    with lake_in(Connection(objects), tmp_path).held(CLUSTER):
        pass
