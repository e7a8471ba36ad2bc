"""Copies of logs on their way into another log directory (KIP-113): `orders-3.<id>-future`.

A copy is a log like any other, except for its name, which nobody looks up. When its broker stops, in whatever way, it
stays as it is: the next start finds it, checks every batch of it and goes on. What it holds may have been cut off the
log meanwhile, so both are compared by leader epochs first, as a follower compares its log with its leader's.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.partition.follower import truncation_offset
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import read_extent
from kavka_broker.storage import partition_metadata, recovery
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import (
    FUTURE_DIRECTORY,
    NAME_BYTES_MAX,
    STRAY_DIRECTORY,
    PartitionName,
    aside_directory,
    parse_future,
)
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.new_logs import begin
from kavka_broker.storage.retired_logs import SetAside

log = get("storage")


@dataclass(frozen=True, slots=True)
class FoundCopy:
    """A copy that the start has found, not opened yet. `topic_id` is ZERO where it was lost."""

    directory: LogDirectory
    path: str
    name: PartitionName
    topic_id: bytes


class FutureLogs:
    """Makes, opens and settles copies. `failed` is told of a directory whose disk has failed."""

    def __init__(
        self,
        disk: Disk,
        random_bytes: Callable[[int], bytes],
        aside: SetAside,
        failed: Callable[[LogDirectory], None],
    ) -> None:
        self._disk = disk
        self._random_bytes = random_bytes
        self._aside = aside
        self._failed = failed
        self._found: list[FoundCopy] = []

    def find(self, directory: LogDirectory, path: str, name: PartitionName) -> None:
        """Note a copy that the start has found. Raises OSError."""
        try:
            topic_id = partition_metadata.read(self._disk, path)
        except BrokerError as problem:
            log.warning("copy.not_read", path=path, reason=str(problem))
            self._aside.put(directory, name, path, STRAY_DIRECTORY)
        else:
            self._found.append(FoundCopy(directory, path, name, topic_id))

    def take_found(self) -> Iterable[FoundCopy]:
        """Return the copies that the start has found; only once."""
        found, self._found = self._found, []
        return found

    def make(self, current: Log, directory: LogDirectory, now_ms: int) -> Log:
        """Make an empty log in `directory`, to take the place of `one` as its copy. Raises KAFKA_STORAGE_ERROR."""
        base = aside_directory(current.name, self._random_bytes(16).hex(), FUTURE_DIRECTORY)
        if parse_future(base) != current.name:
            letters = (
                NAME_BYTES_MAX - len(aside_directory(PartitionName("", 0), "0" * 32, FUTURE_DIRECTORY)) + len("-0")
            )
            reason = f"with its partition it has more than {letters} characters; move it to another broker instead"
            log.error("copy.refused", log=str(current.name), reason=f"its name is too long for a copy: {reason}")
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{current.name}: its name is too long for a copy: {reason}"
            )
        path = os.path.join(directory.path, base)
        try:
            future = begin(self._disk, path, current.topic_id, current.config, now_ms)
        except OSError as problem:
            raise _refused(current.name, "begin to move", problem) from problem
        assert future.log_end_offset == 0, f"{path} begins with {future.log_end_offset} records"
        assert future.name == current.name, f"{path} is a copy of {future.name}, not of {current.name}"
        future.state.on_failed = partial(self._failed, directory)
        return future

    def open(self, found: FoundCopy, config: LogConfig, now_ms: int) -> Log:
        """Open a copy from an earlier start, every batch of it checked. Blocks: call it in a thread. Raises
        KAFKA_STORAGE_ERROR.
        """
        try:
            future = recovery.open_log(self._disk, found.path, config, recover=True, now_ms=now_ms)
        except OSError as problem:
            raise _refused(found.name, "go on moving", problem) from problem
        assert future.name == found.name, f"{found.path} is a copy of {future.name}, not of {found.name}"
        future.state.on_failed = partial(self._failed, found.directory)
        return future

    def promote(self, future: Log, former: Log, directory: LogDirectory, now_ms: int) -> Log:
        """Give a finished copy the name of its `former` log, and open it there. Raises KAFKA_STORAGE_ERROR."""
        assert future.topic_id == former.topic_id, f"{future.directory} is a copy of another log"
        assert future.name == former.name
        start_offset, end_offset = future.log_start_offset, future.log_end_offset
        path = os.path.join(directory.path, str(future.name))
        future.close()
        is_renamed = False
        try:
            self._disk.rename(future.directory, path)
            is_renamed = True
            self._disk.sync_directory(directory.path)
            opened = recovery.open_log(
                self._disk,
                path,
                future.config,
                recover=False,
                recovery_point=end_offset,
                log_start_offset=start_offset,
                now_ms=now_ms,
            )
        except OSError as problem:
            if is_renamed:  # otherwise something else has the name
                with suppress(OSError):
                    self._disk.rename(path, future.directory)
            raise _refused(future.name, "move", problem) from problem
        assert opened.log_end_offset >= end_offset, f"{path} had records up to {end_offset}"
        if former.producer_files.are_known:
            # The files have the last batch of each producer. Earlier batches, too, may be sent again.
            opened.producer_files.states = former.producers
        opened.state.cleaned_offset = min(former.state.cleaned_offset, end_offset)
        return opened

    def set_aside(self, found: FoundCopy) -> None:
        """Keep a copy of an unknown topic under another name."""
        self._aside.put(found.directory, found.name, found.path, STRAY_DIRECTORY)


def beyond_common(future: Log, current: Log) -> int | None:
    """From where on a copy has what its log does not have, or not any more; None where it has nothing of the kind. Once
    it is cut there this has to be asked again.
    """
    if not future.log_end_offset:
        return None
    # The log may have lost its newest epoch with its end.
    shared = current.epoch_end_offset(min(future.epochs.latest, current.epochs.latest))
    if shared.epoch == future.epochs.latest and shared.end_offset >= future.log_end_offset:
        return None
    offset = truncation_offset(shared, future.epochs, future.log_end_offset, 0)
    assert 0 <= offset <= future.log_end_offset, f"{future.directory} ends at {future.log_end_offset}, below {offset}"
    return offset


def first_to_copy(current: Log) -> int:
    """Where the batch begins in which a log begins: DeleteRecords may put its start into the middle. Raises
    CORRUPT_MESSAGE.
    """
    start_offset = current.log_start_offset
    parts = current.read(start_offset, 1).parts
    return min(start_offset, read_extent(parts[0]).base_offset) if parts else start_offset


def _refused(name: PartitionName, what: str, problem: OSError) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name}: {what}: {problem.strerror}")
