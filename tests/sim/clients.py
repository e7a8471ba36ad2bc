"""What all clients of the simulated cluster have in common, and the administrator.

They speak through the broker's own codec and outgoing connections, from hosts of their own, and tell a `History`. Like
the common clients they ask any node who leads, keep to it until it disappoints them, and try again what may be tried
again.
"""

import asyncio
import random
from collections.abc import Sequence

from kavka_broker.net.outbound import Outbound
from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.sim.history import History, Place
from tests.sim.loop import Process, SimLoop

ANSWER_MS = 3_000


class Client:
    """What all have in common: a process of their own, connections, and an idea of who leads."""

    pace = 1  # see `Shape`

    def __init__(self, name: str, loop: SimLoop, addresses: Sequence[tuple[str, int]], history: History) -> None:
        self.name = name
        self.loop = loop
        self.history = history
        self.process = Process(name, name)
        self._seed = loop.random.random()
        self.random = random.Random(f"{self._seed} {name}")
        self._addresses = list(addresses)
        self._peers: dict[tuple[str, int], Peer] = {}
        self._outbound = Outbound()
        self._leaders: dict[Place, tuple[str, int]] = {}
        self._epochs: dict[Place, int] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self.topic_ids: dict[str, bytes] = {}
        # Ids and epochs of producers that any client has got in this run, and the client's name.
        self.given: dict[tuple[int, int], str] = {}

    def stream(self, what: str) -> random.Random:
        """A random stream of its own for a new draw, so that earlier draws stay as they were."""
        return random.Random(f"{self._seed} {self.name} {what}")

    def peer(self, address: tuple[str, int]) -> Peer:
        if address not in self._peers:
            self._peers[address] = self._outbound.to(*address, client_id=self.name)
        return self._peers[address]

    def leave(self) -> None:
        """Close the connections of a client that is done."""
        for peer in self._peers.values():
            peer.close()

    async def ask_any(self, request: Message, response: type[Message]) -> Message | None:
        """The answer of a node that is drawn; None where it has none."""
        try:
            address = self.random.choice(self._addresses)
            return await self.peer(address).ask(request, response, timeout_ms=ANSWER_MS)
        except Unreachable:
            return None

    async def leader(self, place: Place) -> Peer:
        """The leader as it was last known; asks until there is one."""
        while place not in self._leaders:
            await self._learn(place[0])
            if place not in self._leaders:
                await self.pause()
        return self.peer(self._leaders[place])

    def known_leader(self, place: Place) -> tuple[str, int] | None:
        """Return the leader as it was last known, without asking."""
        return self._leaders.get(place)

    def forget_leader(self, place: Place) -> None:
        self._leaders.pop(place, None)

    async def _learn(self, topic: str) -> None:
        request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        answer = await self.ask_any(request, MetadataResponse)
        if not isinstance(answer, MetadataResponse):
            return
        self._nodes |= {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for found in answer.topics:
            if found.error_code:
                continue
            self.topic_ids[topic] = found.topic_id
            for partition in found.partitions:
                place = topic, partition.partition_index
                # Nodes learn of elections one after the other: an older epoch is an older answer.
                if partition.leader_id in self._nodes and partition.leader_epoch >= self._epochs.get(place, -1):
                    self._epochs[place] = partition.leader_epoch
                    self._leaders[place] = self._nodes[partition.leader_id]

    async def rest(self, low_seconds: float, high_seconds: float) -> None:
        """Between two things it does, as long as the seed's pace says."""
        await asyncio.sleep(self.random.uniform(low_seconds, high_seconds) * self.pace)

    async def pause(self) -> None:
        await asyncio.sleep(self.random.uniform(0.02, 0.2))


class Admin(Client):
    """Creates topics, and asks for changes."""

    async def create(self, topic: str, partitions: int, replication_factor: int, **configs: str) -> None:
        """A topic; returns when it is there. Configs with underscores for dots."""
        wanted = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        request = CreateTopicsRequest([CreatableTopic(topic, partitions, replication_factor, [], wanted)], 2_000)
        done = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        while True:
            answer = await self.ask_any(request, CreateTopicsResponse)
            if isinstance(answer, CreateTopicsResponse) and answer.topics[0].error_code in done:
                return
            await self.pause()
