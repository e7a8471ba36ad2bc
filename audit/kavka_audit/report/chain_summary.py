"""What is known of the chains of the trail when a page is written: whether they hold, and up to when."""

from collections.abc import Sequence
from dataclasses import dataclass

from kavka_audit.report.number_format import moment

SOURCES_MAX = 3
"""Damaged chains that are named."""


@dataclass(frozen=True, slots=True)
class Chains:
    """How many chains have which verdict, the damaged ones in words, and the time of the last entry checked."""

    counts: dict[str, int]
    damaged: Sequence[str]
    last_ms: int


def is_damaged(chains: Chains | None) -> bool:
    """Whether a chain is known to be damaged."""
    return chains is not None and bool(chains.damaged)


def chains_line(chains: Chains | None) -> str:
    """Return it in a line."""
    if chains is None or not chains.counts:
        return "Chains were not looked at; kavka audit verify does, and so does --table-format delta as it reads."
    if chains.damaged:
        more = f", and {len(chains.damaged) - SOURCES_MAX} more" if len(chains.damaged) > SOURCES_MAX else ""
        return f"Damaged chains: {'; '.join(chains.damaged[:SOURCES_MAX])}{more}."
    count, unchecked = chains.counts.get("sound", 0), chains.counts.get("unchecked", 0)
    if not count:
        return "There are more chains than are followed; kavka audit verify looks at all."
    words = f"{count} chain{'' if count == 1 else 's'} verified until {moment(chains.last_ms)}"
    beside = "; there are more chains than are followed" if unchecked else ""
    return f"{words}: hashes and links{beside}. Signatures are for kavka audit verify."
