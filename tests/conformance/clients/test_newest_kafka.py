"""What is new in the newest Apache Kafka, as its broker answers it, and as its tools meet it."""

import subprocess
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import CLUSTER_ID, Server, free_port, start_kavka
from tools.compat_table import CONTROLLER, kafka_ranges
from tools.kafka_jars import newer_class_path
from tools.kafka_jvm import java

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX: Final = 60.0
AGAIN: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.REBALANCE_IN_PROGRESS,
)  # fmt: skip
ANOTHER: Final = "b3RoZXItY2x1c3Rlci1pZA"
NODE: Final = 1
RECORD: Final = "of the other cluster"
REFUSED_MS: Final = 8_000  # for a consumer that is to find nothing; one that may read takes two seconds
GROUPS, TRANSACTIONS = 0, 1  # the types of coordinators
GENERATION: Final = 3
MEMBER: Final = "a-member"
#: Of key 0 brokers say more than they serve (KAFKA-18659).
PRODUCE: Final = 0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("newest"), newest=True) as pair:
        pair.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), CreateTopicsResponse)
        for server, kind in product(pair, (GROUPS, TRANSACTIONS)):
            looking = FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
            _, code = told(server, looking, FindCoordinatorResponse, 6, "coordinators", 0)
            assert code is ErrorCode.NONE
        yield pair


def told(server: Server, request: Message, kind: type[Any], version: int, *path: Any) -> tuple[Any, ErrorCode]:
    """The answer, once its error is not one that says to come again, and that error. `path` leads to it."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        answer = found = ask(server.address, request, kind, version)
        for step in path:
            found = found[step] if isinstance(step, int) else getattr(found, step)
        code = ErrorCode(found.error_code)
        if code not in AGAIN or time.monotonic() > deadline:
            return answer, code


# --- versions -------------------------------------------------------------------------------------------------------


def test_the_table_has_the_versions_that_its_broker_advertises(both: Both) -> None:
    answer = ask(both.kafka.address, ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
    advertised = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    ours = {key: versions for key, (_, versions) in kafka_ranges().items() if key not in CONTROLLER}
    advertised.pop(PRODUCE), ours.pop(PRODUCE)
    assert advertised == {key: versions for key, versions in ours.items() if key in advertised}
    assert {93, 94} <= advertised.keys()


@pytest.mark.parametrize("of_controller", [False, True])
@pytest.mark.parametrize("node_id", [NODE, 7, -1])
@pytest.mark.parametrize("cluster_id", [CLUSTER_ID, ANOTHER, "", None])
def test_a_client_says_what_it_takes_a_node_for(
    both: Both, cluster_id: str | None, node_id: int, *, of_controller: bool
) -> None:
    """KIP-1242: both refuse the same, on listeners of either kind."""
    request = ApiVersionsRequest("test", "1", cluster_id, node_id)
    answers = [
        ask(controller_of(server) if of_controller else server.address, request, ApiVersionsResponse, 5)
        for server in both
    ]
    ours, theirs = [(ErrorCode(answer.error_code), bool(answer.api_keys)) for answer in answers]
    assert ours == theirs


def controller_of(server: Server) -> tuple[str, int]:
    lines = (server.directory / "server.properties").read_text().splitlines()
    (listeners,) = [line.partition("=")[2] for line in lines if line.startswith("listeners=")]
    return "127.0.0.1", int(listeners.rpartition(":")[2])


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker that advertises the address of another cluster, which has a record in a topic of the same name."""
    directory = tmp_path_factory.mktemp("mistaken")
    other = start_kavka(directory / "other", formatting=("--cluster-id", ANOTHER))
    port, controller = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
    settings = {
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listeners": listeners,
        "advertised.listeners": f"PLAINTEXT://{other.bootstrap}",
    }
    try:
        own = start_kavka(directory / "own", settings)
        try:
            for server in (own, other):
                ask(server.address, CreateTopicsRequest([CreatableTopic("t", 1, 1)]), CreateTopicsResponse)
            producer = Producer({"bootstrap.servers": other.bootstrap})
            producer.produce("t", RECORD)
            assert producer.flush(SECONDS_MAX) == 0
            yield own
        finally:
            own.kill()
    finally:
        other.kill()


