"""Answers to the heartbeats of members of the newer groups, as soon as what they rest on is committed."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.loop.slices import Slices, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["answer_heartbeat"]

C = TypeVar("C")
R = TypeVar("R")
Heard = tuple[C, Waiting | None]


def answer_heartbeat(
    kind: Callable[..., R],
    hear: Callable[[], Heard[C] | Awaitable[Heard[C]]],
    answer_of: Callable[[C], Work[R]],
    slices: Slices,
) -> R | Awaitable[R]:
    """Answer a member with a response of this kind: at once where nothing is large, and all is committed."""
    try:
        heard = hear()
    except BrokerError as error:
        return _refused(kind, error)
    if not isinstance(heard, tuple):
        return _answer_later(kind, heard, answer_of, slices)
    change, waiting = heard
    work = answer_of(change)
    try:
        next(work)
    except StopIteration as end:
        response: R = end.value
        return response if waiting is None else _when_committed(kind, response, waiting)
    return _go_on(kind, work, waiting, slices)


async def _answer_later(
    kind: Callable[..., R], heard: Awaitable[Heard[C]], answer_of: Callable[[C], Work[R]], slices: Slices
) -> R:
    """Answer a member of a large group."""
    try:
        change, waiting = await heard
    except BrokerError as error:
        return _refused(kind, error)
    return await _go_on(kind, answer_of(change), waiting, slices)


async def _go_on(kind: Callable[..., R], work: Work[R], waiting: Waiting | None, slices: Slices) -> R:
    response = await slices.whole(work)
    return response if waiting is None else await _when_committed(kind, response, waiting)


async def _when_committed(kind: Callable[..., R], response: R, waiting: Waiting) -> R:
    error = await waiting
    return response if error is ErrorCode.NONE else kind(error_code=error)


def _refused(kind: Callable[..., R], error: BrokerError) -> R:
    return kind(error_code=error.code, error_message=error.message or None)
