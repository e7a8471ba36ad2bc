"""Several processes read for the Delta tables, and one commits: the tables are those that one process makes."""

import os
from pathlib import Path

import pytest

from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.delta.ingest import ingest
from kavka_audit.lake.ingest import Ingested
from kavka_audit.lake.parallel_ingest import CrewError
from tests.conformance.analytics.planted import Drawn
from tests.unit.analytics.deaths import death_behind
from tests.unit.analytics.delta import contents, lake_in, taken_in
from tests.unit.analytics.interrupted_runs import Opener, read_by_two, trail_of
from tests.unit.analytics.trail import CLUSTER, NOW_MS, Kept


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces, and two processes from the first record on."""
    read_by_two(monkeypatch, 5)


def taken(directory: Path, opener: Opener) -> Ingested:
    """What a run by two processes has taken in."""
    lake = lake_in(directory)
    with lake.held(CLUSTER):
        return [Ingested(), *ingest(lake, opener.trail, NOW_MS, opener, 2)][-1]


def whole_of(directory: Path, trail: Kept) -> dict[str, list[tuple[object, ...]]]:
    return contents(taken_in(directory, trail)[0])


def test_two_processes_take_in_what_one_does(tmp_path: Path) -> None:
    """Chains, too: of a trail with entries that are missing, twice there, or of others."""
    trail = Drawn(5).trail(24)
    trail.begins[0] = 2
    found = taken(tmp_path / "two", Opener(trail))
    lake, alone = taken_in(tmp_path / "one", trail)
    assert found == alone
    assert contents(lake_in(tmp_path / "two")) == contents(lake)
    assert taken(tmp_path / "two", Opener(trail)).records == 0
    assert not [*tmp_path.rglob("*.part")]


def test_what_a_reader_has_left_behind_a_hole_is_read_here(tmp_path: Path) -> None:
    """A reader finds records deleted, which this process still has, and so ends its batch before them."""
    trail = trail_of(9)
    trail.cuts[1] = (4, 8)  # once the reader of a piece has four records of it, those before offset 8 are deleted
    taken(tmp_path / "two", Opener(trail))
    assert contents(lake_in(tmp_path / "two")) == whole_of(tmp_path / "one", trail_of(9))


def test_a_process_that_is_killed_ends_the_run_and_the_next_goes_on(tmp_path: Path) -> None:
    with pytest.raises(CrewError, match=r"ended by SIGKILL, .* run again: what is in .* counts once"):
        taken(tmp_path / "two", Opener(trail_of(), "reading", 5))
    taken(tmp_path / "two", Opener(trail_of()))
    assert contents(lake_in(tmp_path / "two")) == whole_of(tmp_path / "one", trail_of())
    assert not [*tmp_path.rglob("*.part")]


@pytest.mark.parametrize("commit", [1, 8])
def test_a_run_that_dies_at_a_commit_is_gone_on_with(tmp_path: Path, commit: int) -> None:
    with death_behind(commit):
        taken(tmp_path / "two", Opener(trail_of()))
    taken(tmp_path / "two", Opener(trail_of()))
    assert contents(lake_in(tmp_path / "two")) == whole_of(tmp_path / "one", trail_of())


def test_the_engine_has_others_read_where_it_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2), raising=False)
    lake, trail = lake_in(tmp_path), trail_of()
    with lake.held(CLUSTER), pytest.raises(CrewError):
        list(DeltaDuckDB(opener=Opener(trail, "opening")).ingest(lake, trail))
