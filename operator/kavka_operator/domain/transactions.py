"""Open transactions, and which of them holds the last stable offset of a partition back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

PartitionKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that has begun and whose markers are not all written.

    Its coordinator tells everything but `holds`. Without a coordinator (`coordinator` is None) a partition knows it by
    its producer alone: `open_seconds` is then the time since its last record, by the producer's clock. `holds` are
    the records between the last stable offset and the end of each partition where no open transaction is older.
    """

    transactional_id: str | None
    producer_id: int
    state: str | None
    coordinator: int | None
    open_seconds: float | None
    timeout_seconds: float | None = None
    partitions: frozenset[PartitionKey] = frozenset()
    holds: Mapping[PartitionKey, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The transaction as messages name it."""
        return self.transactional_id or f"producer {self.producer_id}"


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer with an open transaction in a partition, as the leader tells it."""

    partition: PartitionKey
    producer_id: int
    start_offset: int
    idle_seconds: float | None

    @property
    def identity(self) -> tuple[PartitionKey, int, int]:
        """The part that stays the same while the transaction is open."""
        return self.partition, self.producer_id, self.start_offset


def held_back(ends: Mapping[PartitionKey, int], stable: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
    """The records between the last stable offset and the end of each partition that has such."""
    lags = {key: ends[key] - offset for key, offset in stable.items() if key in ends}
    return {key: lag for key, lag in lags.items() if lag > 0}


def holders(producers: Iterable[ActiveProducer]) -> dict[PartitionKey, ActiveProducer]:
    """The producer of each partition whose transaction is the oldest there."""
    oldest: dict[PartitionKey, ActiveProducer] = {}
    for producer in producers:
        before = oldest.get(producer.partition)
        if before is None or producer.start_offset < before.start_offset:
            oldest[producer.partition] = producer
    return oldest


def unknown_to(known: Sequence[OpenTransaction], producers: Iterable[ActiveProducer]) -> list[ActiveProducer]:
    """The producers whose transaction in their partition no coordinator has named."""
    named = {(transaction.producer_id, key) for transaction in known for key in transaction.partitions}
    return [producer for producer in producers if (producer.producer_id, producer.partition) not in named]


def attributed(
    known: Sequence[OpenTransaction], oldest: Iterable[ActiveProducer], held: Mapping[PartitionKey, int]
) -> list[OpenTransaction]:
    """The known transactions and those of unknown producers, each with what it holds back, the most first."""
    by_producer: dict[int, dict[PartitionKey, int]] = {}
    unknown: dict[int, list[ActiveProducer]] = {}
    oldest = list(oldest)
    for producer in oldest:
        by_producer.setdefault(producer.producer_id, {})[producer.partition] = held.get(producer.partition, 0)
    for producer in unknown_to(known, oldest):
        unknown.setdefault(producer.producer_id, []).append(producer)
    found = [
        replace(transaction, holds={key: lag for key, lag in holds.items() if key in transaction.partitions})
        if (holds := by_producer.get(transaction.producer_id))
        else transaction
        for transaction in known
    ]
    found += [_without_coordinator(producers, held) for producers in unknown.values()]
    return sorted(found, key=lambda transaction: (-max(transaction.holds.values(), default=0), transaction.name))


def _without_coordinator(producers: Sequence[ActiveProducer], held: Mapping[PartitionKey, int]) -> OpenTransaction:
    keys = [producer.partition for producer in producers]
    told = [producer.idle_seconds for producer in producers if producer.idle_seconds is not None]
    return OpenTransaction(
        transactional_id=None,
        producer_id=producers[0].producer_id,
        state=None,
        coordinator=None,
        open_seconds=min(told, default=None),
        partitions=frozenset(keys),
        holds={key: held.get(key, 0) for key in keys},
    )
