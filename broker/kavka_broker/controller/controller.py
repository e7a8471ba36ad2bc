"""The active controller of a quorum of one: decides, writes, syncs, publishes.

    submit(decide)   decide on the image that holds everything written so far
                     append the records as one batch, replay them into that image
                     sync in a thread; what was appended meanwhile shares the next sync
                     replay into the committed image, tell the subscribers, answer

There are two images. `metadata` is what is committed, and what everybody else reads; the other runs ahead of it by
what is on its way to the disk, so that a decision never contradicts one that is about to be true. A decision that
writes nothing still waits for what it was based on.

Each start is a new leader epoch, remembered in `quorum-state` before the first record of it is written. A sync that
fails leaves nobody knowing what is on the disk: the process stops, and the next start reads what is there.

NoOpRecords, with which Apache Kafka marks time in its log twice a second, are not written: an idle Kavka is idle.
"""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from kavka_broker.controller.batches import control_batch, metadata_batch
from kavka_broker.controller.format import random_uuid
from kavka_broker.controller.metadata_log import BATCH_BYTES_MAX, MetadataLog
from kavka_broker.controller.producer_id_block import ProducerIdBlock
from kavka_broker.controller.recovery import Recovered, recover
from kavka_broker.controller.snapshots import SnapshotId, build
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image import Metadata
from kavka_broker.core.raft.voters import Voter, majority_offset
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.seams import Clock

log = get("controller")

R = TypeVar("R")
Decide = Callable[[Metadata, int], Decision[R]]
Subscriber = Callable[[Sequence[Message]], None]
RunBlocking = Callable[[Callable[[], None]], Awaitable[None]]

#: Decisions that wait for the disk. More are refused, and their clients try again.
PENDING_MAX: Final = 10_000


