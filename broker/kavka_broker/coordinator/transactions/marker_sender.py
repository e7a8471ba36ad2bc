"""The markers of decided transactions, on their way to the leaders of their partitions.

    send ──> by leader: a queue for each broker ──> one request at a time ──> acknowledged: the partition is marked
              │ nobody leads: looked for again                                 not now: looked for again
              └ the topic is gone: nothing is left to mark

An entry is worth sending as long as its shard serves and the transaction stands where it stood: a coordinator that has
lost its partition, and gained it again, sends the markers again under its new epoch (KAFKA-16352).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from kavka_broker.coordinator.broker_connections import Connections
from kavka_broker.coordinator.transactions.transaction_shard import TransactionShard
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.transaction.state import Place, Standing, Transaction, TransactionState
from kavka_broker.logs import get
from kavka_broker.loop.backlog import Drain
from kavka_broker.loop.tasks import raise_on_loop, watch
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kavka_broker.protocol.messages.write_txn_markers_response import WritableTxnMarkerResult, WriteTxnMarkersResponse

log = get("coordinator")

AGAIN_MS: Final = 100
"""Between two looks for leaders that could not be reached, or were not leaders."""
PLACES_PER_REQUEST_MAX: Final = 500
PLACES_PER_TURN_MAX: Final = 500
"""Partitions whose leaders are looked up in one turn of the loop."""

FINAL: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Another coordinator, or a newer producer, is in charge: this one sends no more markers of the transaction."""

WriteHere = Callable[[Sequence[WritableTxnMarker]], Awaitable[list[WritableTxnMarkerResult]]]


class Owed(NamedTuple):
    """Markers of one transaction."""

    shard: TransactionShard
    transaction: Transaction
    standing: Standing
    places: tuple[Place, ...]

    @property
    def is_outdated(self) -> bool:
        return self.shard.is_closed or self.transaction.standing is not self.standing


