"""The entries of a batch as steps of their chains: of a run of events that join each other, the first and the last.

`spark.chain_runs` makes the same steps by expressions of Spark. A sound trail has few, however many events it has.
"""

from binascii import unhexlify
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from kavka_audit.lake.rows import Packed
from kavka_broker.core.audit.chain import FIELDS, Entry, Kind
from kavka_broker.core.audit.cloud_events import entry_of

EVENT_KIND = Kind.EVENT.encode().ljust(8)


class Step(NamedTuple):
    """An entry that is to be judged. `is_run`: all between it and the step of its chain before are events that join."""

    offset: int
    entry: Entry
    has_its_hash: bool
    is_run: bool = False


@dataclass(slots=True)
class _Last:
    """The entry of a chain that was read last; `is_in_run`: it is no step yet."""

    offset: int
    sequence: int
    written_ms: int
    previous: bytes
    hash: bytes
    is_plain: bool
    is_in_run: bool = False


class Links:
    """Makes the steps of one partition, whose entries come by offset."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._last: dict[str, _Last] = {}

    def add_event(
        self, offset: int, source: bytes, numbers: tuple[int, int], digits: tuple[bytes, bytes], value: bytes
    ) -> None:
        """Take an event as a broker writes it: its sequence and time, and the digits of the hash before it and of its
        own.
        """
        sequence, written_ms = numbers
        previous, hash_ = unhexlify(digits[0]), unhexlify(digits[1])
        fields = FIELDS.pack(sequence, written_ms, 0, len(source))
        has_its_hash = sha256(previous + fields + source + EVENT_KIND + value).digest() == hash_
        name = source.decode()
        last = self._last.get(name)
        if (
            has_its_hash
            and last is not None
            and last.is_plain
            and last.sequence + 1 == sequence
            and last.hash == previous
            and last.written_ms <= written_ms
        ):
            last.offset, last.sequence, last.written_ms = offset, sequence, written_ms
            last.previous, last.hash, last.is_in_run = previous, hash_, True
            return
        self._step(offset, Entry(name, sequence, Kind.EVENT, written_ms, b"", 0, previous, hash_), has_its_hash)

    def add(self, record: Packed) -> None:
        """Take a record; one that is no entry is none of a chain."""
        try:
            entry = entry_of(record.headers, record.value)
        except ValueError:
            return
        if entry.kind is Kind.EVENT and not entry.lost and not entry.signature:
            digits = entry.previous.hex().encode(), entry.hash.hex().encode()
            numbers = entry.sequence, entry.time_ms
            self.add_event(record.offset, entry.source.encode(), numbers, digits, entry.value)
        else:
            self._step(record.offset, entry, entry.hash == entry.expected_hash())

    def steps(self) -> list[Step]:
        """Return the steps, by offset. Nothing is added any more."""
        for source in self._last:
            self._end_run(source)
        return sorted(self._steps, key=lambda step: step.offset)

    def _step(self, offset: int, entry: Entry, has_its_hash: bool) -> None:
        self._end_run(entry.source)
        self._steps.append(Step(offset, entry, has_its_hash))
        is_plain = has_its_hash and entry.kind is Kind.EVENT and not entry.lost and not entry.signature
        self._last[entry.source] = _Last(offset, entry.sequence, entry.time_ms, entry.previous, entry.hash, is_plain)

    def _end_run(self, source: str) -> None:
        last = self._last.get(source)
        if last is not None and last.is_in_run:
            entry = Entry(source, last.sequence, Kind.EVENT, last.written_ms, b"", 0, last.previous, last.hash)
            self._steps.append(Step(last.offset, entry, has_its_hash=True, is_run=True))
            last.is_in_run = False
