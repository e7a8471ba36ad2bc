"""Clients with long requests and long answers, which have room and places in turn; some leave before they are answered.

Each asks a node that is drawn several long questions at once, on connections of its own, and either takes the answers
or leaves at a moment that is drawn. Brokers have as little room as lets one of them go on at a time.

| invariant | meaning |
|---|---|
| waits-beside-room | a request waits for room or for a place, and there is some |
| given-back-twice | less than nothing is counted |
| kept-for-none | after healing, room or places of requests that are over are still counted |

After healing each of them is answered by every node before it is done.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.request.answer_memory import BOUNDS
from tests.sim.clients import Client
from tests.sim.greedy import SIZE_BYTES, Answers
from tests.sim.node import Node
from tests.sim.workloads import Workload

CONNECTIONS: Final = 4
NAMES: Final = 120
NAME_BYTES: Final = 150  # so that a request of them is too long to be read on the loop
ANSWER_SECONDS_MAX: Final = 6.0
LEAVES_WITHIN_SECONDS: Final = 0.08
TIGHT: Final = replace(BOUNDS, making_max=1)
DECODED_BYTES_MAX: Final = 64 * 1024  # less than one of them takes
QUESTIONS: Final[tuple[tuple[Message, int], ...]] = (
    (MetadataRequest([MetadataRequestTopic(name=f"none{n:0{NAME_BYTES}}") for n in range(NAMES)], False), 9),
    (DescribeGroupsRequest([f"none{n:0{NAME_BYTES}}" for n in range(NAMES)]), 5),
)


class Long(Client):
    """Asks node after node, and leaves now and then before it is answered."""

    is_stopping = False

    def __init__(self, *details: object) -> None:
        super().__init__(*details)  # type: ignore[arg-type]
        self.answered = self.left = 0

    async def run(self) -> None:
        while not self.is_stopping:
            leaves = self.random.random() < 0.5
            is_answered = await self._ask(self.random.choice(self._addresses), leaves=leaves)
            self.answered += is_answered
            self.left += leaves and not is_answered
            await self.rest(0.1, 0.6)
        for address in self._addresses:
            while not await self._ask(address, leaves=False):
                await self.pause()

    async def _ask(self, address: tuple[str, int], *, leaves: bool) -> bool:
        """Whether a node has answered everything before the client leaves."""
        seconds = self.random.uniform(0, LEAVES_WITHIN_SECONDS) if leaves else ANSWER_SECONDS_MAX * self.pace
        made: list[tuple[asyncio.Transport, Answers]] = []
        try:
            async with asyncio.timeout(seconds):
                for number in range(CONNECTIONS):
                    made.append(await self.loop.create_connection(Answers, *address))
                    self._send(*made[-1], QUESTIONS[number % len(QUESTIONS)])
                for _, answers in made:
                    await answers.all()
                return not any(answers.is_lost for _, answers in made)
        except OSError:  # of which TimeoutError is one
            return False
        finally:
            for transport, _ in made:
                transport.abort()

    def _send(self, transport: asyncio.Transport, answers: Answers, question: tuple[Message, int]) -> None:
        """Ask twice, so that an answer waits behind another."""
        request, version = question
        assert request.API_KEY is not None
        for _ in range(2):
            header = encode_request_header(RequestHeader(request.API_KEY, version, answers.owed, self.name))
            body = header + encode(request, version)
            transport.write(len(body).to_bytes(SIZE_BYTES, "big") + body)
            answers.owed += 1


class LongRequests(Workload):
    """Three such clients, and brokers without much room for them."""

    share = 0.2

    def clients(self) -> Iterable[Client]:
        self._clients = [self.as_client(Long, f"long{number}") for number in range(3)]
        if "crowds" in self.shape.workloads:  # whose brokers take fewer connections than these need
            return ()
        for node in self.simulation.nodes:
            node.on_serving.append(tighten)
            if node.is_serving:
                tighten(node)
        self.simulation.looking.append(self.after_step)
        return self._clients

    def after_step(self, node: Node) -> None:
        """Look at what waits, and what is counted."""
        if not node.is_serving:
            return
        answers, decoded = node.broker.answers, node.broker.decoded_requests
        if answers.waiting_count and not answers.is_full:
            self.simulation.fail(f"waits-beside-room: {node.host}: {answers.waiting_count} wait for a place")
        if decoded.waiting_count and decoded.used_bytes < decoded.bytes_max:
            self.simulation.fail(f"waits-beside-room: {node.host}: {decoded.waiting_count} wait to be decoded")
        if min(answers.used_bytes, answers.making_count, decoded.used_bytes) < 0:
            self.simulation.fail(f"given-back-twice: {node.host}: {counted(node)}")

    def stop(self) -> None:
        for client in self._clients:
            client.is_stopping = True

    def missing(self) -> list[str]:
        nodes = [node for node in self.simulation.nodes if node.is_serving]
        return [f"kept-for-none: {node.host}: {said}" for node in nodes if (said := counted(node))]

    async def judge(self) -> list[str]:
        self.reached(
            long_answers=sum(client.answered for client in self._clients),
            long_questions_left=sum(client.left for client in self._clients),
        )
        return []


def tighten(node: Node) -> None:
    """Leave the broker little room for long requests and their answers."""
    node.broker.answers.bounds, node.broker.decoded_requests.bytes_max = TIGHT, DECODED_BYTES_MAX


def counted(node: Node) -> str:
    """What the broker counts, in words; nothing where that is nothing."""
    answers, decoded = node.broker.answers, node.broker.decoded_requests
    if not (answers.making_count or answers.used_bytes or decoded.used_bytes):
        return ""
    return f"{answers.making_count} answers, {answers.used_bytes} bytes of them, {decoded.used_bytes} of requests"
