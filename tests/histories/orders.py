"""Anomalies of order: what a process sends and reads goes forward, and passes over nothing.

A position is where a consumer has come to in a partition. A choice of partitions keeps those of partitions that it had
before. An operation that failed, or of which nothing is known, may leave a position where it was before or where the
operation had come to.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tests.histories.anomalies import Anomaly
from tests.histories.operations import Key, Kind, Operation, Outcome, Send, key_text
from tests.histories.versions import Versions


@dataclass(slots=True)
class Consumer:
    """Where a process has come to: the last indexes in the version order that its position may be behind."""

    positions: dict[Key, tuple[int, int]] = field(default_factory=dict)
    is_subscribed: bool = False

    def choose(self, operation: Operation) -> None:
        """Take over other partitions, or by other means."""
        self.is_subscribed = operation.kind is Kind.SUBSCRIBE
        self.positions = {key: at for key, at in self.positions.items() if key in operation.keys}


def polls(versions: Versions) -> Iterator[Anomaly]:
    """Polls that go back, or over what is there."""
    consumers: dict[str, Consumer] = {}
    for operation in versions.history.operations:
        consumer = consumers.setdefault(operation.process, Consumer())
        if operation.kind in (Kind.ASSIGN, Kind.SUBSCRIBE):
            consumer.choose(operation)
            continue
        before = dict(consumer.positions)
        for key, indexes in _indexes(versions, operation).items():
            yield from _external(versions, operation, consumer, key, indexes[0])
            for one, following in pairwise(indexes):
                yield from _internal(versions, operation, key, one, following)
            low = indexes[-1] if operation.outcome is Outcome.OK else before.get(key, (indexes[0] - 1, 0))[0]
            consumer.positions[key] = min(low, indexes[-1]), indexes[-1]


def _indexes(versions: Versions, operation: Operation) -> dict[Key, list[int]]:
    """What was read of each partition, as indexes in its version order."""
    found: dict[Key, list[int]] = {}
    for key, _, value in operation.readings():
        if (key, value) in versions.index:
            found.setdefault(key, []).append(versions.index[key, value])
    return found


def _external(versions: Versions, operation: Operation, consumer: Consumer, key: Key, index: int) -> Iterator[Anomaly]:
    low, high = consumer.positions.get(key, (index - 1, index - 1))
    suffix = " under subscribe" if consumer.is_subscribed else ""
    if index <= low:
        text = f"{_values(versions, key, index)} came behind {_values(versions, key, low)}: {operation}"
        yield Anomaly(f"nonmonotonic-poll{suffix}", text)
    elif index > high + 1:
        text = f"{_values(versions, key, *range(high + 1, index))} was not read before {operation}"
        yield Anomaly(f"poll-skip{suffix}", text)


def _internal(versions: Versions, operation: Operation, key: Key, one: int, following: int) -> Iterator[Anomaly]:
    if following <= one:
        text = f"{_values(versions, key, following)} came behind {_values(versions, key, one)}: {operation}"
        yield Anomaly("int-nonmonotonic-poll", text)
    elif following > one + 1:
        text = f"{_values(versions, key, *range(one + 1, following))} was passed over by {operation}"
        yield Anomaly("int-poll-skip", text)


def sends(versions: Versions) -> Iterator[Anomaly]:
    """Acknowledged values whose offsets go back in the order in which their process has sent them."""
    last: dict[tuple[str, Key], tuple[Operation, Send]] = {}
    for operation in versions.history.operations:
        for send in operation.sends():
            if send.offset is None:
                continue
            before = last.get((operation.process, send.key))
            last[operation.process, send.key] = operation, send
            if before is None or before[1].offset is None:
                continue
            if send.offset <= before[1].offset:
                name = "int-nonmonotonic-send" if before[0] is operation else "nonmonotonic-send"
                was = f"{before[1].value} at {before[1].offset}"
                text = f"{send.value} is at {key_text(send.key)}@{send.offset}, sent after {was}: {operation}"
                yield Anomaly(name, text)
            elif before[0] is operation and (between := _between(versions, before[1].value, send)):
                yield Anomaly("int-send-skip", f"{between} is between values of {operation}")


def _between(versions: Versions, earlier: str, send: Send) -> str:
    """The first value of anybody that is visible between two of one operation; empty where there is none."""
    ends = versions.index.get((send.key, earlier)), versions.index.get((send.key, send.value))
    if ends[0] is None or ends[1] is None or ends[1] <= ends[0] + 1:
        return ""
    return versions.order[send.key][ends[0] + 1]


def _values(versions: Versions, key: Key, *indexes: int) -> str:
    found = [versions.order[key][index] for index in indexes]
    return f"{', '.join(found[:3])}{' ...' * (len(found) > 3)} of {key_text(key)}"
