"""DescribeGroups, ListGroups, DeleteGroups and OffsetDelete over a real socket; groups after a restart."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kavka_broker.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka_broker.protocol.messages.offset_delete_response import OffsetDeleteResponse
from tests.support.in_process import Client, InProcess
from tests.unit.coordinator.calls import (
    SUBSCRIPTION,
    commit,
    commit_request,
    committed,
    describe,
    find,
    join,
    play,
    stable,
)


@pytest.mark.parametrize("version", range(7))
def test_a_group_is_described_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        member_id = await stable(client)
        group = await describe(client, "g", version, operations=True)
        assert (group.error_code, group.group_state, group.protocol_type) == (0, "Stable", "consumer")
        assert group.protocol_data == "range"
        (member,) = group.members
        assert (member.member_id, member.client_id, member.client_host) == (member_id, "test", "/127.0.0.1")
        assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"mine")
        assert (group.authorized_operations > 0) == (version >= 3)
        unknown = await describe(client, "unknown", version)
        assert unknown.group_state == "Dead"
        assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)

    play(tmp_path, scenario)


def test_describe_tells_no_assignment_while_the_group_changes(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        await find(client, "g")
        await join(client, "g")
        group = await describe(client, "g")
        assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
        assert [(member.member_metadata, member.member_assignment) for member in group.members] == [(b"", b"")]

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await stable(client, "running")
        await commit(client, commit_request("simple", 1))

        async def listed(**filters: list[str]) -> list[ListedGroup]:
            return (await client.call(ListGroupsRequest(**filters), ListGroupsResponse, version)).groups

        found = {(group.group_id, group.protocol_type, group.group_state, group.group_type) for group in await listed()}
        state, kind = version >= 4, version >= 5
        assert found == {
            ("running", "consumer", "Stable" if state else "", "classic" if kind else ""),
            ("simple", "", "Empty" if state else "", "classic" if kind else ""),
        }
        if state:
            assert [group.group_id for group in await listed(states_filter=["stable", "dead"])] == ["running"]
        if kind:
            assert len(await listed(types_filter=["Classic"])) == 2
            assert await listed(types_filter=["consumer"]) == []

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(4))
def test_groups_are_deleted_and_their_offsets_with_them(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await stable(client, "running")
        await commit(client, commit_request("simple", 1))
        request = DeleteGroupsRequest(["running", "simple", "unknown"])
        answer = await client.call(request, DeleteGroupsResponse, version)
        assert [(group.group_id, group.error_code) for group in answer.results] == [
            ("running", ErrorCode.NON_EMPTY_GROUP),
            ("simple", ErrorCode.NONE),
            ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        assert await committed(client, "simple") == -1
        assert (await describe(client, "simple")).group_state == "Dead"

    play(tmp_path, scenario)


def test_offsets_of_unsubscribed_topics_are_deleted(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await inside.create("u")
        member_id = await stable(client)
        for topic in "tu":
            await commit(
                client,
                commit_request("g", 5, topic=topic, generation_id_or_member_epoch=1, member_id=member_id),
            )
        request = OffsetDeleteRequest(
            "g", [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)]) for topic in "tux"]
        )
        answer = await client.call(request, OffsetDeleteResponse, 0)
        assert answer.error_code == 0
        assert [topic.partitions[0].error_code for topic in answer.topics] == [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert [await committed(client, "g", topic) for topic in "tu"] == [5, -1]
        request.group_id = "unknown"
        answer = await client.call(request, OffsetDeleteResponse, 0)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    play(tmp_path, scenario)


def test_groups_come_back_from_the_log(tmp_path: Path) -> None:
    members = []

    async def before(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        members.append(await stable(client))
        await commit(client, commit_request("g", 5, generation_id_or_member_epoch=1, member_id=members[0]))

    async def after(inside: InProcess, client: Client) -> None:
        while inside.broker.groups.is_loading:
            await asyncio.sleep(0)
        assert await committed(client, "g") == 5
        assert (await describe(client, "g")).group_state == "Stable"
        answer = await client.call(HeartbeatRequest("g", 1, members[0]), HeartbeatResponse, 4)
        assert answer.error_code == 0

    play(tmp_path, before)
    play(tmp_path, after)
