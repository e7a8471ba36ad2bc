"""Daily tables that were kept batch by batch are those made at once, and give the aggregates of all rows."""

import random
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_audit.delta import daily_tables
from kavka_audit.delta.columns import DAY
from kavka_audit.delta.daily_columns import DAILY
from kavka_audit.delta.daily_tables import DailyTables, entries_of, files_of, refresh
from kavka_audit.delta.ingest import ingest
from kavka_audit.delta.retention import retain
from kavka_audit.delta.tables import Tables
from kavka_audit.lake.directory import Lake
from kavka_audit.questions.query_runner import AGGREGATES, EVENTS, aggregations
from kavka_broker.core.audit.events import Denied, Happening
from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.core.audit.usage import Throttling, Use
from kavka_broker.core.quota.entity import Entity
from tests.unit.analytics.deaths import Death, death_behind
from tests.unit.analytics.delta import Rows, lake_in, rows_in
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At, Kept, chain_of

MIDNIGHT_MS = NOW_MS - NOW_MS % DAY_MS
MINUTE_MS = 60_000
DIRECTORIES = (*DAILY, "daily_days")


def drawn(chance: random.Random) -> At:
    """Something of the last three days, rather often in the minutes before and after a midnight."""
    client = f"client-{chance.randrange(2)}"
    entity = entity_key(Entity(None, client))
    happenings: list[Happening] = [
        Use("User:alice", "10.0.0.1", client, "WRITE", f"t{chance.randrange(2)}", chance.randrange(1000), 3),
        Use("User:bob", "10.0.0.2", client, "READ", "t0", chance.randrange(1000), None),
        Throttling("User:alice", "10.0.0.1", client, "produce", entity, 1024.0, 70, 50),
        Denied("User:eve", "10.0.0.9", "READ", "topic", "t1"),
    ]
    day_ms = MIDNIGHT_MS - chance.randrange(3) * DAY_MS
    start_ms = day_ms + chance.choice([-MINUTE_MS, 0, MINUTE_MS, chance.randrange(NOW_MS - MIDNIGHT_MS)])
    return At(chance.choice(happenings), start_ms, start_ms + chance.randrange(2 * MINUTE_MS), chance.randrange(1, 4))


def trail_of(chance: random.Random, events: int = 6) -> Kept:
    """Two chains with holes, entries that came late, batches that were written twice, and a record that is no entry."""
    trail = Kept()
    for node in range(2):
        entries = chain_of(node, [drawn(chance) for _ in range(events)])[1]
        del entries[chance.randrange(len(entries))]
        first = chance.randrange(len(entries) - 3)
        entries += entries[first : first + 3]
        trail.write(node, entries)
    trail.write(1, chain_of(5, across_midnight())[1])
    trail.add(0, [], b"dead")
    return trail


def across_midnight() -> list[At]:
    """A delay, and the use of the same minute, which is told a day later."""
    throttling = Throttling("User:alice", "10.0.0.1", "app", "produce", entity_key(Entity(None, "app")), 1024.0, 70, 50)
    use = Use("User:alice", "10.0.0.1", "app", "WRITE", "t0", 1000, 3)
    return [At(throttling, MIDNIGHT_MS - MINUTE_MS, MIDNIGHT_MS - 1), At(use, MIDNIGHT_MS - MINUTE_MS, MIDNIGHT_MS + 1)]


def growing(lake: Lake, whole: Kept, chance: random.Random) -> None:
    """Have the tables take in the trail in pieces, with the daily tables kept in between, files made one, and old days
    deleted.
    """
    growing = Kept()
    while any(len(growing.records.get(place, ())) < len(found) for place, found in whole.records.items()):
        for place, found in whole.records.items():
            growing.records[place] = found[: len(growing.records.get(place, ())) + chance.randrange(3, 12)]
        list(ingest(lake, growing, NOW_MS))
        if chance.random() < 0.3:
            retain(lake, NOW_MS, chance.choice([400, 2, 1]))
        refresh(lake)


def daily_rows(lake: Lake) -> dict[str, Rows]:
    daily = DailyTables(lake)
    return {name: rows_in(table) for name, table in daily.tables.items()}


def made_at_once(lake: Lake) -> dict[str, Rows]:
    """The rows of the daily tables of the same lake where nothing of them was there before."""
    for name in DIRECTORIES:
        shutil.rmtree(lake.directory / name)
    refresh(lake)
    return daily_rows(lake)


def aggregates_of(lake: Lake) -> dict[str, Rows]:
    """The aggregates, from the daily tables."""
    with duckdb.connect() as connection:
        found = DailyTables(lake).aggregates()(connection)
        for name, rows in found.items():
            rows.create(name)
        return rows_of(connection)


def aggregates_of_all(lake: Lake) -> dict[str, Rows]:
    """The aggregates, from all rows of the trail."""
    with duckdb.connect() as connection:
        entries_of(connection, Tables(lake)).create_view("entries")
        for name, sql in aggregations().items():
            connection.execute(f"CREATE TABLE {name} AS {sql}")
            if name == AGGREGATES[0]:
                connection.execute(f"CREATE VIEW events AS {EVENTS}")
        return rows_of(connection)


def rows_of(connection: duckdb.DuckDBPyConnection) -> dict[str, Rows]:
    return {name: sorted(connection.table(name).fetchall(), key=repr) for name in AGGREGATES[1:]}


