"""The controller's APIs over the wire forms of every version: what is asked is decided, and comes back whole."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from kavka_broker.controller.sessions import Sessions
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.features import SUPPORTED_LEVELS
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.dispatch.handlers import load
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kavka_broker.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka_broker.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest, DirectoryData
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import PartitionData as AssignedPartition
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import TopicData as AssignedTopic
from kavka_broker.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kavka_broker.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kavka_broker.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kavka_broker.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kavka_broker.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kavka_broker.protocol.uuids import to_text
from kavka_broker.request.broker import Client, Connected
from kavka_broker.request.registry import APIS
from tests.support.brokers import TOPIC_ID, epoch_of, replicated, state
from tests.support.cluster import CLUSTER_ID, PROPERTIES, StillClock, enact, uuid

R = TypeVar("R")
load()


class Decides:
    """A controller that commits each decision at once."""

    def __init__(self, metadata: Metadata) -> None:
        self.node_id, self.metadata, self.is_active = 9, metadata, True
        self.activated: list[Callable[[], None]] = []
        self.deactivated: list[Callable[[], None]] = []

    async def submit(self, decide: Callable[[Metadata, int], Decision[R]]) -> R:
        return enact(self.metadata, decide(self.metadata, 0))


class Node:
    """The parts of a node that these handlers use."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        config = BrokerConfig.parse(PROPERTIES)
        timers: Any = SimpleNamespace(after=lambda *_: SimpleNamespace(cancel=lambda: None))
        peers: Any = None
        active = Decides(metadata)
        sessions = Sessions(active, config, StillClock(), timers, peers)
        self.broker: Any = SimpleNamespace(
            active=active, metadata=metadata, config=config, cluster_id=CLUSTER_ID, sessions=sessions, slices=Slices()
        )

    def ask(self, request: Message, version: int, peer: Connected | None = None) -> Any:
        """The answer as a client would decode it."""
        assert request.API_KEY is not None
        api = APIS[request.API_KEY]
        assert api.supports(version)
        there = decode(type(request), version, memoryview(encode(request, version)))
        client = Client(version, "test", 1, "127.0.0.1", "CONTROLLER", role="controller", peer=peer)

        async def run() -> Message:
            answer = api.handle(there, self.broker, client)
            return answer if isinstance(answer, Message) else await answer  # type: ignore[misc]

        return decode(api.response, version, memoryview(encode(asyncio.run(run()), version)))


def versions(request: type[Message]) -> range:
    assert request.API_KEY is not None
    low, high = APIS[request.API_KEY].versions
    return range(low, high + 1)


