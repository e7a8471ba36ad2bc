"""LastBatchesStay: cleaning leaves the last batch of each producer that a log knows, if only as a header.

The next start works the producers out of the batches. One whose last batch is gone has its records taken twice. A log
that was cut, or has lost its end with the power, is not judged: what was the last batch then has replaced an earlier
one.
"""

from collections.abc import Iterator
from typing import Any, Final

from kavka_broker.storage.file_names import LOG
from tests.sim.invariants import Invariant, Invariants, Seen
from tests.sim.node import as_written, whole_batches


def last_batches_stay(invariants: Invariants, seen: Seen) -> Iterator[str]:
    """Cleaning leaves the last batch of each known producer."""
    node = invariants.simulation.nodes[seen.node_id - 1]
    partition = node.broker.partitions.get(*seen.place)
    if partition is None or partition.is_damaged or partition.log.is_failed or node.has_flipped:
        return
    log = partition.log
    before, seen.view.cleaned = seen.view.cleaned, (seen.life, log.state.cleaned_offset, seen.view.losses)
    seen.view.was_cut = (
        seen.view.was_cut or bool(log.truncations) or node.node_id in invariants.doubtful(is_synced=False)
    )
    if log.durability.is_being_cut or before == seen.view.cleaned or seen.view.was_cut:
        return
    written = batch_ends(log)
    for producer_id, known in log.producers:
        last_offset = known.batches[-1].last_offset if known.batches else -1
        if last_offset >= log.log_start_offset and (producer_id, last_offset) not in written:
            yield f"the last batch of producer {producer_id}, which ends at {last_offset}, is not there"


def batch_ends(log: Any) -> set[tuple[int, int]]:
    """Of each batch of data: its producer, and where it ends."""
    files, found = log.disk.peek(log.directory), set[tuple[int, int]]()
    for segment in log.segments:
        inode = files.get(f"{segment.base_offset:020}{LOG}")
        for _, header, _ in whole_batches(as_written(inode)) if inode is not None else ():
            if not header.is_control:
                found.add((header.producer_id, header.last_offset))
    return found


LAST_BATCHES_STAY: Final = Invariant("LastBatchesStay", last_batches_stay, last_batches_stay.__doc__ or "", False)
