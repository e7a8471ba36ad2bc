"""A topic whose replication is throttled (KIP-73), and what the quota must not do.

While a storm goes on the rate is large. When all is quiet it becomes a byte a second:

| anomaly | meaning |
|---|---|
| held-in-sync | records wait for followers that are in sync, as if the quota were for these |
| held-for-good | a follower that was away does not come back into the in-sync set |
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Final

from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.sim.changes import SET
from tests.sim.clients import Admin, Client
from tests.sim.cordons import BROKER_RESOURCE
from tests.sim.history import Place
from tests.sim.node import Node
from tests.sim.readers import Reader
from tests.sim.reigns import leader_of, until
from tests.sim.throttled import HeldProducer
from tests.sim.workloads import Workload

TOPIC: Final = "held"
PLACE: Final[Place] = (TOPIC, 0)
RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LARGE, SMALL = "20000", "1"
BATCHES: Final = 8
#: A window of the quota is two seconds: whoever is held back waits for one after each batch.
IN_SYNC_SECONDS_MAX: Final = 6.0
AWAY_SECONDS_MAX: Final = 12.0
BACK_SECONDS_MAX: Final = 60.0


class ThrottledProducer(HeldProducer):
    """Waits for all replicas."""

    place = PLACE

    async def send_some(self, count: int) -> None:
        """Send until so many requests have been answered."""
        wanted = self.answers + count
        while self.answers < wanted:
            await self._send()


class ReplicationQuotas(Workload):
    """One producer and a reader; at the end a follower that is away for a while."""

    share = 0.2

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {"replication.quota.window.num": "2"}

    async def begin(self, admin: Admin) -> None:
        throttled = {"leader_replication_throttled_replicas": "*", "follower_replication_throttled_replicas": "*"}
        min_isr = str(self.shape.min_isr)
        await admin.create(TOPIC, 1, self.shape.replication_factor, min_insync_replicas=min_isr, **throttled)
        await self._limit(admin, LARGE)

    async def _limit(self, client: Client, rate: str) -> None:
        """Set the rates of all brokers."""
        configs = [AlterableConfig(key, SET, rate) for key in RATES]
        for node in self.simulation.nodes:
            request = IncrementalAlterConfigsRequest(
                [AlterConfigsResource(BROKER_RESOURCE, str(node.node_id), configs)]
            )
            while True:
                answer = await client.ask_any(request, IncrementalAlterConfigsResponse)
                if isinstance(answer, IncrementalAlterConfigsResponse) and not answer.responses[0].error_code:
                    break
                await client.pause()

    def clients(self) -> Iterable[Client]:
        self._producer = self.as_client(ThrottledProducer, "producer of held")
        self._reader = self.as_client(Reader, "reader of held", [PLACE])
        return [self._producer, self._reader]

    def stop(self) -> None:
        self._producer.told_before = len(self._producer.told)

    def missing(self) -> list[str]:
        return [] if self._producer.is_done else [f"{self._producer.name} is not answered"]

    async def judge(self) -> list[str]:
        last = self.as_judge(Reader, "last reader of held", [PLACE])
        found = await self.running(last, last.read_all(PLACE))
        self.history.read_finally(PLACE, found)
        lost = [f"held-lost: {value}" for value, offset in self._producer.told.items() if found.get(offset) != value]
        return [*lost[:1], *self.history.anomalies()]

    async def afterwards(self) -> list[str]:
        """Throttle a cluster that is whole, take a follower away, and bring it back."""
        producer = self.as_judge(ThrottledProducer, "last producer of held")
        await self.running(producer, self._limit(producer, SMALL))
        try:
            async with asyncio.timeout(IN_SYNC_SECONDS_MAX):
                await self.running(producer, producer.send_some(BATCHES))
        except TimeoutError:
            why = f"{BATCHES} requests take more than {IN_SYNC_SECONDS_MAX:.0f} s, with all replicas in sync"
            return [f"held-in-sync: {why}"]
        found = []
        state, leader = self.simulation.invariants.partition_state(PLACE), leader_of(self.simulation, PLACE)
        followers = [node for node in self.simulation.nodes if node.node_id in state.replicas and node is not leader]
        if followers and self.simulation.may_end(followers[-1]):
            await self._part_for_a_while(producer, followers[-1])
            if not await until(self.simulation, self._is_whole, BACK_SECONDS_MAX):
                found.append(f"held-for-good: {self.simulation.invariants.partition_state(PLACE)}")
        self.reached(replicas_held_back=1)
        return found

    async def _part_for_a_while(self, producer: ThrottledProducer, node: Node) -> None:
        """Have records come while a follower is away; none is answered where it was the only voter."""
        node.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(AWAY_SECONDS_MAX):
                await self.running(producer, producer.send_some(BATCHES))
        if not node.is_alive:
            node.start()
        await until(self.simulation, lambda: node.is_serving, BACK_SECONDS_MAX)
        await asyncio.sleep(0.5)

    def _is_whole(self) -> bool:
        state = self.simulation.invariants.partition_state(PLACE)
        return len(state.isr) == len(state.replicas)
