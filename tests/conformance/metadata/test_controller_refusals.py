"""What a controller refuses to those who speak to it as controllers and brokers do, and with which code: the same table
holds for Apache Kafka, against which KAVKA_TEST_SERVER=apache-kafka runs it.

A quorum of one is asked, by nobody that it knows. No case may change it: whoever is asked next must find it as it was.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from kavka_broker.core.config.properties import parse_properties
from kavka_broker.core.metadata.image.features import SUPPORTED_LEVELS
from kavka_broker.protocol.errors import ErrorCode as E
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import add_raft_voter_request as adding
from kavka_broker.protocol.messages import alter_partition_request as altering
from kavka_broker.protocol.messages import assign_replicas_to_dirs_request as assigning
from kavka_broker.protocol.messages import begin_quorum_epoch_request as beginning
from kavka_broker.protocol.messages import describe_quorum_request as describing
from kavka_broker.protocol.messages import end_quorum_epoch_request as ending
from kavka_broker.protocol.messages import fetch_request as fetching
from kavka_broker.protocol.messages import fetch_snapshot_request as snapshots
from kavka_broker.protocol.messages import update_raft_voter_request as updating
from kavka_broker.protocol.messages import vote_request as voting
from kavka_broker.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kavka_broker.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kavka_broker.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kavka_broker.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kavka_broker.protocol.uuids import ONE, ZERO, from_text
from tests.support.asking import ask
from tests.support.servers import CLUSTER_ID, Server, free_port, is_apache_kafka

TOPIC = "__cluster_metadata"
ELSEWHERE = "ZWxzZXdoZXJlLWVsc2V3aA"
ANOTHER = b"\x41" * 16
NOBODY = 77
EPOCH_OF_NOBODY = 1 << 40


@dataclass(frozen=True)
class Facts:
    """Of the quorum that is asked."""

    address: tuple[str, int]
    epoch: int
    end_offset: int
    directory_id: bytes


Ask = Callable[[Facts], Message]


@pytest.fixture(scope="module")
def facts(server: Server) -> Facts:
    configured = parse_properties((server.directory / "server.properties").read_text())
    port = int(configured["controller.quorum.bootstrap.servers"].rpartition(":")[2])
    meta = parse_properties((server.data / "meta.properties").read_text())
    topics = [describing.TopicData(TOPIC, [describing.PartitionData(0)])]
    answer = ask(("127.0.0.1", port), describing.DescribeQuorumRequest(topics), DescribeQuorumResponse)
    (partition,) = answer.topics[0].partitions
    return Facts(("127.0.0.1", port), partition.leader_epoch, partition.high_watermark, from_text(meta["directory.id"]))


def code_of(answer: Any) -> E:
    """The error at an answer's top, otherwise that of its only partition."""
    if getattr(answer, "error_code", 0):
        return E(answer.error_code)
    topics = getattr(answer, "topics", None) or getattr(answer, "responses", None)
    return E(topics[0].partitions[0].error_code) if topics else E.NONE


def answered(facts: Facts, request: Message) -> Any:
    module = import_module(type(request).__module__.replace("_request", "_response"))
    return ask(facts.address, request, getattr(module, type(request).__name__.replace("Request", "Response")))


def vote(
    facts: Facts, *, cluster: str = CLUSTER_ID, topic: str = TOPIC, voter: int = 1, **asked: Any
) -> voting.VoteRequest:
    fields = {"replica_epoch": facts.epoch, "replica_id": NOBODY, "replica_directory_id": ANOTHER, **asked}
    partition = voting.PartitionData(**{"voter_directory_id": facts.directory_id, **fields})
    return voting.VoteRequest(cluster, voter, [voting.TopicData(topic, [partition])])


def begin(
    facts: Facts, *, cluster: str = CLUSTER_ID, voter: int = 1, **asked: Any
) -> beginning.BeginQuorumEpochRequest:
    fields = {"voter_directory_id": facts.directory_id, "leader_id": 1, "leader_epoch": facts.epoch, **asked}
    topics = [beginning.TopicData(TOPIC, [beginning.PartitionData(0, **fields)])]
    here = [beginning.LeaderEndpoint("CONTROLLER", *facts.address)]
    return beginning.BeginQuorumEpochRequest(cluster, voter, topics, here)