def registration(**other: Any) -> BrokerRegistrationRequest:
    fields: dict[str, Any] = {
        "broker_id": 7,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": uuid(70),
        "listeners": [Listener("PLAINTEXT", "host", 9092)],
        "features": [Feature(name, low, high) for name, (low, high) in SUPPORTED_LEVELS.items()],
        "rack": "r",
        "log_dirs": [uuid(71)],
    }
    return BrokerRegistrationRequest(**{**fields, **other})


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_broker_joins_lives_and_stops(version: int) -> None:
    node = Node(replicated(1, 2))
    epoch = node.ask(registration(), version).broker_epoch
    found = node.metadata.brokers.get(7)
    assert found is not None
    assert (found.epoch, found.rack, found.directories, found.fenced) == (epoch, "r", (uuid(71),), True)
    for heartbeat_version in versions(BrokerHeartbeatRequest):
        behind = node.ask(BrokerHeartbeatRequest(7, epoch, epoch - 1), heartbeat_version)
        assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    alive = node.ask(BrokerHeartbeatRequest(7, epoch, epoch), 2)
    assert (alive.error_code, alive.is_caught_up, alive.is_fenced, alive.should_shut_down) == (0, True, False, False)
    gone = node.ask(BrokerHeartbeatRequest(7, epoch, epoch, want_shut_down=True), 2)
    assert (gone.is_fenced, gone.should_shut_down) == (True, True)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"broker_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"is_migrating_zk_broker": True}, ErrorCode.INVALID_REQUEST),
        ({"broker_id": 1}, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_registrations_are_refused_with_kafkas_code(wrong: dict[str, Any], code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refusal:
        Node(replicated(1, 2)).ask(registration(**wrong), 4)
    assert refusal.value.code is code


def test_the_second_of_two_brokers_with_one_id_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Both brokers start at once: the second is refused while the first still catches up, and the log names both."""
    node = Node(replicated(1, 2))
    epoch = node.ask(registration(), 4).broker_epoch
    peer = Connected("127.0.0.1", "CONTROLLER")
    assert node.ask(BrokerHeartbeatRequest(7, epoch, epoch - 1), 2, peer).is_fenced
    second = registration(incarnation_id=uuid(80), log_dirs=[uuid(81)])
    for _ in range(2):
        with pytest.raises(BrokerError) as refusal:
            node.ask(second, 4)
        assert refusal.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    (note,) = [line.fields for line in caplog.records if line.message == "broker.refused"]  # type: ignore[attr-defined]
    assert (note["broker"], note["error"]) == (7, "DUPLICATE_BROKER_REGISTRATION")
    assert to_text(uuid(70)) in note["reason"]
    # A request that names the first broker's directory may be its successor's, or a late one of its predecessor.
    successor = registration(incarnation_id=uuid(80))
    with pytest.raises(BrokerError, match="the same directories"):
        node.ask(successor, 4)
    node.broker.sessions.stop()  # as another controller would find it
    assert node.ask(successor, 4).broker_epoch > epoch


@pytest.mark.parametrize("version", versions(AlterPartitionRequest))
def test_a_leader_changes_its_in_sync_set(version: int) -> None:
    node = Node(replicated(1, 2, 3))
    members: dict[str, Any] = (
        {"new_isr": [1, 2]} if version == 2 else {"new_isr_with_epochs": [BrokerState(1, -1), BrokerState(2, -1)]}
    )
    topics = [
        TopicData(TOPIC_ID, [PartitionData(0, **members), PartitionData(8)]),
        TopicData(uuid(9), [PartitionData()]),
    ]
    answer = node.ask(AlterPartitionRequest(1, epoch_of(node.metadata, 1), topics), version)
    (made, unknown), (gone,) = (topic.partitions for topic in answer.topics)
    assert (made.error_code, made.leader_id, made.isr, made.partition_epoch) == (0, 1, [1, 2], 1)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert state(node.metadata).isr == (1, 2)


@pytest.mark.parametrize("version", versions(ElectLeadersRequest))
def test_leaders_are_elected(version: int) -> None:
    node = Node(replicated(1, 2, 3))
    answer = node.ask(ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0, 4])]), version)
    (topic,) = answer.replica_election_results
    assert [(partition.partition_id, partition.error_code) for partition in topic.partition_result] == [
        (0, ErrorCode.ELECTION_NOT_NEEDED),
        (4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert node.ask(ElectLeadersRequest(topic_partitions=None), version).replica_election_results == []


@pytest.mark.parametrize("version", [1, 2])
def test_elections_of_an_unknown_type_are_refused(version: int) -> None:
    request = ElectLeadersRequest(5, [TopicPartitions("t", [0, 4])])
    answer = Node(replicated(1, 2)).ask(request, version)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    (topic,) = answer.replica_election_results
    assert [partition.error_code for partition in topic.partition_result] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", versions(AlterPartitionReassignmentsRequest))
def test_partitions_are_moved_shown_and_left(version: int) -> None:
    node = Node(replicated(1, 2, others=(3,)))

    def moved(replicas: list[int] | None, partition: int = 0) -> int:
        topics = [ReassignableTopic("t", [ReassignablePartition(partition, replicas)])]
        answer = node.ask(AlterPartitionReassignmentsRequest(topics=topics), version)
        code: int = answer.responses[0].partitions[0].error_code
        return code

    assert moved([3, 2]) == ErrorCode.NONE
    (topic,) = node.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics
    (shown,) = topic.partitions
    assert (shown.replicas, shown.adding_replicas, shown.removing_replicas) == ([3, 2, 1], [3], [1])
    assert moved(None) == ErrorCode.NONE
    assert moved(None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert moved([7]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert moved([1], partition=4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics == []


@pytest.mark.parametrize("version", versions(UpdateFeaturesRequest))
def test_features_are_raised_together_or_not(version: int) -> None:
    node = Node(replicated(1, 2))
    wanted, wrong = FeatureUpdateKey("group.version", 1), FeatureUpdateKey("group.version", 9)
    answer = node.ask(UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("share.version", 1), wrong]), version)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert node.metadata.features.level("share.version") == 0
    if version > 0:
        assert node.ask(UpdateFeaturesRequest(feature_updates=[wanted], validate_only=True), version).error_code == 0
        assert node.metadata.features.level("group.version") == 0
    answer = node.ask(UpdateFeaturesRequest(feature_updates=[wanted]), version)
    assert (answer.error_code, node.metadata.features.level("group.version")) == (0, 1)
    assert [result.feature for result in answer.results] == (["group.version"] if version < 2 else [])


def test_features_are_lowered_only_on_request() -> None:
    node = Node(replicated(1, 2))
    node.ask(UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("group.version", 1)]), 2)
    lower = FeatureUpdateKey("group.version", 0, allow_downgrade=True)
    assert node.ask(UpdateFeaturesRequest(feature_updates=[lower]), 0).error_code == 0
    assert node.metadata.features.level("group.version") == 0


def test_a_broker_says_where_its_replicas_are() -> None:
    node = Node(replicated(1, 2))
    replicas = [AssignedTopic(TOPIC_ID, [AssignedPartition(0), AssignedPartition(3)])]
    request = AssignReplicasToDirsRequest(2, epoch_of(node.metadata, 2), [DirectoryData(uuid(99), replicas)])
    (directory,) = node.ask(request, 0).directories
    assert directory.id == uuid(99)
    codes = [partition.error_code for partition in directory.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert state(node.metadata).directories[1] == uuid(99)


def test_producer_ids_are_given_to_registered_brokers() -> None:
    node = Node(replicated(1, 2))
    first = node.ask(AllocateProducerIdsRequest(1, epoch_of(node.metadata, 1)), 0)
    second = node.ask(AllocateProducerIdsRequest(2, epoch_of(node.metadata, 2)), 0)
    assert second.producer_id_start == first.producer_id_start + first.producer_id_len
    with pytest.raises(BrokerError) as refusal:
        node.ask(AllocateProducerIdsRequest(1, 99), 0)
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_brokers_are_forgotten_and_controllers_remembered() -> None:
    node = Node(replicated(1, 2))
    assert node.ask(UnregisterBrokerRequest(2), 0).error_code == 0
    assert node.metadata.brokers.get(2) is None
    assert node.ask(ControllerRegistrationRequest(5, uuid(5)), 0).error_code == 0
    assert [controller.controller_id for controller in node.metadata.brokers.controllers()] == [5]
