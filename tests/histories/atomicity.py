"""Anomalies that Elle does not know: a transaction in parts, values without their offset, and offsets that go back.

The first two are judged at the end only: until every marker is written a reader may see one partition of a committed
transaction and not another. An offset is judged when it was told: its group asks for it once its transaction is over.
"""

from collections.abc import Iterator

from tests.histories.anomalies import Anomaly
from tests.histories.operations import CommitOffset, FetchOffset, Key, Operation, Outcome, key_text
from tests.histories.versions import Versions, is_transaction

NONE = -1  # the offset of a group that has committed none


def torn_transactions(versions: Versions) -> Iterator[Anomaly]:
    """A transaction of which some values are there at the end, and others are not."""
    for operation in filter(is_transaction, versions.history.operations):
        values = [send.value for send in operation.sends() if send.key in versions.finals]
        there = [value for value in values if versions.is_final(value)]
        gone = [value for value in values if not versions.is_final(value)]
        if there and gone:
            yield Anomaly("torn-transaction", f"{', '.join(there)} is there, {', '.join(gone)} is not: {operation}")


def torn_offsets(versions: Versions) -> Iterator[Anomaly]:
    """A group's offset that is not of the last transaction that counts."""
    for (group, key), committed in versions.history.offsets.items():
        counted = _last_that_count(versions, group, key)
        wanted = {offset for _, offset in counted} or {NONE}
        if committed not in wanted:
            because = "; ".join(str(operation) for operation, _ in counted) or "no transaction has committed any"
            text = f"{group} has committed {committed} of {key_text(key)}, not {_either(wanted)}: {because}"
            yield Anomaly("torn-offset", text)


def _last_that_count(versions: Versions, group: str, key: Key) -> list[tuple[Operation, int]]:
    """Transactions whose offset may be the last: those that count for sure, behind which no other does, and those of
    which nobody can know whether they count.
    """
    last: list[tuple[Operation, int]] = []
    for operation in filter(is_transaction, versions.history.operations):
        offsets = [
            step.offset
            for step in operation.steps
            if isinstance(step, CommitOffset) and (step.group, step.key) == (group, key)
        ]
        counts = _counts(versions, operation)
        if not offsets or counts is False:
            continue
        if counts:
            last = [one for one in last if not _precedes(one[0], operation)]
        last.append((operation, offsets[-1]))
    if last and not any(_counts(versions, operation) for operation, _ in last):
        last.append((last[0][0], NONE))
    return last


def told_offsets(versions: Versions) -> Iterator[Anomaly]:
    """An offset that a group was told, and that no transaction had committed, or a later one has replaced before."""
    transactions = list(filter(is_transaction, versions.history.operations))
    for operation in versions.history.operations:
        for told in operation.steps:
            if isinstance(told, FetchOffset):
                writers = [(one, _committed(one, told)) for one in transactions]
                known = [(one, offset) for one, offset in writers if offset is not None]
                yield from _told(operation, told, known)


def _told(fetch: Operation, told: FetchOffset, known: list[tuple[Operation, int]]) -> Iterator[Anomaly]:
    before = [
        one
        for one, _ in known
        if one.outcome is Outcome.OK and one.completed is not None and one.completed <= fetch.invoked
    ]
    text = f"{told.group} was told {told.offset} of {key_text(told.key)} by {fetch}"
    if told.offset == NONE:
        if before:
            yield Anomaly("stale-offset", f"{text}; before that: {before[-1]}")
        return
    writers = [one for one, offset in known if offset == told.offset]
    may_count = [one for one in writers if _may_count(one, fetch)]
    if not may_count:
        because = "; ".join(map(str, writers)) or "no transaction has that offset"
        yield Anomaly("aborted-offset", f"{text}: {because}")
        return
    order = {id(one): number for number, (one, _) in enumerate(known)}
    replaced = [
        [other for other in before if order[id(other)] > order[id(one)] and _precedes(one, other)] for one in may_count
    ]
    if all(replaced):
        yield Anomaly("stale-offset", f"{text}; before that: {replaced[0][-1]}")


def _committed(operation: Operation, told: FetchOffset) -> int | None:
    """The offset that a transaction commits of this partition last; None where it commits none."""
    offsets = [
        step.offset
        for step in operation.steps
        if isinstance(step, CommitOffset) and (step.group, step.key) == (told.group, told.key)
    ]
    return offsets[-1] if offsets else None


def _may_count(operation: Operation, fetch: Operation) -> bool:
    """Whether a transaction may be committed when its offset is told."""
    is_asked = operation.commit_asked is None or fetch.completed is None or operation.commit_asked <= fetch.completed
    return operation.outcome is not Outcome.FAIL and is_asked


def _counts(versions: Versions, operation: Operation) -> bool | None:
    """Whether a transaction is committed, as its values at the end say, or its client; None where nobody knows."""
    values = [send.value for send in operation.sends() if send.key in versions.finals]
    if values:
        return any(map(versions.is_final, values))
    return {Outcome.OK: True, Outcome.FAIL: False, Outcome.INFO: None}[operation.outcome]


def _precedes(earlier: Operation, later: Operation) -> bool:
    """Whether one had ended before the other began; producers of one transactional id fence each other."""
    if earlier.transactional_id and earlier.transactional_id == later.transactional_id:
        return True
    return earlier.completed is not None and earlier.completed <= later.invoked


def _either(wanted: set[int]) -> str:
    return " or ".join(map(str, sorted(wanted)))
