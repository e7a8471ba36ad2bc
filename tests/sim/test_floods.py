"""Clients flood the node that leads everything; what the cluster itself says is answered all the same.

What a step of that node takes is counted in calls of functions, of which each takes `CALL_SECONDS` of simulated time:
as on a slow machine, and the same on each. So whoever waits for too long is fenced or outvoted, as it would be there.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import pack
from types import FrameType
from typing import Any, Final

import pytest

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.sim.cluster import Shape, Simulation
from tests.sim.loop import PROCESS, Process, SimHandle
from tests.sim.node import CLIENT_PORT, Node
from tests.sim.test_scenarios import play
from tests.support.drawn import in_turn

CALL_SECONDS: Final = 0.5e-6
STEP_SECONDS_MAX: Final = 0.010
FLOOD_SECONDS: Final = 2.0
NEVER: Final = ("broker.fenced", "raft.election.begun", "isr_shrink.proposed")
SETTINGS: Final = {
    "broker.session.timeout.ms": "600",
    "broker.heartbeat.interval.ms": "100",
    "controller.quorum.fetch.timeout.ms": "600",
    "replica.lag.time.max.ms": "800",
}
WIDE: Final = 4_000

Flood = tuple[int, list[Message], int]  # so many connections send these, all at once and again, in this version

SMALL: Final[Flood] = (10, [HeartbeatRequest("g", 1, "m")] * 600, 4)
FETCHES: Final[Flood] = (
    4,
    [FetchRequest(max_wait_ms=0, topics=[FetchTopic("none", partitions=[FetchPartition(i) for i in range(WIDE)])])],
    12,
)
PRODUCES: Final[Flood] = (
    4,
    [
        ProduceRequest(
            None,
            1,
            1000,
            [TopicProduceData("none", partition_data=[PartitionProduceData(i, b"x") for i in range(WIDE)])],
        )
    ],
    12,
)
NAMES: Final[Flood] = (
    4,
    [MetadataRequest([MetadataRequestTopic(name=f"n{i}") for i in range(WIDE)], allow_auto_topic_creation=False)],
    12,
)


class Costs:
    """Makes a process of the simulation take its time."""

    def __init__(self, simulation: Simulation) -> None:
        self._loop = simulation.loop
        self._calls = 0
        self.longest_seconds = 0.0

    @contextmanager
    def of(self, process: Process) -> Iterator[None]:
        step = self._loop._step

        def counted(handle: SimHandle) -> None:
            if handle.context.get(PROCESS) is not process or process.is_busy or is_of_thread(handle.call):
                step(handle)
                return
            self._calls = 0
            sys.setprofile(self._called)
            try:
                step(handle)
            finally:
                sys.setprofile(None)
            self._take(process, self._calls * CALL_SECONDS)

        self._loop._step = counted  # type: ignore[method-assign]
        try:
            yield
        finally:
            self._loop._step = step  # type: ignore[method-assign]

    def _called(self, _: FrameType, event: str, __: object) -> None:
        self._calls += event in ("call", "c_call")

    def _take(self, process: Process, seconds: float) -> None:
        self.longest_seconds = max(self.longest_seconds, seconds)
        self._loop.occupy(process, seconds)


def is_of_thread(call: Callable[..., Any]) -> bool:
    return getattr(call, "__qualname__", "").endswith("run_in_executor.<locals>.work")


class Flooder(asyncio.Protocol):
    """Sends the same again as soon as all of it is answered."""

    def __init__(self, requests: list[Message], version: int) -> None:
        self._data = b"".join(map(self._framed, requests, [version] * len(requests)))
        self._count, self._left = len(requests), 0
        self._received = bytearray()
        self.answers: deque[int] = deque(maxlen=1)

    def _framed(self, request: Message, version: int) -> bytes:
        assert request.API_KEY is not None
        frame = encode_request_header(RequestHeader(request.API_KEY, version, 1, "flood")) + encode(request, version)
        return pack(">i", len(frame)) + frame

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._left = self._count
        self._transport.write(self._data)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4 and len(self._received) >= 4 + int.from_bytes(self._received[:4]):
            del self._received[: 4 + int.from_bytes(self._received[:4])]
            self._left -= 1
        if not self._left:
            self.answers.append(sum(self.answers) + 1)
            self._send()


async def flood(simulation: Simulation, node: Node, flood: Flood) -> int:
    """How often it was answered."""
    count, requests, version = flood
    flooders = [Flooder(requests, version) for _ in range(count)]
    for flooder in flooders:
        await simulation.loop.create_connection(lambda protocol=flooder: protocol, node.host, CLIENT_PORT)
    await asyncio.sleep(FLOOD_SECONDS)
    for flooder in flooders:
        flooder._transport.abort()
    return sum(sum(flooder.answers) for flooder in flooders)


FLOODS: Final = {"small": SMALL, "fetches": FETCHES, "produces": PRODUCES, "names": NAMES}


@pytest.mark.parametrize("name", in_turn([*FLOODS], 2))
def test_a_flooded_node_keeps_what_it_leads(name: str) -> None:
    kind = FLOODS[name]

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1.5)
        (active,) = [node for node in simulation.nodes if node.server is not None and node.server.broker.leads]
        before = {event: simulation.events.counts[event] for event in NEVER}
        costs = Costs(simulation)
        with costs.of(active.process):
            stranger = Process("flood", "flood")
            task = asyncio.get_running_loop().create_task(flood(simulation, active, kind), context=stranger.context())
            answers = await task
        simulation.say(f"{answers} answers, longest {costs.longest_seconds:.4f}")
        assert answers > kind[0], "it was answered again and again"
        assert {event: simulation.events.counts[event] for event in NEVER} == before
        assert costs.longest_seconds < STEP_SECONDS_MAX

    play(1, scenario, Shape(partitions=1, seconds=6.0, settings=SETTINGS))
