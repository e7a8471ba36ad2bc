"""Which batches of a transactional Produce may be written: those whose partition is part of the transaction.

- A partition in which the transaction is open already needs no question. All others of a request go to the coordinator
  in one.
- Between its answer and the append a marker may have come: then the transaction is over, and the batch is refused.
- What the coordinator cannot say now is NOT_ENOUGH_REPLICAS, upon which every client tries again. So is a transaction
  in a partition that has as many open ones as it may have.
"""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, TopicProduceData
from kavka_broker.protocol.records.batch import HEADER_BYTES, BatchHeader, read_header
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.writing.produce_context import Writes
from kavka_broker.replica.writing.transaction_verification import ask_for_verdicts, verdicts_at_hand

Place = tuple[str, int]  # topic, partition

ADDS_FROM: Final = 12  # Produce from here on: the leader adds partitions to the transaction (transaction version 2)
ABORTABLE_FROM: Final = 11  # Produce from here on knows TRANSACTION_ABORTABLE
BATCH_COST: Final = 40  # of a slice; the first record of a log takes twice as long
TRY_AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Admission:
    """The coordinator's verdicts on a request's batches: `ask` if none `is_at_hand`, `check` each append, `end`."""

    def __init__(self, transactional_id: str, writes: Writes, version: int) -> None:
        self._transactional_id = transactional_id
        self._writes = writes
        self._version = version
        self._codes: dict[Place, int] = {}
        self._producers: dict[tuple[int, int], None] = {}  # the producers' ids and epochs
        self._asked: dict[Place, ProducerStates] = {}

    @property
    def has_asked(self) -> bool:
        """Whether verdicts were needed."""
        return bool(self._asked)

    def look(self, named: Iterable[tuple[str | None, TopicProduceData]]) -> Work[bool]:
        """Whether the transaction is not open yet in some of these partitions."""
        self._asked = {}
        cost = Cost()
        for name, topic in named:
            if cost.add(1):
                yield
            if name is None:
                continue
            for data in topic.partition_data:
                if cost.add(BATCH_COST):
                    yield
                self._note(name, data)
        return bool(self._asked)

    def is_at_hand(self, named: Iterable[tuple[str | None, TopicProduceData]]) -> bool:
        """Whether the batches, which are few, need no question, or one that is answered here and now. Then they are
        appended before anything else has its turn.
        """
        self._asked = {}
        for name, topic in named:
            if name is None:
                continue
            for data in topic.partition_data:
                self._note(name, data)
        return not self._asked or self._is_verified_here()

    def _is_verified_here(self) -> bool:
        if self._version >= ADDS_FROM or len(self._producers) > 1:
            return False
        (producer,) = self._producers
        codes = verdicts_at_hand(self._writes.coordinators, self._transactional_id, producer, self._asked)
        self._codes = codes or {}
        return codes is not None

    async def ask(self) -> None:
        """Ask the coordinator which partitions are in the transaction, for one request of an id at a time."""
        if len(self._producers) > 1:
            self._codes = dict.fromkeys(self._asked, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            return
        (producer,) = self._producers
        self._codes = await ask_for_verdicts(
            self._writes.coordinators, self._transactional_id, producer, self._asked, adds=self._version >= ADDS_FROM
        )

    def _note(self, topic: str, data: PartitionProduceData) -> None:
        header = header_of(data)
        if header is None or not header.is_transactional or not header.has_producer_id:
            return
        self._producers[header.producer_id, header.producer_epoch] = None
        try:
            producers = self._writes.partitions.leader(topic, data.index).log.producers
        except BrokerError:
            return  # the append will raise the same error
        if not producers.is_in_transaction(header.producer_id, header.producer_epoch):
            self._asked[topic, data.index] = producers

    def check(self, partition: Partition, data: PartitionProduceData) -> None:
        """Raises BrokerError where the batch may not be written."""
        header, producers = header_of(data), partition.log.producers
        if header is None:
            return
        if not header.is_transactional:
            if producers.transactions.is_open(header.producer_id):
                raise BrokerError(ErrorCode.INVALID_TXN_STATE, "a batch outside of the producer's open transaction")
            return
        if producers.is_in_transaction(header.producer_id, header.producer_epoch):
            return
        known = producers.get(header.producer_id)
        if known is not None and header.producer_epoch < known.epoch:
            # Said before what follows from it: a client may go on after this one (KAFKA-19690).
            raise BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH, f"the producer has epoch {known.epoch} here")
        code = self._codes.get((partition.topic, data.index), ErrorCode.INVALID_TXN_STATE)
        if code != ErrorCode.NONE:
            raise self._refusal(ErrorCode(code))
        if not producers.awaits_verdict(header.producer_id):
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, "the transaction has ended meanwhile")
        if not producers.may_begin:
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{partition}: {len(producers.transactions)} are open")
        if self._version >= ADDS_FROM and header.base_sequence and producers.get(header.producer_id) is None:
            problem = f"producer {header.producer_id} is not known here; its sequence begins at 0"
            raise BrokerError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, problem)

    def _refusal(self, code: ErrorCode) -> BrokerError:
        if code is ErrorCode.CONCURRENT_TRANSACTIONS and self._version >= ADDS_FROM:
            return BrokerError(code)  # such a client knows that the end of its last transaction takes a moment
        if code in TRY_AGAIN:
            return BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, f"the transaction's coordinator says {code.name}")
        if code == ErrorCode.PRODUCER_FENCED:
            return BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if code == ErrorCode.TRANSACTION_ABORTABLE and self._version < ABORTABLE_FROM:
            code = ErrorCode.INVALID_TXN_STATE
        return BrokerError(code, "the partition is not part of the transaction")

    def end(self) -> None:
        """Forget the verdicts at the end of the request."""
        for producers in self._asked.values():
            for producer_id, _ in self._producers:
                producers.forget_verdict(producer_id)


def header_of(data: PartitionProduceData) -> BatchHeader | None:
    if data.records is None or len(data.records) < HEADER_BYTES:
        return None
    return read_header(data.records)
