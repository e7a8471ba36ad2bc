"""Answers of the quorum in the versions of their requests.

The newest versions say where the leader is (`node_endpoints`, KIP-853); older ones have no place for that, and their
senders know it from their configuration.
"""

from collections.abc import Awaitable
from typing import Protocol, TypeVar


class NamesNodes(Protocol):
    """An answer that can name the addresses of nodes."""

    node_endpoints: list  # type: ignore[type-arg]  # each answer has a class of its own for them


A = TypeVar("A", bound=NamesNodes)


def fitting(answer: A | Awaitable[A], version: int, since: int) -> A | Awaitable[A]:
    """The answer without addresses, where the version is older than the first that has them."""
    if version >= since:
        return answer
    if isinstance(answer, Awaitable):
        return _later(answer)
    answer.node_endpoints = []
    return answer


async def _later(answer: Awaitable[A]) -> A:
    found = await answer
    found.node_endpoints = []
    return found
