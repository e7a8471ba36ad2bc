"""What both products answer to producers and offsets that should not be, and to a state log that cannot be read.

Requests are sent in the name of a producer (`PRODUCERS`), with an epoch and an id that are its own or not. The
answers are Apache Kafka's unless a test says otherwise.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from struct import pack
from typing import Any, Final, TypeVar

import pytest

from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.core.transaction.records import framed, tombstone
from kavka_broker.core.transaction.state import Standing
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kavka_broker.protocol.messages.describe_transactions_response import DescribeTransactionsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.request.produce_policy import ADMIN_CLIENT_ID
from tests.conformance.transactions.test_answers_agree import (
    AGAIN_SECONDS,
    SECONDS_MAX,
    Producer,
    until_coordinated,
    until_told,
)
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.support.wire import ANSWER_SECONDS_MAX, Connection

pytestmark = [pytest.mark.java, pytest.mark.slow]

R = TypeVar("R", bound=Message)

STATE: Final = "__transaction_state"
STATE_PARTITIONS: Final = 4
LONG: Final = "i" * 32_767
Identity = tuple[int, int]

#: Whose id, and how far producer id and epoch are from the known producer's; None for -1 and -1.
PRODUCERS: Final[dict[str, tuple[str, Identity | None]]] = {
    "its own": ("known", (0, 0)), "fenced": ("known", (0, -1)), "ahead": ("known", (0, 1)),
    "foreign": ("known", (7_777, 0)), "none": ("known", None), "unknown id": ("nobody", (0, 0)),
    "empty id": ("", (0, 0)), "long id": (LONG, (0, 0)),
}  # fmt: skip
#: Group, partition, and version of TxnOffsetCommit.
OFFSETS: Final = [("group", 0, 3), ("group", 0, 4), ("group", 0, 5), ("", 0, 4), ("", 0, 5), ("group", 9, 5)]
ADDED: Final = [("t", 1), ("t", 3), ("none", 3)]
#: The producer's transaction is open in the group's partition, and Apache Kafka does not look at the name any more.
NAMELESS: Final = "TxnOffsetCommit 5 of 'group' 0: empty id"
GROUPS: Final = [("group", 1), ("group", 3), ("", 3)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with started(tmp_path_factory.mktemp("both")) as pair:
        yield pair


@contextmanager
def started(directory: Path) -> Iterator[Both]:
    with running_both(directory, {"transaction.state.log.num.partitions": str(STATE_PARTITIONS)}) as pair:
        pair.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), CreateTopicsResponse)
        until_coordinated(pair)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
        for server in pair:
            told(server, request, FindCoordinatorResponse, 6, lambda answer: answer.coordinators[0].error_code)
        yield pair


def told(server: Server, request: Message, kind: type[Message], version: int, code_of: Callable[[Any], int]) -> str:
    """The error, once it is not one that says to come again."""

    def asked() -> tuple[int, Message]:
        answer = ask(server.address, request, kind, version)
        return code_of(answer), answer

    return ErrorCode(until_told(asked)[0]).name


# --- requests ---------------------------------------------------------------------------------------------------


def commit_offset(server: Server, row: tuple[str, int, int], name: str, me: Identity) -> str:
    group, index, version = row
    topics = [TxnOffsetCommitRequestTopic("t", partitions=[TxnOffsetCommitRequestPartition(index, 5)])]
    request = TxnOffsetCommitRequest(name, group, *me, -1, "", None, topics)
    return told(
        server, request, TxnOffsetCommitResponse, version, lambda answer: answer.topics[0].partitions[0].error_code
    )


def add_partition(server: Server, row: tuple[str, int], name: str, me: Identity) -> str:
    topic, version = row
    request = AddPartitionsToTxnRequest([], name, *me, [AddPartitionsToTxnTopic(topic, [0])])

    def code_of(answer: AddPartitionsToTxnResponse) -> int:
        return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    return told(server, request, AddPartitionsToTxnResponse, version, code_of)


def add_group(server: Server, row: tuple[str, int], name: str, me: Identity) -> str:
    group, version = row
    request = AddOffsetsToTxnRequest(name, *me, group)
    return told(server, request, AddOffsetsToTxnResponse, version, lambda answer: answer.error_code)


def answers(server: Server) -> dict[str, str]:
    """What each request of each producer is told; the transaction that they open is aborted between."""
    known, found = Producer(server, "known", 2), {}
    for _ in range(2):  # so that there is an epoch before
        known.init()

    def play(what: str, asked: Callable[[str, Identity], str]) -> None:
        for whose, (name, off) in PRODUCERS.items():
            me = (-1, -1) if off is None else (known.me[0] + off[0], known.me[1] + off[1])
            found[f"{what}: {whose}"] = asked(name, me)
        known.end(commits=False)

    for row in OFFSETS:
        play(f"TxnOffsetCommit {row[2]} of '{row[0]}' {row[1]}", partial(commit_offset, server, row))
    for topic, version in ADDED:
        play(f"AddPartitionsToTxn {version} of {topic}", partial(add_partition, server, (topic, version)))
    for group, version in GROUPS:
        play(f"AddOffsetsToTxn {version} of '{group}'", partial(add_group, server, (group, version)))
    for version in (3, 4):
        found[f"TxnOffsetCommit {version}, late"] = commit_offset(server, ("group", 0, version), "known", known.me)
    return found


def test_producers_that_should_not_be_are_refused_alike(both: Both) -> None:
    ours, theirs = map(answers, both)
    assert (ours.pop(NAMELESS), theirs.pop(NAMELESS)) == ("INVALID_REQUEST", "NONE")
    assert ours == theirs
    assert ours["TxnOffsetCommit 5 of '' 0: its own"] == "INVALID_GROUP_ID"
    assert ours["TxnOffsetCommit 4, late"] == "TRANSACTION_ABORTABLE"


def test_a_long_id_goes_through_its_life(both: Both) -> None:
    for version, server in product((1, 2), both):
        producer = Producer(server, LONG[version:], version)
        producer.play("init begin commit")
        if version == 1:
            assert add_group(server, (LONG, 3), producer.name, producer.me) == "NONE"
            producer.play("abort")


# --- what cannot be read ------------------------------------------------------------------------------------------


def write_state(server: Server, index: int, record: tuple[bytes, bytes | None]) -> None:
    """Write to the log of states, as an administrator's client may."""
    batch = build_batch([record], timestamp_ms=int(time.time() * 1000))
    request = ProduceRequest(
        None, -1, 9_000, [TopicProduceData(STATE, partition_data=[PartitionProduceData(index, batch)])]
    )
    version = 9
    with Connection(server.address, ANSWER_SECONDS_MAX) as connection:
        header = encode_request_header(RequestHeader(request.API_KEY, version, 7, ADMIN_CLIENT_ID))
        frame = header + encode(request, version)
        connection.send(pack(">i", len(frame)) + frame)
        answer = connection.receive()
    assert answer is not None
    _, body = read_response_header(request.API_KEY, version, memoryview(answer))
    written = decode(ProduceResponse, version, memoryview(answer)[body:])
    assert written.responses[0].partition_responses[0].error_code == 0


