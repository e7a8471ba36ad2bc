"""Where a transactional id stands, and the moves that it may make.

A coordinator never changes what it knows before the log has it: a command makes the next `Standing`, which is pending
until its record is committed, and only then becomes the present one. Until then nothing else may begin on the id. So
what the coordinator knows is always what another one would read in its log, except the last epoch, which no record
has: a producer that asks again for an epoch after its coordinator has moved is told that it is fenced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

__all__ = [
    "BUMPS_FROM",
    "EPOCH_MAX",
    "NEVER_MS",
    "NO_EPOCH",
    "NO_PRODUCER",
    "Place",
    "Sender",
    "Standing",
    "Transaction",
    "TransactionState",
]

Place = tuple[str, int]  # topic, partition

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
NO_TIME_MS: Final = -1
EPOCH_MAX: Final = 2**15 - 1
"""An epoch that no client is ever given: it fences the last one that a client may have."""
EPOCH_EXHAUSTED: Final = EPOCH_MAX - 1
NEVER_MS: Final = 2**31 - 1
"""The timeout of a transaction that another system ends (KIP-939): it has none."""
BUMPS_FROM: Final = 2
"""The transaction version from which on each transaction of a producer has an epoch of its own (KIP-890)."""


class TransactionState(IntEnum):
    """The states, by the numbers of their records. PREPARE_EPOCH_FENCE is in no record."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name by which Kafka's tools know it."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and markers are still to be written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_resting(self) -> bool:
        """Whether no transaction is under way."""
        return self in _RESTING


_RESTING: Final = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

PREVIOUS: Final[Mapping[TransactionState, tuple[TransactionState, ...]]] = MappingProxyType(
    {
        TransactionState.EMPTY: _RESTING,
        TransactionState.ONGOING: (*_RESTING, TransactionState.ONGOING),
        TransactionState.PREPARE_COMMIT: (TransactionState.ONGOING,),
        TransactionState.PREPARE_ABORT: (*_RESTING, TransactionState.ONGOING),
        TransactionState.COMPLETE_COMMIT: (TransactionState.PREPARE_COMMIT,),
        TransactionState.COMPLETE_ABORT: (TransactionState.PREPARE_ABORT,),
        TransactionState.DEAD: _RESTING,
    }
)
"""The states from which each may be reached. Only transaction version 2 aborts what has not begun."""


