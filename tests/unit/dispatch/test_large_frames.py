"""Large frames: requests with too much are refused, and others have their turn meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.loop.message_threads import AT_ONCE_BYTES_MAX
from kavka_broker.net.inbox import Inbox
from kavka_broker.protocol import wire
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.request.registry import FORWARDED_BYTES_MAX, LARGE_BYTES_MAX, SMALL_BYTES_MAX
from tests.support.in_process import InProcess, running


def play(directory: Path, scenario: Callable[[InProcess], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await scenario(inside)

    asyncio.run(run())


def test_a_request_with_too_many_elements_closes_the_connection(tmp_path: Path) -> None:
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


def test_requests_of_small_apis_may_not_be_long(tmp_path: Path) -> None:
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
        assert [group.group_id for group in answer.results] == groups
        assert (await client.receive(ApiVersionsResponse, 3)).error_code == ErrorCode.NONE

    play(tmp_path, scenario)


def test_a_large_request_is_served_from_its_receive_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To copy 16 MiB holds the loop for ten milliseconds."""
    keep, kept = Inbox.keep, list[tuple[int, bool]]()

    def noting(inbox: Inbox, frame: memoryview) -> memoryview:
        stays = keep(inbox, frame)
        kept.append((len(frame), stays is frame))
        return stays

    monkeypatch.setattr(Inbox, "keep", noting)

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        protocols = [JoinGroupRequestProtocol("range", bytes(LARGE_BYTES_MAX - 1000))]
        request = JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols)
        client.send(request, 5)
        client.send(ApiVersionsRequest("a", "1"), 3)
        assert (await client.receive(JoinGroupResponse, 5)).error_code == ErrorCode.NOT_COORDINATOR
        assert (await client.receive(ApiVersionsResponse, 3)).error_code == ErrorCode.NONE
        assert [is_same for size_bytes, is_same in kept if size_bytes > LARGE_BYTES_MAX // 2] == [True]

    play(tmp_path, scenario)


def test_forwarded_requests_have_a_lower_size_limit(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        names = [DeleteTopicState("n" * 200) for _ in range(FORWARDED_BYTES_MAX // 200)]
        client.send(DeleteTopicsRequest(names), 6)
        assert await client.is_closed()

    play(tmp_path, scenario)


def test_the_partition_limit_holds_across_portions(tmp_path: Path) -> None:
    """Topics are decided a portion at a time, but a request may still ask for at most 10,000 partitions."""

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect()
        topics = [CreatableTopic(f"t{index}", 40, 1) for index in range(300)]
        answer = await client.call(CreateTopicsRequest(topics, 10_000), CreateTopicsResponse, 7)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}
        request = CreateTopicsRequest(topics[:10], 10_000, validate_only=True)
        answer = await client.call(request, CreateTopicsResponse, 7)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [(topic.name, 0) for topic in topics[:10]]

    play(tmp_path, scenario)


def test_other_clients_are_served_during_a_large_request(tmp_path: Path) -> None:
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
