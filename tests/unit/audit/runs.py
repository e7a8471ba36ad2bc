"""A trail as an engine reads it that judges many entries at once: entries, and runs of which only the last is there.

What a run is stands in `ChainCheck.extend`. `steps` looks at every entry; an engine must come to the same steps.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kavka_broker.core.audit.chain import Entry, Kind
from kavka_broker.core.audit.keys import VerifyingKey
from kavka_broker.core.audit.trail_check import TrailCheck
from kavka_broker.core.audit.verification import Verdict


class Step(NamedTuple):
    """An entry at its offset, or the last one of a run of a chain."""

    offset: int
    entry: Entry
    is_run: bool


def is_plain(entry: Entry) -> bool:
    """Whether the entry is an event with its hash, of which nothing else is to be said."""
    is_event = entry.kind is Kind.EVENT and not entry.lost and not entry.signature
    return is_event and entry.hash == entry.expected_hash()


def joins(entry: Entry, before: Entry | None) -> bool:
    """Whether an entry goes on with a run, or begins one with the entry before it."""
    return (
        before is not None
        and is_plain(entry)
        and is_plain(before)
        and entry.sequence == before.sequence + 1
        and entry.previous == before.hash
        and entry.time_ms >= before.time_ms
    )


def steps(entries: Sequence[Entry], log_start: int, block: int) -> list[Step]:
    """The steps of a partition. Runs end with a block of so many offsets."""
    found, before = list[Step](), dict[str, tuple[int, Entry, bool]]()
    for offset, entry in enumerate(entries, log_start):
        place, last, is_written = before.get(entry.source, (-1, None, True))
        is_joined = place // block == offset // block and joins(entry, last)
        if not is_joined and last is not None and not is_written:
            found.append(Step(place, last, is_run=True))
        if not is_joined:
            found.append(Step(offset, entry, is_run=False))
        before[entry.source] = offset, entry, not is_joined
    found += [Step(place, last, is_run=True) for place, last, is_written in before.values() if not is_written]
    return sorted(found, key=lambda step: step.offset)


def verdicts_by_runs(
    entries: Sequence[Entry], keys: Sequence[VerifyingKey], log_start: int = 0, block: int = 1_000
) -> dict[str, Verdict]:
    """What a verification says that reads the trail in steps."""
    check, reached = TrailCheck(keys), dict[str, int]()
    for step in steps(entries, log_start, block):
        source = step.entry.source
        if not step.is_run:
            check.add_hashed(0, log_start, step.entry, has_its_hash=step.entry.hash == step.entry.expected_hash())
        elif not check.extend(step.entry):
            for entry in _between(entries, source, reached[source] + 1 - log_start, step.offset + 1 - log_start):
                check.add(0, log_start, entry)
        reached[source] = step.offset
    return check.verdicts()


def _between(entries: Sequence[Entry], source: str, first: int, until: int) -> Iterator[Entry]:
    return (entry for entry in entries[first:until] if entry.source == source)
