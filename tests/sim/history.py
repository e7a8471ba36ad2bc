"""What clients were told and what they saw, and whether both can be true: Jepsen's rules for Kafka.

Every value is sent once and unlike any other. A send ends as acknowledged, or as unknown: the answer never came. What
must never be, whatever was killed or cut:

| anomaly | meaning |
|---|---|
| lost-write | an acknowledged value is not where it was acknowledged, though later offsets have been read |
| unseen | an acknowledged value is still not there after the final reads |
| inconsistent-offsets | two values at one offset: read by two clients, twice by one, or acknowledged and read |
| duplicate | one value at two offsets, though its producer is idempotent |
| nonmonotonic-poll | a reader with an assigned partition went back, or over a record that was there |
| given-twice | two producers have got one id |
| phantom | a value that nobody sent |
| nonmonotonic-send | offsets of one producer's acknowledged values, in the order of sending, go back |
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

WORST_MAX: Final = 8

Place = tuple[str, int]  # topic, partition


@dataclass(slots=True)
class Send:
    """One value's way."""

    value: str
    producer: str
    place: Place
    offset: int | None = None
    is_acknowledged: bool = False


@dataclass(slots=True)
class Poll:
    """What one reader has seen of one partition, in its order."""

    reader: str
    place: Place
    seen: list[tuple[int, str]] = field(default_factory=list)
    from_offset: int = 0
    # Offsets at which it went on because what was before them had been trimmed.
    starts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class History:
    """Told by the clients while they run; `anomalies` judges."""

    sends: dict[str, Send] = field(default_factory=dict)
    polls: dict[tuple[str, Place], Poll] = field(default_factory=dict)
    given_up: int = 0  # times that a producer began again, with batches in flight of unknown fate
    notes: list[str] = field(default_factory=list)
    # Called with place and offset of what a producer was told is committed.
    told: Callable[[Place, int], None] = lambda place, offset: None
    # Called with place and bytes of each batch that a reader was given.
    read: Callable[[Place, memoryview], None] = lambda place, batch: None
    finals: dict[Place, dict[int, str]] = field(default_factory=dict)
    starts: dict[Place, int] = field(default_factory=dict)  # where the final reads began
    newest: int = 0  # the offset that was acknowledged last

    # --- what happens -------------------------------------------------------------------------------------------

    def sent(self, producer: str, place: Place, values: list[str]) -> None:
        for value in values:
            assert value not in self.sends, f"{value} is sent twice"
            self.sends[value] = Send(value, producer, place)

    def acknowledged(self, values: list[str], base_offset: int | None) -> None:
        """`base_offset` None: the broker had it already, and did not say where."""
        for index, value in enumerate(values):
            send = self.sends[value]
            send.is_acknowledged = True
            send.offset = None if base_offset is None else base_offset + index
        if base_offset is not None:
            self.newest = base_offset + len(values) - 1
            self.told(self.sends[values[0]].place, base_offset + len(values) - 1)

    def polled(self, reader: str, place: Place, records: list[tuple[int, str]], from_offset: int) -> None:
        poll = self.polls.get((reader, place))
        if poll is None:
            poll = self.polls[reader, place] = Poll(reader, place, from_offset=from_offset)
        poll.seen += records

    def started_over(self, reader: str, place: Place, offset: int) -> None:
        """What was before this offset has been trimmed."""
        poll = self.polls.setdefault((reader, place), Poll(reader, place))
        poll.starts.append(offset)

    def read_finally(self, place: Place, records: dict[int, str], start: int = 0) -> None:
        """All that the partition holds after everything has healed, from its start on."""
        self.finals[place] = records
        self.starts[place] = start

    def note(self, what: str) -> None:
        """Note an answer that no client should ever get."""
        self.notes.append(what)

    @property
    def acknowledged_count(self) -> int:
        return sum(send.is_acknowledged for send in self.sends.values())

    # --- the judgement ------------------------------------------------------------------------------------------

    def anomalies(self) -> list[str]:
        """Anomalies, the worst kinds first, at most `WORST_MAX` of each."""
        found: list[str] = []
        for rule in (
            self._inconsistent,
            self._lost,
            self._duplicates,
            self._nonmonotonic_polls,
            self._phantoms,
            self._nonmonotonic_sends,
        ):
            found += list(rule())[:WORST_MAX]
        return found + self.notes[:WORST_MAX]

    def _readings(self) -> Iterator[tuple[str, Place, int, str]]:
        for poll in self.polls.values():
            for offset, value in poll.seen:
                yield poll.reader, poll.place, offset, value
        for place, records in self.finals.items():
            for offset, value in records.items():
                yield "the final read", place, offset, value

    def _inconsistent(self) -> Iterator[str]:
        known: dict[tuple[Place, int], tuple[str, str]] = {}
        for send in self.sends.values():
            if send.is_acknowledged and send.offset is not None:
                at = known.setdefault((send.place, send.offset), (send.value, "acknowledged"))
                if at[0] != send.value:
                    yield f"inconsistent-offsets: {place_text(send.place)}@{send.offset}: {at} and {send.value}"
        for reader, place, offset, value in self._readings():
            at = known.setdefault((place, offset), (value, f"read by {reader}"))
            if at[0] != value:
                yield f"inconsistent-offsets: {place_text(place)}@{offset}: {at[0]} {at[1]}; {value} read by {reader}"

    def _lost(self) -> Iterator[str]:
        for send in self.sends.values():
            final = self.finals.get(send.place)
            start = self.starts.get(send.place, 0)
            if not send.is_acknowledged or final is None or (start and (send.offset is None or send.offset < start)):
                continue
            there = send.value in final.values() if send.offset is None else final.get(send.offset) == send.value
            if not there:
                end = max(final, default=-1)
                kind = "unseen" if send.offset is not None and send.offset > end else "lost-write"
                yield f"{kind}: {send.value} was acknowledged at {place_text(send.place)}@{send.offset}, end {end}"

    def doubles(self) -> Iterator[tuple[str, tuple[Place, int], tuple[Place, int]]]:
        """Values that the final reads have found at a second place: the value, the first place and the other."""
        where: dict[str, tuple[Place, int]] = {}
        for place, records in self.finals.items():
            for offset, value in records.items():
                first = where.setdefault(value, (place, offset))
                if first != (place, offset):
                    yield value, first, (place, offset)

    def _duplicates(self) -> Iterator[str]:
        for value, first, other in self.doubles():
            yield f"duplicate: {value} at {place_text(first[0])}@{first[1]} and {place_text(other[0])}@{other[1]}"

    def _nonmonotonic_polls(self) -> Iterator[str]:
        for poll in self.polls.values():
            expected = poll.from_offset
            for offset, value in poll.seen:
                if offset != expected and not (offset in poll.starts and offset > expected):
                    yield (
                        f"nonmonotonic-poll: {poll.reader} read {place_text(poll.place)}@{offset} ({value})"
                        f" where {expected} was next"
                    )
                expected = offset + 1

    def _phantoms(self) -> Iterator[str]:
        for reader, place, offset, value in self._readings():
            send = self.sends.get(value)
            if send is None or send.place != place:
                yield f"phantom: {reader} read {value!r} at {place_text(place)}@{offset}"

    def _nonmonotonic_sends(self) -> Iterator[str]:
        last: dict[tuple[str, Place], int] = {}
        for send in self.sends.values():
            if send.is_acknowledged and send.offset is not None:
                key = send.producer, send.place
                if send.offset <= last.get(key, -1):
                    yield f"nonmonotonic-send: {send.value} at {send.offset}, behind {last[key]}"
                last[key] = max(send.offset, last.get(key, -1))


def place_text(place: Place) -> str:
    return f"{place[0]}-{place[1]}"
