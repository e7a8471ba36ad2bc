"""What transactional producers and readers of the simulation did, as a history that `tests/histories` judges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.histories.operations import History, Kind, Operation, Outcome, Poll, Send, Step
from tests.sim.history import Place

OUTCOMES = {True: Outcome.OK, False: Outcome.FAIL, None: Outcome.INFO}


@dataclass(slots=True)
class Written:
    """A transaction, and what its producer knows of its fate: None while nobody can know."""

    process: str
    transactional_id: str
    number: int
    began: float
    steps: list[Step] = field(default_factory=list)
    committed: bool | None = False
    commit_asked: float | None = None
    ended: float | None = None

    @property
    def values(self) -> list[str]:
        return [step.value for step in self.steps if isinstance(step, Send)]

    def sends(self, place: Place, values: list[str]) -> None:
        self.steps += [Send(place, value) for value in values]

    def acknowledged(self, values: list[str], base_offset: int) -> None:
        """They are at this offset; -1 where the broker had them and did not say where."""
        if base_offset >= 0:
            for index, step in enumerate(self.steps):
                if isinstance(step, Send) and step.value in values:
                    self.steps[index] = Send(step.key, step.value, base_offset + values.index(step.value))

    def operation(self) -> Operation:
        return Operation(
            self.process,
            Kind.TRANSACTION,
            tuple(self.steps),
            OUTCOMES[self.committed],
            self.began,
            None if self.committed is None else self.ended,
            self.commit_asked,
            transactional_id=self.transactional_id,
        )


class Record:
    """All transactions, in the order in which their ids began them, and all that was read."""

    def __init__(self) -> None:
        self.written: dict[str, list[Written]] = {}
        self.listeners: list[Callable[[Written], None]] = []  # told of each transaction with new acknowledged values
        self._polls: list[Operation] = []

    @property
    def transactions(self) -> list[Written]:
        return [written for known in self.written.values() for written in known]

    def begin(self, process: str, transactional_id: str, now: float) -> Written:
        known = self.written.setdefault(transactional_id, [])
        known.append(Written(process, transactional_id, len(known) + 1, now))
        return known[-1]

    def acknowledged(self, written: Written, values: list[str], base_offset: int) -> None:
        written.acknowledged(values, base_offset)
        for listener in self.listeners:
            listener(written)

    def polled(self, process: str, place: Place, records: Sequence[tuple[int, str]], began: float, now: float) -> None:
        self._polls.append(Operation(process, Kind.POLL, (Poll({place: records}),), Outcome.OK, began, now))

    def chose(self, process: str, kind: Kind, places: Sequence[Place], now: float) -> None:
        """A reader was assigned these partitions, by itself or by its group."""
        self._polls.append(Operation(process, kind, (), Outcome.OK, now, now, keys=tuple(places)))

    def history(self, finals: Mapping[Place, Mapping[int, str]], group: str, offsets: Mapping[Place, int]) -> History:
        """All of it, with what is there at the end."""
        operations = [*(written.operation() for written in self.transactions), *self._polls]
        operations.sort(key=lambda operation: operation.invoked)
        return History(operations, finals, {(group, place): offset for place, offset in offsets.items()})


class Markers:
    """What one partition's log says of transactions: each has its marker before the next one of its producer begins.

    A transaction that is complete has its markers, and a producer gets no answer for the next one before.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._open: dict[int, str] = {}  # by producer id
        self._end = 0

    def batch(self, place: Place, offset: int, producer_id: int, transaction: str | None) -> None:
        """Take a batch of the log, or a marker, which is of no transaction. A reader may be given one again."""
        if offset < self._end:
            return
        self._end = offset + 1
        before = self._open.pop(producer_id, None)
        if transaction is None:
            return
        if before not in (None, transaction):
            where = f"{place[0]}-{place[1]}@{offset}"
            self.problems.append(f"marker-missing: {transaction} begins at {where}, and {before} is still open there")
        self._open[producer_id] = transaction
