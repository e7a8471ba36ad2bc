"""The shards of a coordinator: one for each partition of its internal topic that this broker leads.

The replica manager calls `leadership`. A partition that comes is read and then served, a new one once its topic's id
is synced; one that goes is closed. Clients that ask for a key which is elsewhere, or not read yet, get Kafka's error
for it and come back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.loop.paced_work import run_paced
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition

log = get("coordinator")

LOAD_AGAIN_MS: Final = 1000
"""Between two loads of a log that could not be read: a disk may answer again, or a file be mended."""


class Shard(Protocol):
    """A coordinator's state of one partition."""

    is_loading: bool
    is_unreadable: bool

    @property
    def partition(self) -> object: ...
    @property
    def is_closed(self) -> bool: ...


S = TypeVar("S", bound=Shard)


@dataclass(frozen=True, slots=True)
class Steps(Generic[S]):
    """The life of a coordinator's shard.

    `load` reads the log and returns the figures for the log line, none where there is nothing to tell; it raises
    BrokerError or ProtocolViolation for a log that cannot be read. `open` is called after it, for a new log at once.
    """

    make: Callable[[Partition], S]
    load: Callable[[S, Partition], Awaitable[dict[str, int]]]
    open: Callable[[S], None]
    close: Callable[[S], None]


class LedShards(Generic[S]):
    """The shards of `topic`. Made before any replica is hosted."""

    def __init__(
        self, topic: str, steps: Steps[S], metadata: Metadata, replicas: ReplicaManager, pacing: Pacing
    ) -> None:
        self.by_partition: dict[int, S] = {}
        self._topic = topic
        self._steps = steps
        self._metadata = metadata
        self._replicas = replicas
        self._clock, self._timers = pacing.clock, pacing.timers
        self._loads: dict[int, asyncio.Task[None]] = {}

    def follow(self) -> None:
        """Take up the partitions that this broker leads, now and from now on."""
        self._replicas.leadership_listeners.append(self.leadership)
        for partition in self._replicas.partitions:
            if partition.is_leader:
                self.leadership(partition, True)

    # --- which partitions ---------------------------------------------------------------------------------------

    def leadership(self, partition: Partition, is_leader: bool) -> None:
        """Take up or give up `partition`, which this broker leads now or leads no longer."""
        if partition.topic != self._topic:
            return
        known = self.by_partition.get(partition.index)
        if is_leader and known is not None and known.partition is partition:
            return  # a new epoch of the same leader: no other broker has written
        shard = self._give_up(partition.index)
        if shard is not None:
            self._steps.close(shard)
        if is_leader:
            self._elect(partition)

    def give_up_all(self) -> list[S]:
        """Serve none any more; returns those that are to be closed."""
        shards = (self._give_up(index) for index in list(self.by_partition))
        return [shard for shard in shards if shard is not None]

    def _give_up(self, index: int) -> S | None:
        task = self._loads.pop(index, None)
        if task is not None:
            task.cancel()
        return self.by_partition.pop(index, None)

    def _elect(self, partition: Partition) -> None:
        shard = self.by_partition[partition.index] = self._steps.make(partition)
        securing = None
        if partition.log.log_start_offset == partition.log.log_end_offset:
            securing = self._replicas.openings.when_secured(partition.log)
            if securing is None:
                self._steps.open(shard)
                return
        work = self._load(shard, partition, securing)
        task = asyncio.get_running_loop().create_task(work, name=f"load {partition}")
        self._loads[partition.index] = watch(task)

    async def _load(self, shard: S, partition: Partition, securing: asyncio.Future[None] | None) -> None:
        """Read the log. Of a new one there is nothing to read, and its first append would sync its topic's id on the
        loop: a thread does, until `securing` ends, which others wait for too.
        """
        index, started_ms = partition.index, self._clock.monotonic_ms()
        figures: dict[str, int] = {}
        try:
            if securing is None:
                figures = await self._steps.load(shard, partition)
            else:
                await asyncio.shield(securing)
        except Exception as error:
            # Any error ends the load: clients that are told of a load that has died would wait forever.
            log.error("shard.not_loaded", partition=str(partition), reason=str(error))
            shard.is_loading, shard.is_unreadable = False, True
            if isinstance(error, BrokerError | ProtocolViolation):
                self._timers.after(LOAD_AGAIN_MS, self._load_again, shard, partition)
                return
            raise
        finally:
            if self.by_partition.get(index) is shard:  # otherwise given up: the entry may belong to a later load
                self._loads.pop(index, None)
        took_ms = round(self._clock.monotonic_ms() - started_ms)
        self._steps.open(shard)
        if figures:
            log.info("shard.loaded", partition=str(partition), **figures, took_ms=took_ms)

    def _load_again(self, shard: S, partition: Partition) -> None:
        """Read a log again that could not be read, if this broker leads it still: no other would serve its keys."""
        if self.by_partition.get(partition.index) is shard:
            assert shard.is_unreadable, f"{partition} is served already"
            self._steps.close(shard)
            self._elect(partition)

    # --- what is asked of it ------------------------------------------------------------------------------------

    def partition_of(self, key: str) -> int | None:
        """Return the partition of a key, or None before the topic exists."""
        topic = self._metadata.topics.get(self._topic)
        return None if topic is None else partition_of(key, len(topic.partitions))

    def of(self, key: str) -> S:
        """Return the key's shard. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE."""
        index = self.partition_of(key)
        shard = None if index is None else self.by_partition.get(index)
        if shard is None:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if shard.is_unreadable:
            problem = f"{self._topic}-{index} cannot be read; the broker's log says why"
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)
        if shard.is_loading:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    @property
    def loaded(self) -> list[S]:
        """The shards that have loaded, in the order of their partitions."""
        shards = (self.by_partition[index] for index in sorted(self.by_partition))
        return [shard for shard in shards if not shard.is_loading and not shard.is_unreadable]

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self.by_partition.values())

    # --- long work ----------------------------------------------------------------------------------------------

    def work_off(self, shard: S, work: Iterator[None]) -> None:
        """Do work in slices with pauses, as long as this broker serves the shard."""
        run_paced(self._timers, work, holds=lambda: not shard.is_closed)
