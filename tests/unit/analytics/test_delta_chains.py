"""What the table `chains` says of a trail is what looking at each entry of each chain says."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from deltalake import write_deltalake

from kavka_audit.delta import chain_states
from kavka_audit.delta.chain_rows import summary_of
from kavka_audit.delta.chain_states import Batch, ChainState, Place, follow
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.delta.ingest import ingest
from kavka_audit.delta.tables import Tables
from kavka_audit.lake.batch_parser import FORMS
from kavka_audit.lake.chain_steps import Links, Step
from kavka_audit_run.destination import lake_of
from kavka_audit_run.main import Wanted
from kavka_broker.core.audit.chain import Chain, Entry
from kavka_broker.core.audit.chain_ends import End
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.verification import Verdict, verify
from tests.unit.analytics.delta import chains, entries, lake_in, taken_in
from tests.unit.analytics.test_batches import BASE, batch_of
from tests.unit.analytics.test_fast_parser import HAPPENINGS, ODD, records_of
from tests.unit.analytics.test_lake import USE
from tests.unit.analytics.trail import CLUSTER, DAY_MS, NOW_MS, At, Kept, Record, chain_of
from tests.unit.audit.runs import steps
from tests.unit.audit.test_tampered_trails import TAMPERINGS, Tampering, of_another_cluster
from tests.unit.audit.trails import long_trail

BATCHES = (7, 50, 100_000)


def linked(entries: Sequence[Entry], first: int) -> list[Step]:
    links = Links()
    for offset, entry in enumerate(entries, first):
        links.add(Record(0, offset, headers_of(entry), entry.value))
    return links.steps()


def followed(entries: Sequence[Entry], log_start: int, size: int, cluster: str = "") -> dict[str, ChainState]:
    """The chains of a partition that is read in batches of so many records, of a cluster if that is known."""
    found: dict[Place, ChainState] = {}
    for first in range(0, len(entries), size):

        def reread(source: str, since: int, until: int) -> list[Step]:
            between = enumerate(entries[since - log_start : until - log_start], since)
            singles = [step for offset, entry in between for step in linked([entry], offset)]
            return [step for step in singles if step.entry.source == source]

        batch = Batch("topic", 0, log_start, NOW_MS, cluster=cluster)
        found = follow(found, batch, linked(entries[first : first + size], log_start + first), reread)
    return {state.source: state for state in found.values()}


def by_entry(entries: Sequence[Entry], log_start: int) -> dict[str, Verdict]:
    sources = dict.fromkeys(entry.source for entry in entries)
    return {
        source: verify([entry for entry in entries if entry.source == source], is_whole=not log_start)
        for source in sources
    }


def test_steps_are_those_of_a_look_at_each_entry() -> None:
    for tamper in TAMPERINGS:
        trail = long_trail()
        tamper(trail)
        found = [(step.offset, step.entry.hash, step.is_run) for step in linked(trail.entries, trail.log_start)]
        expected = steps(trail.entries, trail.log_start, 1_000_000)
        assert found == [(step.offset, step.entry.hash, step.is_run) for step in expected], tamper.__name__


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__)
def test_each_tampering_has_the_verdict_of_its_entries(tamper: Tampering) -> None:
    trail = long_trail()
    tamper(trail)
    found = followed(trail.entries, trail.log_start, len(trail.entries))
    for source, verdict in by_entry(trail.entries, trail.log_start).items():
        state, damage = found[source], verdict.damage
        assert (state.verdict, state.entries, state.damages, state.is_ended) == (
            verdict.state.value,
            verdict.entries,
            verdict.damages_total,
            verdict.is_ended,
        )
        assert state.fault == (None if damage is None else damage.fault.value)


@pytest.mark.parametrize("size", BATCHES)
def test_a_sound_trail_is_the_same_in_any_batches(size: int) -> None:
    trail = long_trail()
    found = followed(trail.entries, 0, size)
    assert found == followed(trail.entries, 0, len(trail.entries))
    assert {state.verdict for state in found.values()} == {"sound"}
    assert sum(state.entries for state in found.values()) == len(trail.entries)


@pytest.mark.parametrize("size", BATCHES)
def test_an_entry_that_is_changed_is_found_in_any_batches(size: int) -> None:
    for place in range(0, 200, 23):
        trail = long_trail()
        entry = trail.entries[place]
        trail.entries[place] = replace(entry, value=entry.value + b" ")
        found = followed(trail.entries, 0, size)[entry.source]
        assert (found.verdict, found.fault, found.fault_sequence) == ("damaged", "flipped", entry.sequence)


@pytest.mark.parametrize("size", BATCHES)
def test_a_chain_of_another_cluster_is_found_in_any_batches(size: int) -> None:
    trail = long_trail()
    trail.entries[100:100] = of_another_cluster("9-1", 3)
    found = followed(trail.entries, 0, size, CLUSTER)
    assert (found["9-1"].fault, found["9-1"].fault_sequence) == ("foreign", 0)
    assert {state.verdict for source, state in found.items() if source != "9-1"} == {"sound"}


def test_a_run_knows_whose_trail_it_takes_in(tmp_path: Path) -> None:
    trail = Kept()
    for node, cluster in ((1, CLUSTER), (2, ""), (3, "another")):
        trail.write(0, [Chain(f"{node}-1", None, (), cluster).head(NOW_MS)])
    lake, _ = taken_in(tmp_path, trail)
    assert {source: state.verdict for source, state in chains(lake).items()} == {
        "1-1": "sound", "2-1": "sound", "3-1": "damaged"
    }  # fmt: skip


@pytest.mark.parametrize("wanted", ["", CLUSTER])
def test_chains_that_name_no_cluster_are_counted_apart(tmp_path: Path, wanted: str) -> None:
    """Where the cluster was asked for, nothing shows that they are of it."""
    trail, old, upgraded = Kept(), Chain("1-1"), [Chain("2-1").head(NOW_MS)]
    trail.write(0, [old.head(NOW_MS)])
    end = End("2-1", 0, upgraded[0].hash, is_certain=True)
    trail.write(
        0, [*upgraded, Chain("2-2", None, (end,), CLUSTER).head(NOW_MS), Chain("3-1", None, (), "x").head(NOW_MS)]
    )
    lake, _ = taken_in(tmp_path, trail)
    assert {source: state.cluster for source, state in chains(lake).items()} == {
        "1-1": "", "2-1": CLUSTER, "2-2": CLUSTER, "3-1": None
    }  # fmt: skip
    lake.wanted_cluster = wanted
    found = summary_of(lake, NOW_MS)
    assert found.unnamed == 1
    assert found.counts == ({"sound": 2, "unsigned": 1, "damaged": 1} if wanted else {"sound": 3, "damaged": 1})


def test_the_cluster_that_was_asked_for_is_that_of_the_trail(tmp_path: Path) -> None:
    asked, told = (lake_of(Wanted(tmp_path, cluster_id=cluster_id), print) for cluster_id in ("another", ""))
    with asked.held(CLUSTER):
        assert (asked.cluster_id, asked.trail_cluster) == (CLUSTER, "another")
    with told.held(CLUSTER):
        assert told.trail_cluster == CLUSTER


def test_a_copy_of_a_trail_is_of_the_cluster_that_was_asked_for(tmp_path: Path) -> None:
    trail, lake = Kept(), lake_in(tmp_path)
    for node, cluster in ((1, CLUSTER), (2, "another")):
        trail.write(0, [Chain(f"{node}-1", None, (), cluster).head(NOW_MS)])
    lake.wanted_cluster = "another"
    with lake.held(CLUSTER):
        assert [*ingest(lake, trail, NOW_MS)]
    assert {source: state.verdict for source, state in chains(lake).items()} == {"1-1": "damaged", "2-1": "sound"}


def test_a_table_of_an_earlier_version_gets_the_cluster_of_its_chains(tmp_path: Path) -> None:
    chain, trail = Chain("1-1", None, (), CLUSTER), Kept()
    trail.write(0, [chain.head(NOW_MS)])
    lake, _ = taken_in(tmp_path, trail)
    table = Tables(lake).chains
    with duckdb.connect() as connection:
        earlier = connection.read_parquet(table.files()).project("* EXCLUDE (cluster)")
        write_deltalake(table.delta, earlier, mode="overwrite", schema_mode="overwrite")
    assert chains(lake)["1-1"].cluster is None
    trail.write(0, [chain.head(NOW_MS + 1)])
    taken_in(tmp_path, trail)
    assert (chains(lake)["1-1"].cluster, chains(lake)["1-1"].entries) == (CLUSTER, 2)


def test_a_chain_that_is_written_again_breaks_at_the_batch() -> None:
    """Its hashes are right, and the first of them does not join what was read before."""
    _, one = chain_of(1, [At(USE)] * 20)
    _, other = chain_of(1, [At(USE, 1, 2)] * 20)
    found = followed([*one[:10], *other[10:]], 0, 10)["1-1"]
    assert (found.fault, found.fault_sequence, found.damages) == ("rewritten", 10, 1)


def test_the_links_of_whole_batches_are_those_of_records_taken_apart() -> None:
    batch = batch_of(records_of([*HAPPENINGS, *ODD, *HAPPENINGS]))
    packed, at, index, whole, apart, fast = batch.packed(), 0, 0, Links(), Links(), 0
    while index < batch.count:
        begun = index
        for form in FORMS:
            at, index = form.run(packed, (at, index), batch.count, BASE, [], whole)
        fast += index - begun
        if index == begun:
            record, at = batch.record_at(packed, at)
            whole.add(record)
            index += 1
    for record in batch.records():
        apart.add(record)
    assert whole.steps() == apart.steps()
    assert len(apart.steps()) == 2
    assert fast > batch.count / 2


def test_records_that_retention_took_first_are_no_damage(tmp_path: Path) -> None:
    chain, found = chain_of(1, [At(USE)] * 4)
    trail = Kept()
    trail.write(0, found)
    taken_in(tmp_path, trail)
    trail.write(0, [chain.event(b"{}", 1) for _ in range(6)])
    trail.begins[0] = 8
    lake, taken = taken_in(tmp_path, trail)
    state = chains(lake)["1-1"]
    assert taken.missed == 3
    assert (state.verdict, state.entries, state.restarts, state.last_sequence) == ("sound", 8, 1, 10)


@pytest.mark.parametrize(("cut", "read", "missed"), [((2, 4), (9, 1), 2), ((2, 10), (3, 1), 8)])
def test_records_that_retention_takes_while_they_are_read_are_no_damage(
    tmp_path: Path, cut: tuple[int, int], read: tuple[int, int], missed: int
) -> None:
    chain, found = chain_of(1, [At(USE)] * 9)
    trail = Kept()
    trail.write(0, found)
    trail.cuts[0] = cut
    _, taken = taken_in(tmp_path, trail)
    assert taken.missed == missed
    trail.cuts.clear()
    trail.write(0, [chain.event(b"{}", 1)])
    lake, _ = taken_in(tmp_path, trail)
    state = chains(lake)["1-1"]
    assert (state.verdict, state.damages, state.last_sequence) == ("sound", 0, 10)
    assert (state.entries, state.restarts) == read
    assert len([row for row in entries(lake) if row[2] == "missed"]) == 1


@pytest.mark.parametrize("forged_ms", [0, NOW_MS + 10_000 * DAY_MS])
def test_a_forged_time_does_not_say_how_long_a_damaged_chain_is_kept(tmp_path: Path, forged_ms: int) -> None:
    _, found = chain_of(1, [At(USE)] * 4)
    del found[2]
    _, forged = chain_of(1, [At(USE, 0, forged_ms)] * 5)
    trail = Kept()
    trail.write(0, [*found, forged[-1]])
    lake, _ = taken_in(tmp_path, trail)
    with lake.held(CLUSTER):
        DeltaDuckDB().retain(lake, NOW_MS + 29 * DAY_MS, 30)
        assert chains(lake)["1-1"].verdict == "damaged"
        DeltaDuckDB().retain(lake, NOW_MS + 31 * DAY_MS, 30)
    assert chains(lake) == {}


def test_chains_of_which_there_are_too_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_states, "CHAINS_MAX", 3)
    entries = [entry for node in range(6) for entry in chain_of(node, [At(USE)] * 2)[1]]
    found = followed(entries, 0, 4)
    assert [*found] == ["0-1", "1-1", "2-1", "(others)"]
    assert found["(others)"].verdict == "unchecked"
    assert found["(others)"].entries > 0
