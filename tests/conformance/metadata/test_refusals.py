"""What the admin APIs refuse, and with which code: the same table holds for Apache Kafka.

KAVKA_TEST_SERVER=apache-kafka runs it against the real thing. Where Kavka is stricter on purpose the line says so and
is left out there.
"""

import os
from collections.abc import Callable

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import alter_client_quotas_request as quotas
from kavka_broker.protocol.messages import create_topics_request as topics
from kavka_broker.protocol.messages import incremental_alter_configs_request as configs
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from kavka_broker.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.support.asking import ask
from tests.support.servers import Server
from tests.support.waiting import until_outside

E = ErrorCode
KAFKA = os.environ.get("KAVKA_TEST_SERVER") == "apache-kafka"
UNKNOWN_ID = b"\7" * 16


def topic(name: str, partitions: int = 1, factor: int = 1, **config: str | None) -> topics.CreatableTopic:
    named = [topics.CreatableTopicConfig(key.replace("_", "."), value) for key, value in config.items()]
    return topics.CreatableTopic(name, partitions, factor, configs=named)


def placed(*brokers: tuple[int, list[int]], partitions: int = -1, factor: int = -1) -> topics.CreatableTopic:
    assignments = [topics.CreatableReplicaAssignment(*broker) for broker in brokers]
    return topics.CreatableTopic("placed", partitions, factor, assignments)


CREATIONS: dict[str, tuple[topics.CreatableTopic, ErrorCode]] = {
    "there already": (topic("known"), E.TOPIC_ALREADY_EXISTS),
    "a dot": (topic("."), E.INVALID_TOPIC_EXCEPTION),
    "empty": (topic(""), E.INVALID_TOPIC_EXCEPTION),
    "too long": (topic("a" * 250), E.INVALID_TOPIC_EXCEPTION),
    "a blank": (topic("a b"), E.INVALID_TOPIC_EXCEPTION),
    "collides": (topic("known_topic"), E.INVALID_TOPIC_EXCEPTION),
    "the controllers' log": (topic("__cluster_metadata"), E.INVALID_REQUEST),
    "no partitions": (topic("t", 0), E.INVALID_PARTITIONS),
    "negative partitions": (topic("t", -2), E.INVALID_PARTITIONS),
    "no replicas": (topic("t", 1, 0), E.INVALID_REPLICATION_FACTOR),
    "more replicas than brokers": (topic("t", 1, 5), E.INVALID_REPLICATION_FACTOR),
    "too many partitions": (topic("t", 10_001), E.POLICY_VIOLATION),
    "unknown config": (topic("t", nope="1"), E.INVALID_CONFIG),
    "not a number": (topic("t", retention_ms="abc"), E.INVALID_CONFIG),
    "null config": (topic("t", retention_ms=None), E.INVALID_CONFIG),
    "too low": (topic("t", segment_bytes="5"), E.INVALID_CONFIG),
    "keys that quarrel": (topic("t", min_compaction_lag_ms="5", max_compaction_lag_ms="1"), E.INVALID_CONFIG),
    "no remote storage": (topic("t", remote_storage_enable="true"), E.INVALID_CONFIG),
    "no policy at all": (topic("t", cleanup_policy=""), E.NONE),
    "a policy twice": (topic("t", cleanup_policy="delete,delete"), E.NONE),
    "by hand with a count": (placed((0, [1]), partitions=1), E.INVALID_REQUEST),
    "by hand with a factor": (placed((0, [1]), factor=1), E.INVALID_REQUEST),
    "a gap": (placed((1, [1])), E.INVALID_REPLICA_ASSIGNMENT),
    "a broker twice": (placed((0, [1, 1])), E.INVALID_REPLICA_ASSIGNMENT),
    "a partition twice": (placed((0, [1]), (0, [1])), E.INVALID_REPLICA_ASSIGNMENT),
    "an unknown broker": (placed((0, [77])), E.INVALID_REPLICA_ASSIGNMENT),
    "no broker": (placed((0, [])), E.INVALID_REPLICA_ASSIGNMENT),
}


