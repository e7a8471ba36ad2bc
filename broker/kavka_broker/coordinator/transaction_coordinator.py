"""The transactions that this broker coordinates: those whose partition of `__transaction_state` it leads.

The replica manager calls `leadership`; a partition that comes is read (`transaction_loading`) and then served
(`TransactionShard`), one that goes is closed. Handlers and the leaders of partitions ask in a transactional id's name;
whoever asks for one that is elsewhere, or not read yet, gets Kafka's error for it and comes back.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import Final, Protocol

from kavka_broker.coordinator.late_requests import LateRequests
from kavka_broker.coordinator.marker_sender import MarkerSender
from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.coordinator.transaction_loading import load
from kavka_broker.coordinator.transaction_shard import TransactionShard
from kavka_broker.core.metadata.image.features import TRANSACTION_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import TRANSACTIONS_TOPIC
from kavka_broker.core.transaction.connections import NO_CONNECTION
from kavka_broker.core.transaction.ending import End, end, told
from kavka_broker.core.transaction.partitions import add_partitions, verify_partitions
from kavka_broker.core.transaction.producers import Init, fence, initialize, needs_producer_id
from kavka_broker.core.transaction.settings import TransactionSettings
from kavka_broker.core.transaction.state import (
    BUMPS_FROM,
    NO_EPOCH,
    NO_PRODUCER,
    Place,
    Standing,
    Transaction,
)
from kavka_broker.core.transaction.state_counts import Count
from kavka_broker.core.transaction.timeouts import is_overdue, note_ahead
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition

log = get("coordinator")

BETWEEN_SLICES_MS: Final = 1
"""The pause between two slices of background work: the next tick of the timers."""
LOAD_AGAIN_MS: Final = 1000
"""Between two loads of a log that could not be read: a disk may answer again, or a file be mended."""
OVERDUE_PER_SLICE_MAX: Final = 100
PARTITIONS_AS_ID: Final = 100
"""Partitions of an overdue transaction that take as long as another one."""
LOOKED_AT_PER_SLICE_MAX: Final = 5_000


class ProducerIds(Protocol):
    """Ids that nobody has had (`membership.producer_ids`)."""

    def next_at_hand(self) -> int | None: ...

    async def next(self) -> int:
        """Raises BrokerError where there is none to be had."""
        ...


class FencedError(BrokerError):
    """An open transaction of the id is being aborted for its next producer, who is to ask again."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.CONCURRENT_TRANSACTIONS)


