"""The version order of each partition: its values by their offsets, as acknowledgements and readers tell them.

Failed and indefinite operations count too: what they were told is true. Offsets have gaps, since markers and records of
aborted transactions take some. So "next" always means the next value that is known to be visible to readers.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.histories.operations import History, Key, Kind, Operation, Outcome

FINAL = "the final read"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A value at an offset, and who says so."""

    key: Key
    offset: int
    value: str
    by: str


@dataclass(slots=True)
class Versions:
    """What is known of values: who wrote them, where they are, who has read them, and their order."""

    history: History
    writers: dict[str, Operation] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)  # to which each value was sent
    sightings: list[Sighting] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)  # the first offset that is known of each value
    read: dict[str, str] = field(default_factory=dict)  # by whom first, the final reads included
    order: dict[Key, list[str]] = field(default_factory=dict)  # of visible values
    index: dict[tuple[Key, str], int] = field(default_factory=dict)  # of a value in the order of its partition
    finals: dict[Key, frozenset[str]] = field(default_factory=dict)  # what is there at the end, where that was read

    def is_final(self, value: str) -> bool:
        """Whether a value is there at the end, in the partition that it was sent to."""
        return value in self.finals.get(self.keys[value], ())


def versions_of(history: History) -> Versions:
    """Read the version orders off a history."""
    found = Versions(history)
    for operation in history.operations:
        for send in operation.sends():
            assert send.value not in found.writers, f"{send.value} is sent twice: a history names each value once"
            found.writers[send.value] = operation
            found.keys[send.value] = send.key
    found.finals = {key: frozenset(records.values()) for key, records in history.finals.items()}
    found.sightings = list(_sightings(history))
    visible: dict[Key, dict[int, str]] = defaultdict(dict)
    for sighting in found.sightings:
        found.places.setdefault(sighting.value, sighting.offset)
        if sighting.by:
            found.read.setdefault(sighting.value, sighting.by)
        if sighting.by or found.writers[sighting.value].outcome is Outcome.OK:
            visible[sighting.key].setdefault(sighting.offset, sighting.value)
    for key, by_offset in visible.items():
        # A value that is there twice has its first place in the order; `duplicate` tells of the other.
        found.order[key] = list(dict.fromkeys(by_offset[offset] for offset in sorted(by_offset)))
        found.index |= {(key, value): index for index, value in enumerate(found.order[key])}
    return found


def _sightings(history: History) -> Iterator[Sighting]:
    """All that is said of offsets; `by` is empty where the writer was told."""
    for operation in history.operations:
        for send in operation.sends():
            if send.offset is not None:
                yield Sighting(send.key, send.offset, send.value, "")
        for key, offset, value in operation.readings():
            yield Sighting(key, offset, value, operation.process)
    for key, records in history.finals.items():
        for offset, value in records.items():
            yield Sighting(key, offset, value, FINAL)


def is_transaction(operation: Operation) -> bool:
    return operation.kind is Kind.TRANSACTION
