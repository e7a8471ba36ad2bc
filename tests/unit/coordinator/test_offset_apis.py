"""OffsetCommit and OffsetFetch over a real socket, in every version, and which members may commit."""

from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.metadata.decide.topics import delete_topic
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from tests.support.in_process import Client, InProcess
from tests.unit.coordinator.calls import commit, commit_request, committed, find, play, stable


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets_are_committed_in_every_version(tmp_path: Path, version: int) -> None:
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
        named, every = OffsetFetchRequestGroup("g", topics=[topic]), OffsetFetchRequestGroup("g", topics=None)
        for groups, expected in (
            ([named, OffsetFetchRequestGroup("unknown", topics=[topic])], [[17, -1], [-1, -1]]),
            ([every], [[17]]),
            ([named, every], [[17]]),  # a group is answered once, with all that it has
        ):
            answer = await client.call(OffsetFetchRequest(groups=groups), OffsetFetchResponse, version)
            offsets = [[p.committed_offset for t in group.topics for p in t.partitions] for group in answer.groups]
            assert offsets == expected
            found = {(t.name, t.topic_id) for group in answer.groups for t in group.topics}
            assert found == {(topic.name, topic.topic_id)}

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [9, 10])
def test_unknown_ids_stand_behind_known_topics(tmp_path: Path, version: int) -> None:
    """As in Apache Kafka; names stay in the order of the request."""

    async def scenario(inside: InProcess, client: Client) -> None:
        topic_id = await inside.create("t")
        await find(client, "g")
        asked = [
            OffsetFetchRequestTopics(name, id_, partition_indexes=[0])
            for name, id_ in (("u", b"u" * 16), ("t", topic_id))
        ]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=asked)])
        (group,) = (await client.call(request, OffsetFetchResponse, version)).groups
        found = [(topic.name or topic.topic_id, topic.partitions[0].error_code) for topic in group.topics]
        by_id = [(topic_id, ErrorCode.NONE), (b"u" * 16, ErrorCode.UNKNOWN_TOPIC_ID)]
        assert found == (by_id if version >= 10 else [("u", ErrorCode.NONE), ("t", ErrorCode.NONE)])

    play(tmp_path, scenario)


def test_offsets_are_refused_without_a_coordinator(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        request = OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0])])
        nobody = ErrorCode.NOT_COORDINATOR
        old = await client.call(request, OffsetFetchResponse, 1)
        assert old.topics[0].partitions[0].error_code == nobody
        assert (await client.call(request, OffsetFetchResponse, 7)).error_code == nobody
        new = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
        assert (await client.call(new, OffsetFetchResponse, 9)).groups[0].error_code == nobody

    play(tmp_path, scenario)


def test_commits_of_non_members_and_stale_generations_are_refused(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        member_id = await stable(client)
        member: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": member_id}
        assert await commit(client, commit_request("g", 5, **member)) == ErrorCode.NONE
        assert await commit(client, commit_request("g", 6)) == ErrorCode.UNKNOWN_MEMBER_ID
        stale = {**member, "generation_id_or_member_epoch": 0}
        assert await commit(client, commit_request("g", 6, **stale)) == ErrorCode.ILLEGAL_GENERATION
        assert await committed(client, "g") == 5

    play(tmp_path, scenario)


def test_metadata_and_partitions_have_separate_errors(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await find(client, "g")
        too_large = commit_request("g", 5, metadata="x" * 4097)
        assert await commit(client, too_large) == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert await commit(client, commit_request("g", 5, metadata="x" * 4096)) == ErrorCode.NONE
        beyond = commit_request("g", 5, index=9)
        assert await commit(client, beyond) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(tmp_path, scenario)


def test_offsets_are_deleted_with_their_topic(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        await find(client, "g")
        await commit(client, commit_request("g", 5))
        topic = inside.broker.metadata.topics.get("t")
        assert topic is not None
        await inside.broker.active.submit(lambda *_: delete_topic(topic))
        assert await committed(client, "g") == -1

    play(tmp_path, scenario)


def test_groups_apply_records_before_the_replicas_do(tmp_path: Path) -> None:
    """A log that becomes led may hold offsets of a topic that the same records delete and create again."""

    async def scenario(inside: InProcess, _: Client) -> None:
        told = inside.broker.quorum.subscribers
        assert told.index(inside.broker.groups.apply) < told.index(inside.broker.replicas.apply)

    play(tmp_path, scenario)
