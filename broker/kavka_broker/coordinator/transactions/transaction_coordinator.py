"""The transactions that this broker coordinates: those whose partition of `__transaction_state` it leads.

Partitions come and go (`led_shards`); one that comes is read (`transaction_loading`) and then served
(`TransactionShard`). Handlers and the leaders of partitions ask in a transactional id's name.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Final, Protocol

from kavka_broker.coordinator.led_shards import LedShards, Steps
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.transactions.late_requests import LateRequests
from kavka_broker.coordinator.transactions.marker_sender import MarkerSender
from kavka_broker.coordinator.transactions.transaction_loading import load
from kavka_broker.coordinator.transactions.transaction_shard import TransactionShard
from kavka_broker.core.metadata.image.features import TRANSACTION_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import TRANSACTIONS_TOPIC
from kavka_broker.core.transaction.connections import NO_CONNECTION
from kavka_broker.core.transaction.ending import End, end, told
from kavka_broker.core.transaction.partitions import add_partitions, verify_partitions
from kavka_broker.core.transaction.producers import Init, fence, initialize, needs_producer_id, timeout_of
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
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition

log = get("coordinator")

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
        pacing: Pacing,
    ) -> None:
        self.settings = settings
        self.markers = markers
        self.aborted = {"timeout": 0, "fenced": 0}  # transactions, by why the coordinator aborted them by itself
        self.late_requests = LateRequests(is_on=settings.refuses_late_requests)
        self.on_timeout: Callable[[str], None] = lambda transactional_id: None
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._clock, self._timers = pacing.clock, pacing.timers
        steps = Steps(self._new_shard, self._load, self._open, TransactionShard.close)
        self._led = LedShards(TRANSACTIONS_TOPIC, steps, metadata, replicas, pacing)
        self._led.follow()

    def start(self) -> None:
        self._timers.after(self.settings.overdue_every_ms, self._abort_overdue)
        self._timers.after(self.settings.expire_every_ms, self._expire)

    def close(self) -> None:
        """Stop, with this broker: another one goes on."""
        for shard in self._led.give_up_all():
            shard.close()
        self.markers.close()

    @property
    def version(self) -> int:
        """The cluster's transaction version."""
        return self._metadata.features.level(TRANSACTION_VERSION)

    # --- which partitions ---------------------------------------------------------------------------------------

    def _new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(
            partition,
            self.settings,
            self._clock,
            self._timers,
            version=lambda: self.version,
            prepared=self.markers.send,
        )

    async def _load(self, shard: TransactionShard, partition: Partition) -> dict[str, int]:
        shard.transactions = await load(partition)
        return {"transactions": len(shard.transactions)}

    def _open(self, shard: TransactionShard) -> None:
        self._led.work_off(shard, shard.open())

    # --- what is asked of it ------------------------------------------------------------------------------------

    def partition_of(self, transactional_id: str) -> int | None:
        """The id's partition, or None before the topic exists."""
        return self._led.partition_of(transactional_id)

    def shard(self, transactional_id: str) -> TransactionShard:
        """The id's shard. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE."""
        return self._led.of(transactional_id)

    def shards(self) -> list[TransactionShard]:
        """The shards that have loaded, in the order of their partitions."""
        return self._led.loaded

    @property
    def is_loading(self) -> bool:
        return self._led.is_loading

    def get(self, transactional_id: str) -> Transaction | None:
        """Raises BrokerError where this broker does not serve the id."""
        return self.shard(transactional_id).transactions.get(transactional_id)

    async def initialize(self, transactional_id: str, init: Init) -> tuple[int, int]:
        """The producer's id and epoch. Raises BrokerError."""
        init = replace(init, timeout_ms=timeout_of(init, self.settings))
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

    async def until_completed(self, transactional_id: str) -> None:
        """Wait a moment for the end of a transaction of the id that is decided: without that the request for the next
        one would be refused, and come again only after its client's pause.
        """
        try:
            waiting = self.shard(transactional_id).when_completed(transactional_id)
        except BrokerError:
            return  # the request will say so
        if waiting is not None:
            await asyncio.shield(waiting)

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
            self._led.work_off(shard, self._aborting(shard))
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
            self._led.work_off(shard, shard.expire())
        self._timers.after(self.settings.expire_every_ms, self._expire)


def is_exhausted(transaction: Transaction | None) -> bool:
    return transaction is not None and transaction.standing.is_exhausted
