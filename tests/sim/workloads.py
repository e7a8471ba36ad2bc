"""What clients do beside the main topic, one module each; which of it a seed plays, it draws.

A workload makes its topics, brings its clients, stops them after healing, and then judges by its own rules what they
were told. Whatever a batch or a commit has to be true to is in `invariants`; here is what only the clients can know.
"""

from collections.abc import Iterable
from random import Random
from typing import Any, TypeVar

from tests.sim.clients import Admin, Client
from tests.sim.history import History

Simulation = Any
Kind = TypeVar("Kind", bound=Client)


class Workload:
    """One kind of clients with their topics. `share` of the seeds play it."""

    share = 0.4

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        """What every broker is configured with for it."""
        return {}

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.shape = simulation.shape
        self.loop = simulation.loop
        self.random = Random(f"{type(self).__name__} {simulation.seed}")
        self.history = History(told=simulation.invariants.acknowledged, read=simulation.invariants.was_read)

    async def begin(self, admin: Admin) -> None:
        """Make what the clients need."""

    def clients(self) -> Iterable[Client]:
        """Those who begin at once."""
        return ()

    def stop(self) -> None:
        """Everything has been healed: bring what is under way to its end."""

    def missing(self) -> list[str]:
        """What has not come to its end yet, in words that name the cause."""
        return []

    async def judge(self) -> list[str]:
        """What cannot be, once nothing is missing any more."""
        return self.history.anomalies()

    async def afterwards(self) -> list[str]:
        """What cannot be, once the cluster is whole and everybody has been judged: time for what takes its time."""
        return []

    def reached(self, **marks: int) -> None:
        """Count what this workload is for; `runner.MUST_BE_REACHED` asks for it."""
        for name, count in marks.items():
            self.simulation.events.counts[f"played.{name}"] += count

    def host(self, number: int) -> str:
        """Of a client: the faults know the hosts of producers and readers, and cut them off."""
        hosts = self.simulation.client_hosts[2:]
        chosen: str = hosts[number % len(hosts)]
        return chosen

    def as_client(self, make: type[Kind], name: str, *details: Any) -> Kind:
        """A client of this kind on one of the hosts."""
        client = make(name, self.loop, self.simulation.addresses, self.history, *details)
        client.process.host = self.host(sum(name.encode()))
        return client

    def as_judge(self, make: type[Kind], name: str, *details: Any) -> Kind:
        """A client that looks at what has become of it all, on a host of its own: those that play hold as many
        connections as an address may have, and wait for each other.
        """
        client = self.as_client(make, name, *details)
        client.process.host = name
        return client

    async def running(self, client: Client, work: Any) -> Any:
        """The result of what a client does, done on its host."""
        return await self.loop.create_task(work, context=client.process.context())
