"""The coordinators of transactions, as the leader of a partition asks them (KIP-890).

Before the first batch of a transaction in a partition its leader asks whether the partition is part of that
transaction, or has it added where the client leaves that to the leader (transaction version 2). Else a batch that comes
late, when its transaction has ended, would begin one that nobody ever ends, and readers of committed records would
stand still before it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kavka_broker.coordinator.broker_connections import Connections
from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import TRANSACTIONS_TOPIC
from kavka_broker.core.transaction.state import BUMPS_FROM, Place
from kavka_broker.logs import get
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse

log = get("coordinator")


class Coordinator(Protocol):
    """The coordinator on this broker (`transaction_coordinator`)."""

    async def until_completed(self, transactional_id: str) -> None: ...

    async def add_partitions(
        self, transactional_id: str, producer: tuple[int, int], places: Sequence[Place], version: int
    ) -> None: ...

    def verify(
        self, transactional_id: str, producer: tuple[int, int], places: Sequence[Place]
    ) -> dict[Place, ErrorCode]: ...


class Patience(NamedTuple):
    """The time for an answer in ms, and the pause in ms and the number of attempts where the coordinator is busy."""

    timeout_ms: int
    again_ms: int
    attempts_max: int


class TransactionCoordinators:
    """Finds the coordinator of a transactional id among the brokers, and asks it. One that is busy with the end of the
    transaction before is to be asked again, as the `patience` says.
    """

    def __init__(
        self,
        node_id: int,
        metadata: Metadata,
        here: Coordinator,
        connections: Connections,
        *,
        patience: Patience,
        effective: EffectiveConfig,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._here = here
        self._connections = connections
        self._timeout_ms = patience.timeout_ms
        self._effective = effective
        self.again_ms = patience.again_ms
        self.attempts_max = patience.attempts_max
        self.turns = ExclusiveTurns()
        """Requests of one transactional id go one by one: their batches are numbered."""

    @property
    def verifies(self) -> bool:
        """Whether a partition that a client has added is looked for at the coordinator."""
        verifies: bool = self._effective.broker["transaction.partition.verification.enable"]
        return verifies

    async def admit(
        self, transactional_id: str, producer_id: int, producer_epoch: int, places: Sequence[Place], *, adds: bool
    ) -> dict[Place, int]:
        """The coordinator's error code for each partition, 0 if it is part of the transaction.

        Raises BrokerError where the coordinator cannot be asked.
        """
        producer = producer_id, producer_epoch
        leader = self._leader_of(transactional_id)
        if leader == self._node_id:
            return await self._ask_here(transactional_id, producer, places, adds=adds)
        peer = self._connections.to(leader)
        if peer is None:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator of {transactional_id} is away")
        return await self._ask_there(peer, transactional_id, producer, places, adds=adds)

    def verified_here(
        self, transactional_id: str, producer: tuple[int, int], places: Sequence[Place]
    ) -> dict[Place, int] | None:
        """The error code for each partition that a client has added; None where another broker has to be asked."""
        try:
            leader = self._leader_of(transactional_id)
        except BrokerError:
            return None
        return self._verified(transactional_id, producer, places) if leader == self._node_id else None

    def _verified(self, transactional_id: str, producer: tuple[int, int], places: Sequence[Place]) -> dict[Place, int]:
        try:
            return dict(self._here.verify(transactional_id, producer, places))
        except BrokerError as error:
            return dict.fromkeys(places, error.code)

    async def _ask_here(
        self, transactional_id: str, producer: tuple[int, int], places: Sequence[Place], *, adds: bool
    ) -> dict[Place, int]:
        if not adds:
            return self._verified(transactional_id, producer, places)
        try:
            await self._here.until_completed(transactional_id)
            await self._here.add_partitions(transactional_id, producer, places, BUMPS_FROM)
        except BrokerError as error:
            return dict.fromkeys(places, error.code)
        return dict.fromkeys(places, ErrorCode.NONE)

    async def _ask_there(
        self, peer: Peer, transactional_id: str, producer: tuple[int, int], places: Sequence[Place], *, adds: bool
    ) -> dict[Place, int]:
        partitions: dict[str, list[int]] = {}
        for topic, index in places:
            partitions.setdefault(topic, []).append(index)
        topics = [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in partitions.items()]
        transaction = AddPartitionsToTxnTransaction(transactional_id, *producer, not adds, topics)
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

    def _leader_of(self, transactional_id: str) -> int:
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"{TRANSACTIONS_TOPIC} does not exist")
        return topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader

    def close(self) -> None:
        """Close all connections to coordinators."""
        self._connections.close()
