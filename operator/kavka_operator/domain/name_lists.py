"""Lists in messages: the first few by name, the others by number."""

from collections.abc import Sequence

NAMED_MAX = 3


def some(names: Sequence[str], most: int = NAMED_MAX, comma: str = ", ") -> str:
    """`a, b, c and 4 more`."""
    listed = comma.join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def counted(count: int, noun: str) -> str:
    """`1 broker`, `2 brokers`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def named(nodes: Sequence[int]) -> str:
    """`node 1`, `nodes 1, 2`."""
    return f"node{'s' * (len(nodes) != 1)} {', '.join(map(str, nodes))}"
