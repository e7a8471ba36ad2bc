"""Where the chains of a node ended before this one: what a node keeps on its disk, and names in its first head.

A chain that begins names the end of the chain before it, and its signature covers that name. So a chain that is taken
out of the trail, or is cut, or goes on where its node did not, shows by the next chain of that node.

A node that is killed knows which batch it has sent, and not whether the topic took that. So ends are written down
before a batch is sent: the one that the topic has taken, which is certain, and those that may have been taken since.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

ENDS_MAX: Final = 9
"""Ends that are kept: a certain one, what may have come behind it, and those of the last starts in a row whose batches
had no answer.
"""
HASH_DIGITS: Final = 64
DIGITS: Final = frozenset("0123456789abcdef")


class End(NamedTuple):
    """The last entry of a chain; or, where it is not certain, what is the last one if the topic took it."""

    source: str
    sequence: int
    hash: bytes
    is_certain: bool


def with_end(ends: Sequence[End], end: End) -> tuple[End, ...]:
    """Return the ends with one more. One that is certain stands alone, as no other can be the last one then.

    What may have come behind the certain one is never left out for want of room: its chain would seem to have entries
    that its node has not written.
    """
    if end.is_certain:
        return (end,)
    kept = [found for found in ends if found.is_certain or found.source != end.source]
    certain = {found.source for found in kept if found.is_certain}
    first = [found for found in kept if found.source in certain]
    others = [found for found in kept if found.source not in certain]
    return (*first, *others[-(ENDS_MAX - 1 - len(first)) :], end)


def as_fields(ends: Sequence[End]) -> list[dict[str, object]]:
    """Return ends as they stand in JSON."""
    return [
        {"source": end.source, "sequence": end.sequence, "hash": end.hash.hex(), "certain": end.is_certain}
        for end in ends
    ]


def text_of(ends: Sequence[End]) -> bytes:
    """Return ends as JSON: what a node keeps on its disk."""
    return json.dumps({"before": as_fields(ends)}, separators=(",", ":")).encode()


def ends_of(text: bytes) -> tuple[End, ...]:
    """Return the ends in a node's file, or in the value of a first head; none without a text. Raises ValueError."""
    if not text:
        return ()
    try:
        told = json.loads(text)["before"]
        ends = tuple(map(_end, told[: ENDS_MAX + 1]))
    except (LookupError, TypeError, ValueError, RecursionError) as problem:
        raise ValueError(f"no ends of chains: {problem}") from None
    if len(ends) > ENDS_MAX:
        raise ValueError(f"more than {ENDS_MAX} ends of chains")
    return ends


def _end(told: dict[str, Any]) -> End:
    source, sequence, digits, is_certain = told["source"], told["sequence"], told["hash"], told["certain"]
    if not (isinstance(source, str) and isinstance(is_certain, bool) and type(sequence) is int and sequence >= 0):
        raise ValueError("a field is of another type")
    if not isinstance(digits, str) or len(digits) != HASH_DIGITS or not DIGITS.issuperset(digits):
        raise ValueError("hash is no hash")
    return End(source, sequence, bytes.fromhex(digits), is_certain)
