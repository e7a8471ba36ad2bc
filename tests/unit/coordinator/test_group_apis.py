"""The group APIs over a real socket, in every version that is served."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.core.metadata.topic_commands import delete_topic
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka_broker.protocol.messages.offset_delete_response import OffsetDeleteResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
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
    """Where groups are coordinated; makes the offsets topic."""
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
    """A group of one member, with its assignment; the member's id."""
    await find(client, group)
    member_id = (await join(client, group)).member_id
    request = SyncGroupRequest(
        group, 1, member_id, None, "consumer", "range", [SyncGroupRequestAssignment(member_id, b"mine")]
    )
    assert (await client.call(request, SyncGroupResponse, 5)).assignment == b"mine"
    return member_id


def commit_request(
    group: str, offset: int, *, topic: str = "t", topic_id: bytes = bytes(16), index: int = 0, **more: object
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(index, offset, committed_metadata=str(more.pop("metadata", "m")))
    topics = [OffsetCommitRequestTopic(topic, topic_id, [partition])]
    return OffsetCommitRequest(group, topics=topics, **more)  # type: ignore[arg-type]


async def commit(client: Client, request: OffsetCommitRequest, version: int = 9) -> ErrorCode:
    answer = await client.call(request, OffsetCommitResponse, version)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(client: Client, group: str, topic: str = "t", index: int = 0) -> int:
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[index])])]
    )
    answer = await client.call(request, OffsetFetchResponse, 9)
    return answer.groups[0].topics[0].partitions[0].committed_offset


# --- FindCoordinator --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(7))
def test_the_first_to_look_for_a_group_makes_the_offsets_topic(tmp_path: Path, version: int) -> None:
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


def test_other_coordinators_are_not_here(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        for key_type, version, error in (
            (1, 6, ErrorCode.COORDINATOR_NOT_AVAILABLE),
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


# --- membership -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(10))
def test_join(tmp_path: Path, version: int) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        await find(client, "g")
        joined = await join(client, "g", version)
        assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
        assert joined.leader == joined.member_id
        assert joined.member_id.startswith("test-")
        assert [(one.member_id, one.metadata) for one in joined.members] == [(joined.member_id, SUBSCRIPTION)]
        assert joined.protocol_type == ("consumer" if version >= 7 else None)

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(6))
def test_sync(tmp_path: Path, version: int) -> None:
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
def test_heartbeat(tmp_path: Path, version: int) -> None:
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
def test_leave(tmp_path: Path, version: int) -> None:
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
        assert [one.error_code for one in answer.members] == [0, unknown, unknown]

    play(tmp_path, scenario)


def test_a_group_needs_a_name(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        await find(client, "g")
        invalid = ErrorCode.INVALID_GROUP_ID
        assert (await client.call(join_request(""), JoinGroupResponse, 9)).error_code == invalid
        assert (await client.call(SyncGroupRequest(""), SyncGroupResponse, 5)).error_code == invalid
        assert (await client.call(LeaveGroupRequest(""), LeaveGroupResponse, 5)).error_code == invalid

    play(tmp_path, scenario)


def test_before_there_is_an_offsets_topic_nobody_coordinates(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        nobody = ErrorCode.NOT_COORDINATOR
        assert (await client.call(join_request("g"), JoinGroupResponse, 9)).error_code == nobody
        assert (await client.call(HeartbeatRequest("g", 1, "m"), HeartbeatResponse, 4)).error_code == nobody
        assert await commit(client, commit_request("g", 1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        described = await client.call(DescribeGroupsRequest(["g"]), DescribeGroupsResponse, 6)
        assert described.groups[0].error_code == nobody

    play(tmp_path, scenario)


# --- offsets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 11))
def test_commit(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topic_id = await inside.create("t", 2)
        await find(client, "g")
        has_ids = version >= 10
        request = commit_request("g", 17, topic="" if has_ids else "t", topic_id=topic_id if has_ids else bytes(16))
        assert await commit(client, request, version) == ErrorCode.NONE
        assert await committed(client, "g") == 17

        stranger = commit_request("h", 1, topic="u", topic_id=b"u" * 16)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(client, stranger, version) == unknown

        late = commit_request("h", 1, topic_id=topic_id, generation_id_or_member_epoch=3, member_id="m")
        missing = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
        assert await commit(client, late, version) == missing

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(1, 8))
def test_fetch_offsets_of_one_group(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t", 2)
        await find(client, "g")
        await commit(client, commit_request("g", 17))
        request = OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0, 1])])
        answer = await client.call(request, OffsetFetchResponse, version)
        found = [(p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in answer.topics[0].partitions]
        assert found == [(0, 17, "m", 0), (1, -1, "", 0)]
        if version >= 2:
            answer = await client.call(OffsetFetchRequest("g", None), OffsetFetchResponse, version)
            assert [(t.name, [p.committed_offset for p in t.partitions]) for t in answer.topics] == [("t", [17])]
            assert answer.error_code == 0

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(8, 11))
def test_fetch_offsets_of_many_groups(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topic_id = await inside.create("t", 2)
        await find(client, "g")
        await commit(client, commit_request("g", 17))
        has_ids = version >= 10
        topic = OffsetFetchRequestTopics(
            "" if has_ids else "t", topic_id if has_ids else bytes(16), partition_indexes=[0, 1]
        )
        groups = [
            OffsetFetchRequestGroup("g", topics=[topic]),
            OffsetFetchRequestGroup("g", topics=None),
            OffsetFetchRequestGroup("unknown", topics=[topic]),
        ]
        answer = await client.call(OffsetFetchRequest(groups=groups), OffsetFetchResponse, version)
        offsets = [[p.committed_offset for t in group.topics for p in t.partitions] for group in answer.groups]
        assert offsets == [[17, -1], [17], [-1, -1]]
        assert {(t.name, t.topic_id) for group in answer.groups for t in group.topics} == {(topic.name, topic.topic_id)}

    play(tmp_path, scenario)


def test_offsets_without_a_coordinator(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        request = OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0])])
        nobody = ErrorCode.NOT_COORDINATOR
        old = await client.call(request, OffsetFetchResponse, 1)
        assert old.topics[0].partitions[0].error_code == nobody
        assert (await client.call(request, OffsetFetchResponse, 7)).error_code == nobody
        new = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
        assert (await client.call(new, OffsetFetchResponse, 9)).groups[0].error_code == nobody

    play(tmp_path, scenario)


