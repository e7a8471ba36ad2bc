"""When a node takes a snapshot of its image by itself, and how it takes over one of the leader's.

Nothing waits for a snapshot: what is committed is copied at once, and written by a thread. Only a stop waits for its
own: the next start replays the newest snapshot and what is in the log behind it, and a change of each of very many
partitions is there again for each stop, start and death.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from kavka_broker.controller.image_replacement import image_of
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.metadata_recovery import history_of, quorum_control
from kavka_broker.controller.metadata_retention import retain
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.publishing import Publisher
from kavka_broker.controller.raft_driver import RaftDriver
from kavka_broker.controller.snapshot_files import SnapshotId, build
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.raft.effects import Effect
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation
from kavka_broker.protocol.message import Message

log = get("raft")

BYTES_BETWEEN: Final = "metadata.log.max.record.bytes.between.snapshots"
INTERVAL_MS: Final = "metadata.log.max.snapshot.interval.ms"
#: At a stop a snapshot is taken if the log behind the newest one is longer than this and than that snapshot.
HISTORY_BYTES_MAX: Final = 256 * 1024


class Snapshotter:
    """Takes the snapshots of one node, one at a time."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        metadata: Metadata,
        publisher: Publisher,
        ports: Ports,
    ) -> None:
        self._config = config
        self._log = metadata_log
        self._metadata = metadata
        self._publisher = publisher
        self._clock = ports.clock
        self._run_blocking = ports.run_blocking
        self._task: asyncio.Task[None] | None = None
        self._taken_ms = ports.clock.now_ms()
        self.history_bytes_max = HISTORY_BYTES_MAX

    def take_if_due(self, runner: RaftDriver) -> None:
        """Begin a snapshot, in a task, if the log has grown enough or the newest snapshot is old."""
        if self._task is not None and not self._task.done():
            return
        age_ms, interval_ms = self._clock.now_ms() - self._taken_ms, self._config[INTERVAL_MS]
        if self._publisher.bytes_since_snapshot >= self._config[BYTES_BETWEEN] or 0 < interval_ms <= age_ms:
            self._task = asyncio.get_running_loop().create_task(self._try(self.take(runner)), name="metadata snapshot")

    async def finish(self) -> None:
        """Wait for the snapshot that is being taken."""
        if self._task is not None:
            await self._task

    async def take_at_stop(self, runner: RaftDriver) -> None:
        """Take a snapshot if the next start would have much to replay. Called once publishing has stopped."""
        await self._try(self._take_if_long(runner))

    async def _take_if_long(self, runner: RaftDriver) -> None:
        newest = self._log.files.newest()
        snapshot_bytes = 0 if newest is None else self._log.files.size_bytes(newest)
        if self._publisher.bytes_since_snapshot > max(self.history_bytes_max, snapshot_bytes):
            await self.take(runner)

    async def _try(self, taking: Awaitable[object]) -> None:
        try:
            await taking
        except (OSError, BrokerError) as error:
            # The log still has all records of the failed snapshot.
            log.error("metadata.snapshot.failed", reason=str(error))

    async def take(self, runner: RaftDriver) -> SnapshotId | None:
        """Write a snapshot of the committed image, and delete what it supersedes. None where it has no new records.

        Raises OSError, or BrokerError where the disk has no room for it.
        """
        now_ms = self._clock.now_ms()
        snapshot = self._log.snapshot_at(self._metadata.next_offset)
        if snapshot is None or self._metadata.transaction is not None:
            return None
        control = quorum_control(runner.node.history, snapshot.end_offset)
        image = self._metadata.copy()
        self._publisher.bytes_since_snapshot = 0
        self._taken_ms = now_ms

        records: list[Message] = []

        def write() -> None:
            records.extend(image.records())
            data = build(control, records, epoch=snapshot.epoch, last_timestamp_ms=now_ms, now_ms=now_ms)
            self._log.files.save(snapshot, data)

        # The next start trusts a snapshot, and committed records may not be on this disk yet.
        await runner.syncs.until(snapshot.end_offset)
        if runner.is_failed:
            return None
        await self._run_blocking(write)
        self._log.files.saved(snapshot)
        self._log.files.delete_below(self._log.start_offset)  # the leader's may have replaced the log meanwhile
        deleted = retain(self._log, self._config, now_ms)
        log.info("metadata.snapshot.written", offset=snapshot.end_offset, records=len(records), deleted=len(deleted))
        return snapshot

    async def adopt(self, snapshot: SnapshotId, runner: RaftDriver) -> list[Effect]:
        """Replace log and image by a snapshot downloaded from the leader, or refuse it."""
        messages: list[Message] = []
        try:
            await self._run_blocking(lambda: messages.extend(self._log.files.load_downloaded(snapshot)))
        except ProtocolViolation as problem:
            log.warning("metadata.snapshot.refused", offset=snapshot.end_offset, reason=str(problem))
            return runner.node.snapshot_refused(snapshot, runner.now_ms)
        await self._run_blocking(lambda: self._log.files.name_downloaded(snapshot))
        self._log.files.saved(snapshot)
        self._log.start_behind(snapshot)
        self._publisher.replace(image_of(iter(messages), snapshot.end_offset - 1))
        log.info("metadata.snapshot.adopted", offset=snapshot.end_offset, records=len(messages))
        history = history_of(self._config, messages, snapshot.end_offset)
        return runner.node.snapshot_adopted(snapshot, history, runner.now_ms)
