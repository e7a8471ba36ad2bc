"""Keeps the vote of a controller (`quorum-state`), and how far its log was synced, so that a loss of either is seen.

Other controllers count on both, and both are on the disk before another node hears of them. But a disk may change or
lose a file afterwards, and a log that ends early looks like any other.

    synced-offset        the log was on the disk up to here: written behind each sync, removed before each cut
    quorum-state.copy    the vote once more, with a checksum, written ahead of `quorum-state`

Apache Kafka knows neither and leaves both alone. After it has run here the copy may be the older of the two.
"""

import os
import threading
from contextlib import suppress
from typing import Final

from crc32c import crc32c

from kavka_broker.core.raft.quorum_state import (
    FILE_NAME,
    NOBODY,
    QuorumState,
    UnreadableState,
    format_state,
    parse_state,
)
from kavka_broker.logs import get
from kavka_broker.storage import checkpoints
from kavka_broker.storage.disk import Disk

log = get("controller")

SYNCED: Final = "synced-offset"
COPY: Final = "quorum-state.copy"


class QuorumStateFile:
    """The promises of one metadata directory. The last process had synced at least up to `synced_offset`."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._lock = threading.Lock()
        self._written = self.synced_offset = self._read_synced()
        # The log ends below its promise, which stands until the log has grown that far again.
        self.is_broken = False

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    # --- the log ------------------------------------------------------------------------------------------------

    def _read_synced(self) -> int:
        try:
            entries = checkpoints.read_epochs(self._disk, self._path(SYNCED))
        except checkpoints.MalformedCheckpoint as problem:
            log.warning("checkpoint.ignored", reason=str(problem))
            return 0
        return entries[-1][1] if entries else 0

    def note_synced(self, epoch: int, offset: int, truncations: int, now_truncations: int) -> None:
        """Note how far the log is synced. The file is not synced: an older one promises less. Called in a thread."""
        with self._lock, suppress(OSError):
            if truncations == now_truncations and offset > self._written:
                checkpoints.write_epochs(self._disk, self._path(SYNCED), [(max(epoch, 0), offset)], durable=False)
                self._written = offset
                self.is_broken = False

    def keep_broken(self, epoch: int) -> None:
        """Sync the promise that the log breaks: a loss of power would take it, and the log would look like any other.
        Raises OSError.
        """
        assert self.is_broken
        with self._lock:
            checkpoints.write_epochs(
                self._disk, self._path(SYNCED), [(max(epoch, 0), self.synced_offset)], durable=True
            )

    def forget_synced(self) -> None:
        """Withdraw the promise before the leader has the log cut. Needs no room on the disk. Raises OSError."""
        with self._lock:
            if self.is_broken:
                return
            self._written = self.synced_offset = 0
            with suppress(FileNotFoundError):
                self._disk.remove(self._path(SYNCED))
                self._disk.sync_directory(self._directory)

    # --- the vote -----------------------------------------------------------------------------------------------

    def load_state(self) -> QuorumState:
        """The state in the file or in its copy, the later of the two. Raises UnreadableState if neither can be read."""
        states, problems = [], []
        for name, state_in in ((COPY, _checked), (FILE_NAME, bytes)):
            try:
                states.append(parse_state(state_in(self._disk.read_file(self._path(name))).decode()))
            except FileNotFoundError:
                problems.append(f"{self._path(name)} is not there")
            except (UnreadableState, UnicodeDecodeError) as problem:
                problems.append(f"{self._path(name)}: {problem}")
        if not states:
            raise UnreadableState("; ".join(problems))
        newest = max(states, key=_knowledge)
        if len(states) == 1 or states[0] != states[1]:
            log.warning(
                "quorum_state.settled", epoch=newest.leader_epoch, problems="; ".join(problems) or "they differ"
            )
            with suppress(OSError):  # the damaged file gets a good copy again
                self.save_state(newest)
        return newest

    def save_state(self, state: QuorumState) -> None:
        """Write and sync the state. Blocks. Raises OSError."""
        data = format_state(state).encode()
        self._disk.write_file(self._path(COPY), b"%b\n%08x" % (data, crc32c(data)))
        self._disk.write_file(self._path(FILE_NAME), data)


def _checked(data: bytes) -> bytes:
    """The contents before the checksum. Raises UnreadableState where the checksum is wrong."""
    state, _, checksum = data.rpartition(b"\n")
    if checksum != b"%08x" % crc32c(state):
        raise UnreadableState("its checksum is wrong")
    return state


def _knowledge(state: QuorumState) -> tuple[int, bool, bool]:
    """A key that orders states by age: in one epoch, first the vote is known, then the leader."""
    return state.leader_epoch, state.voted_id != NOBODY, state.leader_id != NOBODY