def end(facts: Facts, *, cluster: str = CLUSTER_ID, epoch: int = 0) -> ending.EndQuorumEpochRequest:
    topics = [ending.TopicData(TOPIC, [ending.PartitionData(0, NOBODY, epoch)])]
    return ending.EndQuorumEpochRequest(cluster, topics)


def fetch(
    facts: Facts, *, cluster: str = CLUSTER_ID, topic_id: bytes = ONE, wait_ms: int = 0, **asked: Any
) -> fetching.FetchRequest:
    fields = {"current_leader_epoch": facts.epoch, "last_fetched_epoch": 0, "replica_directory_id": ANOTHER, **asked}
    topics = [fetching.FetchTopic(topic_id=topic_id, partitions=[fetching.FetchPartition(**fields)])]
    return fetching.FetchRequest(
        cluster, replica_state=fetching.ReplicaState(NOBODY), max_wait_ms=wait_ms, topics=topics
    )


def snapshot(
    facts: Facts, *, cluster: str = CLUSTER_ID, topic: str = TOPIC, epoch: int | None = None, end_offset: int = 7
) -> snapshots.FetchSnapshotRequest:
    partition = snapshots.PartitionSnapshot(
        0, facts.epoch if epoch is None else epoch, snapshots.SnapshotId(end_offset, 0), 0, ANOTHER
    )
    return snapshots.FetchSnapshotRequest(cluster, NOBODY, 1000, [snapshots.TopicSnapshot(topic, [partition])])


def describe(topic: str, index: int) -> describing.DescribeQuorumRequest:
    return describing.DescribeQuorumRequest([describing.TopicData(topic, [describing.PartitionData(index)])])


def add(facts: Facts, **asked: Any) -> adding.AddRaftVoterRequest:
    nowhere = [adding.Listener("CONTROLLER", "127.0.0.1", free_port())]
    fields = {"cluster_id": CLUSTER_ID, "timeout_ms": 2_000, "voter_id": NOBODY, "voter_directory_id": ANOTHER}
    return adding.AddRaftVoterRequest(**{**fields, "listeners": nowhere, **asked})


def remove(voter_id: int = NOBODY, directory_id: bytes = ANOTHER, cluster: str = CLUSTER_ID) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster, voter_id, directory_id)


def update(facts: Facts, **asked: Any) -> updating.UpdateRaftVoterRequest:
    fields = {
        "cluster_id": CLUSTER_ID,
        "current_leader_epoch": facts.epoch,
        "voter_id": NOBODY,
        "voter_directory_id": ANOTHER,
        "listeners": [updating.Listener("CONTROLLER", "127.0.0.1", 9)],
        "k_raft_version_feature": updating.KRaftVersionFeature(0, 1),
    }
    return updating.UpdateRaftVoterRequest(**{**fields, **asked})


def register(**asked: Any) -> BrokerRegistrationRequest:
    fields = {
        "broker_id": NOBODY,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": ANOTHER,
        "listeners": [Listener("PLAINTEXT", "127.0.0.1", 9)],
        "features": [Feature(name, low, high) for name, (low, high) in SUPPORTED_LEVELS.items()],
        "rack": None,
        "log_dirs": [ANOTHER],
    }
    return BrokerRegistrationRequest(**{**fields, **asked})


