"""Members that come to a group without members at the same moment.

The first heartbeat of each is held for `ARRIVAL_MS`: so the first of them does not take for itself what all of them are
about to share. A group whose members are all heard takes no memory here; each request that is held is one of a
connection, which bounds them.
"""

import asyncio
from dataclasses import dataclass, field

from kavka_broker.core.consumer_group.gathering import ARRIVAL_MS
from kavka_broker.loop.timers import Timers


@dataclass(slots=True)
class Arrival:
    """The members that have come to one group. It ends with the last of those that are held."""

    member_ids: set[str] = field(default_factory=set)
    held: int = 0


class Arrivals:
    """Holds members that arrive; `close` lets all of them go on."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._arrivals: dict[str, Arrival] = {}  # by group
        self._held: dict[asyncio.Future[None], None] = {}

    async def arrive(self, group_id: str, member_id: str) -> bool:
        """Wait for others; returns whether any came meanwhile, or was there already."""
        arrival = self._arrivals.setdefault(group_id, Arrival())
        arrival.member_ids.add(member_id)
        arrival.held += 1
        held = asyncio.get_running_loop().create_future()
        self._held[held] = None
        timer = self._timers.after(ARRIVAL_MS, _let_go, held)
        try:
            await held
            return len(arrival.member_ids) > 1
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
