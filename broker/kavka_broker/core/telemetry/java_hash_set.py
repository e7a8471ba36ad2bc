"""The order in which a HashSet of Java lists strings.

A subscription id is the checksum of such a list. Brokers of both kinds may serve one cluster: with the same order a
client finds the same id at each, and need not ask again.
"""

from collections.abc import Iterable
from typing import Final

BUCKETS_MIN: Final = 16
LOAD: Final = 0.75


def set_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text once, by its bucket."""
    found = tuple(dict.fromkeys(texts))
    buckets = BUCKETS_MIN
    while len(found) > buckets * LOAD:
        buckets *= 2
    return tuple(sorted(found, key=lambda text: spread(hash_code(text)) & (buckets - 1)))


def hash_code(text: str) -> int:
    """Return Java's hash code of a string, without sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFF_FFFF
    return code


def spread(code: int) -> int:
    return code ^ (code >> 16)