ID_BYTES: Final = 800
"""About what an id takes beside its characters, of which each may take four bytes."""
PLACE_BYTES: Final = 100
"""About what a partition in a transaction takes: it is in a set, and in another while it waits for its marker."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an id stands: what its record says, and the epoch before the present one."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[Place] = frozenset()
    started_ms: int = NO_TIME_MS
    updated_ms: int = NO_TIME_MS
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER  # of the next transaction, where this one has used up the epochs
    last_epoch: int = NO_EPOCH
    version: int = 0  # the transaction version of the client

    @property
    def is_exhausted(self) -> bool:
        """Whether no further epoch may be given to a client."""
        return self.producer_epoch >= EPOCH_EXHAUSTED

    def then(self, state: TransactionState, **changes: Any) -> "Standing":
        """The next standing. Every move makes the present producer id the previous one, as in Apache Kafka."""
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)


class Sender(NamedTuple):
    """A producer, and the latest connection that it has asked over, numbered as they were accepted."""

    producer: tuple[int, int]  # id and epoch
    connection: int


class Transaction:
    """A transactional id: where it stands, and where it is moving to. `sender` is the connection that its producer asks
    over, where that is known. `began_ms` is when the open transaction was first looked at, where the clock is behind
    what its standing says.
    """

    __slots__ = ("_unmarked", "began_ms", "counted_bytes", "pending", "sender", "standing", "transactional_id")

    def __init__(self, transactional_id: str, standing: Standing) -> None:
        self.transactional_id = transactional_id
        self.standing = standing
        self.pending: Standing | None = None
        self.sender: Sender | None = None
        self.began_ms: int | None = None
        self.counted_bytes = 0  # in the sum of its shard
        self._unmarked = _places_to_mark(standing)

    @property
    def unmarked(self) -> set[Place]:
        """The partitions of a decided transaction that have no marker yet; none of any other."""
        return set() if self._unmarked is None else self._unmarked

    @property
    def size_bytes(self) -> int:
        """About what the id takes, with the partitions of what is being written."""
        places = len(self.standing.partitions)
        if self.pending is not None:
            places = max(places, len(self.pending.partitions))
        return ID_BYTES + 4 * len(self.transactional_id) + PLACE_BYTES * places

    @property
    def is_moving(self) -> bool:
        """Whether a move is under way: one that is being written, or the completion of a decided transaction.

        Looked at before id and epoch: the producer may have been told those of its next transaction (KAFKA-18660).
        """
        return self.pending is not None or self.standing.state.is_prepared

    @property
    def partitions(self) -> frozenset[Place] | set[Place]:
        """The partitions that the transaction still holds."""
        return self.unmarked if self.standing.state.is_prepared else self.standing.partitions

    def begin(self, following: Standing) -> None:
        """Note the move that is being written."""
        assert self.pending is None, f"{self.transactional_id} moves to {self.pending}, and is asked for {following}"
        check_move(self.standing, following)
        self.pending = following

    def finish(self) -> None:
        """The move is committed."""
        following = self.pending
        assert following is not None, f"{self.transactional_id} has no move to finish"
        assert following.state is not TransactionState.DEAD, "a dead id is forgotten"
        if following.started_ms != self.standing.started_ms:
            self.began_ms = None
        self.standing, self.pending = following, None
        self._unmarked = _places_to_mark(following)

    def give_up(self) -> None:
        """The move was refused: nothing of it is in the log."""
        assert self.pending is not None, f"{self.transactional_id} has no move to give up"
        self.pending = None


def _places_to_mark(standing: Standing) -> set[Place] | None:
    """Return a set of its own for a decided transaction; others have none, of 216 bytes: most ids rest."""
    return set(standing.partitions) if standing.state.is_prepared else None


class Move:
    """A move as a failed assertion shows it: written only then, since it may name ten thousand partitions."""

    def __init__(self, before: Standing, after: Standing) -> None:
        self._before, self._after = before, after

    def __str__(self) -> str:
        return f"{self._before} -> {self._after}"


def check_move(before: Standing, after: Standing) -> None:
    """Assert that the move is one that a coordinator may make: a wrong one would be read by every later one."""
    move = Move(before, after)
    assert before.state in PREVIOUS[after.state], move
    assert after.producer_id >= 0, move
    assert after.state is TransactionState.DEAD or 0 <= after.producer_epoch <= EPOCH_MAX, move
    match after.state:
        case TransactionState.EMPTY:
            is_new = after.producer_epoch == 0 and after.producer_id != before.producer_id
            assert is_new or after.producer_epoch - before.producer_epoch in (0, 1), move
            assert not after.partitions, move
            assert after.started_ms == NO_TIME_MS, move
        case TransactionState.ONGOING:
            assert _producer(after) == _producer(before), move
            assert after.partitions >= before.partitions, move
            assert after.timeout_ms == before.timeout_ms, move
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            assert after.producer_id == before.producer_id, move
            assert after.producer_epoch - before.producer_epoch in (0, 1), move
            assert after.partitions == before.partitions, move
            assert before.state is TransactionState.ONGOING or after.version >= BUMPS_FROM, move
            assert after.timeout_ms == before.timeout_ms, move
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
            if before.next_producer_id == NO_PRODUCER:
                assert _producer(after) == _producer(before), move
            else:
                assert _producer(after) == (before.next_producer_id, 0), move
            assert after.started_ms != NO_TIME_MS, move
            assert not after.partitions, move


def _producer(standing: Standing) -> tuple[int, int]:
    return standing.producer_id, standing.producer_epoch
