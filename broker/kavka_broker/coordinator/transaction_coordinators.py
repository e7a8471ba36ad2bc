"""The coordinators of transactions, as the leader of a partition asks them (KIP-890).

Coordinators are Apache Kafka's brokers of the same cluster. Before the first batch of a transaction in a partition its
leader asks whether the partition is part of that transaction, or has it added where the client leaves that to the
leader (transaction version 2). Else a batch that comes late, when its transaction has ended, would begin one that
nobody ever ends, and readers of committed records would stand still before it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.peers import Peer, Peers, Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse

log = get("coordinator")

TRANSACTIONS_TOPIC: Final = "__transaction_state"
CONNECTIONS_MAX: Final = 100

Place = tuple[str, int]  # topic, partition
Address = tuple[str, int]


class TransactionCoordinators:
    """Finds the coordinator of a transactional id among the brokers, and asks it."""

    def __init__(self, node_id: int, metadata: Metadata, peers: Peers, listener: str, timeout_ms: int) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._peers = peers
        self._listener = listener
        self._timeout_ms = timeout_ms
        self._connections: dict[Address, Peer] = {}
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}  # with the number of requests that hold or await it

    def has_turn(self, transactional_id: str) -> bool:
        """Whether a request of this id is being served, so that later ones have to wait."""
        return transactional_id in self._turns

    def turn(self, transactional_id: str) -> AbstractAsyncContextManager[None]:
        """The turn of a request, to be entered. Requests of one id go one by one: their batches are numbered."""
        lock, count = self._turns.get(transactional_id) or (asyncio.Lock(), 0)
        self._turns[transactional_id] = lock, count + 1
        return self._take_turn(transactional_id, lock)

    @asynccontextmanager
    async def _take_turn(self, transactional_id: str, lock: asyncio.Lock) -> AsyncIterator[None]:
        try:
            async with lock:
                yield
        finally:
            _, count = self._turns.pop(transactional_id)
            if count > 1:
                self._turns[transactional_id] = lock, count - 1

    async def admit(
        self, transactional_id: str, producer_id: int, producer_epoch: int, places: Sequence[Place], *, adds: bool
    ) -> dict[Place, int]:
        """The coordinator's error code for each partition, 0 if it is part of the transaction.

        Raises BrokerError where the coordinator cannot be asked.
        """
        partitions: dict[str, list[int]] = {}
        for topic, index in places:
            partitions.setdefault(topic, []).append(index)
        topics = [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in partitions.items()]
        transaction = AddPartitionsToTxnTransaction(transactional_id, producer_id, producer_epoch, not adds, topics)
        peer = self._peer_of(transactional_id)
        try:
            answer = await peer.ask(
                AddPartitionsToTxnRequest([transaction]), AddPartitionsToTxnResponse, timeout_ms=self._timeout_ms
            )
        except Unreachable as problem:
            log.warning("coordinator.not_reached", transactional_id=transactional_id, reason=str(problem))
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(problem)) from problem
        if answer.error_code:
            raise BrokerError(ErrorCode(answer.error_code))
        return {
            (topic.name, result.partition_index): result.partition_error_code
            for transaction in answer.results_by_transaction
            for topic in transaction.topic_results
            for result in topic.results_by_partition
        }

    def _peer_of(self, transactional_id: str) -> Peer:
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"{TRANSACTIONS_TOPIC} does not exist")
        index = partition_of(transactional_id, len(topic.partitions))
        leader = topic.partitions[index].leader
        if leader == self._node_id:
            raise BrokerError(
                ErrorCode.INVALID_TXN_STATE, f"this broker leads {TRANSACTIONS_TOPIC}-{index}, and coordinates nothing"
            )
        registered = self._metadata.brokers.get(leader)
        endpoint = None if registered is None or registered.fenced else registered.endpoints.get(self._listener)
        if endpoint is None:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{TRANSACTIONS_TOPIC}-{index} has no leader")
        return self._connection((endpoint.host, endpoint.port))

    def _connection(self, address: Address) -> Peer:
        if address not in self._connections:
            if len(self._connections) >= CONNECTIONS_MAX:
                # Brokers may return under new addresses, so that old connections pile up.
                self.close()
            self._connections[address] = self._peers.to(*address, client_id=f"broker-{self._node_id}-transactions")
        return self._connections[address]

    def close(self) -> None:
        """Close all connections to coordinators."""
        for peer in self._connections.values():
            peer.close()
        self._connections.clear()
