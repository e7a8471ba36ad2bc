"""Several processes take in what one does, wherever one of them, or the one that has them read, is ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from kavka_audit.lake import parallel_ingest
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.ingest import Ingested, ingest
from kavka_audit.lake.parallel_ingest import CrewError, ingest_by_crew
from tests.support.waiting import until_outside
from tests.unit.analytics.interrupted_runs import EVENTS, PIECE, Opener, read_by_two, trail_of
from tests.unit.analytics.trail import CLUSTER


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces, and two processes from the first record on."""
    read_by_two(monkeypatch, PIECE)


def taken(directory: Path, opener: Opener) -> Ingested:
    """What a run by two processes has taken in."""
    lake = Lake(directory)
    with lake.held(CLUSTER):
        return [Ingested(), *ingest_by_crew(lake, opener.trail, opener, 2)][-1]


def rows(directory: Path) -> list[tuple[object, ...]]:
    found = duckdb.read_parquet(Lake(directory).files(), union_by_name=True)
    return sorted(found.fetchall(), key=str)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    """The rows that one process takes in."""
    directory = tmp_path_factory.mktemp("undisturbed")
    lake = Lake(directory)
    with lake.held(CLUSTER):
        assert [so_far.records for so_far in ingest(lake, trail_of())] == [EVENTS + 1, 2 * EVENTS + 1]
    return rows(directory)


def test_two_processes_take_in_what_one_does(tmp_path: Path, undisturbed: list[tuple[object, ...]]) -> None:
    so_far = taken(tmp_path, Opener(trail_of()))
    assert (so_far.records, so_far.dead, so_far.missed) == (2 * EVENTS + 1, 1, 2)
    assert so_far.files == sorted(so_far.files) == Lake(tmp_path).files()
    assert len(so_far.files) == 8
    assert rows(tmp_path) == undisturbed
    assert taken(tmp_path, Opener(trail_of())).records == 0


@pytest.mark.parametrize("point", ["opening", "reading", "writing", "written"])
def test_a_process_that_is_killed_ends_the_run_and_the_next_goes_on(
    tmp_path: Path, undisturbed: list[tuple[object, ...]], point: str
) -> None:
    with pytest.raises(CrewError, match=r"ended by SIGKILL, as the kernel .* run again: what is in .* counts once"):
        taken(tmp_path, Opener(trail_of(), point))
    taken(tmp_path, Opener(trail_of()))
    assert rows(tmp_path) == undisturbed
    assert not [*tmp_path.rglob("*.part")]


def test_what_the_trail_raises_there_is_raised_here(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="the trail is not to be read"):
        taken(tmp_path, Opener(trail_of(), "refused"))
    assert [span.split("/")[-1] for span in Lake(tmp_path).files()] in ([], [f"0-{0:020}-{PIECE:020}.parquet"])


def test_what_cannot_be_opened_there_is_told(tmp_path: Path) -> None:
    lake, trail = Lake(tmp_path), trail_of()
    with lake.held(CLUSTER), pytest.raises(TypeError, match="not callable"):
        [*ingest_by_crew(lake, trail, trail, 2)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("records", "processes"), [(24, 1), (23, 2)])
def test_few_records_are_read_by_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int, processes: int
) -> None:
    monkeypatch.setattr(parallel_ingest, "RECORDS_MIN", records)
    point = "opening" if processes == 1 else ""
    lake, trail = Lake(tmp_path), trail_of()
    with lake.held(CLUSTER):
        assert [*ingest_by_crew(lake, trail, Opener(trail, point), 2)][-1].records == 23


@pytest.mark.parametrize(
    ("quota", "most"),
    [("max 100000", parallel_ingest.CREW_MAX), ("150000 100000", 1), ("200000 100000", 2), ("50000 100000", 1)],
)
def test_no_more_processes_than_a_pod_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, most: int
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(parallel_ingest, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert parallel_ingest.processors() == most


def begun(directory: Path, point: str = "", reading: str = "") -> subprocess.Popen[str]:
    """A run in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    words = [sys.executable, "-m", "tests.unit.analytics.interrupted_runs", str(directory), point, reading]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def is_free(directory: Path) -> bool:
    """Whether no process holds the lake any more."""
    try:
        with Lake(directory).held(CLUSTER):
            return True
    except LakeError:
        return False


@pytest.mark.parametrize(("point", "reading"), [("settling", "silent"), ("settled", "")])
def test_when_the_run_is_killed_the_others_end_and_the_next_goes_on(
    tmp_path: Path, undisturbed: list[tuple[object, ...]], point: str, reading: str
) -> None:
    with begun(tmp_path, point, reading) as run:
        run.communicate()
    assert run.returncode == -signal.SIGKILL
    until_outside(lambda: is_free(tmp_path))
    taken(tmp_path, Opener(trail_of()))
    assert rows(tmp_path) == undisturbed


def readers_of(run: subprocess.Popen[str]) -> list[int]:
    """The processes that a run has started, once it has settled a file."""
    assert run.stdout is not None
    assert run.stdout.readline() == f"{PIECE}\n"
    found = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    assert len(found) == 2
    return [int(one) for one in found]


@pytest.mark.skipif(sys.platform != "linux", reason="the children of a process are found in /proc")
def test_a_reader_that_outlives_its_run_keeps_the_next_away(tmp_path: Path) -> None:
    with begun(tmp_path, "", "silent") as run:
        readers = readers_of(run)
        for one in readers:
            os.kill(one, signal.SIGSTOP)
        run.kill()
    try:
        with pytest.raises(LakeError, match="another run holds"), Lake(tmp_path).held(CLUSTER):
            pass
    finally:
        for one in readers:
            os.kill(one, signal.SIGCONT)
    until_outside(lambda: is_free(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="the children of a process are found in /proc")
def test_an_interrupt_ends_all(tmp_path: Path) -> None:
    with begun(tmp_path, "", "silent") as run:
        readers = readers_of(run)
        run.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in run.communicate()[1]
    assert is_free(tmp_path)
    assert not [one for one in readers if Path(f"/proc/{one}").exists()]
