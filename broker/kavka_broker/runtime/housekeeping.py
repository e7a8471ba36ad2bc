"""What the broker does by itself, now and then: retention, flushes, checkpoints, forgetting.

Each chore has an interval, by Kafka's name where it has one. What blocks runs in a thread, one chore at a time; an
idle broker wakes up every few seconds, finds nothing changed and writes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.slices import Cost, Slices, Work
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.producer_expiry import expire_producers

log = get("runtime")

FLUSH_MS = 1_000
REMOVAL_MS = 2_000
QUOTA_EXPIRY_MS = 300_000
#: Units to see whether a log has changed since it was written down.
SETTLE_COST = 5
#: Recovery point, log start and high watermark.
Points = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Chore:
    """A job that is done every `interval_ms`."""

    name: str
    interval_ms: int
    work: Callable[[], Awaitable[None]]
    first_ms: int | None = None  # after the start, where that is sooner than an interval


class Housekeeping:
    """Chores of one broker, as tasks that end with `stop`."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogManager,
        partitions: HostedPartitions,
        quotas: ClientQuotas,
        clock: Clock,
        crash: Callable[[BaseException], None],
        effective: EffectiveConfig,
    ) -> None:
        self._effective = effective
        self._crash = crash
        self._config = config
        self._logs = logs
        self._partitions = partitions
        self._quotas = quotas
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self._checkpointed: dict[PartitionName, Points] = {}  # points of the logs that have changed
        self._slices = Slices()

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self.repeat(chore), name=chore.name) for chore in self._chores()]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def high_watermark_of(self, log: Log) -> int:
        """Return the high watermark of the partition that a log belongs to."""
        partition = self._partitions.get(*log.name)
        return log.log_start_offset if partition is None else partition.high_watermark

    def _chores(self) -> list[Chore]:
        config = self._config
        return [
            Chore("flush", FLUSH_MS, self._flush),
            Chore("checkpoint", config["replica.high.watermark.checkpoint.interval.ms"], self.checkpoint),
            Chore(
                "retention",
                config["log.retention.check.interval.ms"],
                self._retain,
                first_ms=config["log.initial.task.delay.ms"],
            ),
            Chore("producer expiry", config["producer.id.expiration.check.interval.ms"], self._expire_producers),
            Chore("removal", REMOVAL_MS, self._remove),
            Chore("quota expiry", QUOTA_EXPIRY_MS, self._expire_quotas),
        ]

    async def repeat(self, chore: Chore) -> None:
        """Do the chore forever. A failure is logged and the chore comes round again: one that ended in silence would be
        missed only when a disk is full.
        """
        delay_ms = chore.interval_ms if chore.first_ms is None else min(chore.first_ms, chore.interval_ms)
        while True:
            await asyncio.sleep(delay_ms / 1000)
            delay_ms = chore.interval_ms
            try:
                await chore.work()
            except (OSError, BrokerError) as problem:
                log.error("housekeeping.failed", chore=chore.name, reason=str(problem))
            except AssertionError as error:
                self._crash(error)
                return
            except Exception as error:  # a defect of ours, and no reason to stop for
                log.exception("housekeeping.failed", error, chore=chore.name)  # noqa: TRY401

    async def _flush(self) -> None:
        if any(changed.durability.unflushed_messages for changed in self._logs.changed):
            await asyncio.to_thread(self._logs.flush_due, self._clock.now_ms())

    async def checkpoint(self) -> None:
        points = {changed.name: self._points_of(changed) for changed in self._logs.changed}
        if points == self._checkpointed and not self._logs.have_left and not self._logs.have_unnamed:
            return
        if await asyncio.to_thread(self._logs.write_checkpoints, self.high_watermark_of):
            self._checkpointed = points
            await self._slices.whole(self._note_written(points))

    def _points_of(self, log: Log) -> Points:
        return log.recovery_point, log.log_start_offset, self.high_watermark_of(log)

    def _note_written(self, written: dict[PartitionName, Points]) -> Work[None]:
        """Note that these logs were written down. A log whose end is committed stays so until it changes."""
        cost = Cost()
        for changed_log in self._logs.changed:
            if changed_log.name in written:
                self._logs.clear_changed(changed_log, partial(self._is_settled, written[changed_log.name]))
            if cost.add(SETTLE_COST):
                yield
        changed = {changed_log.name for changed_log in self._logs.changed}
        self._checkpointed = {name: points for name, points in written.items() if name in changed}

    def _is_settled(self, written: Points, log: Log) -> bool:
        is_written = self._logs.is_named(log) and self._points_of(log) == written
        return is_written and written[2] == log.log_end_offset

    async def _retain(self) -> None:
        if await self._slices.whole(self._logs.retain(self._clock.now_ms(), self.high_watermark_of)):
            log.info("retention.deleted")

    async def _expire_producers(self) -> None:
        expiration_ms = self._effective.broker["producer.id.expiration.ms"]
        count = await self._slices.whole(expire_producers(self._logs, self._clock.now_ms(), expiration_ms))
        if count:
            log.info("producers.expired", count=count)

    async def _remove(self) -> None:
        if self._logs.has_deleted:
            stray_retention_ms = self._config["kavka.log.stray.retention.ms"]
            remove = partial(self._logs.remove_deleted, stray_retention_ms=stray_retention_ms)
            await asyncio.to_thread(remove, self._clock.now_ms())

    async def _expire_quotas(self) -> None:
        self._quotas.expire(int(self._clock.monotonic_ms()))