def test_who_may_commit(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        member_id = await stable(client)
        member = {"generation_id_or_member_epoch": 1, "member_id": member_id}
        assert await commit(client, commit_request("g", 5, **member)) == ErrorCode.NONE
        assert await commit(client, commit_request("g", 6)) == ErrorCode.UNKNOWN_MEMBER_ID
        stale = {**member, "generation_id_or_member_epoch": 0}
        assert await commit(client, commit_request("g", 6, **stale)) == ErrorCode.ILLEGAL_GENERATION
        assert await committed(client, "g") == 5

    play(tmp_path, scenario)


def test_metadata_and_partitions_have_errors_of_their_own(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await find(client, "g")
        too_large = commit_request("g", 5, metadata="x" * 4097)
        assert await commit(client, too_large) == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert await commit(client, commit_request("g", 5, metadata="x" * 4096)) == ErrorCode.NONE
        beyond = commit_request("g", 5, index=9)
        assert await commit(client, beyond) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(tmp_path, scenario)


def test_offsets_go_with_their_topic(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await find(client, "g")
        await commit(client, commit_request("g", 5))
        topic = inside.broker.metadata.topics.get("t")
        assert topic is not None
        await inside.broker.controller.submit(lambda *_: delete_topic(topic))
        assert await committed(client, "g") == -1

    play(tmp_path, scenario)


# --- groups as tools see them -----------------------------------------------------------------------------------------


async def describe(client: Client, group: str, version: int = 6, *, operations: bool = False) -> DescribedGroup:
    request = DescribeGroupsRequest([group], operations and version >= 3)
    return (await client.call(request, DescribeGroupsResponse, version)).groups[0]


@pytest.mark.parametrize("version", range(7))
def test_describe(tmp_path: Path, version: int) -> None:
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
        assert [(one.member_metadata, one.member_assignment) for one in group.members] == [(b"", b"")]

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(6))
def test_list(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await stable(client, "running")
        await commit(client, commit_request("simple", 1))

        async def listed(**filters: list[str]) -> list[ListedGroup]:
            return (await client.call(ListGroupsRequest(**filters), ListGroupsResponse, version)).groups

        found = {(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in await listed()}
        state, kind = version >= 4, version >= 5
        assert found == {
            ("running", "consumer", "Stable" if state else "", "classic" if kind else ""),
            ("simple", "", "Empty" if state else "", "classic" if kind else ""),
        }
        if state:
            assert [one.group_id for one in await listed(states_filter=["stable", "dead"])] == ["running"]
        if kind:
            assert len(await listed(types_filter=["Classic"])) == 2
            assert await listed(types_filter=["consumer"]) == []

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(3))
def test_delete(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await stable(client, "running")
        await commit(client, commit_request("simple", 1))
        request = DeleteGroupsRequest(["running", "simple", "unknown"])
        answer = await client.call(request, DeleteGroupsResponse, version)
        assert [(one.group_id, one.error_code) for one in answer.results] == [
            ("running", ErrorCode.NON_EMPTY_GROUP),
            ("simple", ErrorCode.NONE),
            ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        assert await committed(client, "simple") == -1
        assert (await describe(client, "simple")).group_state == "Dead"

    play(tmp_path, scenario)


def test_delete_offsets(tmp_path: Path) -> None:
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
