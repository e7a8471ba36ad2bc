"""A cluster's metadata without a cluster: images that grow by decisions, and controllers over a simulated disk."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import TypeVar

from kavka_broker.controller.controller import Controller
from kavka_broker.controller.format import format_directory
from kavka_broker.controller.metadata_log_opener import open_metadata_log
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.quorum import Quorum
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import policy_of
from kavka_broker.core.metadata.decide.heartbeats import Heartbeat, heartbeat, leave
from kavka_broker.core.metadata.decide.registrations import Register, register
from kavka_broker.core.metadata.decide.topics import Created, CreateTopic, Defaults, create_topics
from kavka_broker.core.metadata.image.brokers import Endpoint
from kavka_broker.core.metadata.image.features import SUPPORTED_LEVELS
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError
from tests.support.sim_disk import SimDisk

R = TypeVar("R")

CLUSTER_ID = "a2F2a2EtaW4tbWVtb3J5IQ"
START_MS = 1_800_000_000_000
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
}


def uuid(number: int) -> bytes:
    """A uuid that is easy to recognise."""
    return (number + 1000).to_bytes(16, "big")


def enact(metadata: Metadata, decision: Decision[R]) -> R:
    """Make a decision true at once, as if it were committed."""
    for record in decision.records:
        metadata.replay(record)
    return decision.response


def directory_of(broker_id: int) -> bytes:
    return uuid(500 + broker_id)


def introduction(broker_id: int, rack: str | None = None, incarnation: int = 0, previous_epoch: int = -1) -> Register:
    """A broker as it introduces itself."""
    endpoint = Endpoint("PLAINTEXT", f"broker-{broker_id}", 9092)
    incarnation_id = uuid(10_000 + 100 * broker_id + incarnation)
    directories = (directory_of(broker_id),)
    return Register(
        broker_id, incarnation_id, (endpoint,), directories, SUPPORTED_LEVELS, rack=rack, previous_epoch=previous_epoch
    )


def join(
    metadata: Metadata,
    broker_id: int,
    rack: str | None = None,
    incarnation: int = 0,
    previous_epoch: int = -1,
) -> int:
    """Register a broker and unfence it; its epoch."""
    epoch = enact(metadata, register(metadata, introduction(broker_id, rack, incarnation, previous_epoch)))
    enact(metadata, heartbeat(metadata, Heartbeat(broker_id, epoch, metadata.offset)))
    return epoch


def cluster(*broker_ids: int, topics: Mapping[str, int] | None = None) -> Metadata:
    """An image with these brokers, and topics with so many partitions of one replica."""
    metadata = Metadata()
    for broker_id in broker_ids:
        join(metadata, broker_id)
    for number, (name, partitions) in enumerate((topics or {}).items()):
        made(metadata, CreateTopic(name, uuid(number), partitions, 1))
    return metadata


def create(metadata: Metadata, command: CreateTopic) -> Created | BrokerError:
    """Create a topic, and make it true unless it is refused."""
    (result,) = enact(metadata, create_topics(metadata, [command], Defaults()))
    return result


def made(metadata: Metadata, command: CreateTopic) -> Created:
    result = create(metadata, command)
    assert isinstance(result, Created), result
    return result


async def register_broker(controller: Controller, config: BrokerConfig) -> int:
    """Register a broker in the controller's own process and unfence it; its epoch."""
    command = Register(
        broker_id=config.node_id,
        incarnation_id=controller.new_uuid(),
        endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", 9092),),
        directories=(uuid(1),),
        features=SUPPORTED_LEVELS,
    )
    policy = policy_of(config)
    epoch = await controller.submit(lambda metadata, _: register(metadata, command, policy))
    alive = Heartbeat(config.node_id, epoch, controller.metadata.offset)
    await controller.submit(lambda metadata, _: heartbeat(metadata, alive, policy))
    return epoch


async def leave_cluster(controller: Controller) -> None:
    """Fence the controller's own broker before it stops."""
    await controller.submit(lambda metadata, _: leave(metadata, controller.node_id))


class StillClock:
    """Time that moves when a test says so."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> float:
        return float(self.time_ms)


class Machine:
    """One controller's disk, clock and configuration; controllers come and go on it."""

    def __init__(self, **settings: str) -> None:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        self.config = BrokerConfig.parse({**PROPERTIES, **dotted})
        self.disk = SimDisk(now_ms=START_MS)
        self.clock = StillClock()
        self.syncs = 0
        self._numbers = count(1)

    def random_bytes(self, size: int) -> bytes:
        """Never the same twice, and the same in every run."""
        return next(self._numbers).to_bytes(size // 2, "big") * 2

    def format(self) -> None:
        format_directory(self.disk, self.config, CLUSTER_ID, now_ms=START_MS, random_bytes=self.random_bytes)

    def open(self, crash: Callable[[BaseException], None] | None = None) -> Controller:
        log = open_metadata_log(self.disk, self.config, now_ms=self.clock.now_ms())
        ports = Ports(self.clock, run_blocking=self.run_blocking, random_bytes=self.random_bytes)
        return Controller(Quorum.open(self.config, log, ports if crash is None else replace(ports, crash=crash)))

    async def run_blocking(self, work: Callable[[], None]) -> None:
        """The thread that syncs: others get their turn before it is done."""
        self.syncs += 1
        await asyncio.sleep(0)
        work()

    async def stop(self, controller: Controller) -> None:
        """A clean stop: what was decided becomes true first."""
        await controller.finish()
        await controller.quorum.stop()

    async def kill(self, controller: Controller) -> None:
        """The process is gone from one moment to the next; what it had on its way to the disk may be there or not."""
        runner = controller.quorum.runner
        runner.is_failed = True
        for task in (runner.syncs.task, runner.blocked):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[Controller]:
        """A controller that leads, stopped cleanly at the end."""
        controller = self.open()
        await controller.quorum.start()
        yield controller
        await self.stop(controller)