CASES: dict[str, tuple[Ask, E]] = {
    "vote: another cluster": (lambda facts: vote(facts, cluster=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "vote: another topic": (lambda facts: vote(facts, topic="t"), E.INVALID_REQUEST),
    "vote: from the past": (lambda facts: vote(facts, replica_epoch=0, pre_vote=True), E.FENCED_LEADER_EPOCH),
    "vote: a log of its own epoch": (lambda facts: vote(facts, last_offset_epoch=facts.epoch), E.INVALID_REQUEST),
    "vote: a negative offset": (lambda facts: vote(facts, last_offset=-1), E.INVALID_REQUEST),
    "vote: for nobody": (lambda facts: vote(facts, replica_id=-1), E.INVALID_REQUEST),
    "vote: of another voter": (lambda facts: vote(facts, voter=NOBODY), E.INVALID_VOTER_KEY),
    "vote: of another disk": (lambda facts: vote(facts, voter_directory_id=ANOTHER), E.INVALID_VOTER_KEY),
    "begin: another cluster": (lambda facts: begin(facts, cluster=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "begin: from the past": (lambda facts: begin(facts, leader_epoch=0), E.FENCED_LEADER_EPOCH),
    "begin: of nobody": (lambda facts: begin(facts, leader_id=-1), E.INVALID_REQUEST),
    "begin: to another voter": (lambda facts: begin(facts, voter=NOBODY), E.INVALID_VOTER_KEY),
    "begin: to another disk": (lambda facts: begin(facts, voter_directory_id=ANOTHER), E.INVALID_VOTER_KEY),
    "end: another cluster": (lambda facts: end(facts, cluster=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "end: from the past": (end, E.FENCED_LEADER_EPOCH),
    "fetch: another cluster": (lambda facts: fetch(facts, cluster=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "fetch: another topic": (lambda facts: fetch(facts, topic_id=ANOTHER), E.INVALID_REQUEST),
    "fetch: from the past": (lambda facts: fetch(facts, current_leader_epoch=0), E.FENCED_LEADER_EPOCH),
    "fetch: from the future": (lambda facts: fetch(facts, current_leader_epoch=99), E.UNKNOWN_LEADER_EPOCH),
    "fetch: a negative offset": (lambda facts: fetch(facts, fetch_offset=-1), E.INVALID_REQUEST),
    "fetch: a negative wait": (lambda facts: fetch(facts, wait_ms=-1), E.INVALID_REQUEST),
    "fetch: no last epoch": (lambda facts: fetch(facts, last_fetched_epoch=-1), E.INVALID_REQUEST),
    "fetch: a log of an epoch to come": (lambda facts: fetch(facts, last_fetched_epoch=99), E.INVALID_REQUEST),
    "snapshot: another cluster": (lambda facts: snapshot(facts, cluster=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "snapshot: another topic": (lambda facts: snapshot(facts, topic="t"), E.UNKNOWN_TOPIC_OR_PARTITION),
    "snapshot: from the past": (lambda facts: snapshot(facts, epoch=0), E.FENCED_LEADER_EPOCH),
    "snapshot: from the future": (lambda facts: snapshot(facts, epoch=99), E.UNKNOWN_LEADER_EPOCH),
    "snapshot: there is none": (snapshot, E.SNAPSHOT_NOT_FOUND),
    "snapshot: that of the format": (lambda facts: snapshot(facts, end_offset=0), E.SNAPSHOT_NOT_FOUND),
    "describe: another topic": (lambda _: describe("t", 0), E.UNKNOWN_TOPIC_OR_PARTITION),
    "describe: another partition": (lambda _: describe(TOPIC, 1), E.UNKNOWN_TOPIC_OR_PARTITION),
    "add: another cluster": (lambda facts: add(facts, cluster_id=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "add: without a directory": (lambda facts: add(facts, voter_directory_id=ZERO), E.INVALID_REQUEST),
    "add: without an address": (lambda facts: add(facts, listeners=[]), E.INVALID_REQUEST),
    "add: who votes already": (lambda facts: add(facts, voter_id=1), E.DUPLICATE_VOTER),
    "add: who is not there": (add, E.REQUEST_TIMED_OUT),
    "remove: another cluster": (lambda _: remove(cluster=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "remove: without a directory": (lambda _: remove(directory_id=ZERO), E.INVALID_REQUEST),
    "remove: who does not vote": (lambda _: remove(), E.VOTER_NOT_FOUND),
    "remove: a voter's other disk": (lambda _: remove(voter_id=1), E.VOTER_NOT_FOUND),
    "update: another cluster": (lambda facts: update(facts, cluster_id=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "update: from the past": (lambda facts: update(facts, current_leader_epoch=0), E.FENCED_LEADER_EPOCH),
    "update: from the future": (lambda facts: update(facts, current_leader_epoch=99), E.UNKNOWN_LEADER_EPOCH),
    "update: without a directory": (lambda facts: update(facts, voter_directory_id=ZERO), E.INVALID_REQUEST),
    "update: without an address": (lambda facts: update(facts, listeners=[]), E.INVALID_REQUEST),
    "update: who does not vote": (update, E.VOTER_NOT_FOUND),
    "update: an older version": (
        lambda facts: update(
            facts,
            voter_id=1,
            voter_directory_id=facts.directory_id,
            k_raft_version_feature=updating.KRaftVersionFeature(0, 0),
        ),
        E.INVALID_REQUEST,
    ),
    "register: another cluster": (lambda _: register(cluster_id=ELSEWHERE), E.INCONSISTENT_CLUSTER_ID),
    "register: a second of one id": (lambda _: register(broker_id=1), E.DUPLICATE_BROKER_REGISTRATION),
    "register: without a directory": (lambda _: register(log_dirs=[]), E.INVALID_REGISTRATION),
    "register: a directory twice": (lambda _: register(log_dirs=[ANOTHER, ANOTHER]), E.INVALID_REGISTRATION),
    "register: a reserved directory": (lambda _: register(log_dirs=[ONE]), E.INVALID_REGISTRATION),
    "register: another's directory": (
        lambda facts: register(log_dirs=[facts.directory_id]),
        E.INVALID_REGISTRATION,
    ),
    "register: of an older version": (
        lambda _: register(features=[Feature("metadata.version", 7, 8)]),
        E.UNSUPPORTED_VERSION,
    ),
    "heartbeat: of nobody": (lambda _: BrokerHeartbeatRequest(NOBODY, 5, 5), E.STALE_BROKER_EPOCH),
    "heartbeat: of another incarnation": (
        lambda _: BrokerHeartbeatRequest(1, EPOCH_OF_NOBODY, 5),
        E.STALE_BROKER_EPOCH,
    ),
    "alter partition: another incarnation": (
        lambda _: altering.AlterPartitionRequest(1, EPOCH_OF_NOBODY, [altering.TopicData(ANOTHER)]),
        E.STALE_BROKER_EPOCH,
    ),
    "producer ids: another incarnation": (
        lambda _: AllocateProducerIdsRequest(1, EPOCH_OF_NOBODY),
        E.STALE_BROKER_EPOCH,
    ),
    "directories: another incarnation": (
        lambda _: assigning.AssignReplicasToDirsRequest(1, EPOCH_OF_NOBODY, []),
        E.STALE_BROKER_EPOCH,
    ),
    "unregister: nobody": (lambda _: UnregisterBrokerRequest(NOBODY), E.BROKER_ID_NOT_REGISTERED),
}


#: Apache Kafka 4.3 cannot encode the errors of a partition of FetchSnapshot (its records are null there).
UNSAID_BY_KAFKA = {case for case in CASES if "snapshot:" in case and "cluster" not in case}


@pytest.mark.parametrize("case", CASES)
def test_a_controller_refuses_with_kafkas_code(facts: Facts, case: str) -> None:
    request, code = CASES[case]
    if is_apache_kafka() and case in UNSAID_BY_KAFKA:
        code = E.UNKNOWN_SERVER_ERROR
    assert code_of(answered(facts, request(facts))) is code


def test_a_leader_gives_no_vote_and_no_promise(facts: Facts) -> None:
    for is_pre_vote in (False, True):
        answer = answered(facts, vote(facts, last_offset=1 << 40, pre_vote=is_pre_vote))
        (partition,) = answer.topics[0].partitions
        told = (E(partition.error_code), partition.vote_granted, partition.leader_id, partition.leader_epoch)
        assert told == (E.NONE, False, 1, facts.epoch)


def test_a_follower_is_told_where_the_logs_part(facts: Facts) -> None:
    answer = answered(facts, fetch(facts, fetch_offset=1 << 40, last_fetched_epoch=facts.epoch))
    (partition,) = answer.responses[0].partitions
    assert (partition.error_code, partition.diverging_epoch.epoch) == (E.NONE, facts.epoch)
    assert facts.end_offset <= partition.diverging_epoch.end_offset < 1 << 40


def test_the_controller_leads_as_before(facts: Facts) -> None:
    answer = answered(facts, describe(TOPIC, 0))
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (1, facts.epoch)
    assert [voter.replica_id for voter in partition.current_voters] == [1]
