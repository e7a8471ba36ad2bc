"""What a follower does when its log and its leader's part, as plain functions over offsets and epochs.

A follower that was a leader, or followed another one, may hold records that its leader does not. An offset alone
cannot tell: two leaders have written different records at the same one. The epoch of the last record can (KIP-101): the
follower sends it with each fetch, and a leader whose own log has that epoch end earlier says where (KIP-595, the
diverging epoch). The follower cuts there, and asks again; when both logs went through several short reigns this takes a
few rounds, each of which goes back at least one epoch (KIP-279).

Cutting to the high watermark instead, as Kafka once did, loses committed records: the follower's high watermark lags
behind the leader's by a fetch.
"""

from enum import Enum, auto
from typing import NamedTuple

from kavka_broker.core.partition.leader_epochs import NO_EPOCH, NO_OFFSET, EpochEnd, LeaderEpochs


def first_fetch_offset(epochs: LeaderEpochs, log_end_offset: int, high_watermark: int) -> int:
    """Offset from which a new follower begins to fetch, after cutting its log there.

    With epochs its leader finds out whether the end is right; without, records are trusted up to the high watermark.
    """
    assert 0 <= high_watermark <= log_end_offset, (
        f"{high_watermark} is committed of a log that ends at {log_end_offset}"
    )
    return high_watermark if epochs.latest == NO_EPOCH else log_end_offset


def truncation_offset(diverging: EpochEnd, epochs: LeaderEpochs, log_end_offset: int, high_watermark: int) -> int:
    """Offset at which to cut, when the leader's log has `diverging.epoch` end at `diverging.end_offset`.

    That epoch is the largest of the leader's that is not above the epoch in the follower's request.
    """
    assert high_watermark >= 0, high_watermark
    assert log_end_offset >= 0, log_end_offset
    if diverging.end_offset == NO_OFFSET:
        return min(high_watermark, log_end_offset)
    if diverging.epoch == NO_EPOCH:
        return min(diverging.end_offset, log_end_offset)
    own = epochs.end_offset(diverging.epoch, log_end_offset)
    if own.end_offset == NO_OFFSET:
        return min(diverging.end_offset, log_end_offset)
    # The follower's epoch may still be smaller; the next round compares again.
    return min(own.end_offset, diverging.end_offset, log_end_offset)


class Resume(Enum):
    """The way on for a follower whose offset its leader does not have."""

    CUT = auto()  # the leader's log is shorter: an unclean election was held
    RESTART = auto()  # the leader has deleted the offset: no record of the log here can stay
    GO_ON = auto()  # the leader has the offset after all: its log has grown meanwhile


class Resumption(NamedTuple):
    """The decision, and the offset to fetch next."""

    how: Resume
    offset: int


def resume(leader_start: int, leader_end: int, log_end_offset: int) -> Resumption:
    """Decide after OFFSET_OUT_OF_RANGE how to go on with a leader whose log spans these offsets."""
    assert log_end_offset >= 0, log_end_offset
    if leader_end < log_end_offset:
        return Resumption(Resume.CUT, leader_end)
    if leader_start > log_end_offset:
        return Resumption(Resume.RESTART, leader_start)
    return Resumption(Resume.GO_ON, log_end_offset)
