"""The admin protocol through kafka-python.

kafka-python was chosen because it speaks every call that is needed over one small pure-Python client; confluent-kafka
has no client quotas at all. kafka-python has no public method for those either, but it carries the generated messages
of every Kafka API, and its connection manager sends any of them to the node that should answer. So all calls here are
plain messages, sent the same way, and errors are turned into words in one place (docs/adr/0006).
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import kafka.errors
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.observed import SeenAccess, SeenBroker, SeenCluster, SeenDisk, SeenTopic, Survey
from kavka_operator.domain.plan import (
    AddPartitions,
    AddVoter,
    AlterBrokers,
    AlterQuota,
    AlterTopic,
    CordonNode,
    CreateAcls,
    CreateTopic,
    DeleteAcls,
    DeleteTopic,
    DropCredential,
    ElectLeaders,
    KafkaAction,
    LimitBrokers,
    LimitReplicas,
    MoveReplicas,
    RemoveVoter,
    SetCredential,
    TopicAction,
)
from kavka_operator.kafka import (
    client_quotas,
    cordoning,
    log_dirs,
    reassignments,
    record_counts,
    throttling,
    topics,
    users,
)
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.connection import REQUEST_TIMEOUT_MS, connected
from kavka_operator.kafka.eligible_leaders import with_eligible
from kavka_operator.kafka.errors import in_words, raise_for
from kavka_operator.kafka.mutations import Mutations, sent
from kavka_operator.kafka.roll_survey import (
    IN_SYNC_MIN,
    METADATA_TOPIC,
    doubt_about,
    partitions_of,
    quorum_of,
    teller_of,
)
from kavka_operator.kafka.topic_ids import text_of
from kavka_operator.kafka.voters import CHANGED_ALREADY, add_request, remove_request
from kavka_operator.reconcile.reassignments import LISTS

VOTER_TIMEOUT_MS = 10_000
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
EVERY_BROKER = ""
TOPIC_OVERRIDE_SOURCE, BROKERS_OVERRIDE_SOURCE = 1, 3
PREFERRED = 0
SET, DELETE = 0, 1
NOT_ELECTED = {
    kafka.errors.ElectionNotNeededError.errno,
    kafka.errors.PreferredLeaderNotAvailableError.errno,
    kafka.errors.UnknownTopicOrPartitionError.errno,
}
DONE_ALREADY = (kafka.errors.TopicAlreadyExistsError, kafka.errors.UnknownTopicOrPartitionError)


class KafkaClient:
    """An `Admin` over the network."""

    def __init__(self, bootstrap_servers: str, security: Security = OPEN) -> None:
        self._client = connected(bootstrap_servers, security)
        self._user = security.username
        self._mutations = Mutations(lambda: connected(bootstrap_servers, security))

    def close(self) -> None:
        self._client.close()
        self._mutations.close()

    def look(self, topics: Iterable[str]) -> SeenCluster:
        with in_words("look at the cluster"):
            described = self._send(DescribeClusterRequest())
            raise_for(described.error_code, described.error_message)
            metadata = self._metadata()
            found = {topic.name: topic for topic in metadata.topics if not topic.error_code}
            wanted = [name for name in topics if name in found]
            configs, moving = (
                self._configs(TOPIC_RESOURCE, wanted),
                reassignments.under_way(self._send) if wanted else {},
            )
            return SeenCluster(
                cluster_id=described.cluster_id,
                controller=metadata.controller_id if metadata.controller_id >= 0 else None,
                brokers=brokers_of(described, metadata),
                topics={name: _topic(found[name], configs[name], moving.get(name, {})) for name in wanted},
                quotas=client_quotas.quotas(self._send),
                config=self._brokers_config(),
            )

    def survey(self) -> Survey:
        with in_words("look at the controllers"):
            teller = teller_of(quorum_of(self._quorum()), self._known_brokers())
        with in_words("look at the partitions"):
            metadata = self._metadata(teller)
            names = [topic.name for topic in metadata.topics if not topic.error_code]
            configs = self._configs(TOPIC_RESOURCE, names, IN_SYNC_MIN, or_none=True)
            minimum = {name: int(settings[0].value) for name, settings in configs.items() if settings}
            partitions = with_eligible(lambda request: self._send(request, teller), partitions_of(metadata, minimum))
            under_way = reassignments.under_way(self._send)
        with in_words("look at the controllers"):
            quorum = quorum_of(self._quorum())
        is_level = teller is not None and teller_of(quorum, [teller]) == teller
        doubt = "" if is_level else doubt_about(quorum) or "no broker that answers keeps up with the active controller"
        moving = {(name, index): found for name, there in under_way.items() for index, (found, _) in there.items()}
        return Survey(partitions, quorum, doubt, moving)

    def records(self, topic: str) -> int:
        with in_words(f'count the records of "{topic}"'):
            return record_counts.records(self._send, topic)

    def rates(self, brokers: Iterable[int]) -> Mapping[int, Mapping[str, str]]:
        with in_words("read the rates of throttled replicas"):
            return throttling.rates(self._send, brokers)

    def disks(self, brokers: Iterable[int]) -> Mapping[int, tuple[SeenDisk, ...]]:
        with in_words("read how full disks are"):
            return log_dirs.disks(self._send, brokers)

    def access(self, brokers: Iterable[int]) -> SeenAccess:
        with in_words("look at users and access rules"):
            return users.access(self._send, sorted(brokers), self._user)

    def perform(self, action: KafkaAction) -> None:
        # Done already: another client was faster, or the answer to the first try was lost. The next look tells.
        with in_words(str(action)), contextlib.suppress(*DONE_ALREADY):
            match action:
                case AlterQuota():
                    client_quotas.alter(self._send, action)
                case AlterBrokers():
                    self._alter(BROKER_RESOURCE, EVERY_BROKER, action.set, action.reset)
                case ElectLeaders():
                    self._elect(action)
                case AddVoter():
                    self._change_voters(add_request(action, VOTER_TIMEOUT_MS))
                case RemoveVoter():
                    self._change_voters(remove_request(action))
                case LimitBrokers():
                    throttling.limit(self._send, action)
                case CordonNode():
                    cordoning.cordon(self._send, action)
                case SetCredential() | DropCredential() | CreateAcls() | DeleteAcls():
                    (answer,) = users.carried_out(self._send, [action])
                    raise_for(answer.error_code, answer.error_message)
                case _:
                    self._perform_on_topic(action)

    def _perform_on_topic(self, action: TopicAction) -> None:
        match action:
            case CreateTopic():
                topics.create(self._mutations.send, action)
            case AddPartitions():
                topics.add_partitions(self._mutations.send, action)
            case AlterTopic():
                self._alter(TOPIC_RESOURCE, action.name, action.set, action.reset)
            case DeleteTopic():
                topics.delete(self._mutations.send, action)
            case LimitReplicas():
                self._alter(
                    TOPIC_RESOURCE, action.name, action.lists, [key for key in LISTS if key not in action.lists]
                )
            case MoveReplicas():
                reassignments.move(self._send, action)

    def check(self, action: KafkaAction) -> None:
        with in_words(str(action)):
            match action:
                case CreateTopic():
                    topics.create(self._mutations.send, action, validate_only=True)
                case AddPartitions():
                    topics.add_partitions(self._mutations.send, action, validate_only=True)
                case AlterTopic():
                    self._alter(TOPIC_RESOURCE, action.name, action.set, action.reset, validate_only=True)
                case AlterQuota():
                    client_quotas.alter(self._send, action, validate_only=True)
                case AlterBrokers():
                    self._alter(BROKER_RESOURCE, EVERY_BROKER, action.set, action.reset, validate_only=True)
                case DeleteTopic() | MoveReplicas() | LimitReplicas() | LimitBrokers() | CordonNode() | ElectLeaders():
                    pass  # what limits a move is altered with it
                case AddVoter() | RemoveVoter() | SetCredential() | DropCredential() | CreateAcls() | DeleteAcls():
                    pass  # these requests have no field that asks for a check alone

    def perform_many(self, actions: Sequence[KafkaAction]) -> list[AdminError | None]:
        with in_words(f"carry out {len(actions)} changes together"):
            created = [action for action in actions if isinstance(action, CreateTopic)]
            limits = [action for action in actions if isinstance(action, AlterQuota)]
            of_users = [action for action in actions if isinstance(action, users.KINDS)]
            kinds = {len(created), len(limits), len(of_users)}
            assert len(actions) in kinds, "only these go together, and each with its kind"
            answers = (
                topics.created(self._mutations.send, created)
                or client_quotas.altered(self._send, limits)
                or users.carried_out(self._send, of_users)
            )
        return [_fault(action, answer) for action, answer in zip(actions, answers, strict=True)]

    def _send(self, request: Any, node: int | None = None) -> Any:
        return sent(self._client, request, node)

    def _send_to_first(self, request: Any) -> Any:
        """The answer of the first broker that can give one: a broker that is cut off from the controllers cannot."""
        for node in self._known_brokers():
            with contextlib.suppress(kafka.errors.KafkaError, OSError):
                response = self._send(request, node)
                if not response.error_code:
                    return response
        return self._send(request)

    def _known_brokers(self) -> list[int]:
        return sorted(broker.node_id for broker in self._client._manager.cluster.brokers())

    def _metadata(self, node: int | None = None) -> Any:
        return self._send(MetadataRequest(topics=None, allow_auto_topic_creation=False), node)

    def _configs(self, kind: int, names: list[str], *keys: str, or_none: bool = False) -> Mapping[str, list[Any]]:
        """The settings of topics or brokers: all, or `keys`. With `or_none` a resource that is gone is left out."""
        if not names:
            return {}
        make = DescribeConfigsRequest.DescribeConfigsResource
        wanted = list(keys) or None
        resources = [make(resource_type=kind, resource_name=name, configuration_keys=wanted) for name in names]
        response = self._send(DescribeConfigsRequest(resources=resources))
        for result in response.results:
            if not or_none:
                raise_for(result.error_code, result.error_message)
        return {result.resource_name: result.configs for result in response.results if not result.error_code}

    def _brokers_config(self) -> dict[str, str]:
        """The settings that were altered for all brokers."""
        configs = self._configs(BROKER_RESOURCE, [EVERY_BROKER])[EVERY_BROKER]
        altered = [setting for setting in configs if setting.config_source == BROKERS_OVERRIDE_SOURCE]
        return {setting.name: setting.value for setting in altered if setting.value is not None}

    def _quorum(self) -> Any:
        kind = DescribeQuorumRequest.TopicData
        partitions = [kind.PartitionData(partition_index=0)]
        request = DescribeQuorumRequest(topics=[kind(topic_name=METADATA_TOPIC, partitions=partitions)])
        response = self._send_to_first(request)
        raise_for(response.error_code, None)
        (partition,) = response.topics[0].partitions
        raise_for(partition.error_code, None)
        return partition

    def _alter(
        self,
        resource: int,
        name: str,
        to_set: Mapping[str, str],
        to_reset: Iterable[str],
        *,
        validate_only: bool = False,
    ) -> None:
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        changes = [kind.AlterableConfig(name=key, config_operation=SET, value=value) for key, value in to_set.items()]
        changes += [kind.AlterableConfig(name=key, config_operation=DELETE, value=None) for key in to_reset]
        altered = kind(resource_type=resource, resource_name=name, configs=changes)
        request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=validate_only)
        (result,) = self._send(request).responses
        raise_for(result.error_code, result.error_message)

    def _elect(self, action: ElectLeaders) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, index in action.partitions:
            by_topic.setdefault(topic, []).append(index)
        kind = ElectLeadersRequest.TopicPartitions
        wanted = [kind(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()]
        response = self._send(
            ElectLeadersRequest(election_type=PREFERRED, topic_partitions=wanted, timeout_ms=REQUEST_TIMEOUT_MS)
        )
        raise_for(response.error_code, None)
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                if result.error_code not in NOT_ELECTED:
                    raise_for(result.error_code, result.error_message)

    def _change_voters(self, request: Any) -> None:
        response = self._send(request)
        if response.error_code not in CHANGED_ALREADY:
            raise_for(response.error_code, response.error_message)


def _fault(action: KafkaAction, answer: Any) -> AdminError | None:
    """The error in the answer to one of several actions, or None."""
    try:
        with in_words(str(action)), contextlib.suppress(*DONE_ALREADY):
            raise_for(answer.error_code, answer.error_message)
    except AdminError as error:
        return error
    return None


def brokers_of(described: Any, metadata: Any) -> dict[int, SeenBroker]:
    """The brokers that DescribeCluster names; Metadata may name a broker for a moment after it was fenced."""
    leaders: dict[int, int] = {}
    behind: dict[int, int] = {}
    for topic in metadata.topics:
        for partition in topic.partitions:
            leaders[partition.leader_id] = leaders.get(partition.leader_id, 0) + 1
            if len(partition.isr_nodes) < len(partition.replica_nodes):
                behind[partition.leader_id] = behind.get(partition.leader_id, 0) + 1
    return {
        broker.broker_id: SeenBroker(
            id=broker.broker_id,
            address=f"{broker.host}:{broker.port}",
            rack=broker.rack,
            leaders=leaders.get(broker.broker_id, 0),
            under_replicated=behind.get(broker.broker_id, 0),
        )
        for broker in described.brokers
    }


def _topic(topic: Any, configs: list[Any], moving: Mapping[int, reassignments.Coming]) -> SeenTopic:
    partitions = topic.partitions
    assignment = {partition.partition_index: tuple(partition.replica_nodes) for partition in partitions}
    assignment |= {index: replicas for index, (replicas, _) in moving.items()}
    in_sync = {partition.partition_index: set(partition.isr_nodes) for partition in partitions}
    return SeenTopic(
        name=topic.name,
        topic_id=text_of(topic.topic_id),
        partitions=len(partitions),
        replication_factor=min(map(len, assignment.values()), default=0),
        overrides={
            setting.name: setting.value for setting in configs if setting.config_source == TOPIC_OVERRIDE_SOURCE
        },
        values={setting.name: setting.value for setting in configs if setting.value is not None},
        under_replicated=sum(len(partition.isr_nodes) < len(partition.replica_nodes) for partition in partitions),
        offline=sum(partition.leader_id < 0 for partition in partitions),
        offline_on=tuple(sorted({n for found in partitions if found.leader_id < 0 for n in found.replica_nodes})),
        assignment=assignment,
        moving=tuple(sorted(moving)),
        replicas_to_come=sum(len(adding - in_sync.get(index, set())) for index, (_, adding) in moving.items()),
    )
