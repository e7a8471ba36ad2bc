"""What the coordinators of Kavka and of Apache Kafka answer about a transaction that is decided and not complete.

The transaction has written to one partition, whose only replica is on a second broker. A proxy before that one holds
the coordinator's markers back, so that the transaction stays in PrepareCommit or PrepareAbort for as long as the test
wants. All that may be asked of its id is asked: of the coordinator that has decided, and of its next life, which has
read the decision in its log. No answer changes anything, so one id serves for all requests. At last the markers are let
go, and the transaction ends as it was decided.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kavka_broker.protocol.messages.describe_transactions_response import DescribeTransactionsResponse
from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from kavka_broker.protocol.messages.end_txn_response import EndTxnResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from kavka_broker.protocol.records.record import build_batch
from tests.conformance.side_by_side.products import KAFKA, KAVKA, become
from tests.support.asking import ask
from tests.support.held_requests import HeldRequests, held_requests
from tests.support.nodes import Nodes, Place, prepare
from tests.support.servers import free_port

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS: Final = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "kavka.admin.listener": "",
}
COORDINATOR, LEADER = 1, 2
TOPIC: Final = "held"
AGAIN_SECONDS: Final = 0.1
SECONDS_MAX: Final = 120.0
NOT_HERE: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)  # fmt: skip
#: Transaction version, and how the transaction has been decided.
CASES: Final = list(product((1, 2), (True, False)))

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST: Final = -1
NO_LEADER: Final = -1

Answers = dict[str, str]


def until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(AGAIN_SECONDS)


@dataclass(slots=True)
class Asking:
    """One product's coordinator."""

    nodes: Nodes
    markers: HeldRequests

    def told(self, request: Message, kind: type[Message], version: int, code_of: Callable[[Any], int]) -> int:
        """The error, once it is not one of a coordinator that is yet to come."""
        return self._asked(COORDINATOR, request, kind, version, code_of)[0]

    def answered(self, node_id: int, request: Message, kind: type[Message], version: int) -> Any:
        return self._asked(node_id, request, kind, version, lambda answer: getattr(answer, "error_code", 0))[1]

    def _asked(
        self, node_id: int, request: Message, kind: type[Message], version: int, code_of: Callable[[Any], int]
    ) -> tuple[int, Any]:
        found: list[tuple[int, Any]] = []

        def is_told() -> bool:
            answer = ask(self.nodes[node_id].address, request, kind, version)
            found.append((code_of(answer), answer))
            return found[-1][0] not in NOT_HERE

        until(f"{request} is answered {found[-1:]}", is_told)
        return found[-1]

    def state(self, name: str) -> str:
        def code_of(answer: Any) -> int:
            return int(answer.transaction_states[0].error_code)

        request = DescribeTransactionsRequest([name])
        (described,) = self._asked(COORDINATOR, request, DescribeTransactionsResponse, 0, code_of)[1].transaction_states
        return f"{ErrorCode(described.error_code).name} {described.transaction_state}"


@dataclass(frozen=True, slots=True)
class Decided:
    """An id whose transaction is decided; its producer had this id and epoch in it."""

    name: str
    version: int
    commits: bool
    producer_id: int
    epoch: int

    @property
    def title(self) -> str:
        return f"version {self.version}, {'PrepareCommit' if self.commits else 'PrepareAbort'}"


@contextmanager
def running(directory: Path, what: str) -> Iterator[Asking]:
    """A coordinator, and beside it the broker that has the topic's only partition."""
    nodes = prepare(directory / what, [Place(COORDINATOR), Place(LEADER, "broker")], SETTINGS)
    leader, port = nodes[LEADER], free_port()
    with (leader.directory / "server.properties").open("a") as config:
        config.write(f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n")
    for server in nodes.servers.values():
        become(server, what)
    markers = HeldRequests(leader.address, (WriteTxnMarkersRequest.API_KEY,))
    asking = Asking(nodes, markers)
    try:
        with held_requests(markers, port):
            start(asking)
            yield asking
    finally:
        nodes.end()


def start(asking: Asking) -> None:
    asking.nodes.start(COORDINATOR)
    # The first one to look for a coordinator makes the topic of transactions: on the only broker that is there.
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["any"])
    asking.told(request, FindCoordinatorResponse, 6, lambda answer: answer.coordinators[0].error_code)
    asking.nodes.start(LEADER)
    created = CreatableTopic(TOPIC, -1, -1, [CreatableReplicaAssignment(0, [LEADER])])
    asking.answered(COORDINATOR, CreateTopicsRequest([created]), CreateTopicsResponse, 7)


