"""What the coordinators of Kavka and of Apache Kafka answer, request by request, in one run.

A row of `STATES` brings a transactional id where it stands: `init` gives its producer an id and an epoch, `begin` puts
a partition into its transaction, `commit` and `abort` end it. Then comes an EndTxn: of this epoch, or of the one
before, as when an answer was lost; once in the life of the coordinator that has decided, and once in its next one. The
answers are Apache Kafka's unless a test says otherwise.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kavka_broker.protocol.messages.describe_transactions_response import DescribeTransactionsResponse
from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from kavka_broker.protocol.messages.end_txn_response import EndTxnResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kavka_broker.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kavka_broker.protocol.records.record import build_batch
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX: Final = 60.0
AGAIN_SECONDS: Final = 0.02
AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)  # fmt: skip
UNSTABLE: Final = {"unstable.api.versions.enable": "true"}
TWO_PHASE: Final = {**UNSTABLE, "transaction.two.phase.commit.enable": "true"}

STATES: Final = {
    "Empty": "init",
    "Ongoing": "init begin",
    "CompleteCommit": "init begin commit",
    "CompleteAbort": "init begin abort",
}
#: EndTxn: whether it commits, and the epoch that it has against the present one.
ENDS: Final = {"abort again": (False, -1), "abort": (False, 0), "commit again": (True, -1), "commit": (True, 0)}
#: Version of the transactions, and the versions of EndTxn with which they are ended.
VERSIONS: Final = {1: 4, 2: 5}
CASES: Final = list(product(VERSIONS, STATES, ENDS))

Answer = tuple[str, int, int]  # error, and how far the told producer id and epoch are from those before


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both"), UNSTABLE) as pair:
        pair.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), CreateTopicsResponse)
        until_coordinated(pair)
        yield pair


def until_coordinated(pair: Both) -> None:
    """The first one to look for a coordinator makes the topic of transactions, and that takes a moment."""
    for server in pair:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["any"])

        def asked(server: Server = server, request: Message = request) -> tuple[int, Message]:
            found = ask(server.address, request, FindCoordinatorResponse, 6)
            return found.coordinators[0].error_code, found

        code, _ = until_told(asked)
        assert code == 0, ErrorCode(code)


def until_told(asked: Callable[[], tuple[int, Message]]) -> tuple[int, Message]:
    """The error and the answer, once it is not one that says to come again."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        code, answer = asked()
        if code not in AGAIN or time.monotonic() > deadline:
            return code, answer
        time.sleep(AGAIN_SECONDS)


@dataclass(slots=True)
class Producer:
    """A producer of one transaction version on one server."""

    server: Server
    name: str
    version: int
    me: tuple[int, int] = (-1, -1)

    def play(self, steps: str) -> None:
        for step in steps.split():
            if step == "init":
                self.init()
            elif step == "begin":
                self.begin()
            else:
                assert self.end(commits=step == "commit")[0] == "NONE", step

    def init(self) -> None:
        code, answer = self.told(InitProducerIdRequest(self.name, 60_000), InitProducerIdResponse, 5)
        assert code == 0, ErrorCode(code)
        assert isinstance(answer, InitProducerIdResponse)
        self.me = answer.producer_id, answer.producer_epoch

    def begin(self) -> None:
        def asked() -> tuple[int, Message]:
            if self.version == 1:
                topics = [AddPartitionsToTxnTopic("t", [0])]
                request = AddPartitionsToTxnRequest([], self.name, *self.me, topics)
                added = ask(self.server.address, request, AddPartitionsToTxnResponse, 3)
                (topic,) = added.results_by_topic_v3_and_below
                return topic.results_by_partition[0].partition_error_code, added
            batch = build_batch(
                [(None, b"v")], timestamp_ms=1, producer_id=self.me[0], producer_epoch=self.me[1], base_sequence=0,
                transactional=True,
            )  # fmt: skip
            data = TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])
            written = ask(self.server.address, ProduceRequest(self.name, -1, 9_000, [data]), ProduceResponse, 12)
            return written.responses[0].partition_responses[0].error_code, written

        code, _ = until_told(asked)
        assert code == 0, ErrorCode(code)

    def end(self, *, commits: bool, epoch: int = 0) -> Answer:
        """End the transaction, with the present epoch or one before; what is told is the producer's from then on."""
        me = self.me[0], self.me[1] + epoch
        code, answer = self.told(EndTxnRequest(self.name, *me, commits), EndTxnResponse, VERSIONS[self.version])
        assert isinstance(answer, EndTxnResponse)
        if code or self.version == 1:
            return ErrorCode(code).name, 0, 0
        told = answer.producer_id, answer.producer_epoch
        moved = told[0] - self.me[0], told[1] - self.me[1]
        self.me = told
        return ErrorCode(code).name, *moved

    def told(self, request: Message, kind: type[Message], version: int) -> tuple[int, Message]:
        """The error, and the answer."""

        def asked() -> tuple[int, Message]:
            answer = ask(self.server.address, request, kind, version)
            return answer.error_code, answer  # type: ignore[attr-defined] # all of these have one

        return until_told(asked)


