"""Threads that work for requests, a few at a time; whose turn it is goes by the time that its client has had of them.

So a client that sends large requests, or batches that unpack to very much, makes others wait for what is at work, and
not for all that it has sent. What a thread does for a request counts for `request_percentage`, as its time on the loop.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from kavka_broker.core.fair_queueing import FairQueue, Flow
from kavka_broker.loop.fair_turns import Turn, give_turn, join_in_turn
from kavka_broker.loop.slices import Payer, Slices
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation

R = TypeVar("R")
Outcome = tuple[Any, Exception | None, int]  # with the time that it took


class RequestThreads:
    """At most `threads_max` threads. The time of `slices` names the request that pays for the work."""

    def __init__(self, slices: Slices, threads_max: int) -> None:
        self._slices = slices
        self._free = threads_max
        self._queue: FairQueue[Turn] = FairQueue()

    async def run(self, function: Callable[..., R], *arguments: object) -> R:
        """Return the function's result, from a thread in its client's turn. Raises what the function raises."""
        payer, measure = self._slices.time.payer, self._slices.time.thread_ns
        waits = not self._free
        if not waits:
            self._free -= 1
        name = self._slices.time.queue_name
        flow = await join_in_turn(self._queue, name, waits=waits, give_back=self._pass_on)
        work = asyncio.ensure_future(asyncio.to_thread(_outcome, measure, function, arguments))
        work.add_done_callback(partial(self._over, flow, payer))
        # Shielded: a thread cannot be stopped, and its place is free only when it has finished.
        result, error, _ = await asyncio.shield(work)
        if error is None:
            return result  # type: ignore[no-any-return]
        try:
            raise error
        finally:
            del error, work  # its traceback holds this frame

    def _over(self, flow: Flow[Turn], payer: Payer | None, work: "asyncio.Future[Outcome]") -> None:
        if not work.cancelled() and work.exception() is None:
            took_ns = work.result()[2]
            self._queue.charge(flow, took_ns)
            if payer is not None:
                payer.loop_ns += took_ns
        self._queue.leave(flow)
        self._pass_on()

    def _pass_on(self) -> None:
        """Give a thread's place to the next request in turn."""
        if not give_turn(self._queue):
            self._free += 1


def _outcome(measure: Callable[[], int], function: Callable[..., Any], arguments: tuple[object, ...]) -> Outcome:
    began_ns = measure()
    try:
        return function(*arguments), None, measure() - began_ns
    except (BrokerError, ProtocolViolation) as refusal:
        # Its traceback leads to the frame of the thread that holds the outcome: a cycle, which no collection finds.
        return None, refusal.with_traceback(None), measure() - began_ns
    except Exception as error:  # noqa: BLE001 - raised again on the loop, if anybody still waits for it
        return None, error, measure() - began_ns
