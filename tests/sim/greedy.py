"""Greedy clients: more requests at once than a turn of a broker's loop has time for.

One sends hundreds of requests ahead on few connections, one asks once on each of many, and one connects for each
turn that it takes; all at the same moment, and the same broker. Whether the others still have their turns, `turns`
judges in every seed; here is whether each of them gets all its answers in the order of its requests.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from tests.sim.clients import Client
from tests.sim.workloads import Workload

BURST_SECONDS: Final = 1.5  # from one to the next, times the pace of the seed
ANSWERS_SECONDS_MAX: Final = 5.0
HOLD_UP_SECONDS: Final = 0.005
VERSION: Final = 3
SIZE_BYTES: Final = 4


class Size(NamedTuple):
    """How much one asks for: requests on each of its connections, which the broker may know by then."""

    connections: int
    requests: int
    is_known: bool = True


SIZES: Final = {"pipelined": Size(3, 150), "wide": Size(40, 1), "anew": Size(40, 12, is_known=False)}


class Answers(asyncio.Protocol):
    """Counts the answers on one connection, and is done with the last that is owed, or the connection's end."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.owed = 0
        self.is_lost = False
        self._data = b""
        self._came = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= SIZE_BYTES:
            size_bytes = int.from_bytes(self._data[:SIZE_BYTES], "big")
            frame = self._data[SIZE_BYTES : SIZE_BYTES + size_bytes]
            if len(frame) < size_bytes:
                return
            self._data = self._data[SIZE_BYTES + size_bytes :]
            self.numbers.append(int.from_bytes(frame[:4], "big"))
            self._came.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._came.set()

    async def all(self) -> None:
        while len(self.numbers) < self.owed and not self.is_lost:
            self._came.clear()
            await self._came.wait()


Made = tuple[asyncio.Transport, Answers]


class Greedy(Client):
    """Asks node after node, on so many connections, so many requests on each."""

    is_stopping = False
    size: Size
    hold_up: Callable[[str], None]

    def __init__(self, *details: object) -> None:
        super().__init__(*details)  # type: ignore[arg-type]
        self.answered = 0
        self.misordered: list[str] = []

    async def run(self) -> None:
        made: list[Made] = []
        while not self.is_stopping:
            try:
                async with asyncio.timeout(ANSWERS_SECONDS_MAX * self.pace):
                    await self._burst(made)
            except OSError:  # of which TimeoutError is one
                await self.pause()
            finally:
                for transport, answers in made:
                    self._count(answers)
                    transport.close()
                made.clear()

    async def _burst(self, made: list[Made]) -> None:
        """Connect, then send all at once: at a moment, and to a node, that are the same for all."""
        period = BURST_SECONDS * self.pace
        number = int(self.loop.time() / period) + 1
        host, port = self._addresses[number % len(self._addresses)]
        while len(made) < self.size.connections:
            made.append(await self.loop.create_connection(Answers, host, port))
        if self.size.is_known:
            await self._ask(made, 1)
        await asyncio.sleep(number * period - self.loop.time())
        self.hold_up(host)
        await self._ask(made, self.size.requests)

    async def _ask(self, made: list[Made], count: int) -> None:
        """Send so many on each connection, and wait for the answers."""
        for transport, answers in made:
            first = answers.owed
            answers.owed += count
            transport.write(b"".join(map(self._request, range(first, answers.owed))))
        for _, answers in made:
            await answers.all()

    def _request(self, number: int) -> bytes:
        request = ApiVersionsRequest("greedy", "1")  # begun and answered in one step
        header = encode_request_header(RequestHeader(request.API_KEY or 0, VERSION, number, self.name))
        body = header + encode(request, VERSION)
        return len(body).to_bytes(SIZE_BYTES, "big") + body

    def _count(self, answers: Answers) -> None:
        self.answered += len(answers.numbers)
        if answers.numbers != [*range(len(answers.numbers))]:
            self.misordered.append(f"greedy-misordered: {self.name} was answered {answers.numbers}")


class Greediness(Workload):
    """A client that pipelines, one with many connections, and one with ever new ones."""

    share = 0.2

    def clients(self) -> Iterable[Client]:
        self._greedy = [self.as_client(Greedy, name) for name in SIZES]
        for client in self._greedy:
            client.size = SIZES[client.name]
            client.hold_up = self._hold_up
        return () if "crowds" in self.shape.workloads else self._greedy  # whose brokers take less than these need

    def _hold_up(self, host: str) -> None:
        """Have the loop of this node do something else until all has arrived: else it is through with each piece
        before the next one comes.
        """
        process = next(node.process for node in self.simulation.nodes if node.host == host)
        if process.is_alive and not process.is_busy:
            self.loop.occupy(process, HOLD_UP_SECONDS)

    async def judge(self) -> list[str]:
        self.reached(greedy_answers=sum(client.answered for client in self._greedy))
        return [what for client in self._greedy for what in client.misordered]
