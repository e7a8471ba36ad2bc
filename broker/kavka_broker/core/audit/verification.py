"""Whether a chain is as its node wrote it, and where it is not.

Looked for is the first damage: its kind, and the sequence at which it shows. What can be seen depends on what is known:

- Without the key: every change by somebody who does not compute the hashes of all later entries again.
- With the key: every change before the last signed head, whoever computed what, unless that person has the key.
- After the last head, and by the key alone: nothing that was computed again, and no entry cut off the end. An END shows
  that nothing follows; `sequence_min` says how far the chain went at least, where that is known from elsewhere.
- Never: a chain that is missing as a whole, and events that the node did not write.

The beginning may have been deleted by the retention of the topic; `is_whole` says that it was not.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kavka_broker.core.audit.chain import NO_HASH, SIGNED, Entry, Kind


class Fault(StrEnum):
    """The kind of a damage."""

    FLIPPED = "flipped"  # the entry does not have its hash
    REWRITTEN = "rewritten"  # hashes were computed again, and do not join here
    DROPPED = "dropped"  # the entry is missing
    SWAPPED = "swapped"  # an entry stands where another one belongs, which comes elsewhere
    ADDED = "added"  # the entry is there a second time, is of another chain, or follows the end
    UNSIGNED = "unsigned"  # the signature of a head is not that of the key
    TRUNCATED = "truncated"  # the chain went further than this


@dataclass(frozen=True, slots=True)
class Damage:
    """The first damage of a chain. `sequence` is the place; `index` counts the entries read before it."""

    fault: Fault
    sequence: int
    index: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in one chain."""

    entries: int
    events: int
    lost: int  # events that the node itself says it has lost
    signed: int  # entries up to the last good head: by a signature where there is a key, otherwise by hashes alone
    is_ended: bool
    damage: Damage | None = None


def verify(
    entries: Sequence[Entry], key: bytes | None = None, *, is_whole: bool = True, sequence_min: int = -1
) -> Verdict:
    """Return what the entries of one chain show, in the order in which they were read.

    `sequence_min` is the highest sequence that is known to have been written, or -1.
    """
    damage = _first_damage(entries, key, is_whole)
    sound = entries if damage is None else entries[: damage.index]
    reached = sound[-1].sequence if sound else -1
    if damage is None and reached < sequence_min:
        damage = Damage(Fault.TRUNCATED, reached + 1, len(entries))
    heads = [index for index, entry in enumerate(sound) if entry.kind in SIGNED]
    return Verdict(
        len(sound),
        sum(entry.kind is Kind.EVENT for entry in sound),
        sum(entry.lost for entry in sound),
        heads[-1] + 1 if heads else 0,
        bool(sound) and sound[-1].kind is Kind.END,
        damage,
    )


def _first_damage(entries: Sequence[Entry], key: bytes | None, is_whole: bool) -> Damage | None:
    counts = Counter(entry.sequence for entry in entries)
    sequence, previous, has_ended = 0, NO_HASH, False
    for index, entry in enumerate(entries):
        if index == 0 and not is_whole:
            sequence, previous = entry.sequence, entry.previous
        fault = _fault(entry, entries[0].source, key)
        if fault is None and has_ended:
            fault = Fault.ADDED
        if fault is None and entry.sequence != sequence:
            fault = _misplaced(entry.sequence, sequence, counts)
        if fault is None and entry.previous != previous:
            fault = Fault.REWRITTEN
        if fault is not None:
            return Damage(fault, sequence, index)
        sequence, previous, has_ended = sequence + 1, entry.hash, entry.kind is Kind.END
    return None


def _fault(entry: Entry, source: str, key: bytes | None) -> Fault | None:
    """Return what is wrong with an entry by itself."""
    if entry.source != source:
        return Fault.ADDED
    if entry.hash != entry.expected_hash():
        return Fault.FLIPPED
    if key is not None and entry.kind in SIGNED and not entry.is_signed_by(key):
        return Fault.UNSIGNED
    if entry.signature and entry.kind not in SIGNED:
        return Fault.FLIPPED  # no hash covers a signature, and only heads have one
    return None


def _misplaced(found: int, wanted: int, counts: Counter[int]) -> Fault:
    """Return how an entry has come to a place that is not its own."""
    if counts[found] > 1:
        return Fault.ADDED
    return Fault.SWAPPED if counts[wanted] or found < wanted else Fault.DROPPED
