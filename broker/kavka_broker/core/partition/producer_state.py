"""What a partition remembers of its producers: the rule of idempotence.

Every batch of an idempotent producer carries the producer's id and epoch and the sequence of its first record. The
partition keeps the last five batches of each producer (a client has at most five requests in flight), and judges the
next one:

- It repeats one of the five: the answer is where that one was written, and nothing is appended.
- Its epoch is below the producer's: INVALID_PRODUCER_EPOCH, because a newer producer has taken over.
- A new epoch begins at sequence 0, the same epoch goes on where it was: otherwise OUT_OF_ORDER_SEQUENCE_NUMBER.
- The partition does not know the producer (new, expired, or its records are deleted): any sequence is taken (KIP-360).
- An earlier one was refused and will come again (no room, not the leader yet, too few replicas in sync): the same
  error, for as many as may be in flight behind it. To answer these as out of order would make librdkafka raise its
  epoch, and send once more under the new one whatever it has no answer for, though it may be in the log.

Sequences wrap from 2^31 - 1 to 0. A producer that stays silent is forgotten after `producer.id.expiration.ms`, and
there are never more than `PRODUCERS_MAX` of them.

The first offset of an open transaction is kept until its marker comes (`transactions` says what follows from it). So
that there is always somebody to forget, a leader lets no more than nine tenths be in one (`may_begin`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kavka_broker.core.partition.transactions import NO_OFFSET, Ended, Transactions
from kavka_broker.protocol.errors import BrokerError, ErrorCode

BATCHES_KEPT_MAX: Final = 5
PRODUCERS_MAX: Final = 100_000
REFUSED_MAX: Final = 100
BEHIND_REFUSED_MAX: Final = 4  # a client has at most five requests in flight
SEQUENCE_MAX: Final = 2**31 - 1
assert SEQUENCE_MAX & (SEQUENCE_MAX + 1) == 0, "sequences wrap by a mask"
NO_SEQUENCE: Final = -1
NO_EPOCH: Final = -1
NO_COORDINATOR_EPOCH: Final = -1


class WrittenBatch(NamedTuple):
    """A batch that was appended."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class Refused(NamedTuple):
    """A batch that was refused with `code` and will come again. So many more behind it get the same error."""

    epoch: int
    base_sequence: int
    code: ErrorCode
    behind_left: int = BEHIND_REFUSED_MAX


@dataclass(slots=True)
class Producer:
    """A producer, as this partition saw it last."""

    epoch: int
    timestamp_ms: int
    batches: list[WrittenBatch] = field(default_factory=list)  # at most BATCHES_KEPT_MAX, the oldest first
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    transaction_first_offset: int = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


def is_ahead(sequence: int, other: int) -> bool:
    """Whether a sequence comes after another one; sequences wrap."""
    return 0 < ((sequence - other) & SEQUENCE_MAX) <= SEQUENCE_MAX // 2


def next_sequence(sequence: int, count: int = 1) -> int:
    """The sequence `count` records on; sequences wrap."""
    assert count >= 1, count
    return (sequence + count) & SEQUENCE_MAX


