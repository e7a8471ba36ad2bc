"""Members of a consumer group that come together, again and again (docs/adr/0040).

In each round all of them leave, and come back at nearly the same moment to a group that has no members then, while
coordinators move. Some hang up while their first heartbeat is held, and come again. `gatherings` says what must never
be.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from kavka_broker.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from tests.sim.clients import Client
from tests.sim.consumers import LEAVES, Consumer, Consumers

ROUND_SECONDS: Final = (3.0, 8.0)
#: From the end of a round to the moment at which all come: those that have left are no members any more.
AWAY_SECONDS: Final = (0.3, 1.2)
#: How much later than the others a member comes: together with them, a moment later, or while they gather.
LATER_SECONDS: Final = (0.0, 0.0, 0.005, 0.015, 0.1)
#: For how long a client waits that hangs up while its heartbeat is held.
IMPATIENT_MS: Final = (6, 12, 18)


@dataclass(slots=True)
class Round:
    """When all come, and which round it is."""

    number: int = 0
    begins: float = 0.0


class Gatherer(Consumer):
    """One member."""

    round: Round
    _taken = 0  # the round in which it takes part

    async def _take_part(self) -> None:
        if self._taken != self.round.number and not self.is_calm:
            await self._come_anew()
        await super()._take_part()

    async def _come_anew(self) -> None:
        """Leave, whether or not anybody hears it, and come when all do."""
        self._taken = self.round.number
        request = ConsumerGroupHeartbeatRequest(self.group_id, self.member_id, LEAVES, self.instance)
        is_member = self.epoch > 0
        self.record.forgets(self.name)
        self._forget()
        self.doing = "goes, to come with the others"
        if is_member:
            await self.try_call(request, ConsumerGroupHeartbeatResponse)
        self._begin_anew()
        await self.find()
        later = self.random.choice(LATER_SECONDS)
        await asyncio.sleep(max(self.round.begins - self.loop.time(), 0.0) + later)

    def _patience_ms(self) -> int:
        if not self.epoch and not self.is_calm and self.random.random() < 0.2:
            return self.random.choice(IMPATIENT_MS)
        return super()._patience_ms()


class Caller(Client):
    """Calls all members together."""

    is_stopping = False
    round: Round

    async def run(self) -> None:
        while not self.is_stopping:
            await asyncio.sleep(self.random.uniform(*ROUND_SECONDS))
            self.round.begins = self.loop.time() + self.random.uniform(*AWAY_SECONDS)
            self.round.number += 1


class Gatherers(Consumers):
    """Two to four members that come together, none of them static, and one who changes their topics."""

    share = 0.03
    kind = Gatherer
    static_counts = (0,)

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        # 0 has no member wait for others.
        return {**super().settings(random), "group.consumer.assignment.interval.ms": random.choice(("300", "1000"))}

    def clients(self) -> Iterable[Client]:
        clients = list(super().clients())
        round_ = Round()
        for client in clients:
            if isinstance(client, Gatherer):
                client.round = round_
        caller = self.as_client(Caller, "caller of gatherers")
        caller.round = round_
        return [*clients, caller]

    async def judge(self) -> list[str]:
        self.reached(consumers_held=self.gatherings.held, consumers_gathered=self.gatherings.gathered)
        return await super().judge()
