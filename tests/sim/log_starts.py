"""Where logs may begin: what is trimmed stays trimmed, and nothing else goes.

A topic that nobody trims begins at 0 forever. Of the others a `Trim` says what may go; each move of a start has to be
due on the replica that makes it, or on another one before.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.sim.invariants import METADATA, Invariants, Seen, invariant

NEVER: Final = -1


@dataclass(slots=True)
class Trim:
    """What of a topic may go: below an offset, what is more than a size, or older than a time."""

    offset: int = 0
    is_by_size: bool = False  # beyond what its config says
    is_by_time: bool = False
    is_any: bool = False  # of what is committed


@invariant("LogStartIsDue", of_damaged=True)
def log_start_is_due(invariants: Invariants, seen: Seen) -> Iterator[str]:
    """Records go because somebody has deleted them, or their time or room is over: not otherwise, and none that are
    not committed.
    """
    start, truth = seen.log_start_offset, seen.truth
    trim = invariants.simulation.trims.get(seen.place[0])
    bytes_kept = invariants.configured(seen, "retention.bytes", NEVER) if trim and trim.is_by_size else NEVER
    ms_kept = invariants.configured(seen, "retention.ms", NEVER) if trim and trim.is_by_time else NEVER
    if start <= truth.start_offset or seen.place == METADATA:
        return
    if start > truth.end_offset:
        yield f"its log begins at {start}; committed up to {truth.end_offset}"
    if trim is None or not is_due(invariants, seen, trim, bytes_kept, ms_kept):
        why = f"{trim}, {bytes_kept} bytes, {ms_kept} ms"
        yield f"its log begins at {start}, before at {truth.start_offset}: that was not to go ({why})"
    truth.start_offset = start


def is_due(invariants: Invariants, seen: Seen, trim: Trim, bytes_kept: int, ms_kept: int) -> bool:
    start = seen.log_start_offset
    if trim.is_any or start <= trim.offset:
        return True
    if bytes_kept != NEVER:
        return sum(batch.size_bytes for batch in seen.view.batches if batch.base_offset >= start) >= bytes_kept
    if ms_kept == NEVER:
        return False
    committed = seen.truth.committed
    first = bisect_left(committed, seen.truth.start_offset + 1, key=lambda record: record.batch.end_offset)
    oldest_kept_ms = invariants.simulation.nodes[seen.node_id - 1].clock.now_ms() - ms_kept
    gone = (record.batch for record in committed[first:] if record.batch.base_offset < start)
    return all(batch.max_timestamp_ms < oldest_kept_ms for batch in gone)


@invariant("LogStartMonotone")
def log_start_monotone(invariants: Invariants, seen: Seen) -> Iterator[str]:
    """A replica that has moved the start of its log never moves it back, and remembers it over a clean stop. One that
    begins again takes its leader's.
    """
    before = seen.before
    if before is None or seen.log_start_offset >= before.log_start_offset or seen.place == METADATA:
        return
    is_new = seen.end_offset == seen.log_start_offset
    remembers = before.life == seen.life or invariants.simulation.began_cleanly(seen.node_id, seen.life)
    if remembers and not is_new and seen.node_id not in invariants.lossy():
        yield f"its log begins at {seen.log_start_offset}; it began at {before.log_start_offset}"