@pytest.mark.parametrize(
    ("setting", "taken", "wait_ms"),
    [("", 0, REFUSED_MS), ("metadata.cluster.check.enable=false\n", 1, SECONDS_MAX * 1000)],
    ids=["default", "off"],
)
def test_a_client_takes_no_record_of_another_cluster(
    mistaken: Server, tmp_path: Path, setting: str, taken: int, wait_ms: float
) -> None:
    """KIP-1242: by default it leaves a broker that says it is of another cluster; without the check it reads there."""
    settings = tmp_path / "client.properties"
    settings.write_text(setting)
    words = ["--bootstrap-server", mistaken.bootstrap, "--topic", "t", "--partition", "0", "--offset", "earliest"]
    words += ["--max-messages", "1", "--timeout-ms", f"{wait_ms:.0f}", "--command-config", str(settings)]
    tool = [*java("256M"), "-cp", newer_class_path(), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    ran = subprocess.run([*tool, *words], capture_output=True, text=True, timeout=2 * SECONDS_MAX, check=False)
    assert f"Processed a total of {taken} messages" in ran.stderr
    assert (RECORD in ran.stdout) is bool(taken)


# --- groups ---------------------------------------------------------------------------------------------------------


def join(server: Server, group: str) -> int:
    """Have a member in a group; returns its epoch."""
    first = ConsumerGroupHeartbeatRequest(group, MEMBER, 0, None, None, 60_000, ["t"], None, None, [])
    answer, code = told(server, first, ConsumerGroupHeartbeatResponse, 1)
    assert code is ErrorCode.NONE, answer.error_message
    return int(answer.member_epoch)


def test_groups_are_deleted_with_an_error_each(both: Both) -> None:
    found = []
    for server in both:
        join(server, "running")
        offsets = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])]
        commit = OffsetCommitRequest("simple", topics=offsets)
        _, code = told(server, commit, OffsetCommitResponse, 9, "topics", 0, "partitions", 0)
        assert code is ErrorCode.NONE
        results = [
            told(server, DeleteGroupsRequest([group]), DeleteGroupsResponse, 3, "results", 0)[0].results[0]
            for group in ("simple", "simple", "running", "none")
        ]
        found.append([(one.group_id, ErrorCode(one.error_code).name, one.error_message) for one in results])
    assert found[0] == found[1]
    assert [code for _, code, _ in found[0]] == ["NONE", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"]


def topic_id_of(server: Server) -> bytes:
    (topic,) = ask(server.address, MetadataRequest([MetadataRequestTopic(name="t")]), MetadataResponse, 12).topics
    return topic.topic_id


CASES: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "of no member": ({}, 0),
    "of another partition": ({}, 9),
    "of an unknown topic": ({"topic_id": b"another topic id"}, 0),
    "of no topic": ({"topic_id": bytes(16)}, 0),
    "of a group that is not there": ({"group": "missing", "epoch": GENERATION, "member": MEMBER}, 0),
    "of a member's epoch": ({"epoch": 0}, 0),
    "of a later epoch": ({"epoch": 1}, 0),
    "of an epoch before": ({"epoch": -1}, 0),
    "of an unknown member": ({"epoch": 0, "member": "unknown"}, 0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", [5, 6])
def test_offsets_of_transactions_are_of_topics_by_id(both: Both, case: str, version: int) -> None:
    found = [committed(server, case, version) for server in both]
    assert found[0] == found[1]


def committed(server: Server, case: str, version: int) -> tuple[str, str, bool]:
    """What a producer hears that commits for a group with a member, if the case has an epoch of it."""
    wanted, index = CASES[case]
    group = wanted.get("group", f"{case} {version}".replace(" ", "-"))
    epoch, member = -1, ""
    if "epoch" in wanted:
        has_member = "group" not in wanted
        epoch = wanted["epoch"] + (join(server, group) if has_member else 0)
        member = wanted.get("member", MEMBER)
    name = f"producer {case} {version}"
    init = InitProducerIdRequest(name, 60_000)
    producer, code = told(server, init, InitProducerIdResponse, 4)
    assert code is ErrorCode.NONE
    own = topic_id_of(server)
    topic = TxnOffsetCommitRequestTopic("t", wanted.get("topic_id", own), [TxnOffsetCommitRequestPartition(index, 5)])
    request = TxnOffsetCommitRequest(
        name, group, producer.producer_id, producer.producer_epoch, epoch, member, None, [topic]
    )
    answer, code = told(server, request, TxnOffsetCommitResponse, version, "topics", 0, "partitions", 0)
    (answered,) = answer.topics
    return code.name, answered.name, answered.topic_id == own
