"""Mistakes that are planted in a legal history; each returns None where the history has no place for it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Final

from tests.histories.operations import (
    History,
    Key,
    Kind,
    Operation,
    Outcome,
    Poll,
    Record,
    Send,
)

Mutation = Callable[[History, Random], History | None]

#: Each with the anomalies of which one has to be found.
MUTATIONS: Final[dict[str, tuple[Mutation, frozenset[str]]]] = {}


def mutation(*anomalies: str) -> Callable[[Mutation], Mutation]:
    def register(mutate: Mutation) -> Mutation:
        MUTATIONS[mutate.__name__] = mutate, frozenset(anomalies)
        return mutate

    return register


def with_finals(history: History, key: Key, changed: dict[int, str]) -> History:
    return replace(history, finals={**history.finals, key: changed})


def with_operation(history: History, former: Operation, *instead: Operation) -> History:
    found = [new for one in history.operations for new in (instead if one is former else (one,))]
    return replace(history, operations=found)


def acknowledged(history: History, *, kinds: tuple[Kind, ...] = (Kind.SEND, Kind.TRANSACTION)) -> list[Send]:
    return [
        send
        for operation in history.operations
        if operation.outcome is Outcome.OK and operation.kind in kinds
        for send in operation.sends()
    ]


def committed(history: History) -> list[Operation]:
    return [one for one in history.operations if one.kind is Kind.TRANSACTION and one.outcome is Outcome.OK]


def runs(history: History) -> Iterator[tuple[Operation, int, Key, list[Record]]]:
    """Each poll of a reader, as its operation, the index of its step, and what it gave of a partition."""
    for operation in history.operations:
        if operation.process.startswith("r"):
            for index, step in enumerate(operation.steps):
                if isinstance(step, Poll):
                    for key, records in step.records.items():
                        yield operation, index, key, list(records)


def with_run(history: History, run: tuple[Operation, int, Key, list[Record]], records: list[Record]) -> History:
    operation, index, key, _ = run
    steps = list(operation.steps)
    step = steps[index]
    assert isinstance(step, Poll)
    steps[index] = Poll({**step.records, key: records})
    return with_operation(history, operation, replace(operation, steps=tuple(steps)))


@mutation("lost-write", "unseen")
def lose(history: History, random: Random) -> History | None:
    sends = acknowledged(history)
    if not sends:
        return None
    send = random.choice(sends)
    kept = {offset: value for offset, value in history.finals[send.key].items() if value != send.value}
    return with_finals(history, send.key, kept)


@mutation("torn-transaction")
def tear(history: History, random: Random) -> History | None:
    whole = [operation for operation in committed(history) if len([*operation.sends()]) > 1]
    if not whole:
        return None
    send = random.choice([*random.choice(whole).sends()])
    kept = {offset: value for offset, value in history.finals[send.key].items() if value != send.value}
    return with_finals(history, send.key, kept)


@mutation("duplicate")
def double(history: History, random: Random) -> History | None:
    places = [(key, value) for key, records in history.finals.items() for value in records.values()]
    if not places:
        return None
    key, value = random.choice(places)
    return with_finals(history, key, {**history.finals[key], 1_000: value})


@mutation("phantom")
def invent(history: History, random: Random) -> History | None:
    key = random.choice([*history.finals])
    return with_finals(history, key, {**history.finals[key], 1_000: "never sent"})


@mutation("inconsistent-offsets")
def exchange(history: History, random: Random) -> History | None:
    known = [send for send in acknowledged(history) if send.offset is not None and len(history.finals[send.key]) > 1]
    if not known:
        return None
    send = random.choice(known)
    finals = dict(history.finals[send.key])
    assert send.offset is not None
    other = random.choice([offset for offset in finals if offset != send.offset])
    finals[send.offset], finals[other] = finals[other], finals[send.offset]
    return with_finals(history, send.key, finals)


@mutation("aborted-read")
def show_aborted(history: History, random: Random) -> History | None:
    failed = [one for one in history.operations if one.outcome is Outcome.FAIL and any(one.sends())]
    if not failed:
        return None
    send = random.choice([*random.choice(failed).sends()])
    offset = 1_000 if send.offset is None else send.offset
    return with_finals(history, send.key, {**history.finals[send.key], offset: send.value})


@mutation("int-poll-skip")
def pass_over(history: History, random: Random) -> History | None:
    long = [run for run in runs(history) if len(run[3]) > 2]
    if not long:
        return None
    run = random.choice(long)
    return with_run(history, run, [run[3][0], *run[3][2:]])


@mutation("int-nonmonotonic-poll")
def turn_round(history: History, random: Random) -> History | None:
    long = [run for run in runs(history) if len(run[3]) > 1]
    if not long:
        return None
    run = random.choice(long)
    return with_run(history, run, run[3][::-1])


@mutation("poll-skip")
def forget_a_poll(history: History, random: Random) -> History | None:
    """Of the reader that keeps its partitions, one between two others."""
    for key in history.finals:
        of_key = [run for run in runs(history) if run[0].process == "r0" and run[2] == key]
        if len(of_key) > 2:
            return with_operation(history, random.choice(of_key[1:-1])[0])
    return None


@mutation("nonmonotonic-poll")
def poll_twice(history: History, random: Random) -> History | None:
    polls = [run[0] for run in runs(history) if run[0].process == "r0"]
    if not polls:
        return None
    operation = random.choice(polls)
    return with_operation(history, operation, operation, replace(operation))


@mutation("precommitted-read")
def read_own(history: History, random: Random) -> History | None:
    writing = [operation for operation in committed(history) if any(operation.sends())]
    if not writing:
        return None
    operation = random.choice(writing)
    send = random.choice([*operation.sends()])
    offset = next(offset for offset, value in history.finals[send.key].items() if value == send.value)
    steps = (*operation.steps, Poll({send.key: [(offset, send.value)]}))
    return with_operation(history, operation, replace(operation, steps=steps))


@mutation("G1c")
def read_each_other(history: History, random: Random) -> History | None:
    writing = [one for one in committed(history) if any(one.sends()) and not any(one.readings())]
    if len(writing) < 2:
        return None
    pair = random.sample(writing, 2)
    changed = history
    for operation, other in (pair, pair[::-1]):
        send = next(other.sends())
        offset = next(offset for offset, value in history.finals[send.key].items() if value == send.value)
        steps = (*operation.steps, Poll({send.key: [(offset, send.value)]}))
        changed = with_operation(changed, operation, replace(operation, steps=steps))
    return changed


@mutation("dirty-read")
def read_early(history: History, random: Random) -> History | None:
    writers = {send.value: one for one in committed(history) for send in one.sends()}
    found = [(run[0], writers[value]) for run in runs(history) for _, value in run[3] if value in writers]
    if not found:
        return None
    reading, writing = random.choice(found)
    assert writing.commit_asked is not None
    return with_operation(history, reading, replace(reading, completed=writing.commit_asked - 0.1))


@mutation("torn-offset")
def set_offset_back(history: History, random: Random) -> History | None:
    of_group = [place for place, offset in history.offsets.items() if offset >= 0]
    if not of_group:
        return None
    return replace(history, offsets={**history.offsets, random.choice(of_group): 1_000})


@mutation("nonmonotonic-send", "int-nonmonotonic-send")
def exchange_sends(history: History, random: Random) -> History | None:
    """Two values of a producer in one partition were acknowledged the other way round."""
    by_place: dict[tuple[str, Key], list[Send]] = {}
    for operation in history.operations:
        for send in operation.sends():
            if send.offset is not None:
                by_place.setdefault((operation.process, send.key), []).append(send)
    pairs = [sends for sends in by_place.values() if len(sends) > 1]
    if not pairs:
        return None
    one, other = random.sample(random.choice(pairs), 2)
    instead = {one.value: replace(one, offset=other.offset), other.value: replace(other, offset=one.offset)}
    changed = [
        replace(
            operation,
            steps=tuple(instead.get(step.value, step) if isinstance(step, Send) else step for step in operation.steps),
        )
        for operation in history.operations
    ]
    return replace(history, operations=changed)
