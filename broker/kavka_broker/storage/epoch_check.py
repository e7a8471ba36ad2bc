"""Which leader epochs a log's batches say, against what its epoch file says.

Both can have changed on the disk: the file may be an older one or another log's, and the epoch of a batch stands before
its CRC. So where they part all headers are asked. Epochs ascend: a single batch that stands out from its neighbours
does not count, and where all others agree with the file it is the batch that is damaged.

A log may have millions of headers, so the loop looks at them in slices.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kavka_broker.core.partition.leader_epochs import EpochStart, LeaderEpochs
from kavka_broker.loop.slices import Cost, Work, at_once
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage.segment import Segment

HEADER_COST: Final = 3


def epochs_in(segments: Iterable[Segment], log_start_offset: int) -> LeaderEpochs:
    """Return the epochs by the batches' headers, walking over every one."""
    epochs, last = at_once(_walk(segments))
    if last is not None:
        _note(epochs, last)
    epochs.truncate_from_start(log_start_offset)
    return epochs


def with_former(known: LeaderEpochs, segments: Sequence[Segment], log_start_offset: int) -> LeaderEpochs:
    """Return `known`, with the epochs that the batches have in front of it.

    A start that moves on takes the epochs below it out of their file. A crash may bring the start back, as its
    checkpoint is written later: then there are records again whose epoch is not known, and a follower that has
    others there would be told that it has the same.
    """
    first = next(iter(known.entries), None)
    if first is None or first.start_offset <= log_start_offset:
        return known
    former = epochs_in((segment for segment in segments if segment.base_offset < first.start_offset), log_start_offset)
    former.truncate_from_end(first.start_offset)
    for entry in known.entries:
        former.assign(*entry)
    return former


def _walk(segments: Iterable[Segment]) -> Work[tuple[LeaderEpochs, BatchHeader | None]]:
    """Return the epochs of all batches except the last, and the last: no later batch confirms its epoch."""
    epochs, held, cost = LeaderEpochs(), None, Cost()
    for segment in segments:
        for _, header in segment.sound_batches():
            if cost.add(HEADER_COST):
                yield
            if header.leader_epoch < epochs.latest:
                continue
            if held is not None and held.leader_epoch <= header.leader_epoch:
                _note(epochs, held)
            held = header
    return epochs, held


def _note(epochs: LeaderEpochs, header: BatchHeader) -> None:
    if header.leader_epoch > epochs.latest:
        epochs.assign(header.leader_epoch, header.base_offset)


def corrected(
    known: LeaderEpochs, segments: Iterable[Segment], log_start_offset: int, log_end_offset: int
) -> Work[LeaderEpochs | None]:
    """Return the batches' epochs where `known` differs; None where it is right, or only the last batch differs."""
    assert log_start_offset <= log_end_offset
    found, last = yield from _walk(segments)
    found.truncate_from_start(log_start_offset)
    before = _within(known, log_start_offset, log_end_offset)
    if before == list(found.entries):
        return None
    if last is not None:
        _note(found, last)
    if before == list(found.entries):
        return None
    for ahead in known.entries:
        # The epoch of a leader that has written nothing yet is only in the file.
        if ahead.start_offset >= log_end_offset and ahead.epoch > found.latest:
            found.assign(*ahead)
    return found


def _within(known: LeaderEpochs, log_start_offset: int, log_end_offset: int) -> list[EpochStart]:
    kept = LeaderEpochs(entry for entry in known.entries if entry.start_offset < log_end_offset)
    kept.truncate_from_start(log_start_offset)
    return list(kept.entries)
