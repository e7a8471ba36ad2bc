"""What transactional producers and readers of the simulation did, as a history that `tests/histories` judges."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.histories.operations import FetchOffset, History, Kind, Operation, Outcome, Poll, Send, Step
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
    former: tuple[int, int] | None = None  # id and epoch of a producer of transaction version 1

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
        self._excused: dict[tuple[str, int], Written] = {}  # by their ids and numbers

    @property
    def transactions(self) -> list[Written]:
        return [written for known in self.written.values() for written in known]

    def begin(self, process: str, transactional_id: str, now: float, former: tuple[int, int] | None = None) -> Written:
        known = self.written.setdefault(transactional_id, [])
        written = Written(process, transactional_id, len(known) + 1, now, former=former)
        if any(has_one_epoch(excused, written) for excused in self._excused.values()):
            self._excused[transactional_id, written.number] = written
        known.append(written)
        return written

    def excuse(self, written: Written) -> None:
        """A late EndTxn of transaction version 1 may end this transaction, or a later one of the same epoch."""
        later = self.written[written.transactional_id][written.number - 1 :]
        excused = [following for following in later if has_one_epoch(following, written)]
        self._excused |= {(following.transactional_id, following.number): following for following in excused}

    def acknowledged(self, written: Written, values: list[str], base_offset: int) -> None:
        written.acknowledged(values, base_offset)
        for listener in self.listeners:
            listener(written)

    def polled(self, process: str, place: Place, records: Sequence[tuple[int, str]], began: float, now: float) -> None:
        self._polls.append(Operation(process, Kind.POLL, (Poll({place: records}),), Outcome.OK, began, now))

    def chose(self, process: str, kind: Kind, places: Sequence[Place], now: float) -> None:
        """A reader was assigned these partitions, by itself or by its group."""
        self._polls.append(Operation(process, kind, (), Outcome.OK, now, now, keys=tuple(places)))

    def fetched_offset(
        self, process: str, transactional_id: str, fetched: FetchOffset, began: float, now: float
    ) -> None:
        """A producer was told an offset of its group."""
        operation = Operation(process, Kind.POLL, (fetched,), Outcome.OK, began, now, transactional_id=transactional_id)
        self._polls.append(operation)

    def history(self, finals: Mapping[Place, Mapping[int, str]], group: str, offsets: Mapping[Place, int]) -> History:
        """All of it, with what is there at the end."""
        operations = [*(written.operation() for written in self.transactions), *self._polls]
        operations.sort(key=lambda operation: operation.invoked)
        return History(operations, finals, {(group, place): offset for place, offset in offsets.items()})

    @property
    def excused_values(self) -> set[str]:
        """Return what transactions have written that version 1 does not protect."""
        return {value for written in self._excused.values() for value in written.values}

    def without_excused(self, history: History) -> History:
        """The history without the values that transaction version 1 does not protect; nobody knows what became of the
        transactions that wrote them.
        """
        values = self.excused_values
        if not values:
            return history
        operations = [without(operation, values) for operation in history.operations]
        finals = {
            place: {offset: value for offset, value in records.items() if value not in values}
            for place, records in history.finals.items()
        }
        return History(operations, finals, history.offsets)


def has_one_epoch(first: Written, other: Written) -> bool:
    """Whether two transactions are of one producer of version 1, and of the same id and epoch."""
    return first.process == other.process and first.former == other.former and first.former is not None


def without(operation: Operation, values: Collection[str]) -> Operation:
    """The operation without these values; one that has sent any ends in no way that is known."""
    if any(send.value in values for send in operation.sends()):
        rest = tuple(step for step in operation.steps if not isinstance(step, Send))
        return replace(operation, steps=rest, outcome=Outcome.INFO, completed=None, commit_asked=None)
    steps = tuple(without_values(step, values) if isinstance(step, Poll) else step for step in operation.steps)
    return replace(operation, steps=steps)


def without_values(poll: Poll, values: Collection[str]) -> Poll:
    return Poll(
        {place: [record for record in records if record[1] not in values] for place, records in poll.records.items()}
    )


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