class ProducerStates:
    """Producers of one partition by id. `check` judges a batch, `append` takes note of it."""

    __slots__ = ("_awaited", "_producers", "_refused", "producers_max", "transactions")

    def __init__(self, producers_max: int = PRODUCERS_MAX) -> None:
        assert producers_max >= 1, producers_max
        self._producers: dict[int, Producer] = {}
        self._refused: dict[int, Refused] = {}  # by producer id: the first batch that is to come again
        self.producers_max = producers_max
        self._awaited: dict[int, None] = {}  # producer ids of which the coordinator was asked
        self.transactions = Transactions()

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[tuple[int, Producer]]:
        return iter(self._producers.items())

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def check(self, producer_id: int, epoch: int, base_sequence: int, last_sequence: int) -> WrittenBatch | None:
        """Check a batch: None where it may be appended; the earlier batch where it is a repetition.

        Raises BrokerError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, or as an earlier batch was refused.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            if self._refused:
                self._check_refused(producer_id, epoch, base_sequence)
            return None
        if epoch == producer.epoch:
            for batch in producer.batches:
                if batch.base_sequence == base_sequence and batch.last_sequence == last_sequence:
                    return batch
            expected = next_sequence(producer.last_sequence) if producer.batches else 0
        elif epoch < producer.epoch:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has epoch {producer.epoch} here, the batch comes from epoch {epoch}",
            )
        else:
            expected = 0
        if base_sequence != expected:
            if self._refused:
                self._check_refused(producer_id, epoch, base_sequence)
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} (epoch {epoch}) sent sequence {base_sequence}, expected {expected}",
            )
        return None

    def _check_refused(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Raise the error of an earlier batch, if this one may have been in flight behind it."""
        refused = self._refused.get(producer_id)
        if refused is None or refused.epoch != epoch or not is_ahead(base_sequence, refused.base_sequence):
            return
        if refused.behind_left:
            self._refused[producer_id] = refused._replace(behind_left=refused.behind_left - 1)
            problem = f"producer {producer_id} sent sequence {base_sequence}, and {refused.base_sequence} was refused"
            raise BrokerError(refused.code, problem)

    def refuse(self, producer_id: int, epoch: int, base_sequence: int, code: ErrorCode) -> None:
        """Note that a batch was refused with an error upon which it will come again."""
        known = self._refused.get(producer_id)
        if known is None and len(self._refused) >= REFUSED_MAX:
            self._refused.clear()
        is_behind = known is not None and known.epoch == epoch and is_ahead(base_sequence, known.base_sequence)
        if not is_behind and (known is None or known.epoch <= epoch):
            self._refused[producer_id] = Refused(epoch, base_sequence, code)
        assert len(self._refused) <= REFUSED_MAX, len(self._refused)

    def append(self, producer_id: int, epoch: int, batch: WrittenBatch, *, is_transactional: bool) -> None:
        """Note a data batch that was appended; as a follower or at recovery, without having been judged."""
        assert 0 <= batch.base_offset <= batch.last_offset, batch
        if self._refused:
            self._refused.pop(producer_id, None)
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._admit(producer_id, epoch, batch.timestamp_ms)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        batches = producer.batches
        assert not batches or batches[-1].last_offset < batch.base_offset, (
            f"{batch} of {producer_id} after {batches[-1]}"
        )
        producer.batches.append(batch)
        if len(producer.batches) > BATCHES_KEPT_MAX:
            del producer.batches[0]
        producer.timestamp_ms = batch.timestamp_ms
        if is_transactional and producer.transaction_first_offset == NO_OFFSET:
            producer.transaction_first_offset = batch.base_offset
            self.transactions.begin(producer_id, batch.base_offset)

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has an open transaction here in this epoch."""
        producer = self._producers.get(producer_id)
        is_open = self.transactions.is_open(producer_id)
        has_begun = producer is not None and producer.transaction_first_offset != NO_OFFSET
        assert is_open is has_begun, f"a transaction of {producer_id} is open in one place: {producer}"
        return producer is not None and producer.epoch == epoch and is_open

    @property
    def may_begin(self) -> bool:
        """Whether one more transaction may begin: a producer in one cannot be forgotten."""
        return len(self.transactions) < self.producers_max - self.producers_max // 10

    def await_verdict(self, producer_id: int) -> None:
        """Note that the coordinator is asked about a transaction of the producer. A marker that comes first ends it."""
        self._awaited[producer_id] = None

    def awaits_verdict(self, producer_id: int) -> bool:
        return producer_id in self._awaited

    def forget_verdict(self, producer_id: int) -> None:
        self._awaited.pop(producer_id, None)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, *, epochs_rise: bool) -> None:
        """Judge a coordinator's marker. `epochs_rise`: each transaction of a producer has an epoch of its own.

        Raises BrokerError with INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED where it is outdated.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        is_repeated = epoch == producer.epoch and not self.transactions.is_open(producer_id)
        if epoch < producer.epoch or (epochs_rise and epoch == producer.epoch and not is_repeated):
            problem = f"producer {producer_id} has epoch {producer.epoch} here, the marker comes from epoch {epoch}"
            raise BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH, problem)
        if coordinator_epoch < producer.coordinator_epoch:
            problem = f"a marker of coordinator epoch {coordinator_epoch}, after one of {producer.coordinator_epoch}"
            raise BrokerError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, problem)

    def end_transaction(
        self, producer_id: int, epoch: int, coordinator_epoch: int, timestamp_ms: int, offset: int, *, is_aborted: bool
    ) -> Ended | None:
        """End a transaction by a marker appended at `offset`; returns the transaction, if there was one. A marker of a
        newer epoch fences the older ones.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._admit(producer_id, epoch, timestamp_ms)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        self._awaited.pop(producer_id, None)
        producer.coordinator_epoch = coordinator_epoch
        producer.transaction_first_offset = NO_OFFSET
        producer.timestamp_ms = timestamp_ms
        ended = self.transactions.end(producer_id, offset, is_aborted=is_aborted)
        assert not self.transactions.is_open(producer_id), f"{producer_id} goes on behind its marker at {offset}"
        return ended

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for so long; returns how many. One with an open transaction is kept."""
        assert expiration_ms > 0, expiration_ms
        silent = [
            producer_id
            for producer_id, producer in self._producers.items()
            if now_ms - producer.timestamp_ms >= expiration_ms and producer.transaction_first_offset == NO_OFFSET
        ]
        for producer_id in silent:
            del self._producers[producer_id]
        assert len(self.transactions) <= len(self._producers), "a transaction is open, and nobody knows its producer"
        return len(silent)

    def replace(self, producers: Iterable[tuple[int, Producer]]) -> None:
        """Take up the producers of a snapshot."""
        self._producers = dict(producers)
        self._refused.clear()
        self.transactions.replace(
            (producer_id, producer.transaction_first_offset)
            for producer_id, producer in self
            if producer.transaction_first_offset != NO_OFFSET
        )
        assert len(self.transactions) <= len(self._producers), "a transaction is open, and nobody knows its producer"

    def _admit(self, producer_id: int, epoch: int, timestamp_ms: int) -> Producer:
        assert producer_id not in self._producers, f"producer {producer_id} is known"
        if len(self._producers) >= self.producers_max:
            self._make_room()
        producer = self._producers[producer_id] = Producer(epoch, timestamp_ms)
        return producer

    def _make_room(self) -> None:
        # A tenth is removed at a time, so that a flood of new producers does not sort all of them at each batch.
        idle = [
            (producer.timestamp_ms, producer_id)
            for producer_id, producer in self._producers.items()
            if producer.transaction_first_offset == NO_OFFSET
        ]
        idle.sort()
        for _, producer_id in idle[: max(1, self.producers_max // 10)]:
            del self._producers[producer_id]
        assert len(self.transactions) <= len(self._producers), "a transaction is open, and nobody knows its producer"