class MarkerSender:
    """Sends the markers of all shards of this broker. `write_here` writes those of partitions that it leads itself."""

    def __init__(
        self,
        node_id: int,
        metadata: Metadata,
        connections: Connections,
        write_here: WriteHere,
        timers: Timers,
        timeout_ms: int,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._connections = connections
        self._write_here = write_here
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._queues: dict[int, deque[Owed]] = {}  # by broker; each has a task while it is not empty
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self._lost: list[Owed] = []  # whose leaders are looked for again
        self._unrouted: deque[Owed] = deque()  # what of large transactions has not had its turn
        self._routing = Drain("route markers", lambda: self._unrouted, self._route_some, raise_on_loop)
        self._again: Timer | None = None
        self._is_closed = False

    @property
    def unknown_destinations(self) -> int:
        """Transactions with markers for partitions whose leaders cannot be reached now."""
        return len(self._lost)

    def send(self, shard: TransactionShard, transaction: Transaction) -> None:
        """Begin to send the markers of a transaction that is decided."""
        assert transaction.standing.state.is_prepared, transaction.standing
        owed = Owed(shard, transaction, transaction.standing, tuple(transaction.unmarked))
        if len(owed.places) <= PLACES_PER_TURN_MAX:
            self._route(owed)
        else:
            self._unrouted.append(owed)
            self._routing.begin()

    def close(self) -> None:
        """Send nothing more, as this broker stops."""
        self._is_closed = True
        for task in self.tasks.values():
            task.cancel()
        self._queues.clear()
        self._lost.clear()
        self._unrouted.clear()
        self._connections.close()

    def _route_some(self) -> None:
        """Route some markers of a large transaction; the next turn is that of another one, if there is one."""
        if not self._unrouted:
            return  # closed meanwhile
        owed = self._unrouted.popleft()
        self._route(owed._replace(places=owed.places[:PLACES_PER_TURN_MAX]))
        if len(owed.places) > PLACES_PER_TURN_MAX and not owed.is_outdated:
            self._unrouted.append(owed._replace(places=owed.places[PLACES_PER_TURN_MAX:]))

    def _route(self, owed: Owed) -> None:
        """Put the markers into the queues of the partitions' leaders."""
        if owed.is_outdated or self._is_closed:
            return
        by_leader: dict[int | None, list[Place]] = {}
        for place in sorted(owed.places):  # of one turn; leaders are asked in an order that no hash draws
            if not self._exists(place):
                owed.transaction.unmarked.discard(place)
            else:
                by_leader.setdefault(self._leader_of(place), []).append(place)
        for leader, places in by_leader.items():
            for start in range(0, len(places), PLACES_PER_REQUEST_MAX):
                part = owed._replace(places=tuple(places[start : start + PLACES_PER_REQUEST_MAX]))
                if leader is None:
                    self._look_again(part)
                else:
                    self._put(leader, part)
        owed.shard.complete_if_marked(owed.transaction)

    def _exists(self, place: Place) -> bool:
        topic = self._metadata.topics.get(place[0])
        return topic is not None and place[1] in topic.partitions

    def _leader_of(self, place: Place) -> int | None:
        topic = self._metadata.topics.get(place[0])
        assert topic is not None, place
        leader = topic.partitions[place[1]].leader
        return leader if leader == self._node_id or self._connections.to(leader) is not None else None

    def _look_again(self, owed: Owed) -> None:
        self._lost.append(owed)
        if self._again is None:
            self._again = self._timers.after(AGAIN_MS, self._route_lost)

    def _route_lost(self) -> None:
        self._again = None
        lost, self._lost = self._lost, []
        looked_at = 0
        while lost and looked_at < PLACES_PER_TURN_MAX:
            owed = lost.pop()
            looked_at += len(owed.places)
            self._route(owed)
        for owed in lost:
            self._look_again(owed)

    def _put(self, leader: int, owed: Owed) -> None:
        self._queues.setdefault(leader, deque()).append(owed)
        if leader not in self.tasks:
            task = asyncio.get_running_loop().create_task(self._work(leader), name=f"transaction markers to {leader}")
            self.tasks[leader] = watch(task)

    async def _work(self, leader: int) -> None:
        """Send what is owed to one broker, a request at a time, until nothing is."""
        try:
            await asyncio.sleep(0)  # several transactions that are decided in one turn go in one request
            while batch := self._take(leader):
                await self._send(leader, batch)
        finally:
            self.tasks.pop(leader, None)
            self._queues.pop(leader, None)

    def _take(self, leader: int) -> list[Owed]:
        """The entries of the next request: no producer id twice, since answers are by producer id."""
        queue, batch, count = self._queues.get(leader, deque()), dict[int, Owed](), 0
        for _ in range(len(queue)):
            if count >= PLACES_PER_REQUEST_MAX:
                break
            owed = queue.popleft()
            if owed.is_outdated:
                continue
            producer_id = owed.standing.producer_id
            if producer_id in batch:
                queue.append(owed)
                continue
            batch[producer_id] = owed
            count += len(owed.places)
        return list(batch.values())

    async def _send(self, leader: int, batch: list[Owed]) -> None:
        try:
            answers = await self._ask(leader, [marker_of(owed) for owed in batch])
        except Unreachable as problem:
            log.info("markers.not_sent", broker=leader, reason=str(problem))
            for owed in batch:
                self._look_again(owed)
            return
        codes = {
            answer.producer_id: {
                (topic.name, result.partition_index): result.error_code
                for topic in answer.topics
                for result in topic.partitions
            }
            for answer in answers
        }
        for owed in batch:
            self._answered(owed, codes.get(owed.standing.producer_id, {}))

    async def _ask(self, leader: int, markers: list[WritableTxnMarker]) -> list[WritableTxnMarkerResult]:
        """Raises Unreachable."""
        if leader == self._node_id:
            return await self._write_here(markers)
        peer = self._connections.to(leader)
        if peer is None:
            raise Unreachable(f"broker {leader} cannot be reached")
        request = WriteTxnMarkersRequest(markers)
        return (await peer.ask(request, WriteTxnMarkersResponse, timeout_ms=self._timeout_ms)).markers

    def _answered(self, owed: Owed, codes: dict[Place, int]) -> None:
        if owed.is_outdated:
            return
        transaction, again = owed.transaction, list[Place]()
        for place in owed.places:
            code = codes.get(place, ErrorCode.REQUEST_TIMED_OUT)
            if code in FINAL:
                log.warning(
                    "marker.not_taken",
                    transactional_id=transaction.transactional_id,
                    partition=f"{place[0]}-{place[1]}",
                    reason=ErrorCode(code).name,
                )
                return
            if code == ErrorCode.NONE:
                transaction.unmarked.discard(place)
            else:
                again.append(place)
        if again:
            self._look_again(owed._replace(places=tuple(again)))
        owed.shard.complete_if_marked(transaction)


def marker_of(owed: Owed) -> WritableTxnMarker:
    standing = owed.standing
    return WritableTxnMarker(
        standing.producer_id,
        standing.producer_epoch,
        standing.state is TransactionState.PREPARE_COMMIT,
        [WritableTxnMarkerTopic(topic, indexes) for topic, indexes in by_topic(owed.places)],
        owed.shard.coordinator_epoch,
        standing.version,
    )


def by_topic(places: Iterable[Place]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(places):
        topics.setdefault(topic, []).append(index)
    return list(topics.items())
