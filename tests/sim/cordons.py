"""Brokers that take no new replicas for a time (KIP-1066), while nodes fail and topics come.

| rule | broken where |
|---|---|
| CordonedTakeNone | a partition began on a broker that had said, before it was asked for, that it is cordoned |
| CordonsEnd | a broker that is cordoned no more is to the controller for good |

One broker at a time is cordoned, and not for long: others make topics that need each broker of three.
"""

import asyncio
from collections.abc import Iterable
from itertools import count
from typing import Any, Final

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.workloads import Workload

BROKER_RESOURCE: Final = 4
SET, DELETE = 0, 1
ALL: Final = "*"
LOOKS_MAX: Final = 20
PARTITIONS: Final = 4


class Cordoner(Client):
    """Cordons a broker, makes topics meanwhile, and lets it take replicas again."""

    is_stopping = False
    is_done = False
    simulation: Any

    async def run(self) -> None:
        self.wrong: list[str] = []
        self.told = self.placed = 0
        self._names = (f"cordoned{number}" for number in count())
        while not self.is_stopping:
            await self.rest(0.2, 1.0)
            if any(node.volume is not None for node in self.simulation.nodes):
                continue  # the only replica of a topic would go with what stands in the volume's place
            node = self.random.choice(self.simulation.nodes)
            if await self._alter(node, SET) and await self._is_told(node):
                self.told += 1
                for _ in range(self.random.randint(1, 3)):
                    await self._place(node)
            await self._release(node)
        for node in self.simulation.nodes:
            await self._release(node)
        self.is_done = True

    async def _alter(self, node: Any, operation: int) -> bool:
        config = AlterableConfig("cordoned.log.dirs", operation, ALL if operation == SET else None)
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER_RESOURCE, str(node.node_id), [config])])
        answer = await self.ask_any(request, IncrementalAlterConfigsResponse)
        return isinstance(answer, IncrementalAlterConfigsResponse) and not answer.responses[0].error_code

    async def _release(self, node: Any) -> None:
        while not await self._alter(node, DELETE):
            await self.pause()

    async def _is_told(self, node: Any) -> bool:
        """Whether the broker says before long that all of its directories are cordoned, as metadata does."""
        address = node.host, self._addresses[0][1]
        for _ in range(LOOKS_MAX):
            try:
                answer = await self.peer(address).ask(
                    DescribeLogDirsRequest(None), DescribeLogDirsResponse, timeout_ms=ANSWER_MS
                )
            except Unreachable:
                return False
            if answer.results and all(result.is_cordoned for result in answer.results):
                return True
            await self.pause()
        return False

    async def _place(self, node: Any) -> None:
        """Make a topic for which one broker does, wherever the controller has it begin."""
        name = next(self._names)
        answer = await self.ask_any(
            CreateTopicsRequest([CreatableTopic(name, PARTITIONS, 1)], 1_000), CreateTopicsResponse
        )
        if not isinstance(answer, CreateTopicsResponse) or answer.topics[0].error_code:
            return
        is_forgotten = node.node_id in self.simulation.registrations.unregistered
        replicas = await self._replicas(name)
        self.placed += bool(replicas)
        if node.node_id in replicas and not is_forgotten:
            self.wrong.append(f"CordonedTakeNone: {name} began on {node.host}, which had said that it is cordoned")
        await self.ask_any(DeleteTopicsRequest([DeleteTopicState(name)], [name], 1_000), DeleteTopicsResponse)

    async def _replicas(self, topic: str) -> set[int]:
        """Where a topic is, once the broker that is asked has heard of it; nowhere if that takes long."""
        request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        for _ in range(LOOKS_MAX):
            answer = await self.ask_any(request, MetadataResponse)
            if isinstance(answer, MetadataResponse) and answer.topics[0].error_code == ErrorCode.NONE:
                return {broker for partition in answer.topics[0].partitions for broker in partition.replica_nodes}
            await asyncio.sleep(0.1)
        return set()


class Cordons(Workload):
    """One cordoner, whose topics are gone again as soon as it has seen where they began."""

    share = 0.15

    def clients(self) -> Iterable[Client]:
        self._cordoner = self.as_client(Cordoner, "cordoner")
        self._cordoner.simulation = self.simulation
        return [self._cordoner]

    def stop(self) -> None:
        self._cordoner.is_stopping = True

    def missing(self) -> list[str]:
        """CordonsEnd: what the controller holds for cordoned although nothing is any more."""
        if not self._cordoner.is_done:
            return ["the cordoner has not let every broker take replicas again"]
        image = self.simulation.invariants.image
        known = [(node.host, image.brokers.get(node.node_id)) for node in self.simulation.nodes]
        return [f"{host} is cordoned" for host, broker in known if broker is not None and broker.cordoned_directories]

    async def judge(self) -> list[str]:
        self.reached(brokers_cordoned=self._cordoner.told, placed_beside_cordoned=self._cordoner.placed)
        return self._cordoner.wrong
