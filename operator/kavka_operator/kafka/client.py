"""The admin protocol through kafka-python.

kafka-python was chosen because it speaks every call that is needed over one small pure-Python client; confluent-kafka
has no client quotas at all. kafka-python has no public method for those either, but it carries the generated messages
of every Kafka API, and its connection manager sends any of them to the node that should answer. So all calls here are
plain messages, sent the same way, and errors are turned into words in one place (docs/adr/0006).
"""

import contextlib
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import kafka.errors
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.topic_ids import text_of, uuid_of
from kavka_operator.quota.entities import AnyEntity, from_wire, to_wire
from kavka_operator.reconcile.plan import (
    AddPartitions,
    AlterQuota,
    AlterTopic,
    CreateTopic,
    DeleteTopic,
    KafkaAction,
)
from kavka_operator.reconcile.seen import SeenBroker, SeenCluster, SeenTopic

REQUEST_TIMEOUT_MS = 15_000
BOOTSTRAP_TIMEOUT_MS = 10_000
CLIENT_ID = "kavka-operator"

TOPIC_RESOURCE = 2
TOPIC_OVERRIDE_SOURCE = 1
SET, DELETE = 0, 1
EARLIEST, LATEST = -2, -1
DONE_ALREADY = (kafka.errors.TopicAlreadyExistsError, kafka.errors.UnknownTopicOrPartitionError)


class KafkaClient:
    """An `Admin` over the network."""

    def __init__(self, bootstrap_servers: str) -> None:
        with _in_words("connect"):
            self._client = KafkaAdminClient(
                bootstrap_servers=bootstrap_servers,
                client_id=CLIENT_ID,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
            )

    def close(self) -> None:
        self._client.close()

    def look(self, topics: Iterable[str]) -> SeenCluster:
        with _in_words("look at the cluster"):
            described = self._send(DescribeClusterRequest())
            _check(described.error_code, described.error_message)
            metadata = self._send(MetadataRequest(topics=None, allow_auto_topic_creation=False))
            found = {topic.name: topic for topic in metadata.topics if not topic.error_code}
            wanted = [name for name in topics if name in found]
            configs = self._configs(wanted)
            return SeenCluster(
                cluster_id=described.cluster_id,
                controller=metadata.controller_id if metadata.controller_id >= 0 else None,
                brokers=_brokers(metadata),
                topics={name: _topic(found[name], configs[name]) for name in wanted},
                quotas=self._quotas(),
            )

    def records(self, topic: str) -> int:
        with _in_words(f'count the records of "{topic}"'):
            metadata = self._send(
                MetadataRequest(
                    topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
                )
            )
            (found,) = metadata.topics
            _check(found.error_code, None)
            by_leader: dict[int, list[int]] = {}
            for partition in found.partitions:
                by_leader.setdefault(partition.leader_id, []).append(partition.partition_index)
            latest = self._offsets(topic, by_leader, LATEST)
            return latest - self._offsets(topic, by_leader, EARLIEST)

    def perform(self, action: KafkaAction) -> None:
        # Done already: somebody was faster, or an answer got lost and this is the second try. The next look tells.
        with _in_words(str(action)), contextlib.suppress(*DONE_ALREADY):
            match action:
                case CreateTopic():
                    self._create(action)
                case AddPartitions():
                    self._grow(action)
                case AlterTopic():
                    self._alter_topic(action)
                case DeleteTopic():
                    self._delete(action)
                case AlterQuota():
                    self._alter_quota(action)

    def _send(self, request: Any, node: int | None = None) -> Any:
        async def exchange() -> Any:
            return await self._client._manager.send(request, node_id=node)

        return self._client._manager.run(exchange)

    def _configs(self, topics: list[str]) -> Mapping[str, list[Any]]:
        if not topics:
            return {}
        kind = DescribeConfigsRequest.DescribeConfigsResource
        resources = [kind(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None) for name in topics]
        response = self._send(DescribeConfigsRequest(resources=resources))
        for result in response.results:
            _check(result.error_code, result.error_message)
        return {result.resource_name: result.configs for result in response.results}

    def _quotas(self) -> dict[AnyEntity, dict[str, float]]:
        response = self._send(DescribeClientQuotasRequest(components=[], strict=False))
        _check(response.error_code, response.error_message)
        quotas: dict[AnyEntity, dict[str, float]] = {}
        for entry in response.entries or ():
            entity = from_wire({part.entity_type: part.entity_name for part in entry.entity})
            if entity is not None:
                quotas[entity] = {value.key: value.value for value in entry.values}
        return quotas

    def _offsets(self, topic: str, by_leader: Mapping[int, list[int]], moment: int) -> int:
        total = 0
        for leader, indexes in by_leader.items():
            wanted = ListOffsetsRequest.ListOffsetsTopic
            partitions = [
                wanted.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=moment)
                for index in indexes
            ]
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=0, topics=[wanted(name=topic, partitions=partitions)]
            )
            for partition in self._send(request, leader).topics[0].partitions:
                _check(partition.error_code, None)
                total += partition.offset
        return total

    def _create(self, action: CreateTopic) -> None:
        kind = CreateTopicsRequest.CreatableTopic
        topic = kind(
            name=action.name,
            num_partitions=action.partitions or -1,
            replication_factor=action.replication_factor or -1,
            assignments=[],
            configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in action.config.items()],
        )
        response = self._send(CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS, validate_only=False))
        _check(response.topics[0].error_code, response.topics[0].error_message)

    def _grow(self, action: AddPartitions) -> None:
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=action.name, count=action.total, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS, validate_only=False)
        (result,) = self._send(request).results
        _check(result.error_code, result.error_message)

    def _alter_topic(self, action: AlterTopic) -> None:
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        changes = [
            kind.AlterableConfig(name=name, config_operation=SET, value=value) for name, value in action.set.items()
        ]
        changes += [kind.AlterableConfig(name=name, config_operation=DELETE, value=None) for name in action.reset]
        resource = kind(resource_type=TOPIC_RESOURCE, resource_name=action.name, configs=changes)
        (result,) = self._send(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)).responses
        _check(result.error_code, result.error_message)

    def _delete(self, action: DeleteTopic) -> None:
        topic = DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=uuid_of(action.topic_id))
        (result,) = self._send(DeleteTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS)).responses
        _check(result.error_code, result.error_message)

    def _alter_quota(self, action: AlterQuota) -> None:
        kind = AlterClientQuotasRequest.EntryData
        parts = [kind.EntityData(entity_type=part, entity_name=name) for part, name in to_wire(action.entity).items()]
        ops = [kind.OpData(key=key, value=value, remove=False) for key, value in action.set.items()]
        ops += [kind.OpData(key=key, value=0.0, remove=True) for key in action.remove]
        (result,) = self._send(
            AlterClientQuotasRequest(entries=[kind(entity=parts, ops=ops)], validate_only=False)
        ).entries
        _check(result.error_code, result.error_message)


