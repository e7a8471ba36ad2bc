"""A roll under producers of transaction version 2: no transaction fails, and none is long (KAFKA-19925)."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.sim import coordinated as workload
from tests.sim.clients import Client
from tests.sim.cluster import Simulation
from tests.sim.coordinated import IDS, PLACES, Coordinated, Over, Transactional
from tests.sim.shapes import plain
from tests.sim.test_coordinated import coordinated
from tests.support.drawn import in_turn

TIMEOUT_MS = 60_000  # that of Java's producer
SECONDS_MAX = 10.0


class Steady(Transactional):
    """Commits one transaction after the other, each with both partitions and an offset, and nobody else has its id."""

    async def run(self) -> None:
        self.failures = list[str]()
        self.longest = 0.0
        self._coordinators = {}
        self._chance, self._recovery = self.stream("idle"), self.stream("recovery")
        while not self.is_stopping:
            try:
                await self._begin()
                while not self.is_stopping:
                    await self._transact()
                    await self.rest(0.0, 0.2)
            except Over as failure:
                self.failures.append(f"{self.name} at {self.loop.time():.1f} s: {failure}")
        self.has_ended = True

    async def _transact(self) -> None:
        began, written = self.loop.time(), self._begin_recorded()
        for place in PLACES:
            await self._write(place, written)
        await self._commit_offset(written)
        written.committed, written.commit_asked = None, self.loop.time()
        self.fates.committed |= dict.fromkeys(written.values, True)
        try:
            await self._end(commits=True)
            written.committed = True
        finally:
            written.ended = self.loop.time()
        self.longest = max(self.longest, written.ended - began)


class Rolled(Coordinated):
    """One producer for each id."""

    def clients(self) -> Iterable[Client]:
        clients = list(super().clients())
        readers = [client for client in clients if client not in self.transactional]
        former, self.transactional = self.transactional[: len(IDS)], []
        for number, known in enumerate(former):
            producer = self.as_client(Steady, f"steady{number}")
            producer.transactional_id, producer.index, producer.is_former = known.transactional_id, known.index, False
            producer.record, producer.fates, producer.owners = known.record, known.fates, known.owners
            producer.asks_offsets = False
            self.transactional.append(producer)
        return [*self.transactional, *readers]


async def roll(simulation: Simulation) -> None:
    """Restart each node in a controlled way, once all that is there is in sync again."""
    for node in simulation.nodes:
        await asyncio.sleep(1.0)
        await node.stop("a roll")
        await asyncio.sleep(1.0)
        node.start()
        while not node.is_serving or not is_in_sync(simulation):
            await asyncio.sleep(0.2)


def is_in_sync(simulation: Simulation) -> bool:
    """Whether every broker is there, and every replica in sync."""
    image = simulation.invariants.image
    assert image is not None, "nodes have metadata before they are rolled"
    registrations = [image.brokers.get(node.node_id) for node in simulation.nodes]
    states = [state for topic in image.topics for state in topic.partitions.values()]
    return all(found is not None and not found.fenced for found in registrations) and all(
        state.leader >= 0 and len(state.isr) == len(state.replicas) for state in states
    )


@pytest.mark.parametrize("has_releases", [False, True], ids=["one release", "two releases"])
@pytest.mark.parametrize("seed", in_turn([1, 2], 1))
def test_a_roll_fails_no_transaction(seed: int, has_releases: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "GIVES_UP_SHARE", 0.0)
    monkeypatch.setattr(workload, "TIMEOUT_MS", TIMEOUT_MS)
    shape = replace(plain(coordinated(seed, 3)), has_releases=has_releases, pace=1)
    simulation = Simulation(seed, shape, roll)
    rolled = Rolled(simulation)
    simulation.workloads = [rolled]
    outcome = simulation.run()
    assert outcome.failure is None, outcome.failure
    producers = [producer for producer in rolled.transactional if isinstance(producer, Steady)]
    assert [failure for producer in producers for failure in producer.failures] == []
    assert max(producer.longest for producer in producers) < SECONDS_MAX
    assert simulation.events.counts["played.coordinated_committed"] > 20
