"""A client that names the cluster and the node that it takes a broker for (KIP-1242)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from tests.support.in_process import CLUSTER_ID, Client, InProcess, following, running

ANOTHER = "b3RoZXItY2x1c3Rlci1pZA"
NEWEST = 5
Scenario = Callable[[InProcess, InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """Run a scenario where node 1 is broker and controller, node 2 a broker."""

    async def run() -> None:
        async with running(directory / "1") as first, following(directory / "2", first) as second:
            await scenario(first, second)

    asyncio.run(run())


async def asked(client: Client, cluster_id: str | None, node_id: int, version: int = NEWEST) -> ApiVersionsResponse:
    return await client.call(ApiVersionsRequest("test", "1", cluster_id, node_id), ApiVersionsResponse, version)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ((None, -1), ErrorCode.NONE),
        ((CLUSTER_ID, 2), ErrorCode.NONE),
        ((ANOTHER, 2), ErrorCode.REBOOTSTRAP_REQUIRED),
        (("", 2), ErrorCode.REBOOTSTRAP_REQUIRED),
        ((CLUSTER_ID, 1), ErrorCode.REBOOTSTRAP_REQUIRED),
        ((CLUSTER_ID, -2), ErrorCode.REBOOTSTRAP_REQUIRED),
        ((CLUSTER_ID, -1), ErrorCode.INVALID_REQUEST),
        ((None, 2), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_broker_refuses_who_takes_it_for_another(
    tmp_path: Path, named: tuple[str | None, int], expected: ErrorCode
) -> None:
    async def scenario(_: InProcess, second: InProcess) -> None:
        answer = await asked(await second.connect(), *named)
        assert ErrorCode(answer.error_code) is expected
        assert bool(answer.api_keys) == (expected is ErrorCode.NONE)

    play(tmp_path, scenario)


def test_a_client_that_is_refused_may_ask_again(tmp_path: Path) -> None:
    async def scenario(_: InProcess, second: InProcess) -> None:
        client = await second.connect()
        assert (await asked(client, ANOTHER, 2)).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        assert (await asked(client, CLUSTER_ID, 2)).error_code == ErrorCode.NONE

    play(tmp_path, scenario)


def test_a_controller_answers_whatever_it_is_taken_for(tmp_path: Path) -> None:
    """As in Apache Kafka: only brokers compare."""

    async def scenario(first: InProcess, _: InProcess) -> None:
        client = await first.connect(to_controller=True)
        assert (await asked(client, ANOTHER, 7)).error_code == ErrorCode.NONE
        assert (await asked(client, None, 7)).error_code == ErrorCode.INVALID_REQUEST

    play(tmp_path, scenario)


def test_versions_before_name_no_cluster(tmp_path: Path) -> None:
    async def scenario(_: InProcess, second: InProcess) -> None:
        answer = await asked(await second.connect(), ANOTHER, 7, NEWEST - 1)
        assert answer.error_code == ErrorCode.NONE

    play(tmp_path, scenario)