class Controller:
    """Made by `open`, which replays what is on the disk; `start` makes it lead."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata_log: MetadataLog,
        recovered: Recovered,
        clock: Clock,
        *,
        run_blocking: RunBlocking = asyncio.to_thread,
        random_bytes: Callable[[int], bytes] = os.urandom,
        crash: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.node_id = config.node_id
        self.metadata = recovered.committed
        self.subscribers: list[Subscriber] = []
        self.voters: tuple[Voter, ...] = recovered.voters
        self.epoch = recovered.state.leader_epoch
        self.high_watermark = 0
        self.producer_ids = ProducerIdBlock(self.submit, config.node_id)
        self._config = config
        self._log = metadata_log
        self._recovered = recovered
        self._ahead = recovered.ahead
        self._clock = clock
        self._run_blocking = run_blocking
        self._random_bytes = random_bytes
        self._crash = crash or _raise
        self._appended: deque[Sequence[Message]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._flusher: asyncio.Task[None] | None = None
        self._snapshotter: asyncio.Task[None] | None = None
        self._bytes_since_snapshot = 0
        self._snapshot_ms = clock.now_ms()
        self._closing = False

    @classmethod
    def open(cls, config: BrokerConfig, metadata_log: MetadataLog, clock: Clock, **seams: Any) -> "Controller":
        """Replay the newest snapshot and the log behind it."""
        return cls(config, metadata_log, recover(config, metadata_log), clock, **seams)

    async def start(self) -> None:
        """Take the lead in a new epoch, and write what a new leader has to say."""
        state = self._recovered.state.led_by(self.node_id, self._log.latest_epoch)
        await self._run_blocking(lambda: self._log.save_state(state))
        self.epoch = state.leader_epoch
        now_ms = self._clock.now_ms()
        control = self._recovered.opening_control(self.node_id)
        offset = self._log.end_offset
        self._log.append(control_batch(control, base_offset=offset, leader_epoch=self.epoch, now_ms=now_ms), now_ms)
        self._replay_ahead(control, offset)
        records = self._recovered.opening_records(self._config, self.new_uuid())
        if records:
            self._append(records)
        await self._committed(self._ahead.offset)
        log.info("controller.leads", node=self.node_id, epoch=self.epoch, offset=self.metadata.offset)

    def new_uuid(self) -> bytes:
        """An id for a topic, a directory or an incarnation."""
        return random_uuid(self._random_bytes)

    async def submit(self, decide: Decide[R]) -> R:
        """Decide, and answer once it is true. A BrokerError out of `decide` means that nothing was written."""
        if self._closing:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "the controller is shutting down")
        if len(self._waiting) >= PENDING_MAX:
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, f"{PENDING_MAX} decisions wait for the disk; try again")
        decision = decide(self._ahead, self._clock.now_ms())
        if decision.records:
            self._append(decision.records)
        await self._committed(self._ahead.offset)
        return decision.response

    async def stop(self) -> None:
        """Let what was decided become true, then close the log."""
        self._closing = True
        for task in (self._flusher, self._snapshotter):
            if task is not None:
                await task
        self._log.close()

    # --- append and commit --------------------------------------------------------------------------------------

    def _append(self, records: Sequence[Message]) -> None:
        now_ms = self._clock.now_ms()
        offset = self._log.end_offset
        batch = metadata_batch(records, base_offset=offset, leader_epoch=self.epoch, now_ms=now_ms)
        if len(batch) > BATCH_BYTES_MAX:
            problem = f"the decision has {len(batch)} bytes, {BATCH_BYTES_MAX} fit in a batch; ask in smaller parts"
            raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
        self._log.append(batch, now_ms)
        self._bytes_since_snapshot += len(batch)
        self._replay_ahead(records, offset)

    def _replay_ahead(self, records: Sequence[Message], offset: int) -> None:
        assert offset == self._ahead.next_offset, f"the log is at {offset}, the image at {self._ahead.next_offset}"
        for record in records:
            self._ahead.replay(record)
        self._appended.append(records)

    async def _committed(self, offset: int) -> None:
        """Wait until everything up to `offset` is on the disk and published."""
        if self.metadata.offset >= offset:
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiting.append((offset, waiter))
        if self._flusher is None or self._flusher.done():
            self._flusher = loop.create_task(self._flush_all(), name="metadata log flush")
        await waiter

    async def _flush_all(self) -> None:
        try:
            while self._appended:
                await self._flush_appended()
                self._snapshot_if_due()
        except Exception as error:  # noqa: BLE001 - whatever it is, the process must stop
            self._fail(error)

    async def _flush_appended(self) -> None:
        batches, self._appended = self._appended, deque()
        end_offset = self._log.end_offset
        await self._run_blocking(self._log.flush)
        self.high_watermark = majority_offset({self.node_id: end_offset}, self.voters)
        for records in batches:
            self._publish(records)
        self._wake()

    def _publish(self, records: Sequence[Message]) -> None:
        for record in records:
            self.metadata.replay(record)
        for subscriber in self.subscribers:
            subscriber(records)

    def _wake(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.metadata.offset:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        """Nobody knows what is on the disk, or an image is wrong: whoever waits must not be told that it is true."""
        self._closing = True
        while self._waiting:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log has failed"))
        self._crash(error)

    # --- snapshots ----------------------------------------------------------------------------------------------

    def _snapshot_if_due(self) -> None:
        """In a task of its own: decisions do not wait for a snapshot."""
        if self._snapshotter is not None and not self._snapshotter.done():
            return
        age_ms = self._clock.now_ms() - self._snapshot_ms
        interval_ms = self._config["metadata.log.max.snapshot.interval.ms"]
        if (
            self._bytes_since_snapshot >= self._config["metadata.log.max.record.bytes.between.snapshots"]
            or 0 < interval_ms <= age_ms
        ):
            self._snapshotter = asyncio.get_running_loop().create_task(self._try_snapshot(), name="metadata snapshot")

    async def _try_snapshot(self) -> None:
        try:
            await self.snapshot()
        except (OSError, BrokerError) as error:
            # Nothing is lost: the log still has what the snapshot would have held.
            log.error("metadata.snapshot.failed", reason=str(error))

    async def snapshot(self) -> SnapshotId:
        """Write down the committed image, and forget what it makes superfluous."""
        now_ms = self._clock.now_ms()
        snapshot = SnapshotId(self.metadata.offset + 1, self.epoch)
        control = self._recovered.quorum_control()
        records = list(self.metadata.records())
        self._bytes_since_snapshot = 0
        self._snapshot_ms = now_ms

        def write() -> None:
            data = build(control, records, epoch=snapshot.epoch, last_timestamp_ms=now_ms, now_ms=now_ms)
            self._log.snapshots.save(snapshot, data)

        await self._run_blocking(write)
        deleted = self._log.retain(now_ms)
        log.info("metadata.snapshot", offset=snapshot.end_offset, records=len(records), deleted=len(deleted))
        return snapshot


def _raise(error: BaseException) -> None:
    raise InvariantViolation(f"the metadata log cannot go on: {error}") from error
