"""Compares the leader epochs of a log's batches with its epoch file.

Both can have changed on the disk: the file may be an older one or another log's, and the epoch of a batch stands before
its CRC. Epochs ascend, so a log that opens reads two headers an epoch; where one contradicts the file, all are read. A
single batch that stands out from its neighbours does not count, and where all others agree with the file it is the
batch that is damaged.

A log may have millions of headers, so the loop looks at them in slices.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kavka_broker.core.partition.leader_epochs import EpochStart, LeaderEpochs
from kavka_broker.loop.slices import Cost, Work, at_once
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage.batch_walk import WINDOW_BYTES, headers
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


def are_confirmed(known: LeaderEpochs, segments: Sequence[Segment], log_start_offset: int, log_end_offset: int) -> bool:
    """Return whether the first and the last batch of each epoch in `known` are of it: then all between them are too.

    An epoch without batches is confirmed: cleaning may have left none. Damage on the way confirms nothing.
    """
    starts = (start for _, start in known.entries if log_start_offset < start < log_end_offset)
    try:
        for offset in (log_start_offset, *starts, log_end_offset):
            for header in _around(segments, offset):
                is_inside = log_start_offset < header.next_offset <= log_end_offset
                if is_inside and known.epoch_at(max(header.base_offset, log_start_offset)) != header.leader_epoch:
                    return False
    except ProtocolViolation:
        return False
    finally:
        for segment in segments[:-1]:
            segment.release()
    return True


def _around(segments: Sequence[Segment], offset: int) -> Iterator[BatchHeader]:
    """Yield the last batch that begins below `offset`, and the first that does not. Raises ProtocolViolation."""
    before, after = None, None
    index = bisect_left(segments, offset, key=lambda segment: segment.base_offset)
    for segment in reversed(segments[:index]):
        for _, header in headers(segment.file, segment.offsets.position_before(offset - 1), WINDOW_BYTES):
            if header.base_offset >= offset:
                after = header
                break
            before = header
        if before is not None:
            break
    if after is None:
        after = next((segment.header_at(0) for segment in segments[index:] if segment.size_bytes), None)
    yield from filter(None, (before, after))


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
    known: LeaderEpochs,
    segments: Iterable[Segment],
    log_start_offset: int,
    log_end_offset: int,
    *,
    is_synced: bool = True,
) -> Work[LeaderEpochs | None]:
    """Return the batches' epochs where `known` differs; None where it is right, or only the last batch differs.

    Where the file was not synced with the log, as after a crash, the last batch may have begun an epoch.
    """
    assert log_start_offset <= log_end_offset
    found, last = yield from _walk(segments)
    found.truncate_from_start(log_start_offset)
    before = _within(known, log_start_offset, log_end_offset)
    if is_synced and before == list(found.entries):
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
