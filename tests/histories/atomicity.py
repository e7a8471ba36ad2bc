"""Anomalies that Elle does not know: a transaction in parts, and values without their offset.

Both are judged at the end only: until every marker is written a reader may see one partition of a committed transaction
and not another.
"""

from collections.abc import Iterator

from tests.histories.anomalies import Anomaly
from tests.histories.operations import CommitOffset, Key, Operation, Outcome, key_text
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
