"""The answers of a lake in a store, copied for those that show them: what a run has ended with, and nothing else."""

from pathlib import Path

import pytest

from kavka_audit.lake.directory import LakeError
from kavka_audit.lake.own_files import COUNTS_OF_ANSWERS
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings
from kavka_audit.report.answers import ORDER
from kavka_audit.run import refresh
from kavka_audit.store.answers_copy import AnswersCopy
from tests.unit.analytics.stored import NAME, Connection, Objects, lake_in
from tests.unit.analytics.test_lake import USE
from tests.unit.analytics.trail import CLUSTER, NOW_MS, At, Kept, chain_of

ANSWERS = {f"tables/{name}.parquet" for name in ORDER}


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    """What a run over a short trail has written into a store."""
    found = Objects()
    run_once(found, tmp_path / "first", uses=1, now_ms=NOW_MS)
    return found


def run_once(objects: Objects, directory: Path, uses: int, now_ms: int) -> None:
    trail = Kept()
    trail.write(0, chain_of(1, [At(USE)] * uses)[1])
    lake = lake_in(Connection(objects), directory)
    refresh(lake, trail, Snapshot(CLUSTER, {}), Settings(now_ms), lambda _: None)


def copy_of(objects: Objects, directory: Path, bytes_max: int = 2**20) -> tuple[AnswersCopy, Connection]:
    directory.mkdir(exist_ok=True)
    connection = Connection(objects)
    return AnswersCopy(connection, NAME, directory, ORDER, bytes_max), connection


def files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_the_answers_are_copied_and_nothing_of_the_trail(objects: Objects, tmp_path: Path) -> None:
    copy, connection = copy_of(objects, tmp_path / "copy")
    copy.refresh()
    wanted = {*ANSWERS, COUNTS_OF_ANSWERS} & set(objects.kept)
    assert len(wanted) > len(ORDER) // 2
    assert files(copy.directory) == {name: objects.kept[name] for name in wanted}
    assert {asked.partition(" ")[0] for asked in connection.asked} == {"read", "list", "fetch"}, "it only reads"


def test_nothing_is_fetched_again_until_another_run_has_ended(objects: Objects, tmp_path: Path) -> None:
    copy, connection = copy_of(objects, tmp_path / "copy")
    copy.refresh()
    connection.asked.clear()
    copy.refresh()
    assert connection.asked == [f"read {COUNTS_OF_ANSWERS}"]
    run_once(objects, tmp_path / "second", uses=5, now_ms=NOW_MS + 1)
    gone = objects.kept.pop("tables/top_talkers.parquet")
    assert gone
    copy.refresh()
    assert "tables/top_talkers.parquet" not in files(copy.directory)
    assert files(copy.directory)[COUNTS_OF_ANSWERS] == objects.kept[COUNTS_OF_ANSWERS]


def test_answers_beyond_the_bound_and_a_store_that_ends_leave_what_is_there(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="more than 10 bytes"):
        copy_of(objects, tmp_path / "small", bytes_max=10)[0].refresh()
    assert files(tmp_path / "small") == {}
    copy, _ = copy_of(objects, tmp_path / "copy")
    copy.refresh()
    before = files(copy.directory)
    objects.kept["tables/top_talkers.parquet"] = b"x" * 2**21
    objects.kept[COUNTS_OF_ANSWERS] = b"{}"
    with pytest.raises(LakeError, match="are not copied"):
        copy.refresh()
    assert files(copy.directory) == before


def test_a_store_without_a_lake_says_no_name(tmp_path: Path) -> None:
    copy, _ = copy_of(Objects(), tmp_path / "copy")
    assert copy.claim() == b""
