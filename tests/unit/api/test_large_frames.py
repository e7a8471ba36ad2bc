"""Large frames: who has too much to say is told so, and others have their turn meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from kavka_broker.api.large_requests import AT_ONCE_BYTES_MAX
from kavka_broker.api.registry import SMALL_BYTES_MAX
from kavka_broker.protocol import wire
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from tests.support.in_process import InProcess, running


def play(directory: Path, scenario: Callable[[InProcess], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await scenario(inside)

    asyncio.run(run())


def test_more_elements_than_are_admitted_are_refused_and_none_is_made(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        keys = ["k"] * (wire.ELEMENTS_MAX + 1)
        client.send(FindCoordinatorRequest(coordinator_keys=keys), 4)
        assert await client.is_closed()
        client = await inside.connect()
        keys.pop()
        answer = await client.call(FindCoordinatorRequest(coordinator_keys=keys), FindCoordinatorResponse, 4)
        assert len(answer.coordinators) == wire.ELEMENTS_MAX

    play(tmp_path, scenario)


def test_who_has_not_much_to_say_may_not_be_long(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        client.send(ListGroupsRequest(["s"] * SMALL_BYTES_MAX), 5)
        assert await client.is_closed()

    play(tmp_path, scenario)


def test_answers_stay_in_the_order_of_their_requests(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        groups = [f"group-{index}" for index in range(AT_ONCE_BYTES_MAX // 8)]
        client.send(DeleteGroupsRequest(groups), 2)
        client.send(ApiVersionsRequest("a", "1"), 3)
        answer = await client.receive(DeleteGroupsResponse, 2)
        assert [one.group_id for one in answer.results] == groups
        assert (await client.receive(ApiVersionsResponse, 3)).error_code == ErrorCode.NONE

    play(tmp_path, scenario)


def test_topics_of_many_turns_are_bounded_together(tmp_path: Path) -> None:
    """Decided a portion at a time, and still 10,000 partitions are the most that a request may ask for."""

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        topics = [CreatableTopic(f"t{index}", 40, 1) for index in range(300)]
        answer = await client.call(CreateTopicsRequest(topics, 10_000), CreateTopicsResponse, 7)
        assert {one.error_code for one in answer.topics} == {ErrorCode.POLICY_VIOLATION}
        request = CreateTopicsRequest(topics[:10], 10_000, validate_only=True)
        answer = await client.call(request, CreateTopicsResponse, 7)
        assert [(one.name, one.error_code) for one in answer.topics] == [(one.name, 0) for one in topics[:10]]

    play(tmp_path, scenario)


def test_others_are_served_while_a_large_request_is(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        large, small = await inside.connect(), await inside.connect()
        large.send(DeleteGroupsRequest([f"g{index}" for index in range(20_000)]), 2)
        answered = asyncio.ensure_future(large.receive(DeleteGroupsResponse, 2))
        served = 0
        while not answered.done():
            await small.call(ApiVersionsRequest("a", "1"), ApiVersionsResponse, 3)
            served += 1
        assert len(answered.result().results) == 20_000
        assert served > 10, "a turn each hundred groups"

    play(tmp_path, scenario)
