"""Legal histories: a log for each partition, and clients that take turns by chance, each doing what Kafka lets it.

Transactions are open side by side, so that their values lie between each other. A reader gets values up to the first
one of an open transaction, without those of aborted ones. Each producer commits offsets of a partition of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from tests.histories.operations import (
    CommitOffset,
    History,
    Key,
    Kind,
    Operation,
    Outcome,
    Poll,
    Record,
    Send,
    Step,
)

KEYS: Sequence[Key] = (("t", 0), ("t", 1), ("u", 0))
GROUP = "g"


@dataclass(slots=True)
class Transaction:
    """A transaction, and whether it is committed: None while it is open."""

    is_committed: bool | None = None
    keys: dict[Key, None] = field(default_factory=dict)


Entry = tuple[str | None, Transaction]


@dataclass(slots=True)
class Logs:
    """All partitions. An entry is a value and its transaction; a marker has no value. Plain values are committed."""

    entries: dict[Key, list[Entry]] = field(default_factory=lambda: {key: [] for key in KEYS})

    def append(self, key: Key, value: str | None, transaction: Transaction) -> int:
        self.entries[key].append((value, transaction))
        transaction.keys[key] = None
        return len(self.entries[key]) - 1

    def end(self, transaction: Transaction, *, commits: bool) -> None:
        transaction.is_committed = commits
        for key in list(transaction.keys):
            self.append(key, None, transaction)

    def visible(self, key: Key, start: int) -> list[Record]:
        """What a reader gets from here on."""
        found = []
        for offset, (value, transaction) in enumerate(self.entries[key]):
            if transaction.is_committed is None:
                break
            if transaction.is_committed and value is not None and offset >= start:
                found.append((offset, value))
        return found


@dataclass(slots=True)
class Process:
    """A client: what it has done of its present operation, and where it has come to in each partition."""

    name: str
    positions: dict[Key, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    steps: list[Step] = field(default_factory=list)
    began: float = 0.0
    transaction: Transaction | None = None
    before: dict[Key, int] = field(default_factory=dict)


class Execution:
    """One run from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.logs = Logs()
        self.now = 0.0
        self.operations: list[Operation] = []
        self.offsets: dict[tuple[str, Key], int] = {}
        self._values = 0
        self._producers = [Process(f"p{number}") for number in range(3)]
        self._readers = [Process(f"r{number}") for number in range(2)]

    def history(self, turns: int) -> History:
        for _ in range(turns):
            self.now += 1.0
            if self.random.random() < 0.7:
                self._produce(self.random.choice(self._producers))
            else:
                self._read(self.random.choice(self._readers))
        for producer in self._producers:
            self.now += 1.0
            if producer.transaction is not None:
                self._end(producer)
        operations = sorted(self.operations, key=lambda operation: operation.invoked)
        return History(operations, {key: dict(self.logs.visible(key, 0)) for key in KEYS}, self.offsets)

    def _produce(self, producer: Process) -> None:
        if producer.transaction is None:
            if self.random.random() < 0.3:
                self._send_alone(producer)
                return
            producer.transaction, producer.began, producer.steps = Transaction(), self.now, []
            producer.before = dict(producer.positions)
        what = self.random.random()
        if what < 0.5:
            producer.steps.append(self._send(producer.transaction))
        elif what < 0.65:
            producer.steps.append(Poll(self._given(producer)))
        else:
            self._end(producer)

    def _send(self, transaction: Transaction) -> Send:
        self._values += 1
        key, value = self.random.choice(KEYS), f"v{self._values}"
        offset = self.logs.append(key, value, transaction)
        return Send(key, value, offset if self.random.random() < 0.8 else None)

    def _send_alone(self, producer: Process) -> None:
        if self.random.random() < 0.2:
            self._values += 1
            lost = Send(self.random.choice(KEYS), f"v{self._values}")
            outcome = self.random.choice((Outcome.FAIL, Outcome.INFO))
            self._done(producer, Kind.SEND, (lost,), outcome, self.now)
            return
        send = self._send(Transaction(is_committed=True))
        outcome = Outcome.OK if self.random.random() < 0.9 else Outcome.INFO
        self._done(producer, Kind.SEND, (send,), outcome, self.now)

    def _end(self, producer: Process) -> None:
        assert producer.transaction is not None
        commits, is_known = self.random.random() < 0.7, self.random.random() < 0.8
        key = ("input", self._producers.index(producer))
        offset = len(self.operations)
        producer.steps.append(CommitOffset(GROUP, key, offset))
        self.logs.end(producer.transaction, commits=commits)
        self.offsets.setdefault((GROUP, key), -1)
        if commits:
            self.offsets[GROUP, key] = offset
        elif self.random.random() < 0.5:
            producer.positions = producer.before  # it polls again what the failed one has polled
        asked = self.now if commits or not is_known else None
        outcome = (Outcome.OK if commits else Outcome.FAIL) if is_known else Outcome.INFO
        producer.transaction = None
        self._done(producer, Kind.TRANSACTION, tuple(producer.steps), outcome, producer.began, asked)

    def _read(self, reader: Process) -> None:
        if reader.name != "r0" and self.random.random() < 0.2:
            keys = tuple(self.random.sample(KEYS, self.random.randint(1, len(KEYS))))
            for key in KEYS:
                if key not in keys:
                    reader.positions[key] = 0  # where it begins when it gets the partition again
            self.operations.append(Operation(reader.name, Kind.ASSIGN, invoked=self.now, completed=self.now, keys=keys))
            return
        self._done(reader, Kind.POLL, (Poll(self._given(reader)),), Outcome.OK, self.now)

    def _given(self, process: Process) -> dict[Key, Sequence[Record]]:
        found: dict[Key, Sequence[Record]] = {}
        for key in KEYS:
            records = self.logs.visible(key, process.positions[key])[: self.random.randint(0, 4)]
            if records:
                found[key] = records
                process.positions[key] = records[-1][0] + 1
        return found

    def _done(
        self,
        process: Process,
        kind: Kind,
        steps: tuple[Step, ...],
        outcome: Outcome,
        began: float,
        asked: float | None = None,
    ) -> None:
        ended = None if outcome is Outcome.INFO else self.now + 0.5
        self.operations.append(Operation(process.name, kind, steps, outcome, began, ended, asked))


def legal(seed: int, turns: int = 60) -> History:
    """The history of this seed."""
    return Execution(seed).history(turns)