def in_state(server: Server, life: str) -> dict[tuple[int, str, str], Producer]:
    """A producer of its own for each case, where it stands."""
    found = {}
    for version, state, end in CASES:
        name = f"{life} {version} {state} {end}"
        # The epoch before has to be one: a second producer of the id has it raised.
        Producer(server, name, version).init()
        producer = found[version, state, end] = Producer(server, name, version)
        producer.play(STATES[state])
    return found


def ends(producers: dict[tuple[int, str, str], Producer]) -> dict[str, Answer]:
    return {
        f"version {version}, {state}: {end}": producer.end(commits=ENDS[end][0], epoch=ENDS[end][1])
        for (version, state, end), producer in producers.items()
    }


def test_end_txn_by_state_request_and_age(both: Both) -> None:
    """C12: the coordinator that has decided, and the next one, which knows what its log says."""
    ours, theirs = (ends(in_state(server, "same")) for server in both)
    assert ours == theirs
    moved = [in_state(server, "next") for server in both]
    for server in both:
        server.stop()
    for server in both:
        server.start()
    ours_next, theirs_next = map(ends, moved)
    assert ours_next == theirs_next
    assert ours_next == ours, "nothing is known that the log does not say"


def test_a_producer_that_one_of_version_1_has_fenced(both: Both) -> None:
    """Apache Kafka takes its EndTxn for the repetition of one that has ended its successor's transaction, and gives it
    that one's epoch.
    """
    told = []
    for server in both:
        fenced, successor = Producer(server, "fenced", 2), Producer(server, "fenced", 1)
        fenced.init()
        successor.play("init begin abort")
        assert successor.me == (fenced.me[0], fenced.me[1] + 1)
        told.append(fenced.end(commits=False))
    assert told == [("PRODUCER_FENCED", 0, 0), ("NONE", 0, 1)]


#: What InitProducerId 6 asks for: timeout, Enable2Pc, KeepPreparedTxn.
TWO_PHASE_CASES: Final = [
    (60_000, False, False), (60_000, True, False), (60_000, False, True), (60_000, True, True),
    (0, True, False), (-1, True, False), (0, False, True), (0, False, False), (2**31 - 1, True, False),
]  # fmt: skip


def inits(server: Server) -> list[tuple[str, int]]:
    """The error, and the timeout that is told of the id afterwards."""
    found = []
    for number, (timeout_ms, is_two_phase, keeps) in enumerate(TWO_PHASE_CASES):
        name = f"two-phase {number}"
        request = InitProducerIdRequest(name, timeout_ms, enable2_pc=is_two_phase, keep_prepared_txn=keeps)
        code, answer = Producer(server, name, 2).told(request, InitProducerIdResponse, 6)
        assert isinstance(answer, InitProducerIdResponse)
        assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (-1, -1)
        (described,) = ask(
            server.address, DescribeTransactionsRequest([name]), DescribeTransactionsResponse
        ).transaction_states
        found.append((ErrorCode(code).name, described.transaction_timeout_ms))
    return found


def test_two_phase_commit_is_refused_where_it_is_off(both: Both) -> None:
    ours, theirs = map(inits, both)
    assert ours == theirs
    assert ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 0) in ours


