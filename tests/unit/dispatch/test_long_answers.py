"""A short request may have a long answer: what a node holds more of makes no turn of its loop longer."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kavka_broker.api.a35_describe_log_dirs import describe_all
from kavka_broker.core.group.state import ClassicGroup, Member
from kavka_broker.dispatch import large_requests
from kavka_broker.protocol.message import Message, is_larger
from kavka_broker.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord, EntityData
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kavka_broker.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kavka_broker.protocol.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse
from kavka_broker.request.registry import APIS
from tests.support.in_process import InProcess, running
from tests.support.turns import CALLS_PER_TURN_MAX, GROWTH_MAX, Turns, a_piece_a_turn
from tests.unit.coordinator.calls import find

pytestmark = pytest.mark.thorough

#: Other work may have had a long turn in one of them.
RUNS: Final = 2
#: More elements than a slice holds.
FEW: Final = 4_000
MANY: Final = 6_000
WIDE_ID: Final = b"w" * 16

REQUESTS: Final[tuple[tuple[Message, int], ...]] = (
    (MetadataRequest(None), 12),
    (MetadataRequest([MetadataRequestTopic(name="wide")]), 12),
    (DescribeTopicPartitionsRequest([TopicRequest("wide")]), 0),
    (OffsetFetchRequest("g", None), 7),
    (OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)]), 9),
    (ListGroupsRequest(), 5),
    (DescribeGroupsRequest(["g"]), 5),
    (DescribeClientQuotasRequest(), 1),
    (ListPartitionReassignmentsRequest(topics=None), 0),
)


def fill(inside: InProcess, first: int, last: int) -> None:
    """Add topics, partitions, quotas, groups, members and offsets to the images; subscribers are not told."""
    metadata, shard = inside.broker.metadata, inside.broker.groups.shard("g")
    if not first:
        metadata.topics.replay(TopicRecord("wide", WIDE_ID))
        shard.image.groups["g"] = ClassicGroup("g")
    offsets = shard.image._offsets.setdefault("g", {"wide": {}})
    for number in range(first, last):
        metadata.topics.replay(PartitionRecord(number, WIDE_ID, [1], [1], leader=1))
        metadata.topics.replay(TopicRecord(f"t{number}", number.to_bytes(16)))
        metadata.quotas.replay(ClientQuotaRecord([EntityData("user", f"u{number}")], "producer_byte_rate", 1e6))
        shard.image.groups[f"g{number}"] = ClassicGroup(f"g{number}")
        member = Member(f"m{number}", None, "c", "/h", 10_000, 60_000, ())
        shard.image.groups["g"].members[member.member_id] = member
        offsets["wide"][number] = OffsetCommitValue(offset=number)


async def most_calls(turns: Turns, inside: InProcess) -> list[int]:
    """The calls in the longest turn, request by request, whichever the run."""
    await calls(turns, inside)  # generates codecs, and fills the cache of topic answers
    return [min(runs) for runs in zip(*[await calls(turns, inside) for _ in range(RUNS)], strict=True)]


async def calls(turns: Turns, inside: InProcess) -> list[int]:
    """The calls in the longest turn, request by request."""
    client, most = await inside.connect(), []
    for request, version in REQUESTS:
        inside.broker.metadata.topics.by_id(WIDE_ID).changes += 1  # type: ignore[union-attr]
        assert request.API_KEY is not None
        turns.begin()
        answer = await client.call(request, APIS[request.API_KEY].response, version)
        most.append(turns.most)
        assert not getattr(answer, "error_code", 0)
    return most


def test_no_turn_grows_with_the_number_of_topics_quotas_or_groups(tmp_path: Path) -> None:
    async def run() -> None:
        turns = Turns()
        async with running(tmp_path) as inside:
            await find(await inside.connect(), "g")
            a_piece_a_turn(inside.broker.slices)
            fill(inside, 0, FEW)
            with turns.counting():
                few = await most_calls(turns, inside)
                fill(inside, FEW, MANY)
                many = await most_calls(turns, inside)
            for (request, _), before, after in zip(REQUESTS, few, many, strict=True):
                assert after < CALLS_PER_TURN_MAX, f"{request.NAME}: {after} calls in a turn"
                assert after - before < GROWTH_MAX * (MANY - FEW), f"{request.NAME}: {before}, {after}"

    asyncio.run(run())


def test_the_answer_of_a_topic_that_changes_meanwhile_is_not_kept(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as inside:
            await find(await inside.connect(), "g")
            fill(inside, 0, FEW)
            client = await inside.connect()
            request = MetadataRequest([MetadataRequestTopic(name="wide")])
            client.send(request, 12)
            while not inside.broker.slices.is_at_work:
                await asyncio.sleep(0)
            assert not len(inside.broker.topic_answers), "it takes more than a slice"
            inside.broker.metadata.topics.replay(PartitionRecord(FEW, WIDE_ID, [1], [1], leader=1))
            answer = await client.receive(MetadataResponse, 12)
            assert len(answer.topics[0].partitions) == FEW, "as it was when it was asked for"
            answer = await client.call(request, MetadataResponse, 12)
            assert len(answer.topics[0].partitions) == FEW + 1

    asyncio.run(run())


def test_log_directories_are_described_in_slices() -> None:
    class Fakes:
        """A given number of replicas in one directory."""

        def __init__(self) -> None:
            self.directory = type("D", (), {"is_online": True, "path": "d", "space": lambda _: (1, 1)})()
            self.directory.directory_id = bytes(16)
            log = type("L", (), {"log_end_offset": 0, "size_bytes": 0})()
            kind = type("P", (), {"topic": "t", "log": log, "high_watermark": 0})
            self.log_directories, self.partitions = [self.directory], [kind() for _ in range(MANY)]
            for index, replica in enumerate(self.partitions):
                replica.index = index

        @property
        def reports(self) -> Any:
            return self

        def directory_of(self, _: Any) -> Any:
            return self.directory

    brokers = type("B", (), {"get": lambda *_: None})()
    hosted = Fakes()
    broker: Any = type("Broker", (), {"replicas": hosted, "partitions": hosted.partitions, "node_id": 1})()
    broker.metadata = type("M", (), {"brokers": brokers})()
    work = describe_all({"t": frozenset(range(MANY))}, broker)
    assert sum(1 for _ in work) >= 4


def test_elements_are_counted_up_to_the_limit() -> None:
    topics = [MetadataResponseTopic(name=f"t{number}") for number in range(5)]
    answer = MetadataResponse(topics=topics)
    counts: Callable[[int], bool] = lambda elements: is_larger(answer, elements, 1_000)  # noqa: E731
    assert counts(4)
    assert not counts(5)
    assert is_larger(answer, 5, 9), "bytes of strings"
    assert not is_larger(answer, 5, 10)
    assert is_larger(StreamsGroupHeartbeatResponse(status=[Status(0, "x" * 11)]), 5, 10)
    assert large_requests.AT_ONCE_ELEMENTS_MAX < FEW
