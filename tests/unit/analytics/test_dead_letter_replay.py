"""Dead letters are kept within a bound, and become events once where a later program understands them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kavka_audit.delta.columns import DEAD_LETTERS
from kavka_audit.delta.dead_letter_replay import HALF_DONE, Replayed, replay
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.delta.tables import Tables
from kavka_audit.lake import rows
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.event_schema import UnfitError
from kavka_audit.lake.rows import DEAD_BYTES_MAX, LONG_WORDS
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings
from kavka_broker.core.audit.cloud_events import headers_of
from tests.conformance.analytics.planted import Drawn
from tests.unit.analytics import trail as parquet
from tests.unit.analytics.deaths import death_behind
from tests.unit.analytics.delta import Rows, chains, contents, entries, lake_in, taken_in
from tests.unit.analytics.test_fast_parser import HAPPENINGS, ODD
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, ROWS_MAX, At, Kept, chain_of
from tests.unit.operator.person import run


@pytest.fixture
def trail() -> Kept:
    """Records with defects, and events that are parsed as JSON, on two days."""
    found = Drawn(3).trail(15)
    yesterday = NOW_MS - DAY_MS
    happened = [At(happening, end_ms=moment) for moment in (yesterday, NOW_MS) for happening in (HAPPENINGS[0], *ODD)]
    found.write(2, chain_of(3, [at._replace(start_ms=at.end_ms - 1) for at in happened])[1])
    return found


@contextmanager
def older_program() -> Iterator[None]:
    """Have the block read as a program does to which an event that has to be parsed as JSON is none."""

    def refused(_: object) -> None:
        raise UnfitError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "event_in", refused)
        yield


def replayed(directory: Path, *, is_dry_run: bool = False) -> Replayed:
    lake = lake_in(directory)
    with lake.held(CLUSTER):
        return [Replayed(), *replay(lake, NOW_MS, is_dry_run=is_dry_run)][-1]


def without_reasons(lake: Lake) -> dict[str, Rows]:
    """The contents, without the reason for which a letter is dead: that is of the program that took it in."""
    found, reason = contents(lake), 1 + [*DEAD_LETTERS].index("problem")
    dead = [row[:reason] + row[reason + 1 :] for row in found["dead_letters"]]
    return found | {"dead_letters": sorted(dead, key=repr)}


def answers(lake: Lake) -> dict[str, list[tuple[object, ...]]]:
    with lake.held(CLUSTER):
        keep(lake, Snapshot(CLUSTER, {}))
        found = DeltaDuckDB(lambda: NOW_MS / 1000).ask(lake, Settings(NOW_MS), ROWS_MAX)
    return {name: sorted(table.rows, key=repr) for name, table in found.items()}


def test_what_a_later_program_understands_becomes_events(tmp_path: Path, trail: Kept) -> None:
    whole, taken = taken_in(tmp_path / "whole", trail)
    with older_program():
        lake, before = taken_in(tmp_path / "older", trail)
        assert answers(lake) != answers(whole)
        assert replayed(lake.directory).events == 0
    judged = chains(lake)
    assert len(Tables(lake).dead_letters.names()) > 1, "days have files of their own"
    found = replayed(lake.directory)
    assert found.events == before.dead - taken.dead >= 2 * len(ODD)
    assert found.problems.total() == taken.dead
    assert without_reasons(lake) == without_reasons(whole)
    assert chains(lake) == judged
    assert answers(lake) == answers(whole)
    assert replayed(lake.directory) == Replayed(0, found.problems)
    assert not [*tmp_path.rglob("*.part")]


def test_a_replay_that_dies_at_any_commit_leaves_each_record_once(tmp_path: Path, trail: Kept) -> None:
    whole = without_reasons(taken_in(tmp_path / "whole", trail)[0])
    for commit in (1, 2, 4):
        with older_program():
            lake, _ = taken_in(tmp_path / f"{commit}", trail)
        with death_behind(commit):
            replayed(lake.directory)
        replayed(lake.directory)
        assert without_reasons(lake) == whole, commit


def test_a_dry_run_says_why_and_changes_nothing(tmp_path: Path, trail: Kept) -> None:
    with older_program():
        lake, taken = taken_in(tmp_path, trail)
    before = contents(lake)
    found = replayed(tmp_path, is_dry_run=True)
    assert found.events + found.problems.total() == taken.dead
    assert contents(lake) == before
    code, said = run("audit", "replay", "--dry-run", "--directory", str(tmp_path))
    assert code == 0
    assert f"{found.events} dead letters would be events now; {found.problems.total()} are none" in said
    assert contents(lake) == before
    code, said = run("audit", "replay", "--directory", str(tmp_path))
    assert (code, f"{found.events} dead letters are events now" in said) == (0, True)
    assert contents(lake) != before


@pytest.mark.parametrize("commit", [1, 2])
def test_a_batch_that_is_half_done_is_ended_first(tmp_path: Path, trail: Kept, commit: int) -> None:
    """The run that ends it reads its records again: those that a replay had moved would be there twice."""
    with older_program(), death_behind(commit):
        taken_in(tmp_path, trail)
    with pytest.raises(LakeError, match=HALF_DONE):
        replayed(tmp_path)
    lake, _ = taken_in(tmp_path, trail)
    replayed(tmp_path)
    assert contents(lake)["events"] == contents(taken_in(tmp_path / "whole", trail)[0])["events"]


def test_files_of_parquet_are_not_replayed(tmp_path: Path, trail: Kept) -> None:
    parquet.taken_in(tmp_path, trail)
    code, said = run("audit", "replay", "--directory", str(tmp_path))
    assert (code, "dead letters are in Delta tables alone" in said) == (1, True)
    assert run("audit", "replay", "--directory", "s3://bucket/audit")[0] == 2


def test_a_record_of_many_bytes_stops_no_run(tmp_path: Path) -> None:
    """A batch of some kilobytes may hold hundreds of megabytes of one byte. DuckDB refused its row, and so did each
    run from then on.
    """
    trail, long = Kept(), b"\0" * (3 * DEAD_BYTES_MAX)
    trail.add(0, [], long)
    trail.add(0, [("ce_type", long)], b"short")
    trail.add(0, headers_of(chain_of(1, [At(ODD[0])])[1][1]), long)
    lake, taken = taken_in(tmp_path, trail)
    assert (taken.records, taken.dead) == (3, 3)
    kept = [row[-2:] for row in sorted(entries(lake), key=lambda row: row[1])]
    beginning = long[:DEAD_BYTES_MAX]
    is_kept = [kept[0] == ("[]", beginning), kept[1] == (None, b"short"), kept[2][1] == beginning]
    assert is_kept == [True] * 3
    words = ("ce_type: not as a node writes it", "its headers are not kept", LONG_WORDS)
    assert replayed(tmp_path).problems == dict.fromkeys(words, 1)