def test_two_phase_commit(tmp_path_factory: pytest.TempPathFactory) -> None:
    """KIP-939: no timeout, and nothing is kept for the next producer."""
    with running_both(tmp_path_factory.mktemp("two-phase"), TWO_PHASE) as pair:
        until_coordinated(pair)
        ours, theirs = map(inits, pair)
    assert ours == theirs
    assert ("NONE", 2**31 - 1) in ours
    assert ("UNSUPPORTED_VERSION", 0) in ours


def test_what_a_coordinator_refuses(both: Both) -> None:
    """Ids that are empty, long, unknown or another's, epochs that are out of order, and timeouts out of range."""
    asked: list[tuple[Message, type[Message], int]] = [
        (InitProducerIdRequest("", 60_000), InitProducerIdResponse, 5),
        (InitProducerIdRequest("i" * 32_767, 60_000), InitProducerIdResponse, 5),
        (InitProducerIdRequest("out of range", 0), InitProducerIdResponse, 5),
        (InitProducerIdRequest("out of range", -1), InitProducerIdResponse, 5),
        (InitProducerIdRequest("out of range", 900_001), InitProducerIdResponse, 5),
        (InitProducerIdRequest("torn", 60_000, 1, -1), InitProducerIdResponse, 5),
        (InitProducerIdRequest("torn", 60_000, -1, 1), InitProducerIdResponse, 5),
        (EndTxnRequest("", 1, 0, True), EndTxnResponse, 5),
        (EndTxnRequest("unknown", 1, 0, True), EndTxnResponse, 5),
        (EndTxnRequest("unknown", 1, 0, False), EndTxnResponse, 4),
        (EndTxnRequest("unknown", -1, -1, False), EndTxnResponse, 4),
    ]
    known = [Producer(server, "known", 2) for server in both]
    for producer in known:
        producer.play("init begin")
    for request, kind, version in asked:
        ours, theirs = (Producer(server, "", 2).told(request, kind, version)[0] for server in both)
        assert ErrorCode(ours) == ErrorCode(theirs), request
    for producer_id, epoch, commits in product((0, 1), (-1, 0, 1, 2**15 - 1), (False, True)):
        if (producer_id, epoch) == (0, 0):
            continue
        codes = []
        for producer in known:
            me = producer.me[0] + producer_id, epoch if epoch == 2**15 - 1 else producer.me[1] + epoch
            answer = ask(producer.server.address, EndTxnRequest("known", *me, commits), EndTxnResponse, 5)
            codes.append(ErrorCode(answer.error_code).name)
        assert codes[0] == codes[1], (producer_id, epoch, commits)


#: Markers that no coordinator has sent: whose, with which epoch against the known one, and of which coordinator.
STRANGERS: Final = {
    "unknown producer": (1_000, 0, 0, "t"), "epoch before": (0, -1, 0, "t"), "epoch behind": (0, 1, 0, "t"),
    "former coordinator": (0, 1, -2, "t"), "topic that is not there": (0, 2, 0, "none"), "now": (0, 2, 0, "t"),
}  # fmt: skip


def markers_of_strangers(server: Server, version: int) -> dict[str, str]:
    producer = Producer(server, f"strangers {version}", version)
    producer.init()
    producer.play("init begin")
    batch = build_batch(
        [(None, b"v")], timestamp_ms=1, producer_id=producer.me[0], producer_epoch=producer.me[1], base_sequence=0,
        transactional=True,
    )  # fmt: skip
    if version == 1:  # version 2 has written as it began
        data = TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])
        written = ask(server.address, ProduceRequest(producer.name, -1, 9_000, [data]), ProduceResponse, 11)
        assert written.responses[0].partition_responses[0].error_code == 0
    found = {}
    for what, (producer_id, epoch, coordinator_epoch, topic) in STRANGERS.items():
        me = producer.me[0] + producer_id, producer.me[1] + epoch
        topics = [WritableTxnMarkerTopic(topic, [0])]
        marker = WritableTxnMarker(*me, False, topics, coordinator_epoch, 2 if version == 2 else 0)
        answer = ask(server.address, WriteTxnMarkersRequest([marker]), WriteTxnMarkersResponse)
        found[what] = ErrorCode(answer.markers[0].topics[0].partitions[0].error_code).name
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_markers_of_strangers(both: Both, version: int) -> None:
    ours, theirs = (markers_of_strangers(server, version) for server in both)
    assert ours == theirs
    assert ours["epoch before"] == "INVALID_PRODUCER_EPOCH"
