"""An address that connects as fast as it can under a connection_creation_rate, one that is free, and clients that push
their metrics more often than they were told.

Brokers count for themselves, and begin again with each life. Over any window a broker serves an address under a rate no
more than its limit and one burst; the other address is never turned away; and both are served after healing. Of two
pushes of an instance that are taken the later comes no sooner than its interval, and whose connection has ended is
forgotten.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from random import Random
from typing import Any, Final

from kavka_broker.core.quota.entity import IpEntity
from kavka_broker.protocol.codec import decoder, encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import alter_client_quotas_request as altering
from kavka_broker.protocol.messages import incremental_alter_configs_request as configuring
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kavka_broker.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.push_telemetry_request import PushTelemetryRequest
from kavka_broker.protocol.messages.push_telemetry_response import PushTelemetryResponse
from tests.sim.clients import Admin, Client
from tests.sim.loop import SimLoop
from tests.sim.node import Node
from tests.sim.workloads import Workload
from tests.support.pushes import gauge, metrics

RATE_KEY: Final = "connection_creation_rate"
RUSHING, FREE = "rushing", "free"  # hosts
RATE: Final = 4
SAMPLES: Final = 2  # of a second; one more is kept
CLOCK_RATE_MAX: Final = 1.1  # of a broker whose clock drifts
INTERVAL_MS: Final = 500
PUSHES: Final = 12
PUSH: Final = metrics(gauge("org.level", 2.5))
CLIENT_METRICS: Final = 16
ANSWER_SECONDS_MAX: Final = 5.0
Life = tuple[str, int]  # of a node: its host, and the number of its start
Moment = tuple[float, float]  # between these something was


class Line(asyncio.Protocol):
    """A connection on which one question is asked at a time."""

    def __init__(self) -> None:
        self._data = b""
        self._answer: asyncio.Future[bytes | None] | None = None
        self._transport: asyncio.Transport
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        size_bytes = int.from_bytes(self._data[:4], "big")
        if len(self._data) >= 4 + size_bytes and self._answer is not None and not self._answer.done():
            frame, self._data = self._data[4 : 4 + size_bytes], self._data[4 + size_bytes :]
            self._answer.set_result(frame)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)

    async def ask(self, request: Message, response: type[Message], version: int) -> Message | None:
        """The answer; None where the connection has ended."""
        if self.is_lost:
            return None
        assert request.API_KEY is not None
        header = encode_request_header(RequestHeader(request.API_KEY, version, 1, "rushing"))
        body = header + encode(request, version)
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(len(body).to_bytes(4, "big") + body)
        if (frame := await self._answer) is None:
            return None
        _, start = read_response_header(request.API_KEY, version, memoryview(frame))
        answer, _ = decoder(response, version)(memoryview(frame), start)
        return answer

    def close(self) -> None:
        self._transport.close()


class Comer(Client):
    """Connects again for each question, to a node that is drawn."""

    loop: SimLoop
    is_stopping = False
    is_served_since = False  # since healing
    rest_seconds = (0.5, 1.5)
    workload: "Rushing"

    async def run(self) -> None:
        self.served: dict[Life, list[Moment]] = defaultdict(list)
        while not self.is_stopping or not self.is_served_since:
            await self.rest(*self.rest_seconds)
            node = self.random.choice(self.workload.simulation.nodes)
            host, port = self._addresses[self.workload.simulation.nodes.index(node)]
            life, began = self.workload.life_of(node), self.loop.time()
            try:
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    is_answered = await self._visit(host, port)
            except OSError:  # of which TimeoutError is one
                continue
            self.is_served_since |= is_answered and self.is_stopping
            if is_answered and life is not None and life == self.workload.life_of(node):
                self.served[life].append((began, self.loop.time()))

    async def _visit(self, host: str, port: int) -> bool:
        _, line = await self.loop.create_connection(Line, host, port)
        try:
            return await line.ask(ApiVersionsRequest("rushing", "1"), ApiVersionsResponse, 3) is not None
        finally:
            line.close()


class Pusher(Client):
    """Asks what to push, and pushes five times as often as it was told."""

    loop: SimLoop
    is_stopping = False

    async def run(self) -> None:
        self.taken: list[list[Moment]] = []  # of each connection
        while not self.is_stopping:
            try:
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    _, line = await self.loop.create_connection(Line, *self.random.choice(self._addresses))
                    try:
                        await self._push(line)
                    finally:
                        line.close()
            except OSError:
                await self.pause()
            await self.rest(0.1, 0.5)

    async def _push(self, line: Line) -> None:
        asking = GetTelemetrySubscriptionsRequest()
        told = await line.ask(asking, GetTelemetrySubscriptionsResponse, 0)
        if not isinstance(told, GetTelemetrySubscriptionsResponse) or told.push_interval_ms != INTERVAL_MS:
            return
        taken: list[Moment] = []
        self.taken.append(taken)
        push = PushTelemetryRequest(told.client_instance_id, told.subscription_id, metrics=PUSH)
        for _ in range(PUSHES):
            began = self.loop.time()
            answer = await line.ask(push, PushTelemetryResponse, 0)
            if isinstance(answer, PushTelemetryResponse) and answer.error_code == ErrorCode.NONE:
                taken.append((began, self.loop.time()))
            await asyncio.sleep(INTERVAL_MS / 5 / 1000)


class Rushing(Workload):
    """Who rushes, who comes now and then, and two that push."""

    share = 0.15

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {"quota.window.num": str(SAMPLES)}

    async def begin(self, admin: Admin) -> None:
        self._address = self.simulation.network.address_of(RUSHING)
        entity, limit = altering.EntityData("ip", self._address), altering.OpData(RATE_KEY, RATE)
        quota = altering.AlterClientQuotasRequest([altering.EntryData([entity], [limit])])
        wanted = {"metrics": "org.", "interval.ms": str(INTERVAL_MS)}
        configs = [configuring.AlterableConfig(key, 0, value) for key, value in wanted.items()]
        subscription = configuring.AlterConfigsResource(CLIENT_METRICS, "rushing", configs)
        asked = configuring.IncrementalAlterConfigsRequest([subscription])
        await self._until_done(admin, quota, AlterClientQuotasResponse, "entries")
        await self._until_done(admin, asked, IncrementalAlterConfigsResponse, "responses")
        self.simulation.events.listeners["connection.closed"].append(self._closed)

    async def _until_done(self, admin: Admin, request: Message, response: type[Message], results: str) -> None:
        while True:
            answer = await admin.ask_any(request, response)
            if answer is not None and not getattr(answer, results)[0].error_code:
                return
            await admin.pause()

    def clients(self) -> Iterable[Client]:
        self._comers = [self._comer("rusher", RUSHING, (0.0, 0.01)), self._comer("visitor", FREE, (0.2, 1.0))]
        self._pushers = [self.as_client(Pusher, name) for name in ("pusher", "other pusher")]
        return () if "crowds" in self.shape.workloads else [*self._comers, *self._pushers]  # whose brokers take less

    def _comer(self, name: str, host: str, rest_seconds: tuple[float, float]) -> Comer:
        comer = self.as_client(Comer, name)
        comer.process.host, comer.workload, comer.rest_seconds = host, self, rest_seconds
        return comer

    def life_of(self, node: Node) -> Life | None:
        """The life that a broker leads which has heard of the rate; None where there is none."""
        if not node.is_serving or IpEntity(self._address) not in node.broker.metadata.quotas.limits.get(RATE_KEY, {}):
            return None
        return node.host, node.lives

    def missing(self) -> list[str]:
        """Both addresses are served after healing: nobody starves."""
        if "crowds" in self.shape.workloads:
            return []
        return [f"{comer.name} is not served" for comer in self._comers if not comer.is_served_since]

    def _closed(self, process: str, fields: Mapping[str, Any]) -> None:
        if RATE_KEY in str(fields["reason"]) and fields["client"] != self._address:
            self.simulation.fail(f"NobodyIsTurnedAway: {process} has closed {fields['client']}, which has no rate")

    async def judge(self) -> list[str]:
        if "crowds" in self.shape.workloads:
            return []
        rusher = self._comers[0]
        taken = sum(len(moments) for pusher in self._pushers for moments in pusher.taken)
        self.reached(rushed=sum(map(len, rusher.served.values())), pushes_taken=taken)
        return [*self._too_fast(rusher), *self._too_often(), *self._not_forgotten()]

    def _too_fast(self, rusher: Comer) -> Iterator[str]:
        for (host, _), moments in rusher.served.items():
            for first, (began, _) in enumerate(moments):
                for count, (_, ended) in enumerate(moments[first:], 1):
                    allowed = RATE * ((ended - began) * CLOCK_RATE_MAX + SAMPLES + 1) + 1
                    if count > allowed:
                        yield f"rushed-too-fast: {count} by {host} in {ended - began:.1f} s; {allowed:.0f} are allowed"
                        return

    def _too_often(self) -> Iterator[str]:
        for pusher in self._pushers:
            for moments in pusher.taken:
                for (began, _), (_, ended) in pairwise(moments):
                    if (ended - began) * CLOCK_RATE_MAX * 1000 < INTERVAL_MS - 1:
                        yield f"pushed-too-often: {pusher.name} after {ended - began:.3f} s"

    def _not_forgotten(self) -> Iterator[str]:
        for node in self.simulation.nodes:
            if node.is_serving:
                assert node.server is not None
                connections = sum(len(listener.connections) for listener in node.server.addresses.of_brokers)
                if len(node.broker.client_metrics.instances) > connections:
                    yield f"instances-kept: {node.host} knows more client instances than it has connections"
