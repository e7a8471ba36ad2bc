"""A broker and a controller of different releases: what clients hear of the APIs that the controller decides."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from kavka_broker.peers import ApiRanges, Peer
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.request.broker import Broker, Connected, Enveloped
from tests.support.in_process import Client, InProcess, following, running

REASSIGN, UNREGISTER, FETCH, ADD_VOTER = 45, 64, 1, 80
#: What the controller says that it serves, of another release than the broker. It has a version of Fetch less, too.
OF_CONTROLLER = {REASSIGN: (0, 0), UNREGISTER: (5, 7), FETCH: (4, 17), ADD_VOTER: (1, 9)}
R = TypeVar("R", bound=Message)
Scenario = Callable[[InProcess, InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """Run a scenario where node 1 is broker and controller, node 2 a broker."""

    async def run() -> None:
        async with running(directory / "1") as first, following(directory / "2", first) as second:
            await scenario(first, second)

    asyncio.run(run())


async def offered(client: Client) -> dict[int, tuple[int, int]]:
    answer = await client.call(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


class AnotherRelease:
    """The connection of a broker to its controller, which serves other versions than it does."""

    def __init__(self, peer: Peer) -> None:
        assert peer.versions is not None
        self.versions: ApiRanges | None = {**peer.versions, **OF_CONTROLLER}
        self._peer = peer

    def ask(self, request: Message, response: type[R], *, timeout_ms: float) -> Awaitable[R]:
        return self._peer.ask(request, response, timeout_ms=timeout_ms)

    def close(self) -> None:
        self._peer.close()


def change_release(broker: Broker) -> None:
    """Have a broker's controller be of another release."""
    assert broker.channel.peer is not None
    broker.channel.peer = AnotherRelease(broker.channel.peer)


def test_a_broker_offers_what_the_controller_serves_as_well(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        own = await offered(await second.connect())
        change_release(second.broker)
        found = await offered(await second.connect())
        assert found[REASSIGN] == (0, 0)
        assert found[ADD_VOTER] == (1, 1), "the oldest is the controller's, the newest the broker's"
        assert UNREGISTER not in found, "no version is served by both"
        assert found[FETCH] == own[FETCH], "a broker answers that by itself"
        assert own.keys() - found.keys() == {UNREGISTER}
        assert await offered(await first.connect()) == own, "its controller is in its process"

    play(tmp_path, scenario)


def test_a_broker_without_a_controller_offers_its_own_versions(tmp_path: Path) -> None:
    async def scenario(_: InProcess, second: InProcess) -> None:
        change_release(second.broker)
        second.broker.channel.close()
        assert (await offered(await second.connect()))[REASSIGN] == (0, 1)

    play(tmp_path, scenario)


def test_a_client_that_asks_in_a_version_of_the_controller_before_connects_again(tmp_path: Path) -> None:
    """As in Apache Kafka: on its next connection it learns what the controller of now serves."""

    async def scenario(first: InProcess, second: InProcess) -> None:
        async def refuse(frame: memoryview, peer: Connected) -> Enveloped:
            raise ProtocolViolation("CreateTopics v7 is not served")

        first.broker.serve_enveloped = refuse
        client = await second.connect()
        client.send(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), 7)
        assert await client.is_closed()

    play(tmp_path, scenario)