def decided(asking: Asking) -> list[Decided]:
    """Transactions that have written to the partition, and are decided; no marker comes there."""
    opened = [begun(asking, version, commits=commits) for version, commits in CASES]
    for one in opened:
        assert end(asking, one, commits=one.commits) == "NONE", one
    return opened


def begun(asking: Asking, version: int, *, commits: bool) -> Decided:
    name = f"version {version}, {'commits' if commits else 'aborts'}"
    request = InitProducerIdRequest(name, 600_000)
    asking.answered(COORDINATOR, request, InitProducerIdResponse, 5)  # so that there is an epoch before the present one
    answer = asking.answered(COORDINATOR, request, InitProducerIdResponse, 5)
    one = Decided(name, version, commits, answer.producer_id, answer.producer_epoch)
    if version == 1:
        assert add_partition(asking, one, 0) == "NONE", one
    batch = build_batch(
        [(None, b"v")], timestamp_ms=1, producer_id=one.producer_id, producer_epoch=one.epoch, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    data, produce_version = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)]), 10 + version
    produced = ProduceRequest(name, -1, 9_000, [data])

    def is_written() -> bool:
        answer = ask(asking.nodes[LEADER].address, produced, ProduceResponse, produce_version)
        code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        assert code in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, *NOT_HERE), code.name
        return code is ErrorCode.NONE

    until(f"{name} is written", is_written)
    return one


def end(asking: Asking, one: Decided, *, commits: bool, epoch: int = 0, producer_id: int = 0) -> str:
    request = EndTxnRequest(one.name, one.producer_id + producer_id, one.epoch + epoch, commits)
    version = 4 if one.version == 1 else 5
    return ErrorCode(asking.told(request, EndTxnResponse, version, lambda answer: answer.error_code)).name


def add_partition(asking: Asking, one: Decided, epoch: int) -> str:
    """As a client."""
    topics = [AddPartitionsToTxnTopic(TOPIC, [0])]
    request = AddPartitionsToTxnRequest([], one.name, one.producer_id, one.epoch + epoch, topics)
    return ErrorCode(
        asking.told(
            request,
            AddPartitionsToTxnResponse,
            3,
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )
    ).name


def add_partition_as_broker(asking: Asking, one: Decided, epoch: int, *, verifies: bool) -> str:
    topics = [AddPartitionsToTxnTopic(TOPIC, [0])]
    transaction = AddPartitionsToTxnTransaction(one.name, one.producer_id, one.epoch + epoch, verifies, topics)
    return ErrorCode(
        asking.told(
            AddPartitionsToTxnRequest([transaction]),
            AddPartitionsToTxnResponse,
            5,
            lambda answer: (
                answer.error_code
                or answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code
            ),
        )
    ).name


def add_offsets(asking: Asking, one: Decided, epoch: int) -> str:
    request = AddOffsetsToTxnRequest(one.name, one.producer_id, one.epoch + epoch, "group")
    return ErrorCode(asking.told(request, AddOffsetsToTxnResponse, 3, lambda answer: answer.error_code)).name


def init(asking: Asking, one: Decided, epoch: int | None, producer_id: int = 0) -> str:
    """InitProducerId; `epoch` is what it goes on with (KIP-360), None for a new producer."""
    expected = () if epoch is None else (one.producer_id + producer_id, one.epoch + epoch)
    request = InitProducerIdRequest(one.name, 600_000, *expected)
    return ErrorCode(asking.told(request, InitProducerIdResponse, 5, lambda answer: answer.error_code)).name


