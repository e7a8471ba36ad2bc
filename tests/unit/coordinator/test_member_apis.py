"""FindCoordinator, JoinGroup, SyncGroup, Heartbeat and LeaveGroup over a real socket, in every version."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribeGroupsResponse
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from tests.support.in_process import Client, InProcess, running
from tests.unit.coordinator.calls import (
    SUBSCRIPTION,
    commit,
    commit_request,
    find,
    join,
    join_request,
    play,
    stable,
)


@pytest.mark.parametrize("version", range(7))
def test_the_first_find_coordinator_creates_the_offsets_topic(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        (found,) = await find(client, "g", version=version)
        assert (found.error_code, found.node_id, found.port) == (0, 1, inside.server.advertised[0].port)
        topic = inside.broker.metadata.topics.get("__consumer_offsets")
        assert topic is not None
        assert len(topic.partitions) == 2
        configs = inside.broker.metadata.configs.topic("__consumer_offsets")
        assert configs == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }

    play(tmp_path, scenario)


def test_many_groups_and_many_clients_look_at_once(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        other = await inside.connect()
        both = await asyncio.gather(find(client, "a", "b", "c"), find(other, "d"))
        assert [found.error_code for answer in both for found in answer] == [0, 0, 0, 0]
        assert [found.key for found in both[0]] == ["a", "b", "c"]

    play(tmp_path, scenario)


def test_other_types_of_coordinators_are_refused(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        for key_type, version, error in (
            (2, 6, ErrorCode.INVALID_REQUEST),
            (2, 5, ErrorCode.INVALID_REQUEST),
            (7, 6, ErrorCode.INVALID_REQUEST),
        ):
            (found,) = await find(client, "x", version=version, key_type=key_type)
            assert found.error_code == error
            assert found.error_message

    play(tmp_path, scenario)


def test_too_few_brokers_for_the_offsets_topic(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, {"offsets.topic.replication.factor": "3"}) as inside:
            (found,) = await find(await inside.connect(), "g")
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert "offsets.topic.replication.factor=3" in (found.error_message or "")

    asyncio.run(run())


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        await find(client, "g")
        joined = await join(client, "g", version)
        assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
        assert joined.leader == joined.member_id
        assert joined.member_id.startswith("test-")
        assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, SUBSCRIPTION)]
        assert joined.protocol_type == ("consumer" if version >= 7 else None)

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(6))
def test_a_member_gets_its_assignment_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        member_id = await stable(client)
        request = SyncGroupRequest("g", 1, member_id)
        if version >= 5:
            answer = await client.call(request, SyncGroupResponse, version)
            assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            request.protocol_type, request.protocol_name = "consumer", "range"
        answer = await client.call(request, SyncGroupResponse, version)
        assert (answer.error_code, answer.assignment) == (0, b"mine")

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(5))
def test_a_heartbeat_is_answered_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        member_id = await stable(client)
        for group, generation, member, error in (
            ("g", 1, member_id, ErrorCode.NONE),
            ("g", 2, member_id, ErrorCode.ILLEGAL_GENERATION),
            ("g", 1, "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
            ("unknown", 1, member_id, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", 1, member_id, ErrorCode.INVALID_GROUP_ID),
        ):
            answer = await client.call(HeartbeatRequest(group, generation, member), HeartbeatResponse, version)
            assert answer.error_code == error

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        member_id = await stable(client)
        if version < 3:
            answer = await client.call(LeaveGroupRequest("g", member_id), LeaveGroupResponse, version)
            assert answer.error_code == 0
            answer = await client.call(LeaveGroupRequest("g", member_id), LeaveGroupResponse, version)
            assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
            return
        members = [MemberIdentity(member_id), MemberIdentity("nobody"), MemberIdentity("", "instance")]
        answer = await client.call(LeaveGroupRequest("g", members=members), LeaveGroupResponse, version)
        assert answer.error_code == 0
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert [member.error_code for member in answer.members] == [0, unknown, unknown]

    play(tmp_path, scenario)


def test_a_group_needs_a_name(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        await find(client, "g")
        invalid = ErrorCode.INVALID_GROUP_ID
        assert (await client.call(join_request(""), JoinGroupResponse, 9)).error_code == invalid
        assert (await client.call(SyncGroupRequest(""), SyncGroupResponse, 5)).error_code == invalid
        assert (await client.call(LeaveGroupRequest(""), LeaveGroupResponse, 5)).error_code == invalid

    play(tmp_path, scenario)


def test_without_an_offsets_topic_no_broker_coordinates(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        nobody = ErrorCode.NOT_COORDINATOR
        assert (await client.call(join_request("g"), JoinGroupResponse, 9)).error_code == nobody
        assert (await client.call(HeartbeatRequest("g", 1, "m"), HeartbeatResponse, 4)).error_code == nobody
        assert await commit(client, commit_request("g", 1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        described = await client.call(DescribeGroupsRequest(["g"]), DescribeGroupsResponse, 6)
        assert described.groups[0].error_code == nobody

    play(tmp_path, scenario)
