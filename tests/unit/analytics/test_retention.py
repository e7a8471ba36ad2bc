"""What is old leaves the lake, small files become few, and neither changes an answer, wherever a run dies."""

from pathlib import Path

import pytest

from kavka_audit.lake import retention
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.retention import keep_lately, merge
from kavka_audit.questions.query_runner import Settings, ask
from tests.unit.analytics.test_lake import USE, Died, rows
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At, Kept, chain_of, taken_in


def of_days(days: int) -> Kept:
    """An event a day, the last one today, in one chain."""
    trail = Kept()
    moments = [NOW_MS - day * DAY_MS for day in reversed(range(days))]
    trail.write(0, chain_of(1, [At(USE, moment - 1, moment) for moment in moments])[1][1:])
    return trail


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with a file for each of forty days."""
    return taken_in(tmp_path, of_days(40), rows_max=1)[0]


def gaps(lake: Lake) -> list[tuple[str, int]]:
    return [(row["gap"], row["entries"]) for row in ask(lake, Settings(NOW_MS), 100)["audit_gaps"].dicts()]


def test_old_files_leave_and_are_no_gap(lake: Lake) -> None:
    assert gaps(lake) == [("missing", 1)]  # the head of the chain was left out
    assert keep_lately(lake, NOW_MS, 30) == 9
    assert [offset for _, offset, _ in rows(lake)] == list(range(9, 40))
    assert gaps(lake) == []
    assert keep_lately(lake, NOW_MS, 20) == 10
    assert gaps(lake) == []
    assert keep_lately(lake, NOW_MS, 20) == 0


def test_an_entry_that_is_missing_after_the_cut_is_a_gap(tmp_path: Path) -> None:
    trail = of_days(40)
    found = [record for record in trail.records[0] if record.offset != 30]
    trail.records[0] = [record._replace(offset=place) for place, record in enumerate(found)]
    lake, _ = taken_in(tmp_path, trail, rows_max=1)
    keep_lately(lake, NOW_MS, 30)
    assert gaps(lake) == [("missing", 1)]


def test_reading_goes_on_where_all_is_old(lake: Lake, tmp_path: Path) -> None:
    assert keep_lately(lake, NOW_MS + 1000 * DAY_MS, 30) == 39
    assert lake.next_offsets("first") == {0: 40}
    assert taken_in(tmp_path, of_days(40))[1].records == 0


def test_small_files_become_few_and_hold_the_same(lake: Lake) -> None:
    before = rows(lake)
    assert merge(lake) == 2 * 15
    assert len(lake.files()) == 10
    assert rows(lake) == before
    assert lake.next_offsets("first") == {0: 40}
    assert merge(lake) == 0


@pytest.mark.parametrize("unlinked", [0, 3])
def test_a_merge_that_dies_leaves_nothing_twice(lake: Lake, monkeypatch: pytest.MonkeyPatch, unlinked: int) -> None:
    before, unlink, left = rows(lake), Path.unlink, unlinked

    def dying(path: Path, *, missing_ok: bool = False) -> None:
        nonlocal left
        if left == 0:
            raise Died
        left -= 1
        unlink(path, missing_ok)

    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(Path, "unlink", dying)
        merge(lake)
    assert rows(lake) == before
    with lake.held(CLUSTER):
        assert len(list(lake.entries.glob("*/*"))) == 40 - 15
    assert rows(lake) == before


def test_a_cut_that_dies_is_no_gap(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink, left = Path.unlink, 5

    def dying(path: Path, *, missing_ok: bool = False) -> None:
        nonlocal left
        left -= "entries" in str(path)
        if left == 0:
            raise Died
        unlink(path, missing_ok)

    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(Path, "unlink", dying)
        keep_lately(lake, NOW_MS, 30)
    assert gaps(lake) == []
    assert keep_lately(lake, NOW_MS, 30) == 5


def test_files_that_are_large_stay_as_they_are(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SMALL_BYTES_MAX", 10)
    assert merge(lake) == 0