@settings(max_examples=2, deadline=None)  # each makes the days of a lake a dozen times
@given(seed=st.integers(0, 2**32))
def test_kept_batch_by_batch_they_are_those_made_at_once(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    lake = lake_in(tmp_path_factory.mktemp("lake"))
    with pytest.MonkeyPatch.context() as patch, lake.held(CLUSTER):
        patch.setattr("kavka_audit.delta.retention.DAY_FILES_MAX", 2)
        growing(lake, trail_of(chance, 12), chance)
        assert aggregates_of(lake) == aggregates_of_all(lake)
        kept = daily_rows(lake)
        assert kept == made_at_once(lake)
    assert kept["use_daily"]
    assert kept["sequence_ranges_daily"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake of three days with delays, whose daily tables are yet to be made."""
    lake = lake_in(tmp_path)
    list(ingest(lake_with_directories(lake), trail_of(random.Random(11)), NOW_MS))
    return lake


def lake_with_directories(lake: Lake) -> Lake:
    with lake.held(CLUSTER):
        return lake


def test_a_run_that_dies_at_any_commit_makes_the_same_days(lake: Lake) -> None:
    refresh(lake)
    whole = daily_rows(lake)
    assert whole["throttled_use_daily"]
    for commit in (1, 2, len(DAILY), len(DAILY) + 1, len(DAILY) + 2):
        for name in DIRECTORIES:
            shutil.rmtree(lake.directory / name)
        with death_behind(commit):
            refresh(lake)
        refresh(lake)
        assert daily_rows(lake) == whole, commit


def test_a_run_that_dies_leaves_nothing_of_deleted_days(lake: Lake) -> None:
    """They are in no table that `refresh` makes days of, so that only what it notes before tells of them."""
    refresh(lake)
    whole = aggregates_of(lake)
    retain(lake, NOW_MS, 1)
    expected = aggregates_of_all(lake)
    assert expected != whole
    before = Path(f"{lake.directory}.before")
    shutil.copytree(lake.directory, before)
    for commits in (1, 2, len(DAILY)):
        shutil.rmtree(lake.directory)
        shutil.copytree(before, lake.directory)
        with death_behind(commits):
            refresh(lake)
        refresh(lake)
        assert aggregates_of(lake) == expected, commits


def test_days_that_have_not_changed_are_not_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    refresh(lake)
    made, see_day = list[str](), daily_tables._see_day

    def seen(connection: duckdb.DuckDBPyConnection, files: daily_tables.DayFiles) -> None:
        made.append(Path(files.events[0]).parent.name)
        see_day(connection, files)

    monkeypatch.setattr(daily_tables, "_see_day", seen)
    refresh(lake)
    assert made == []
    trail = trail_of(random.Random(11))
    end_ms = MIDNIGHT_MS - 40 * DAY_MS
    late = At(Use("User:late", "10.0.0.1", "app", "WRITE", "t0", 100, 1), end_ms - MINUTE_MS, end_ms)
    trail.write(0, chain_of(7, [late])[1][1:])
    list(ingest(lake, trail, NOW_MS))
    refresh(lake)
    day = made[0]
    assert made == [day]
    rows = [row for row in daily_rows(lake)["use_daily"] if "User:late" in row]
    assert [f"{DAY}={row[0]}" for row in rows] == [day]


def test_days_that_other_rules_have_made_are_made_again(lake: Lake) -> None:
    daily, files = refresh(lake), files_of(Tables(lake))
    whole, made = daily_rows(lake), daily.digests()
    daily.tables["use_daily"].delete_before(max(made))
    daily.keep_digests({day: found.digest("1") for day, found in files.items()})
    assert daily_rows(lake) != whole
    assert refresh(lake).digests() == made
    assert daily_rows(lake) == whole


def test_use_beside_a_delay_that_leaves_is_throttled_no_more(tmp_path: Path) -> None:
    """The delay stands under the day before that of the use, and is deleted with it."""
    lake, trail = lake_with_directories(lake_in(tmp_path)), Kept()
    trail.write(0, chain_of(1, across_midnight())[1])
    list(ingest(lake, trail, NOW_MS))
    refresh(lake)
    assert [row for row in aggregates_of(lake)["throttled_uses"] if 1000 in row]
    retain(lake, NOW_MS, 0)
    refresh(lake)
    assert aggregates_of(lake) == aggregates_of_all(lake)
    assert aggregates_of(lake)["throttled_uses"] == []
    assert aggregates_of(lake)["uses"]


def test_days_that_leave_leave_the_daily_tables_too(lake: Lake) -> None:
    refresh(lake)
    retain(lake, NOW_MS + 30 * DAY_MS, 5)
    refresh(lake)
    assert not any(daily_rows(lake).values())
    assert DailyTables(lake).digests() == {}


def test_a_day_that_was_half_made_of_files_that_came_back_is_made_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored table has the files that a day was made of before it was half made of others."""
    refresh(lake)
    whole, version = daily_rows(lake), Tables(lake).events.delta.version()
    trail = trail_of(random.Random(11))
    trail.write(0, chain_of(7, [drawn(random.Random(3)) for _ in range(9)])[1])
    list(ingest(lake, trail, NOW_MS))
    with monkeypatch.context() as patch:
        patch.setattr(daily_tables, "_make_throttled", died)
        with pytest.raises(Death):
            refresh(lake)
    assert daily_rows(lake) != whole
    Tables(lake).events.delta.restore(version)
    refresh(lake)
    assert daily_rows(lake) == whole


def died(*_: Any) -> bool:
    raise Death