def answers(asking: Asking, known: list[Decided]) -> Answers:
    """All that may be asked of a decided transaction: with the epoch it was decided in, those beside it, and others."""
    found: Answers = {}
    for one in known:
        found[f"{one.title}: state"] = asking.state(one.name)
        for commits, epoch in product((True, False), (-1, 0, 1, 2)):
            what = "commit" if commits else "abort"
            found[f"{one.title}: {what} {epoch:+}"] = end(asking, one, commits=commits, epoch=epoch)
            of_another = end(asking, one, commits=commits, epoch=epoch, producer_id=1_000)
            found[f"{one.title}: {what} {epoch:+} of another id"] = of_another
        for epoch in (-1, 0, 1, 2):
            found[f"{one.title}: add a partition {epoch:+}"] = add_partition(asking, one, epoch)
            found[f"{one.title}: add offsets {epoch:+}"] = add_offsets(asking, one, epoch)
            for verifies in (True, False):
                asked = "verify" if verifies else "add"
                of_broker = add_partition_as_broker(asking, one, epoch, verifies=verifies)
                found[f"{one.title}: a broker asks to {asked} {epoch:+}"] = of_broker
        for expected in (None, -1, 0, 1, 2):
            found[f"{one.title}: init {expected}"] = init(asking, one, expected)
            found[f"{one.title}: init {expected} of another id"] = init(asking, one, expected, 1_000)
        found[f"{one.title}: state afterwards"] = asking.state(one.name)
    return found


def played(directory: Path, what: str) -> tuple[Answers, Answers, Answers]:
    """The answers of the coordinator that has decided, of its next life, and the states once all markers are there."""
    with running(directory, what) as asking:
        known = decided(asking)
        same = answers(asking, known)
        asking.nodes[COORDINATOR].stop()
        asking.nodes.start(COORDINATOR)
        following = answers(asking, known)
        assert asking.markers.held > 0
        asking.markers.is_open.set()
        for one in known:
            until_complete(asking, one)
        return same, following, {one.title: asking.state(one.name) for one in known}


def until_complete(asking: Asking, one: Decided) -> None:
    until(f"{one} is complete", lambda: "Complete" in asking.state(one.name))


def leader_of_partition(asking: Asking) -> int:
    request = MetadataRequest([MetadataRequestTopic(name=TOPIC)])
    (topic,) = ask(asking.nodes[COORDINATOR].address, request, MetadataResponse, 12).topics
    return int(topic.partitions[0].leader_id)


def end_offset(asking: Asking, isolation_level: int) -> int:
    """Where a reader of the partition comes to."""
    topics = [ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1, LATEST)])]
    answer = ask(asking.nodes[LEADER].address, ListOffsetsRequest(-1, isolation_level, topics), ListOffsetsResponse, 7)
    told = answer.topics[0].partitions[0]
    assert told.error_code == 0, ErrorCode(told.error_code)
    return int(told.offset)


def decided_without_a_leader(directory: Path, what: str) -> tuple[int, int]:
    """A transaction is decided while its partition has no leader. When that is back, and the transaction complete: how
    many offsets the partition has, and how many of them readers of committed records may come to.
    """
    with running(directory, what) as asking:
        one = begun(asking, 2, commits=True)
        asking.markers.is_open.set()
        asking.nodes.kill(LEADER)
        until("the partition has no leader", lambda: leader_of_partition(asking) == NO_LEADER)
        assert end(asking, one, commits=True) == "NONE"
        asking.nodes.start(LEADER)
        until_complete(asking, one)
        return end_offset(asking, READ_UNCOMMITTED), end_offset(asking, READ_COMMITTED)


def test_what_is_answered_of_a_decided_transaction(tmp_path: Path) -> None:
    """C12, its Prepare states: with and without a move of the coordinator."""
    theirs, ours = played(tmp_path, KAFKA), played(tmp_path, KAVKA)
    for of_kafka, of_kavka in zip(theirs, ours, strict=True):
        assert of_kavka == of_kafka
    same, following, ended = ours
    assert following == same, "nothing is known that the log does not say"
    assert same["version 2, PrepareCommit: commit +0"] == "CONCURRENT_TRANSACTIONS"
    assert all(state.endswith(title[-6:]) for title, state in ended.items()), ended


def test_a_marker_waits_for_the_leader_of_its_partition(tmp_path: Path) -> None:
    """Apache Kafka takes a partition that has no leader for one that is deleted: the transaction is complete without
    its marker, nobody ever ends it, and readers of committed records never get behind it.
    """
    assert decided_without_a_leader(tmp_path, KAVKA) == (2, 2)
    assert decided_without_a_leader(tmp_path, KAFKA) == (1, 0)
