"""The leader epochs of one log, and the file that keeps them.

The file says of an epoch that it began with the epoch's first record: until then nothing is lost with it, and a broker
that comes to lead very many logs at once writes to none of them.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from kavka_broker.core.partition.leader_epochs import EpochStart, LeaderEpochs
from kavka_broker.logs import get
from kavka_broker.loop.slices import Work, as_long_as, at_once
from kavka_broker.storage import checkpoints
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.epoch_check import corrected
from kavka_broker.storage.file_names import LEADER_EPOCHS
from kavka_broker.storage.log_state import LogState
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.segments import Segments

log = get("storage")


class _LookedAt(NamedTuple):
    """State of a log that must stay as it is during a walk over the headers in slices."""

    segments: list[Segment]
    end_offset: int
    truncations: int
    epochs: Sequence[EpochStart]
    is_closed: bool


def read_epochs(disk: Disk, directory: str) -> tuple[LeaderEpochs, bool]:
    """Read the file of a log; returns its epochs, and whether it has any."""
    try:
        entries = checkpoints.read_epochs(disk, os.path.join(directory, LEADER_EPOCHS))
    except checkpoints.MalformedCheckpoint as problem:
        log.warning("epochs.rebuilt", directory=directory, reason=str(problem))
        entries = None
    return LeaderEpochs(entries or ()), entries is not None


class EpochFile:
    """`epochs` are what is known; `is_unsynced` where the file does not say so yet, or may lose it with the power."""

    __slots__ = ("_are_checked", "_directory", "_disk", "_segments", "_state", "epochs", "is_unsynced")

    def __init__(
        self,
        disk: Disk,
        directory: str,
        state: LogState,
        segments: Segments,
        epochs: LeaderEpochs,
        *,
        is_unsynced: bool,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._state = state
        self._segments = segments
        self.epochs = epochs
        self.is_unsynced = is_unsynced
        self._are_checked = False

    def begin(self, epoch: int, start_offset: int) -> None:
        """Begin an epoch with its first record."""
        assert epoch > self.epochs.begun, f"{self._directory}: epoch {epoch} begins behind {self.epochs.begun}"
        assert start_offset >= self._state.start_offset, f"{self._directory}: an epoch begins at {start_offset}"
        self.epochs.assign(epoch, start_offset)
        self.epochs.begun = epoch
        assert self.epochs.latest >= epoch
        self.is_unsynced = True
        with suppress(OSError):
            # Not synced: a flush does that, and recovery reads the epochs of what was not flushed.
            self.write(durable=False)

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs behind the log's new end."""
        assert end_offset >= 0
        self.is_unsynced |= self.epochs.truncate_from_end(end_offset)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs in front of the log's new start."""
        assert start_offset <= self._state.end_offset, f"{self._directory} would begin behind its end"
        self.is_unsynced |= self.epochs.truncate_from_start(start_offset)

    def write(self, *, durable: bool) -> None:
        """Write the epochs to the file. Raises OSError."""
        if self._state.is_closed:
            return  # the thread comes late: another log may have the directory's name by now
        path = os.path.join(self._directory, LEADER_EPOCHS)
        checkpoints.write_epochs(self._disk, path, [*self.epochs.entries], durable=durable)

    # --- doubts -------------------------------------------------------------------------------------------------

    def were_wrong(self) -> bool:
        """Whether the batches contradict the epoch file, which is then corrected. Walks over the whole log, once."""
        return at_once(self.correct())

    def correct(self) -> Work[bool]:
        """Correct the epochs as `were_wrong` does, in slices; nothing changes where the log changes in between."""
        if self._are_checked:
            return False
        before = self._looked_at
        work = corrected(self.epochs, before.segments, self._state.start_offset, self._state.end_offset)
        found = yield from as_long_as(lambda: self._looked_at == before, work)
        self._are_checked = self._looked_at == before
        if found is None:
            return False
        log.warning("epochs.rebuilt", directory=self._directory, entries=len(found.entries))
        self.epochs.take_over(found)
        self.is_unsynced = True
        return True

    def drop_unwritten(self) -> Work[None]:
        """Forget the epochs that have no record, if the batches confirm the others. Raises OSError."""
        yield from self.correct()
        if self._are_checked:
            self.truncate_from_end(self._state.end_offset)

    @property
    def _looked_at(self) -> _LookedAt:
        state = self._state
        return _LookedAt([*self._segments], state.end_offset, state.truncations, self.epochs.entries, state.is_closed)
