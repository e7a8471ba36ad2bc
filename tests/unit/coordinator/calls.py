"""The group APIs as calls of a client."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from tests.support.in_process import Client, InProcess, running

Scenario = Callable[[InProcess, Client], Awaitable[None]]

SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"  # version 0: topic t, no user data


def play(directory: Path, scenario: Scenario) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await scenario(inside, await inside.connect())

    asyncio.run(run())


async def find(client: Client, *groups: str, version: int = 6, key_type: int = 0) -> list[Coordinator]:
    """Find the coordinator, which creates the offsets topic."""
    if version < 4:
        answer = await client.call(
            FindCoordinatorRequest(groups[0], key_type if version else 0), FindCoordinatorResponse, version
        )
        return [Coordinator(groups[0], answer.node_id, answer.host, answer.port, answer.error_code)]
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(groups))
    return (await client.call(request, FindCoordinatorResponse, version)).coordinators


def join_request(group: str, member_id: str = "", instance_id: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group, 10_000, 60_000, member_id, instance_id, "consumer", [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
    )


async def join(client: Client, group: str, version: int = 9) -> JoinGroupResponse:
    """Join as a new dynamic member; with version 4 and up in two steps."""
    request = join_request(group)
    if version == 0:
        request.rebalance_timeout_ms = -1
    answer = await client.call(request, JoinGroupResponse, version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = answer.member_id
        answer = await client.call(request, JoinGroupResponse, version)
    return answer


async def stable(client: Client, group: str = "g") -> str:
    """Make a group of one member with its assignment; returns the member's id."""
    await find(client, group)
    member_id = (await join(client, group)).member_id
    request = SyncGroupRequest(
        group, 1, member_id, None, "consumer", "range", [SyncGroupRequestAssignment(member_id, b"mine")]
    )
    assert (await client.call(request, SyncGroupResponse, 5)).assignment == b"mine"
    return member_id


def commit_request(
    group: str, offset: int, *, topic: str = "t", topic_id: bytes = bytes(16), index: int = 0, **more: Any
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(index, offset, committed_metadata=str(more.pop("metadata", "m")))
    topics = [OffsetCommitRequestTopic(topic, topic_id, [partition])]
    return OffsetCommitRequest(group, topics=topics, **more)


async def commit(client: Client, request: OffsetCommitRequest, version: int = 9) -> ErrorCode:
    answer = await client.call(request, OffsetCommitResponse, version)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(client: Client, group: str, topic: str = "t", index: int = 0) -> int:
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[index])])]
    )
    answer = await client.call(request, OffsetFetchResponse, 9)
    return answer.groups[0].topics[0].partitions[0].committed_offset


async def describe(client: Client, group: str, version: int = 6, *, operations: bool = False) -> DescribedGroup:
    request = DescribeGroupsRequest([group], operations and version >= 3)
    return (await client.call(request, DescribeGroupsResponse, version)).groups[0]
