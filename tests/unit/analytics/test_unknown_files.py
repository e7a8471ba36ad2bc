"""A lake in a directory with files of other programs, with damaged files, and on a disk that is full."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kavka_audit.lake.columns import SNAPSHOT
from kavka_audit.lake.completeness_results import stale
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.errors import told
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings, Table
from kavka_audit.run import Outcome, refresh
from tests.unit.analytics.few_questions import Few, asked
from tests.unit.analytics.stored import Connection, Objects, lake_in
from tests.unit.analytics.test_lake import kept, rows
from tests.unit.analytics.trail import CLUSTER, NOW_MS, taken_in

FOREIGN = {
    "part-00000-x.snappy.parquet": b"",
    "._x.parquet": b"PAR1garbagePAR1",
    "0-1.parquet": b"x",
    "0-00000000000000000000-00000000000000000009.parquet.bak": b"x",
    "part.parquet.tmp": b"PAR1",
    "film.part": b"half of it",
    "_SUCCESS": b"",
    ".DS_Store": b"x",
}
OTHERS: dict[str, dict[str, Table]] = {}
ELSEWHERE = ("film.part", "thesis.pdf", "more/deep/disk.part", "spark-notes.part/a.txt", "tables/My Table.part", "lock")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """Answers to all questions."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    return refresh(lake, kept(0), Snapshot(CLUSTER, {}), Settings(NOW_MS), lambda _: None, engine=Few({})).tables


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch, others: dict[str, Table]) -> Iterator[None]:
    monkeypatch.setitem(OTHERS, "tables", others)
    kept_tables = {name: SNAPSHOT[name] for name in ("counted", "stale", "verdicts")}
    monkeypatch.setattr("kavka_audit.lake.snapshot.SNAPSHOT", kept_tables)
    with asked("audit_gaps", "completeness", "first_access", "top_talkers"):
        yield


def ran(lake: Lake, count: int = 5) -> Outcome:
    return refresh(
        lake, kept(count), Snapshot(CLUSTER, {}), Settings(NOW_MS), lambda _: None, engine=Few(OTHERS["tables"])
    )


def put(directory: Path) -> dict[Path, bytes]:
    """Files of other programs, among those of the trail and elsewhere."""
    topic = directory / "entries" / "first"
    made = {topic / name: content for name, content in FOREIGN.items()}
    made |= {directory / name: name.encode() for name in ELSEWHERE}
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return made


def test_files_of_others_are_passed_over_and_stay(tmp_path: Path) -> None:
    assert ran(Lake(tmp_path)).unknown == []
    (topic,) = (tmp_path / "entries").iterdir()
    topic.rename(tmp_path / "entries" / "first")
    (tmp_path / "entries" / "first").rename(topic)
    made = put(tmp_path)
    outcome = ran(Lake(tmp_path), 7)
    assert {path: path.read_bytes() for path in made} == made
    assert len(outcome.unknown) == len(FOREIGN)
    assert outcome.unknown[0] == "entries/first/.DS_Store"
    assert [place for _, place, _ in rows(Lake(tmp_path))] == list(range(8))


def test_files_of_others_stay_where_a_store_is_mirrored(tmp_path: Path) -> None:
    objects = Objects()
    made = put(tmp_path)
    with lake_in(Connection(objects), tmp_path).held(CLUSTER):
        pass
    assert {path: path.read_bytes() for path in made} == made


def test_what_a_run_that_died_has_left_goes(tmp_path: Path) -> None:
    ran(Lake(tmp_path))
    span = "0-00000000000000000006-00000000000000000009"
    left = [
        *(f"entries/first/{span}{more}" for more in (".part", ".parquet.part", ".part.others.lines.part")),
        f"counts/first/{span}.part.0.lines.part",
        "tables/top_talkers.parquet.part",
        "snapshot/topics.parquet.lines.part",
        "report.html.part",
        "cut.parquet.lines.part",
        f"spark-{'0' * 32}-entries.part/part-0.parquet",
    ]
    for name in left:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / f"spark-{'1' * 32}-entries.part").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_text("kept")
    ran(Lake(tmp_path))
    assert not list(tmp_path.rglob("*.part"))
    assert (tmp_path / "elsewhere" / "precious").read_text() == "kept"


@pytest.mark.parametrize("name", ["report.html", "metrics.prom", "quotas.yaml"])
def test_a_run_writes_over_no_file_that_it_has_not_made(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("of another program")
    with pytest.raises(
        LakeError, match=f"has a {name} and no lake.json, so no run has written it; choose another place"
    ):
        ran(Lake(tmp_path))
    assert (tmp_path / name).read_text() == "of another program"


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, share: float) -> None:
    lake, _ = taken_in(tmp_path, kept(5))
    (file,) = map(Path, lake.files())
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(LakeError) as caught:
        ran(lake)
    assert str(caught.value) == (
        f"{file} is damaged; delete it, and those of its partition that begin later:"
        " what the trail still has of them is read again"
    )
    file.unlink()
    ran(lake)
    assert [place for _, place, _ in rows(lake)] == list(range(6))


def test_a_file_that_is_damaged_in_its_middle_is_named(tmp_path: Path) -> None:
    lake, _ = taken_in(tmp_path, kept(50))
    (file,) = map(Path, lake.files())
    whole = bytearray(file.read_bytes())
    whole[4 : len(whole) // 2] = b"\xff" * (len(whole) // 2 - 4)
    file.write_bytes(whole)
    with pytest.raises(LakeError, match="is damaged; delete it") as caught, told(lake):
        duckdb.execute("SELECT count(COLUMNS(*)) FROM read_parquet(?)", [str(file)]).fetchall()
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"), [("cut.parquet", "put a copy of it back"), ("completeness.parquet", "made")]
)
def test_other_damaged_files_are_named_too(tmp_path: Path, name: str, words: str) -> None:
    lake = Lake(tmp_path)
    ran(lake)
    file = lake.cuts if name == "cut.parquet" else lake.tables / name
    file.write_bytes(b"PAR1")
    with pytest.raises(LakeError, match=f"{name} is damaged; .*{words}"):
        ran(lake)


def test_a_damaged_note_of_the_last_run_has_days_judged_again(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    ran(lake)
    (lake.snapshot / "judged.json").write_text("[")
    assert stale(lake, NOW_MS) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), duckdb.IOException])
def test_a_full_disk_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    lake = Lake(tmp_path)

    def full(*_: object) -> None:
        if isinstance(error, OSError):
            raise error
        raise duckdb.IOException('IO Error: Could not write file "x": No space left on device')

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "settle", full)
        with pytest.raises(LakeError, match="cannot be written to: No space left on device; mend that and run again"):
            ran(lake)
    assert ran(lake).ingested.records