class TransactionCoordinator:
    """Serves the transactional ids of this broker. Made before any replica is hosted; `start` begins the periodic
    work, of which `on_timeout` is told each id whose transaction is aborted.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        metadata: Metadata,
        replicas: ReplicaManager,
        producer_ids: ProducerIds,
        markers: MarkerSender,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.settings = settings
        self.markers = markers
        self.aborted = {"timeout": 0, "fenced": 0}  # transactions, by why the coordinator aborted them by itself
        self.late_requests = LateRequests(is_on=settings.refuses_late_requests)
        self.on_timeout: Callable[[str], None] = lambda transactional_id: None
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._openings = replicas.openings
        self._clock = clock
        self._timers = timers
        self._shards: dict[int, TransactionShard] = {}
        self._loads: dict[int, asyncio.Task[None]] = {}
        replicas.leadership_listeners.append(self.leadership)
        for partition in replicas.partitions:
            if partition.is_leader:
                self.leadership(partition, True)

    def start(self) -> None:
        self._timers.after(self.settings.overdue_every_ms, self._abort_overdue)
        self._timers.after(self.settings.expire_every_ms, self._expire)

    def close(self) -> None:
        """Stop, with this broker: another one goes on."""
        for index in list(self._shards):
            self._resign(index)
        self.markers.close()

    @property
    def version(self) -> int:
        """The cluster's transaction version."""
        return self._metadata.features.level(TRANSACTION_VERSION)

    # --- which partitions ---------------------------------------------------------------------------------------

    def leadership(self, partition: Partition, is_leader: bool) -> None:
        """Take up or give up the ids of `partition`, which this broker leads now or leads no longer."""
        if partition.topic != TRANSACTIONS_TOPIC:
            return
        known = self._shards.get(partition.index)
        if is_leader and known is not None and known.partition is partition:
            return  # a new epoch of the same leader: no other broker has written
        self._resign(partition.index)
        if is_leader:
            self._elect(partition)

    def _resign(self, index: int) -> None:
        task = self._loads.pop(index, None)
        if task is not None:
            task.cancel()
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close()

    def _elect(self, partition: Partition) -> None:
        shard = TransactionShard(
            partition,
            self.settings,
            self._clock,
            self._timers,
            version=lambda: self.version,
            prepared=self.markers.send,
        )
        self._shards[partition.index] = shard
        task = asyncio.get_running_loop().create_task(
            self._load(shard, partition), name=f"load transactions {partition.index}"
        )
        self._loads[partition.index] = watch(task)

    async def _load(self, shard: TransactionShard, partition: Partition) -> None:
        index, started_ms = partition.index, self._clock.monotonic_ms()
        try:
            if partition.log.log_start_offset == partition.log.log_end_offset:
                await self._secured(partition)
            else:
                shard.transactions = await load(partition)
        except Exception as error:
            # Any error ends the load: clients that are told of a load that has died would wait forever.
            log.error("transactions.not_loaded", partition=index, reason=str(error))
            shard.is_loading, shard.is_unreadable = False, True
            if isinstance(error, BrokerError | ProtocolViolation):
                self._timers.after(LOAD_AGAIN_MS, self._load_again, shard, partition)
                return
            raise
        finally:
            if self._shards.get(index) is shard:  # otherwise resigned: the entry may belong to a later load
                self._loads.pop(index, None)
        took_ms = round(self._clock.monotonic_ms() - started_ms)
        if shard.transactions:
            log.info("transactions.loaded", partition=index, transactions=len(shard.transactions), took_ms=took_ms)
        self._go_on(shard, shard.open())

    async def _secured(self, partition: Partition) -> None:
        """Wait until a thread has synced the id of a new log: the first append would sync it on the loop."""
        securing = self._openings.when_secured(partition.log)
        if securing is not None:
            await securing

    def _load_again(self, shard: TransactionShard, partition: Partition) -> None:
        """Read a log again that could not be read, if this broker leads it still: no other would serve its ids."""
        if self._shards.get(partition.index) is shard:
            shard.close()
            self._elect(partition)

    def _go_on(self, shard: TransactionShard, work: Iterator[None]) -> None:
        """Do a slice of work, and the next slice in a later turn, as long as this broker serves the shard."""
        if not shard.is_closed and next(work, work) is None:
            self._timers.after(BETWEEN_SLICES_MS, self._go_on, shard, work)

    # --- what is asked of it ------------------------------------------------------------------------------------

    def partition_of(self, transactional_id: str) -> int | None:
        """The id's partition, or None before the topic exists."""
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        return None if topic is None else partition_of(transactional_id, len(topic.partitions))

    def shard(self, transactional_id: str) -> TransactionShard:
        """The id's shard. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE."""
        index = self.partition_of(transactional_id)
        shard = None if index is None else self._shards.get(index)
        if shard is None:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if shard.is_unreadable:
            problem = f"{TRANSACTIONS_TOPIC}-{index} cannot be read; the broker's log says why"
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)
        if shard.is_loading:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def shards(self) -> list[TransactionShard]:
        """The shards that have loaded, in the order of their partitions."""
        shards = (self._shards[index] for index in sorted(self._shards))
        return [shard for shard in shards if not shard.is_loading and not shard.is_unreadable]

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._shards.values())

    def get(self, transactional_id: str) -> Transaction | None:
        """Raises BrokerError where this broker does not serve the id."""
        return self.shard(transactional_id).transactions.get(transactional_id)

    async def initialize(self, transactional_id: str, init: Init) -> tuple[int, int]:
        """The producer's id and epoch. Raises BrokerError."""
        if not 0 < init.timeout_ms <= self.settings.timeout_ms_max:
            raise BrokerError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        fresh_id = await self._fresh_id(transactional_id, needs_producer_id)
        shard = self.shard(transactional_id)
        transaction = shard.transactions.get(transactional_id)
        now_ms = self._clock.now_ms()
        if transaction is None:
            unborn = Standing(fresh_id, NO_EPOCH, init.timeout_ms, updated_ms=now_ms)
            transaction = shard.admit(transactional_id, unborn)
        try:
            following = initialize(transaction, init, fresh_id, self.version, now_ms)
            await shard.move(transaction, following)
        except BrokerError:
            shard.drop_unborn(transaction)
            raise
        if following.state.is_prepared:
            self.aborted["fenced"] += 1
            log.info("transaction.fenced", transactional_id=transactional_id, producer_id=following.producer_id)
            raise FencedError  # and the next request gets an epoch
        return following.producer_id, following.producer_epoch

    async def add_partitions(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        places: Collection[Place],
        version: int,
        connection: int = NO_CONNECTION,
    ) -> None:
        """Add partitions to the transaction; `version` is the client's transaction version, `connection` the number of
        that of a client. Raises BrokerError.
        """
        shard = self.shard(transactional_id)
        transaction = shard.transactions.get(transactional_id)
        if version < BUMPS_FROM:
            self.late_requests.check(transaction, producer, connection)
        following = add_partitions(transaction, producer, places, version, self._clock.now_ms())
        if following is not None:
            assert transaction is not None, transactional_id
            await shard.move(transaction, following)

    def verify(
        self, transactional_id: str, producer: tuple[int, int], places: Collection[Place]
    ) -> dict[Place, ErrorCode]:
        """Whether each partition is in the transaction. Raises BrokerError."""
        return verify_partitions(self.get(transactional_id), producer, places)

    async def end(self, transactional_id: str, asked: End, connection: int = NO_CONNECTION) -> tuple[int, int]:
        """Decide the transaction; returns the id and epoch of the producer's next one. Raises BrokerError."""
        fresh_id = NO_PRODUCER
        if asked.version >= BUMPS_FROM:
            fresh_id = await self._fresh_id(transactional_id, is_exhausted)
        shard = self.shard(transactional_id)
        transaction = shard.transactions.get(transactional_id)
        if asked.version < BUMPS_FROM:
            self.late_requests.check(transaction, (asked.producer_id, asked.producer_epoch), connection)
        following = end(transaction, asked, fresh_id, self._clock.now_ms())
        assert transaction is not None, transactional_id
        if following is None:
            return told(transaction.standing)
        await shard.move(transaction, following)
        return told(following)

    async def _fresh_id(self, transactional_id: str, is_needed: Callable[[Transaction | None], bool]) -> int:
        """A producer id that nobody has had, where a move of the transactional id may need one. Raises BrokerError."""
        if not is_needed(self.get(transactional_id)):
            return NO_PRODUCER
        at_hand = self._producer_ids.next_at_hand()
        return await self._producer_ids.next() if at_hand is None else at_hand

    # --- periodic work ------------------------------------------------------------------------------------------

    def _abort_overdue(self) -> None:
        for shard in self.shards():
            self._go_on(shard, self._aborting(shard))
        self._timers.after(self.settings.overdue_every_ms, self._abort_overdue)

    def _aborting(self, shard: TransactionShard) -> Iterator[None]:
        """Count the ids, and begin to abort transactions that have been open for too long, a slice a step."""
        overdue, count = 0, Count()
        for number, transaction in enumerate(list(shard.transactions.values()), 1):
            count.add(transaction)
            note_ahead(transaction, self._clock.now_ms())
            if is_overdue(transaction, self._clock.now_ms()):
                overdue += 1 + len(transaction.standing.partitions) // PARTITIONS_AS_ID
                work = self._abort(shard, transaction)
                watch(asyncio.get_running_loop().create_task(work, name="abort an overdue transaction"))
            if number % LOOKED_AT_PER_SLICE_MAX == 0 or overdue >= OVERDUE_PER_SLICE_MAX:
                overdue = 0
                yield
        shard.census = count.result()

    async def _abort(self, shard: TransactionShard, transaction: Transaction) -> None:
        transactional_id = transaction.transactional_id
        try:
            fresh_id = await self._fresh_id(transactional_id, is_exhausted)
            if shard.is_closed or not is_overdue(transaction, self._clock.now_ms()):
                return
            # Not the client's version: one that has been silent for so long may be of any.
            following = fence(transaction.standing, fresh_id, self.version, self._clock.now_ms())
            await shard.move(transaction, following)
        except BrokerError as error:
            log.info("transaction.not_aborted", transactional_id=transactional_id, reason=str(error))
        else:
            self.aborted["timeout"] += 1
            self.on_timeout(transactional_id)
            log.info("transaction.aborted", transactional_id=transactional_id, producer_id=following.producer_id)

    def _expire(self) -> None:
        for shard in self.shards():
            self._go_on(shard, shard.expire())
        self._timers.after(self.settings.expire_every_ms, self._expire)


def is_exhausted(transaction: Transaction | None) -> bool:
    return transaction is not None and transaction.standing.is_exhausted
