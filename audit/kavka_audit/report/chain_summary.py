"""What is known of the chains of the trail when a page is written: whether they hold, and up to when."""

from collections.abc import Sequence
from dataclasses import dataclass

from kavka_audit.report.number_format import moment

SOURCES_MAX = 3
"""Damaged chains that are named."""


@dataclass(frozen=True, slots=True)
class Chains:
    """How many chains have which verdict, the damaged ones in words, and the time of the last entry checked. `unnamed`:
    how many are not damaged, and name no cluster.
    """

    counts: dict[str, int]
    damaged: Sequence[str]
    last_ms: int
    unnamed: int = 0


def chains_weight(chains: Chains | None) -> str:
    """Return how much that weighs, by the words for answers."""
    if chains is None:
        return "none"
    return "wrong" if chains.damaged else "look" if chains.counts.get("unsigned") else "well"


def chains_line(chains: Chains | None) -> str:
    """Return it in a line."""
    if chains is None or not chains.counts:
        return "Chains were not looked at; kavka audit verify does, and so does --table-format delta as it reads."
    if chains.damaged:
        more = f", and {len(chains.damaged) - SOURCES_MAX} more" if len(chains.damaged) > SOURCES_MAX else ""
        return f"Damaged chains: {'; '.join(chains.damaged[:SOURCES_MAX])}{more}."
    count, unchecked = chains.counts.get("sound", 0), chains.counts.get("unchecked", 0)
    if unsigned := chains.counts.get("unsigned", 0):
        words = f"Unsigned: nothing shows of {_chains(unsigned)} that the cluster is the one that was asked for"
        return f"{words}; {count} more verified until {moment(chains.last_ms)}: hashes and links."
    if not count:
        return "There are more chains than are followed; kavka audit verify looks at all."
    words = f"{_chains(count)} verified until {moment(chains.last_ms)}"
    beside = "; there are more chains than are followed" if unchecked else ""
    if chains.unnamed:
        beside += f"; no head names the cluster of {_chains(chains.unnamed)}"
    return f"{words}: hashes and links{beside}. Signatures are for kavka audit verify."


def _chains(count: int) -> str:
    return f"{count} chain{'' if count == 1 else 's'}"
