"""A cluster with something of everything in its metadata, made through the protocol."""

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import alter_client_quotas_request as quotas
from kavka_broker.protocol.messages import create_topics_request as topics
from kavka_broker.protocol.messages import incremental_alter_configs_request as configs
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from tests.support.asking import ask
from tests.support.waiting import until_outside

Address = tuple[str, int]


def fill(address: Address) -> None:
    """Topics, one of them grown and one deleted; configs of a topic, a broker and all brokers; quotas; producer ids."""
    config = topics.CreatableTopicConfig("retention.ms", "3600000")
    wanted = [topics.CreatableTopic("flights", 3, 1, configs=[config]), topics.CreatableTopic("gone", 1, 1)]
    created = ask(address, topics.CreateTopicsRequest(wanted, 5000), CreateTopicsResponse)
    assert [topic.error_code for topic in created.topics] == [ErrorCode.NONE] * 2
    grow = CreatePartitionsRequest([CreatePartitionsTopic("flights", 5, None)], 5000)
    assert ask(address, grow, CreatePartitionsResponse).results[0].error_code == ErrorCode.NONE
    delete = DeleteTopicsRequest([DeleteTopicState("gone")], [], 5000)
    assert ask(address, delete, DeleteTopicsResponse).responses[0].error_code == ErrorCode.NONE
    alter(address, 2, "flights", "cleanup.policy", "compact")
    alter(address, 4, "", "log.retention.ms", "7200000")
    alter(address, 4, "1", "log.cleaner.threads", "2")
    limit(address, [("user", "alice"), ("client-id", "app")], "producer_byte_rate", 1048576.0)
    limit(address, [("user", None)], "consumer_byte_rate", 2097152.0)
    limit(address, [("user", "default")], "request_percentage", 12.5)
    limit(address, [("ip", "127.0.0.1")], "connection_creation_rate", 100.0)
    first_producer_id(address)


def alter(address: Address, kind: int, name: str, key: str, value: str) -> None:
    resource = configs.AlterConfigsResource(kind, name, [configs.AlterableConfig(key, 0, value)])
    request = configs.IncrementalAlterConfigsRequest([resource])
    (answer,) = ask(address, request, IncrementalAlterConfigsResponse).responses
    assert answer.error_code == ErrorCode.NONE, answer.error_message


def limit(address: Address, parts: list[tuple[str, str | None]], key: str, value: float) -> None:
    entry = quotas.EntryData([quotas.EntityData(*part) for part in parts], [quotas.OpData(key, value)])
    (answer,) = ask(address, quotas.AlterClientQuotasRequest([entry]), AlterClientQuotasResponse).entries
    assert answer.error_code == ErrorCode.NONE, answer.error_message


def first_producer_id(address: Address) -> int:
    """Apache Kafka answers that it is loading while it fetches its first block."""
    answers: list[InitProducerIdResponse] = []

    def is_given() -> bool:
        answers[:] = [ask(address, InitProducerIdRequest(None, 1000), InitProducerIdResponse, 5)]
        return answers[0].error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    until_outside(is_given, what="a producer id is given")
    assert answers[0].error_code == ErrorCode.NONE
    return answers[0].producer_id
