"""A topic that may lose records: `unclean.leader.election.enable=true`, one replica in sync is enough, and somebody who
asks for unclean elections.

Here, and only here, a leader may lack what was committed. What must hold all the same: one leader in an epoch, one
batch at one place of an epoch, a high watermark that never falls in its epoch, no value twice and none that nobody
sent, and a partition that works once everything is healed.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.elect_leaders_response import ElectLeadersResponse
from tests.sim.clients import Admin, Client
from tests.sim.history import History, Place
from tests.sim.producers import Producer
from tests.sim.readers import Reader
from tests.sim.workloads import Simulation, Workload

TOPIC: Final = "loose"
PLACE: Final[Place] = (TOPIC, 0)
UNCLEAN: Final = 1


class Elector(Client):
    """Asks for an unclean election now and then."""

    is_stopping = False

    async def run(self) -> None:
        while not self.is_stopping:
            await asyncio.sleep(self.random.uniform(0.2, 2.0))
            request = ElectLeadersRequest(UNCLEAN, [TopicPartitions(TOPIC, [0])], 1_000)
            await self.ask_any(request, ElectLeadersResponse)


class Unclean(Workload):
    """One producer and one who elects."""

    share = 0.2

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self.history = History()  # what was acknowledged may go

    async def begin(self, admin: Admin) -> None:
        self.simulation.invariants.may_lose[TOPIC] = None
        configs = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
        await admin.create(TOPIC, 1, self.shape.replication_factor, **configs)

    def clients(self) -> Iterable[Client]:
        return [self.as_client(Producer, "loose producer", [PLACE]), self.as_client(Elector, "elector")]

    async def judge(self) -> list[str]:
        last = self.as_judge(Reader, "last loose reader", [PLACE])
        found = await self.running(last, last.read_all(PLACE))
        values = list(found.values())
        self.reached(loose_records=len(values))
        twice = [f"duplicate: {value} in {TOPIC}" for value in values if values.count(value) > 1]
        return twice[:1] + [f"phantom: {value!r} in {TOPIC}" for value in values if value not in self.history.sends][:1]