@pytest.fixture(scope="module", autouse=True)
def known(server: Server) -> None:
    """Topics that are there whatever is tried. Another run may have made them."""
    names = ("known", "known.topic")
    ask(server.address, topics.CreateTopicsRequest([*map(topic, names)]), CreateTopicsResponse)
    asked = MetadataRequest([MetadataRequestTopic(name=name) for name in names], False)
    until_outside(lambda: not any(one.error_code for one in ask(server.address, asked, MetadataResponse).topics))


@pytest.mark.parametrize("case", CREATIONS)
def test_the_creation_of_a_topic_is_judged(server: Server, case: str) -> None:
    wanted, code = CREATIONS[case]
    answer = ask(server.address, topics.CreateTopicsRequest([wanted], 5000, True), CreateTopicsResponse)
    (result,) = answer.topics
    assert ErrorCode(result.error_code) is code
    assert (result.error_message is None) is (code is E.NONE)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (DeleteTopicState("nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicState(None, UNKNOWN_ID), E.UNKNOWN_TOPIC_ID),
        (DeleteTopicState("known", UNKNOWN_ID), E.INVALID_REQUEST),
        (DeleteTopicState(None), E.INVALID_REQUEST),
    ],
)
def test_the_deletion_of_a_topic_is_judged(server: Server, wanted: DeleteTopicState, code: ErrorCode) -> None:
    (result,) = ask(server.address, DeleteTopicsRequest([wanted], [], 5000), DeleteTopicsResponse).responses
    assert ErrorCode(result.error_code) is code


def test_a_topic_may_not_be_named_twice_for_deletion(server: Server) -> None:
    request = DeleteTopicsRequest([DeleteTopicState("known"), DeleteTopicState("known")], [], 5000)
    (result,) = ask(server.address, request, DeleteTopicsResponse).responses
    assert ErrorCode(result.error_code) is E.INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "count", "brokers", "code"),
    [
        ("known", 1, None, E.INVALID_PARTITIONS),
        ("known", 0, None, E.INVALID_PARTITIONS),
        ("known", -1, None, E.INVALID_PARTITIONS),
        ("nope", 4, None, E.UNKNOWN_TOPIC_OR_PARTITION),
        ("known", 3, [[1]], E.INVALID_REPLICA_ASSIGNMENT),
        ("known", 2, [[77]], E.INVALID_REPLICA_ASSIGNMENT),
        ("known", 2, [], E.INVALID_REPLICA_ASSIGNMENT),
        ("known", 2, None, E.NONE),
    ],
)
def test_the_growth_of_a_topic_is_judged(
    server: Server, name: str, count: int, brokers: list[list[int]] | None, code: ErrorCode
) -> None:
    assignments = None if brokers is None else [CreatePartitionsAssignment(broker) for broker in brokers]
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, assignments)], 5000, True)
    (result,) = ask(server.address, request, CreatePartitionsResponse).results
    assert ErrorCode(result.error_code) is code


Parts = list[tuple[str, str | None]]
USER: Parts = [("user", "somebody")]
ADDRESS: Parts = [("ip", "192.0.2.7")]


