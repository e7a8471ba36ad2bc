"""What is known of each chain, batch by batch: rows of the table `chains`, judged by the rules of `ChainCheck`.

Hashes and links are judged, and that heads name no other cluster; signatures, and what chains say of each other, are
for `kavka audit verify`. What a batch shows is judged at its end: an entry that comes in a later batch than its
successor counts as missing, then as added.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from kavka_audit.lake.chain_steps import Step
from kavka_broker.core.audit.chain import Entry, Kind
from kavka_broker.core.audit.heads import TrailCluster
from kavka_broker.core.audit.verification import ChainCheck, State

CHAINS_MAX: Final = 20_000
"""Chains that are followed; each start of a node makes one, and so can whoever may write to the topic."""
OTHERS: Final = "(others)"
"""The source of the row for those of which there are more; no node has that name."""
UNCHECKED: Final = "unchecked"
Steps = Iterable[Step]
Place = tuple[str, int, str]
"""A topic's id, a partition, and the source of a chain."""
Reread = Callable[[str, int, int], Steps]
"""Gives the entries of a source from one offset to before another as steps, each by itself."""


@dataclass(frozen=True, slots=True)
class ChainState:
    """A row of the table."""

    topic_id: str
    partition: int
    source: str
    verdict: str = State.SOUND.value
    entries: int = 0
    first_sequence: int = 0
    last_sequence: int = -1
    last_ms: int = 0
    last_hash: str = ""
    is_ended: bool = False
    damages: int = 0
    fault: str | None = None
    fault_sequence: int | None = None
    restarts: int = 0
    read_ms: int = 0
    is_before_hole: bool = False
    cluster: str | None = None

    @property
    def place(self) -> Place:
        """Return what names the chain."""
        return self.topic_id, self.partition, self.source

    @property
    def is_unnamed(self) -> bool:
        """Whether it may be sound, and nothing names its cluster."""
        return self.verdict == State.SOUND.value and not self.cluster


@dataclass(slots=True)
class _Reading:
    check: ChainCheck
    offset: int = -1  # of the step before
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """A range of a partition, and what is to be known of it. `log_start` is the first offset of the partition now, and
    `now_ms` when it is read; `has_holes`: some of the range was deleted before it was read. `cluster` is the id of the
    cluster whose trail it is, where that is known.
    """

    topic_id: str
    partition: int
    log_start: int
    now_ms: int
    has_holes: bool = False
    cluster: str = ""


def follow(known: Mapping[Place, ChainState], batch: Batch, steps: Steps, reread: Reread) -> dict[Place, ChainState]:
    """Return the chains as they are known after a batch, whose steps come by offset."""
    readings, unfollowed, where = dict[str, _Reading](), 0, (batch.topic_id, batch.partition)
    room = CHAINS_MAX - sum(state.source != OTHERS for state in known.values())
    for step in steps:
        source = step.entry.source
        if source not in readings:
            state = known.get((batch.topic_id, batch.partition, source))
            if source == OTHERS or (state is None and not room):
                unfollowed += 1
                continue
            room -= state is None
            readings[source] = _begun(state, batch, source)
        _take(readings[source], step, reread)
    found = dict(known)
    if batch.has_holes:
        found |= {place: replace(state, is_before_hole=True) for place, state in known.items() if place[:2] == where}
    for source, reading in readings.items():
        place = batch.topic_id, batch.partition, source
        found[place] = replace(_after(known.get(place) or ChainState(*place), reading), read_ms=batch.now_ms)
    for reading in readings.values():
        _name_former(found, reading.check)
    if unfollowed:
        place = batch.topic_id, batch.partition, OTHERS
        before = known.get(place) or ChainState(*place, verdict=UNCHECKED)
        found[place] = replace(before, entries=before.entries + unfollowed, read_ms=batch.now_ms)
    return found


def _name_former(chains: dict[Place, ChainState], check: ChainCheck) -> None:
    """Take that a chain whose head names a cluster says how the node's chains before it ended: they are of that cluster
    too.
    """
    ends = {(end.source, end.sequence, end.hash.hex()) for end in check.before} if check.cluster else set()
    for place, state in chains.items() if ends else ():
        if state.is_unnamed and (state.source, state.last_sequence, state.last_hash) in ends:
            chains[place] = replace(state, cluster=check.cluster)


def _begun(state: ChainState | None, batch: Batch, source: str) -> _Reading:
    """Return the reading of a chain that goes on in a batch, or begins there."""
    trail = TrailCluster(batch.cluster)
    if state is None:
        return _Reading(ChainCheck(source, is_whole=not batch.log_start and not batch.has_holes, trail=trail))
    is_behind_hole = batch.has_holes or state.is_before_hole
    if is_behind_hole or not state.last_hash:
        return _Reading(ChainCheck(source, is_whole=False, trail=trail), restarts=int(is_behind_hole))
    kind = Kind.END if state.is_ended else Kind.EVENT
    check = ChainCheck(source, trail=trail)
    check.resume(Entry(source, state.last_sequence, kind, state.last_ms, hash=bytes.fromhex(state.last_hash)))
    return _Reading(check)


def _take(reading: _Reading, step: Step, reread: Reread) -> None:
    before, reading.offset = reading.offset, step.offset
    if not step.is_run:
        reading.check.add_hashed(step.entry, has_its_hash=step.has_its_hash)
    elif not reading.check.extend(step.entry):
        for found in reread(step.entry.source, before + 1, step.offset + 1):
            reading.check.add_hashed(found.entry, has_its_hash=found.has_its_hash)


def _after(before: ChainState, reading: _Reading) -> ChainState:
    check = reading.check
    check.end()
    verdict, last = check.verdict(), check.last
    damages = before.damages + verdict.damages_total
    found = replace(
        before,
        verdict=(State.DAMAGED if damages else State.SOUND).value,
        entries=before.entries + verdict.entries,
        damages=damages,
        restarts=before.restarts + reading.restarts,
        is_before_hole=False,
        cluster=check.cluster or before.cluster or ("" if check.heads else before.cluster),
    )
    if before.fault is None and verdict.damage is not None:
        found = replace(found, fault=verdict.damage.fault.value, fault_sequence=verdict.damage.sequence)
    if last is None:
        return found
    if not before.last_hash:
        found = replace(found, first_sequence=check.first_sequence)
    last_hash, is_ended = last.hash.hex(), verdict.is_ended
    return replace(found, last_sequence=last.sequence, last_ms=last.time_ms, last_hash=last_hash, is_ended=is_ended)


def without_old(known: Mapping[Place, ChainState], limit_ms: int) -> dict[Place, ChainState]:
    """Return the chains without those of which no entry was read for too long. The row of all others stays.

    An entry's own time does not count: who forges one could have a damaged chain forgotten, or a chain kept for good.
    """
    return {place: state for place, state in known.items() if state.source == OTHERS or state.read_ms >= limit_ms}
