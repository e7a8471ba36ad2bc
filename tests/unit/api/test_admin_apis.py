"""The admin APIs over a socket: every version they are served in, and what only a running broker can show."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.metadata.decide.heartbeats import fence
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import alter_client_quotas_request as alter_quotas
from kavka_broker.protocol.messages import alter_configs_request as replacing
from kavka_broker.protocol.messages import create_topics_request as creating
from kavka_broker.protocol.messages import describe_client_quotas_request as describe_quotas
from kavka_broker.protocol.messages import describe_configs_request as describing
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kavka_broker.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kavka_broker.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kavka_broker.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kavka_broker.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kavka_broker.protocol.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kavka_broker.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.offset_delete_request import OffsetDeleteRequest
from kavka_broker.protocol.messages.offset_delete_response import OffsetDeleteResponse
from kavka_broker.request.request_bounds import RequestBounds
from tests.support.in_process import CLUSTER_ID, Client, InProcess, running
from tests.support.waiting import until

Scenario = Callable[[InProcess, Client], Coroutine[None, None, None]]

QUOTA = alter_quotas.EntryData(
    [alter_quotas.EntityData("user", "alice")], [alter_quotas.OpData("producer_byte_rate", 1_000.0)]
)
#: The keys that are answered with an error here: there is no authorizer.
ERRORS = {30: ErrorCode.SECURITY_DISABLED, 31: ErrorCode.SECURITY_DISABLED}
#: The keys whose every version is asked here, with a request that has an answer in all of them.
REQUESTS: Mapping[int, Callable[[], Any]] = {
    3: lambda: MetadataRequest([MetadataRequestTopic(name="t")]),
    19: lambda: creating.CreateTopicsRequest([creating.CreatableTopic("new", 1, 1)], validate_only=True),
    22: lambda: InitProducerIdRequest(None, 1000),
    30: lambda: CreateAclsRequest([AclCreation(2, "t", 3, "User:a", "*", 3, 3)]),
    31: lambda: DeleteAclsRequest([DeleteAclsFilter(2, "t", 3, None, None, 3, 3)]),
    32: lambda: describing.DescribeConfigsRequest([describing.DescribeConfigsResource(2, "t", None)]),
    33: lambda: replacing.AlterConfigsRequest([replacing.AlterConfigsResource(2, "t")]),
    37: lambda: CreatePartitionsRequest([CreatePartitionsTopic("t", 9, None)], validate_only=True),
    44: lambda: altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(2, "t")]),
    46: load()[46].request,
    48: describe_quotas.DescribeClientQuotasRequest,
    49: lambda: alter_quotas.AlterClientQuotasRequest([QUOTA], validate_only=True),
    50: load()[50].request,
    55: lambda: DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])]),
    60: DescribeClusterRequest,
    74: load()[74].request,
    75: lambda: DescribeTopicPartitionsRequest([TopicRequest("t")]),
}


def play(directory: Path, scenario: Scenario, **settings: str) -> None:
    async def run() -> None:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        async with running(directory, dotted) as inside:
            await scenario(inside, await inside.connect())

    asyncio.run(run())


def codes_in(answer: object) -> Iterator[int]:
    """Every error code of an answer, at whatever depth."""
    if isinstance(answer, list):
        for one in answer:
            yield from codes_in(one)
    for name in getattr(type(answer), "__slots__", ()):
        value = getattr(answer, name)
        if name.endswith("error_code"):
            yield value
        else:
            yield from codes_in(value)


def test_every_version_is_answered_with_the_expected_codes(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        for key, request in REQUESTS.items():
            served = load()[key]
            low, high = served.versions
            for version in range(low, high + 1):
                answer = await client.call(request(), served.response, version)
                assert set(codes_in(answer)) == {ERRORS.get(key, ErrorCode.NONE)}, (served.name, version)

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_is_deleted_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        by_state = DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=10_000)
        request = by_state if version >= 6 else DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000)
        answer = await client.call(request, DeleteTopicsResponse, version)
        assert [*codes_in(answer)] == [ErrorCode.NONE]
        assert "t" not in inside.broker.metadata.topics.names()

    play(tmp_path, scenario)


async def metadata(client: Client, *names: str, version: int = 13, create: bool = True) -> MetadataResponse:
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in names], create)
    return await client.call(request, MetadataResponse, version)


def test_metadata_names_brokers_topics_and_leaders(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topic_id = await inside.create("t", 3)
        answer = await metadata(client, "t")
        (broker,) = answer.brokers
        assert (broker.node_id, broker.host, broker.port) == (1, "127.0.0.1", inside.server.advertised[0].port)
        assert (answer.cluster_id, answer.controller_id) == (CLUSTER_ID, 1)
        (topic,) = answer.topics
        assert (topic.error_code, topic.topic_id, topic.is_internal) == (0, topic_id, False)
        assert [
            (partition.partition_index, partition.leader_id, partition.isr_nodes) for partition in topic.partitions
        ] == [(index, 1, [1]) for index in range(3)]

    play(tmp_path, scenario)


def test_metadata_without_a_list_is_about_every_topic(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("a")
        await inside.create("b")
        for request, version in ((MetadataRequest(None), 13), (MetadataRequest([]), 0)):
            answer = await client.call(request, MetadataResponse, version)
            assert sorted(str(topic.name) for topic in answer.topics) == ["a", "b"]
        assert not (await client.call(MetadataRequest([]), MetadataResponse, 1)).topics

    play(tmp_path, scenario)


def test_metadata_creates_missing_topics_if_allowed_behind_its_answer(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topics = inside.broker.metadata.topics
        (refused,) = (await metadata(client, "t", create=False)).topics
        assert (refused.error_code, inside.broker.creating) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})
        answer = await metadata(client, "t", "__consumer_offsets", "a b")
        codes = {topic.name: (topic.error_code, topic.is_internal) for topic in answer.topics}
        assert codes == {
            "t": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
            "__consumer_offsets": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
            "a b": (ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        }
        await until(lambda: not inside.broker.creating)
        (made, offsets) = (await metadata(client, "t", "__consumer_offsets")).topics
        assert (made.error_code, len(made.partitions)) == (ErrorCode.NONE, 3)
        assert offsets.is_internal
        assert offsets.name in INTERNAL
        assert len(offsets.partitions) == 2
        assert sorted(topics.names()) == ["__consumer_offsets", "t"]

    play(tmp_path, scenario, num_partitions="3")


def test_metadata_creates_no_topic_if_the_broker_forbids_it(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        (refused,) = (await metadata(client, "t", version=1)).topics
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not inside.broker.metadata.topics.names()

    play(tmp_path, scenario, auto_create_topics_enable="false")


def test_metadata_is_found_by_the_id_of_a_topic(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topic_id = await inside.create("t")
        request = MetadataRequest([MetadataRequestTopic(topic_id, None), MetadataRequestTopic(b"\7" * 16, None)])
        found, unknown = (await client.call(request, MetadataResponse, 13)).topics
        assert (found.name, found.error_code) == ("t", ErrorCode.NONE)
        assert (unknown.name, unknown.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)

    play(tmp_path, scenario)


def test_metadata_follows_changes_of_topics_and_brokers(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        assert len((await metadata(client, "t")).topics[0].partitions) == 1
        grow = CreatePartitionsRequest([CreatePartitionsTopic("t", 4, None)])
        answer = await client.call(grow, CreatePartitionsResponse, 3)
        assert answer.results[0].error_code == ErrorCode.NONE
        assert len((await metadata(client, "t")).topics[0].partitions) == 4

    play(tmp_path, scenario)


def test_requested_operations_do_not_leak_into_other_answers(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        asked = MetadataRequest([MetadataRequestTopic(name="t")], include_topic_authorized_operations=True)
        assert (await client.call(asked, MetadataResponse, 13)).topics[0].topic_authorized_operations == 3576
        assert (await metadata(client, "t")).topics[0].topic_authorized_operations == -(2**31)

    play(tmp_path, scenario)


def test_a_created_topic_is_described_in_the_answer(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        config = creating.CreatableTopicConfig("retention.ms", "5000")
        request = creating.CreateTopicsRequest([creating.CreatableTopic("t", -1, -1, configs=[config])])
        (topic,) = (await client.call(request, CreateTopicsResponse, 7)).topics
        assert (topic.error_code, topic.num_partitions, topic.replication_factor) == (0, 2, 1)
        assert topic.configs is not None
        values = {config.name: (config.value, config.config_source) for config in topic.configs}
        assert values["retention.ms"] == ("5000", 1)
        assert values["segment.bytes"] == ("2000000", 4)
        known = inside.broker.metadata.topics.get("t")
        assert known is not None
        assert known.topic_id == topic.topic_id

    play(tmp_path, scenario, num_partitions="2", log_segment_bytes="2000000")


def test_validate_only_creates_no_topic(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topic = creating.CreatableTopic("t", 1, 1)
        request = creating.CreateTopicsRequest([topic], validate_only=True)
        (answer,) = (await client.call(request, CreateTopicsResponse, 7)).topics
        assert answer.error_code == ErrorCode.NONE
        assert not inside.broker.metadata.topics.names()

    play(tmp_path, scenario)


def test_a_topic_named_twice_is_refused_once(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        topics = [creating.CreatableTopic(name, 1, 1) for name in ("a", "b", "a")]
        answer = await client.call(creating.CreateTopicsRequest(topics), CreateTopicsResponse, 7)
        assert {topic.name: topic.error_code for topic in answer.topics} == {"a": ErrorCode.INVALID_REQUEST, "b": 0}
        assert len(answer.topics) == 2

    play(tmp_path, scenario)


def test_topics_are_deleted_by_name_and_by_id(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        first, second = await inside.create("a"), await inside.create("b")
        request = DeleteTopicsRequest([DeleteTopicState("a"), DeleteTopicState(None, second), DeleteTopicState("c")])
        answer = await client.call(request, DeleteTopicsResponse, 6)
        assert [(result.name, result.topic_id, result.error_code) for result in answer.responses[:2]] == [
            ("a", first, 0),
            ("b", second, 0),
        ]
        assert answer.responses[2].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not inside.broker.metadata.topics.names()
        assert inside.broker.partitions.get("a", 0) is None

    play(tmp_path, scenario)


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_may_be_forbidden(tmp_path: Path, version: int, code: ErrorCode) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("a")
        answer = await client.call(DeleteTopicsRequest(topic_names=["a"]), DeleteTopicsResponse, version)
        assert answer.responses[0].error_code == code
        assert inside.broker.metadata.topics.names() == ["a"]

    play(tmp_path, scenario, delete_topic_enable="false")


def test_producers_get_unique_ids(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        given = []
        for _ in range(5):
            answer = await client.call(InitProducerIdRequest(None, 1000), InitProducerIdResponse, 5)
            assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
            given.append(answer.producer_id)
        assert given == sorted(set(given))

    play(tmp_path, scenario)


def test_an_empty_transactional_id_is_refused(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        answer = await client.call(InitProducerIdRequest("", 1000), InitProducerIdResponse, 5)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)

    play(tmp_path, scenario)


async def describe(client: Client, kind: int, name: str, *keys: str) -> dict[str, tuple[str | None, int]]:
    resource = describing.DescribeConfigsResource(kind, name, list(keys) or None)
    request = describing.DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True)
    (result,) = (await client.call(request, DescribeConfigsResponse, 4)).results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: (config.value, config.config_source) for config in result.configs}


async def alter(client: Client, kind: int, name: str, *changes: tuple[str, int, str | None]) -> int:
    configs = [altering.AlterableConfig(*change) for change in changes]
    request = altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(kind, name, configs)])
    (answer,) = (await client.call(request, IncrementalAlterConfigsResponse, 1)).responses
    return answer.error_code


def test_configs_of_a_topic_are_altered_and_described(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        assert await alter(client, 2, "t", ("retention.ms", 0, "5000"), ("cleanup.policy", 2, "compact")) == 0
        assert await describe(client, 2, "t", "retention.ms", "cleanup.policy", "nope") == {
            "retention.ms": ("5000", 1),
            "cleanup.policy": ("delete,compact", 1),
        }
        partition = inside.broker.partitions.get("t", 0)
        assert partition is not None
        assert partition.log.config.retention_ms == 5000
        assert await alter(client, 2, "t", ("retention.ms", 1, None)) == 0
        assert (await describe(client, 2, "t"))["retention.ms"] == ("604800000", 5)

    play(tmp_path, scenario)


def test_configs_of_brokers_reach_the_logs(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        assert await alter(client, 4, "", ("log.retention.ms", 0, "7000")) == 0
        assert (await describe(client, 4, ""))["log.retention.ms"] == ("7000", 3)
        assert (await describe(client, 4, "1"))["log.retention.ms"] == ("7000", 3)
        assert (await describe(client, 2, "t"))["retention.ms"] == ("7000", 3)
        partition = inside.broker.partitions.get("t", 0)
        assert partition is not None
        assert partition.log.config.retention_ms == 7000
        assert await alter(client, 4, "1", ("node.id", 0, "5")) == ErrorCode.INVALID_REQUEST
        assert await alter(client, 4, "7", ("log.retention.ms", 0, "5")) == ErrorCode.BROKER_ID_NOT_REGISTERED

    play(tmp_path, scenario)


def test_quotas_are_altered_described_and_in_force(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        entities: list[list[tuple[str, str | None]]] = [
            [("user", "alice"), ("client-id", "app")],
            [("user", None)],
            [("user", "")],
        ]
        entries = [
            alter_quotas.EntryData(
                [alter_quotas.EntityData(*part) for part in parts], [alter_quotas.OpData("producer_byte_rate", 1024.0)]
            )
            for parts in entities
        ]
        altered = await client.call(alter_quotas.AlterClientQuotasRequest(entries), AlterClientQuotasResponse, 1)
        assert [entry.error_code for entry in altered.entries] == [0, 0, ErrorCode.INVALID_REQUEST]
        components = [describe_quotas.ComponentData("user", 1, None)]
        request = describe_quotas.DescribeClientQuotasRequest(components, True)
        found = await client.call(request, DescribeClientQuotasResponse, 1)
        assert found.entries is not None
        (entry,) = found.entries
        assert [(part.entity_type, part.entity_name) for part in entry.entity] == [("user", None)]
        assert [(value.key, value.value) for value in entry.values] == [("producer_byte_rate", 1024.0)]

    play(tmp_path, scenario)


def test_topics_are_described_page_by_page(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("b", 5)
        await inside.create("a", 3)
        pages: list[list[tuple[str | None, int]]] = []
        cursor: Cursor | None = None
        while True:
            request = DescribeTopicPartitionsRequest([], 3, cursor)
            answer = await client.call(request, DescribeTopicPartitionsResponse, 0)
            pages.append(
                [(topic.name, partition.partition_index) for topic in answer.topics for partition in topic.partitions]
            )
            if answer.next_cursor is None:
                break
            cursor = Cursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)
        assert pages == [[("a", 0), ("a", 1), ("a", 2)], [("b", 0), ("b", 1), ("b", 2)], [("b", 3), ("b", 4)]]

    play(tmp_path, scenario)


def test_the_cluster_and_its_quorum_are_described(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        cluster = await client.call(DescribeClusterRequest(include_fenced_brokers=True), DescribeClusterResponse, 2)
        assert [(broker.broker_id, broker.rack, broker.is_fenced) for broker in cluster.brokers] == [(1, "r1", False)]
        controllers = await client.call(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, 2)
        assert controllers.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
        quorum = await client.call(request, DescribeQuorumResponse, 2)
        (partition,) = quorum.topics[0].partitions
        assert (quorum.error_message, partition.error_message) == ("", ""), "as in Apache Kafka"
        assert (partition.leader_id, partition.leader_epoch) == (1, 1)
        assert partition.high_watermark == inside.broker.metadata.offset + 1
        assert [node.node_id for node in quorum.nodes] == [1]

    play(tmp_path, scenario, broker_rack="r1")


def test_a_cursor_of_a_topic_that_is_not_asked_for_is_refused(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        for cursor, code in ((Cursor("t", 0), ErrorCode.NONE), (Cursor("u", 0), ErrorCode.INVALID_REQUEST)):
            request = DescribeTopicPartitionsRequest([TopicRequest("t")], cursor=cursor)
            (topic,) = (await client.call(request, DescribeTopicPartitionsResponse, 0)).topics
            assert topic.error_code == code

    play(tmp_path, scenario)


def test_offsets_of_an_unknown_group_are_not_deleted(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        answer = await client.call(OffsetDeleteRequest(""), OffsetDeleteResponse, 0)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID

    play(tmp_path, scenario)


def test_metadata_without_any_broker_waits_until_this_one_is_registered(tmp_path: Path) -> None:
    """An admin client that is told of no controller waits until its request has timed out."""

    async def run() -> None:
        async with running(tmp_path) as inside:
            inside.broker.bounds = RequestBounds(unfenced_ms_max=60_000)
            client = await inside.connect()
            (broker,) = inside.broker.metadata.brokers
            await inside.broker.active.submit(lambda metadata, _: fence(metadata, broker.broker_id, broker.epoch))
            assert not inside.broker.lifecycle.is_unfenced
            answer = await client.call(MetadataRequest(None), MetadataResponse, 13)
            assert (answer.controller_id, [broker.node_id for broker in answer.brokers]) == (1, [1])

    asyncio.run(run())
