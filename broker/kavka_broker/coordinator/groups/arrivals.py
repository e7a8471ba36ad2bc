"""Members that come to a group without members at the same moment.

The first heartbeat of each is held for `ARRIVAL_MS`: so the first of them does not take for itself what all of them are
about to share. A group takes memory here while a heartbeat of it is held, and each of those is one of a connection,
which bounds them.
"""

import asyncio
from dataclasses import dataclass

from kavka_broker.core.consumer_group.gathering import ARRIVAL_MS
from kavka_broker.loop.timers import Timers


@dataclass(slots=True)
class Arrival:
    """The first member that has come to one group, and whether others have. It ends with the last that is held."""

    member_id: str
    is_joint: bool = False
    held: int = 0


class Arrivals:
    """Holds members that arrive; `close` lets all of them go on."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._arrivals: dict[str, Arrival] = {}  # by group
        self._held: dict[asyncio.Future[None], None] = {}

    async def arrive(self, group_id: str, member_id: str) -> bool:
        """Wait for others; returns whether any came meanwhile, or was there already."""
        arrival = self._arrivals.setdefault(group_id, Arrival(member_id))
        arrival.is_joint = arrival.is_joint or arrival.member_id != member_id
        arrival.held += 1
        held = asyncio.get_running_loop().create_future()
        self._held[held] = None
        timer = self._timers.after(ARRIVAL_MS, _let_go, held)
        try:
            await held
            return arrival.is_joint
        finally:
            timer.cancel()
            del self._held[held]
            arrival.held -= 1
            if not arrival.held:
                del self._arrivals[group_id]

    def close(self) -> None:
        """Hold no member any more."""
        for held in self._held:
            _let_go(held)


def _let_go(held: asyncio.Future[None]) -> None:
    if not held.done():
        held.set_result(None)
