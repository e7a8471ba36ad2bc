"""Turns that a fair queue gives, as futures: a waiter that is given up after it had its turn gives that back."""

import asyncio
from collections.abc import Callable

from kavka_broker.core.fair_queueing import FairQueue, Flow

__all__ = ["Turn", "give_turn", "join_in_turn"]

Turn = asyncio.Future[None]


async def join_in_turn(
    queue: FairQueue[Turn], name: tuple[str, str], *, waits: bool, give_back: Callable[[], None]
) -> Flow[Turn]:
    """Return the flow of a client, to be left by the caller: at once, or where it `waits`, in the flow's turn. It is
    left again where the wait is given up.
    """
    flow = queue.join(*name)
    if waits:
        try:
            await _wait_for_turn(queue, flow, give_back)
        except BaseException:
            queue.leave(flow)
            raise
    return flow


async def _wait_for_turn(queue: FairQueue[Turn], flow: Flow[Turn], give_back: Callable[[], None]) -> None:
    """Wait until `give_turn` gives the flow a turn. `give_back` is called for a turn that was given and is not used."""
    turn = asyncio.get_running_loop().create_future()
    queue.wait(flow, turn)
    try:
        await turn
    except BaseException:
        queue.forget(flow, turn)
        if not turn.cancelled():
            give_back()
        raise


def give_turn(queue: FairQueue[Turn]) -> bool:
    """Give the next waiter its turn. Returns whether there was one."""
    while (taken := queue.take()) is not None:
        _, turn = taken
        if not turn.done():  # otherwise given up just now
            turn.set_result(None)
            return True
    return False