@pytest.mark.parametrize(
    ("parts", "key", "limit", "code"),
    [
        (USER, "producer_byte_rate", 100.0, E.NONE),
        (USER, "producer_byte_rate", 0.0, E.INVALID_REQUEST),
        (USER, "producer_byte_rate", -1.0, E.INVALID_REQUEST),
        (USER, "producer_byte_rate", 1.5, E.INVALID_REQUEST),
        (USER, "producer_byte_rate", 100.0000001, E.NONE),
        (USER, "producer_byte_rate", 1e19, E.INVALID_REQUEST),
        (USER, "request_percentage", 0.0, E.INVALID_REQUEST),
        (USER, "nope", 1.0, E.INVALID_REQUEST),
        (USER, "connection_creation_rate", 1.0, E.INVALID_REQUEST),
        (ADDRESS, "producer_byte_rate", 1.0, E.INVALID_REQUEST),
        (ADDRESS, "connection_creation_rate", 0.5, E.INVALID_REQUEST),
        ([("ip", None)], "connection_creation_rate", 7.0, E.NONE),
        ([("ip", "not an address")], "connection_creation_rate", 7.0, E.INVALID_REQUEST),
        ([], "producer_byte_rate", 1.0, E.INVALID_REQUEST),
        ([("team", "a")], "producer_byte_rate", 1.0, E.INVALID_REQUEST),
        ([("user", "")], "producer_byte_rate", 1.0, E.INVALID_REQUEST),
        ([("client-id", "")], "producer_byte_rate", 1.0, E.INVALID_REQUEST),
        ([("user", "a"), ("ip", "192.0.2.7")], "connection_creation_rate", 1.0, E.INVALID_REQUEST),
    ],
)
def test_an_alteration_of_a_quota_is_judged(
    server: Server, parts: Parts, key: str, limit: float, code: ErrorCode
) -> None:
    entry = quotas.EntryData([quotas.EntityData(*part) for part in parts], [quotas.OpData(key, limit)])
    request = quotas.AlterClientQuotasRequest([entry], True)
    (result,) = ask(server.address, request, AlterClientQuotasResponse).entries
    assert ErrorCode(result.error_code) is code


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", 0, None)], E.INVALID_REQUEST),
        ([("user", 1, "x")], E.INVALID_REQUEST),
        ([("user", 2, "x")], E.INVALID_REQUEST),
        ([("user", 9, None)], E.INVALID_REQUEST),
        ([("", 2, None)], E.INVALID_REQUEST),
        ([("team", 2, None)], E.UNSUPPORTED_VERSION),
        ([("user", 2, None), ("user", 0, "x")], E.INVALID_REQUEST),
        ([("user", 2, None), ("ip", 2, None)], E.INVALID_REQUEST),
        ([], E.NONE),
    ],
)
def test_filters_of_quotas_are_answered_alike(
    server: Server, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    request = DescribeClientQuotasRequest([ComponentData(*component) for component in components])
    answer = ask(server.address, request, DescribeClientQuotasResponse)
    assert ErrorCode(answer.error_code) is code
    assert (answer.entries is None) is (code is not E.NONE)


SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (2, "known", ("retention.ms", SET, "5000"), E.NONE),
        (2, "nope", ("retention.ms", SET, "5000"), E.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a b", ("retention.ms", SET, "5000"), E.INVALID_TOPIC_EXCEPTION),
        (2, "", ("retention.ms", SET, "5000"), E.INVALID_REQUEST),
        (2, "known", ("nope", SET, "1"), E.INVALID_CONFIG),
        (2, "known", ("retention.ms", SET, "x"), E.INVALID_CONFIG),
        (2, "known", ("retention.ms", SET, None), E.INVALID_REQUEST),
        (2, "known", ("retention.ms", APPEND, "1"), E.INVALID_CONFIG),
        (2, "known", ("cleanup.policy", APPEND, "compact"), E.NONE),
        (2, "known", ("cleanup.policy", APPEND, None), E.INVALID_REQUEST),
        (2, "known", ("cleanup.policy", SUBTRACT, "delete"), E.NONE),
        (2, "known", ("nope", APPEND, "a"), E.INVALID_CONFIG),
        (2, "known", ("nope", DELETE, None), E.NONE),
        (4, "1", ("node.id", SET, "5"), E.INVALID_REQUEST),
        (4, "1", ("log.cleaner.threads", SET, "2"), E.NONE),
        (4, "1", ("log.cleaner.threads", SET, "x"), E.INVALID_REQUEST),
        (4, "77", ("log.cleaner.threads", SET, "2"), E.BROKER_ID_NOT_REGISTERED),
        (4, "abc", ("log.cleaner.threads", SET, "2"), E.INVALID_REQUEST),
        (4, "", ("listeners", SET, "PLAINTEXT://:1"), E.INVALID_REQUEST),
        (4, "", ("log.retention.ms", SET, "720000"), E.NONE),
        (4, "", ("log.retention.ms", SET, "x"), E.INVALID_REQUEST),
        (4, "1", ("min.insync.replicas", SET, "2"), E.INVALID_CONFIG),
        (4, "", ("min.insync.replicas", DELETE, None), E.INVALID_CONFIG),
        (32, "g", ("nope", SET, "1"), E.INVALID_CONFIG),
        (32, "", ("consumer.session.timeout.ms", SET, "50000"), E.INVALID_REQUEST),
        (5, "x", ("retention.ms", SET, "1"), E.INVALID_REQUEST),
    ],
)
def test_an_alteration_of_a_config_is_judged(
    server: Server, kind: int, name: str, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    resource = configs.AlterConfigsResource(kind, name, [configs.AlterableConfig(*change)])
    request = configs.IncrementalAlterConfigsRequest([resource], True)
    (result,) = ask(server.address, request, IncrementalAlterConfigsResponse).responses
    assert ErrorCode(result.error_code) is code


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "known", E.NONE),
        (2, "nope", E.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a b", E.INVALID_TOPIC_EXCEPTION),
        (4, "1", E.NONE),
        (4, "", E.NONE),
        (4, "77", E.INVALID_REQUEST),
        (4, "abc", E.INVALID_REQUEST),
        (8, "77", E.INVALID_REQUEST),
        (16, "", E.INVALID_REQUEST),
        (32, "", E.INVALID_REQUEST),
        (32, "g", E.NONE),
        (5, "x", E.INVALID_REQUEST),
    ],
)
def test_resources_of_configs_are_answered_alike(server: Server, kind: int, name: str, code: ErrorCode) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)])
    (result,) = ask(server.address, request, DescribeConfigsResponse).results
    assert ErrorCode(result.error_code) is code


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (MetadataRequestTopic(name="known"), E.NONE),
        (MetadataRequestTopic(name="nope"), E.UNKNOWN_TOPIC_OR_PARTITION),
        (MetadataRequestTopic(name="a b"), E.INVALID_TOPIC_EXCEPTION),
        (MetadataRequestTopic(name=""), E.INVALID_TOPIC_EXCEPTION),
        (MetadataRequestTopic(UNKNOWN_ID, None), E.UNKNOWN_TOPIC_ID),
        (MetadataRequestTopic(UNKNOWN_ID, "known"), E.UNKNOWN_TOPIC_ID),
        (MetadataRequestTopic(name="__cluster_metadata"), E.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_names_of_topics_are_answered_alike(server: Server, wanted: MetadataRequestTopic, code: ErrorCode) -> None:
    (found,) = ask(server.address, MetadataRequest([wanted], False), MetadataResponse).topics
    assert ErrorCode(found.error_code) is code


Stricter = Callable[[Server], ErrorCode]


def bad_operation(server: Server) -> ErrorCode:
    """Apache Kafka: UNKNOWN_SERVER_ERROR."""
    resource = configs.AlterConfigsResource(2, "known", [configs.AlterableConfig("cleanup.policy", 9, "delete")])
    (result,) = ask(
        server.address, configs.IncrementalAlterConfigsRequest([resource]), IncrementalAlterConfigsResponse
    ).responses
    return ErrorCode(result.error_code)


def a_user_twice(server: Server) -> ErrorCode:
    """Apache Kafka takes the last."""
    parts = [quotas.EntityData("user", "a"), quotas.EntityData("user", "b")]
    entry = quotas.EntryData(parts, [quotas.OpData("producer_byte_rate", 1.0)])
    (result,) = ask(server.address, quotas.AlterClientQuotasRequest([entry]), AlterClientQuotasResponse).entries
    return ErrorCode(result.error_code)


def not_a_number(server: Server) -> ErrorCode:
    """Apache Kafka stores it."""
    entry = quotas.EntryData([quotas.EntityData("user", "a")], [quotas.OpData("request_percentage", float("nan"))])
    (result,) = ask(server.address, quotas.AlterClientQuotasRequest([entry]), AlterClientQuotasResponse).entries
    return ErrorCode(result.error_code)


@pytest.mark.skipif(KAFKA, reason="Kavka is stricter here")
@pytest.mark.parametrize("case", [bad_operation, a_user_twice, not_a_number])
def test_kavka_is_stricter_here(server: Server, case: Stricter) -> None:
    assert case(server) is E.INVALID_REQUEST
