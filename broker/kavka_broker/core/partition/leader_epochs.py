"""Where each leader's reign begins in a log (KIP-101, KIP-279).

A leader epoch is a number that grows with every election. Two logs that have the same epoch at the same offset are
equal up to there. So a returning follower asks its leader where an epoch ended, and cuts its own log there; an offset
alone could not say so.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class EpochStart(NamedTuple):
    """An epoch, and the first offset that its leader wrote or would have written."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The largest known epoch not above the epoch in the request, and the offset behind its last record."""

    epoch: int
    end_offset: int


UNKNOWN: Final = EpochEnd(NO_EPOCH, NO_OFFSET)


class LeaderEpochs:
    """Epochs of one log, both columns ascending. `begun` is the newest that counts as having records; a leader with
    none yet may have been assigned since.
    """

    __slots__ = ("_entries", "begun", "latest")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries = [EpochStart(*entry) for entry in entries]
        assert _ascend(self._entries), f"the epochs begin at {self._entries}"
        self.latest = self.begun = self._entries[-1].epoch if self._entries else NO_EPOCH

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that a leader of `epoch` writes from `start_offset` on. Returns whether anything changed."""
        assert start_offset >= 0, start_offset
        if epoch <= self.latest:
            return False
        # An epoch without records leaves no trace: two epochs cannot begin at one offset.
        self._keep([entry for entry in self._entries if entry.start_offset < start_offset])
        assert not self._entries or self._entries[-1].epoch < epoch, f"epoch {epoch} after {self._entries[-1]}"
        self._entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch
        assert self.begun <= epoch, f"epoch {self.begun} has records and {epoch} begins"
        return True

    def end_offset(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """End offset of `epoch`, as OffsetForLeaderEpoch answers it."""
        if not self._entries or not 0 <= epoch <= self.latest:
            return UNKNOWN
        if epoch == self.latest:
            assert self._entries[-1].start_offset <= log_end_offset, (
                f"{self._entries[-1]} in a log up to {log_end_offset}"
            )
            return EpochEnd(epoch, log_end_offset)
        above = bisect_right(self._entries, (epoch, 2**63))
        assert above < len(self._entries), f"no epoch after {epoch} in {self._entries}"
        end_offset = self._entries[above].start_offset
        assert end_offset <= log_end_offset, f"epoch {epoch} ends at {end_offset}, in a log up to {log_end_offset}"
        if not above:
            return EpochEnd(epoch, end_offset)
        return EpochEnd(self._entries[above - 1].epoch, end_offset)

    def epoch_at(self, offset: int) -> int:
        """Epoch of the record at `offset`, or -1 where it is unknown."""
        above = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[above - 1].epoch if above else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> bool:
        """Cut the epochs to a log that ends at `end_offset`."""
        assert end_offset >= 0, end_offset
        kept = bisect_left(self._entries, end_offset, key=lambda entry: entry.start_offset)
        if kept == len(self._entries):
            return False
        self._keep(self._entries[:kept])
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Cut the epochs to a log that begins at `start_offset`: the epoch of that offset begins there."""
        assert start_offset >= 0, start_offset
        above = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if not above:
            return False
        kept = [EpochStart(self._entries[above - 1].epoch, start_offset), *self._entries[above:]]
        if kept == self._entries:
            return False
        self._keep(kept)
        return True

    def clear(self) -> None:
        self._keep([])

    def take_over(self, other: "LeaderEpochs") -> None:
        """Replace the epochs by those of `other`."""
        assert other.begun <= other.latest, f"epoch {other.begun} has records, and {other.latest} is the newest"
        self._entries, self.latest, self.begun = list(other.entries), other.latest, other.begun

    def _keep(self, entries: list[EpochStart]) -> None:
        assert _ascend(entries), f"the epochs begin at {entries}"
        self._entries = entries
        self.latest = entries[-1].epoch if entries else NO_EPOCH
        self.begun = min(self.begun, self.latest)


def _ascend(entries: list[EpochStart]) -> bool:
    """Whether each epoch is greater than the one before, and begins behind its start."""
    return all(
        former.epoch < later.epoch and former.start_offset < later.start_offset for former, later in pairwise(entries)
    )