def described(server: Server, name: str) -> str:
    """The state of an id, or the error, once its partition has been read, or could not be."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        answer = ask(server.address, DescribeTransactionsRequest([name]), DescribeTransactionsResponse)
        state = answer.transaction_states[0]
        code = ErrorCode(state.error_code)
        is_yet_to_come = code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
        if not is_yet_to_come or time.monotonic() > deadline:
            return state.transaction_state or code.name
        time.sleep(AGAIN_SECONDS)


def restart(pair: Both) -> None:
    for server in pair:
        server.stop()
    for server in pair:
        server.start()


def damaged(value: bytes, kind: str) -> bytes:
    return b"\0\x63" + value[2:] if kind == "unknown version" else value[:7]


def in_partition(index: int) -> list[str]:
    """Three ids of a partition of the log of states."""
    names = (f"id {number}" for number in range(100))
    return [name for name in names if partition_of(name, STATE_PARTITIONS) == index][:3]


#: Behind which record Apache Kafka goes on, and behind which it knows none of the ids of the partition.
DAMAGES: Final = {"unknown version": "CompleteCommit", "cut short": "TRANSACTIONAL_ID_NOT_FOUND"}


def test_a_state_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    """Apache Kafka passes over a value of an unknown version, and gives up behind one that is cut short. Kavka serves
    none of the ids of that partition: it may be the decision of a transaction. Once an administrator has written a
    tombstone for the id, all others are as they were.

    The log keeps its number of partitions, too. With more, Apache Kafka looks for some of the ids elsewhere.
    """
    ids = {kind: in_partition(index) for index, kind in enumerate(DAMAGES)}
    with started(tmp_path) as pair:
        for server in pair:
            for index, (kind, (before, broken, behind)) in enumerate(ids.items()):
                Producer(server, before, 2).play("init begin")
                key, value = framed(broken, Standing(1_000_000, 0, 60_000, updated_ms=1), 2)
                write_state(server, index, (key, damaged(value, kind)))
                Producer(server, behind, 2).play("init begin commit")
        restart(pair)
        for kind, names in ids.items():
            ours, theirs = ([described(server, name) for name in names] for server in pair)
            assert ours == ["COORDINATOR_NOT_AVAILABLE"] * 3, kind
            assert theirs[1:] == ["TRANSACTIONAL_ID_NOT_FOUND", DAMAGES[kind]]
        for index, (_, broken, _) in enumerate(ids.values()):
            write_state(pair.kavka, index, tombstone(broken))
        request = CreatePartitionsRequest([CreatePartitionsTopic(STATE, 2 * STATE_PARTITIONS, None)], 9_000)
        codes = [answer.results[0].error_code for answer in pair.ask(request, CreatePartitionsResponse)]
        assert codes == [ErrorCode.INVALID_PARTITIONS, ErrorCode.NONE]
        restart(pair)
        for kind, (before, broken, behind) in ids.items():
            assert described(pair.kavka, before) in ("Ongoing", "CompleteAbort"), kind
            assert described(pair.kavka, broken) == "TRANSACTIONAL_ID_NOT_FOUND"
            assert described(pair.kavka, behind) == "CompleteCommit"
        is_kept = partition_of(ids["unknown version"][2], 2 * STATE_PARTITIONS) < STATE_PARTITIONS
        assert described(pair.kafka, ids["unknown version"][2]) == (
            "CompleteCommit" if is_kept else "TRANSACTIONAL_ID_NOT_FOUND"
        )