def _brokers(metadata: Any) -> dict[int, SeenBroker]:
    leaders: dict[int, int] = {}
    behind: dict[int, int] = {}
    for topic in metadata.topics:
        for partition in topic.partitions:
            leaders[partition.leader_id] = leaders.get(partition.leader_id, 0) + 1
            if len(partition.isr_nodes) < len(partition.replica_nodes):
                behind[partition.leader_id] = behind.get(partition.leader_id, 0) + 1
    return {
        broker.node_id: SeenBroker(
            id=broker.node_id,
            address=f"{broker.host}:{broker.port}",
            rack=broker.rack,
            leaders=leaders.get(broker.node_id, 0),
            under_replicated=behind.get(broker.node_id, 0),
        )
        for broker in metadata.brokers
    }


def _topic(topic: Any, configs: list[Any]) -> SeenTopic:
    partitions = topic.partitions
    return SeenTopic(
        name=topic.name,
        topic_id=text_of(topic.topic_id),
        partitions=len(partitions),
        replication_factor=min((len(each.replica_nodes) for each in partitions), default=0),
        overrides={each.name: each.value for each in configs if each.config_source == TOPIC_OVERRIDE_SOURCE},
        values={each.name: each.value for each in configs if each.value is not None},
        under_replicated=sum(len(each.isr_nodes) < len(each.replica_nodes) for each in partitions),
        offline=sum(each.leader_id < 0 for each in partitions),
    )


def _check(code: int, message: str | None) -> None:
    if code:
        error = kafka.errors.for_code(code)
        raise error(message) if message else error()


@contextlib.contextmanager
def _in_words(doing: str) -> Generator[None]:
    """Errors of the client as `AdminError`, with what was being done."""
    try:
        yield
    except (kafka.errors.KafkaError, OSError) as error:
        words = str(error) or type(error).__name__
        retriable = bool(getattr(error, "retriable", True))
        raise AdminError(f"could not {doing}: {words}", retriable=retriable) from error
