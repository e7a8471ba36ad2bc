"""What both products answer while nobody coordinates a transaction, and what is left of it when somebody does again.

Its coordinator is gone, and so is the only controller, while the broker that has its records serves on; or the
partition of the log of states that its id belongs to is missing. The answers are Apache Kafka's unless a test says
otherwise.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
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
from kavka_broker.protocol.records.record import build_batch
from tests.conformance.side_by_side.products import KAFKA, KAVKA
from tests.conformance.transactions.test_answers_agree import Producer
from tests.conformance.transactions.test_bad_input_agrees import STATE, described, in_partition, started
from tests.conformance.transactions.test_prepared_answers import (
    COORDINATOR,
    LEADER,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TOPIC,
    Asking,
    Decided,
    add_partition,
    begun,
    end,
    end_offset,
    running,
    until,
    until_complete,
)
from tests.support.asking import ask

pytestmark = [pytest.mark.java, pytest.mark.slow]

VERSIONS: Final = (1, 2)


# --- the coordinator is gone ---------------------------------------------------------------------------------------


def initialized(asking: Asking, version: int) -> Decided:
    """A producer that is yet to write. Of version 1, it has added the partition."""
    name = f"version {version}, yet to write"
    answer = asking.answered(COORDINATOR, InitProducerIdRequest(name, 600_000), InitProducerIdResponse, 5)
    one = Decided(name, version, True, answer.producer_id, answer.producer_epoch)
    if version == 1:
        assert add_partition(asking, one, 0) == "NONE"
    return one


def write(asking: Asking, one: Decided, sequence: int, epoch: int = 0) -> str:
    """Write a record of the transaction to the broker that is left; what it answers."""
    batch = build_batch(
        [(None, b"v")], timestamp_ms=1, producer_id=one.producer_id, producer_epoch=one.epoch + epoch,
        base_sequence=sequence, transactional=True,
    )  # fmt: skip
    return written(asking, one.name, batch, 10 + one.version)


def written(asking: Asking, name: str | None, batch: bytearray, version: int) -> str:
    data = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])
    answer = ask(asking.nodes[LEADER].address, ProduceRequest(name, -1, 9_000, [data]), ProduceResponse, version)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code).name


def of_the_broker_that_is_left(asking: Asking, one: Decided) -> dict[str, str]:
    """What it answers as if it were the coordinator."""
    asked: dict[str, tuple[Message, type[Message], int, Callable[[Any], int]]] = {
        "end": (EndTxnRequest(one.name, one.producer_id, one.epoch, True), EndTxnResponse, 4, code_of),
        "init": (InitProducerIdRequest(one.name, 600_000), InitProducerIdResponse, 5, code_of),
        "describe": (
            DescribeTransactionsRequest([one.name]), DescribeTransactionsResponse, 0,
            lambda answer: answer.transaction_states[0].error_code,
        ),
    }  # fmt: skip
    return {
        what: ErrorCode(of(ask(asking.nodes[LEADER].address, request, kind, version))).name
        for what, (request, kind, version, of) in asked.items()
    }


def code_of(answer: Any) -> int:
    return int(answer.error_code)


def without_coordinator(directory: Path, what: str) -> tuple[dict[str, str], tuple[int, int], tuple[int, int]]:
    """The answers, and how far the partition reaches, and its committed records: then, and when all are committed."""
    with running(directory, what) as asking:
        opened = [begun(asking, version, commits=True) for version in VERSIONS]
        fresh = [initialized(asking, version) for version in VERSIONS]
        asking.markers.is_open.set()
        asking.nodes.kill(COORDINATOR)
        found = {"no transaction": written(asking, None, build_batch([(None, b"v")], timestamp_ms=1), 12)}
        for one in opened:
            found[f"version {one.version}, open: next"] = write(asking, one, 1)
            found[f"version {one.version}, open: again"] = write(asking, one, 1)
            found[f"version {one.version}, open: former epoch"] = write(asking, one, 2, -1)
            for asked, answer in of_the_broker_that_is_left(asking, one).items():
                found[f"version {one.version}, open: {asked}"] = answer
        for one in fresh:
            found[f"version {one.version}, yet to write"] = write(asking, one, 0)
        meanwhile = end_offset(asking, READ_UNCOMMITTED), end_offset(asking, READ_COMMITTED)
        asking.nodes.start(COORDINATOR)
        for one in fresh:
            until(f"{one} is written", lambda one=one: write(asking, one, 0) == "NONE")  # type: ignore[misc]
        for one in (*opened, *fresh):
            assert end(asking, one, commits=True) == "NONE", one
            until_complete(asking, one)
        return found, meanwhile, (end_offset(asking, READ_UNCOMMITTED), end_offset(asking, READ_COMMITTED))


def test_records_of_a_transaction_whose_coordinator_is_gone(tmp_path: Path) -> None:
    """Those of a transaction that is open in the partition are taken; nobody can verify another one."""
    theirs, ours = without_coordinator(tmp_path, KAFKA), without_coordinator(tmp_path, KAVKA)
    assert ours == theirs
    found, meanwhile, afterwards = ours
    assert found["version 2, open: next"] == "NONE"
    assert found["version 2, yet to write"] == "NOT_ENOUGH_REPLICAS"
    assert meanwhile == (5, 0), "a record of each, one of no transaction; none is stable"
    assert afterwards == (11, 11), "and two records and four markers"


# --- a partition of the log of states is missing --------------------------------------------------------------------


def answers(producer: Producer) -> dict[str, str]:
    """What a server says of an id; for its producer ids Apache Kafka asks the controller first."""
    name, server = producer.name, producer.server.address
    init, codes = InitProducerIdRequest(name, 60_000), list[int]()

    def is_told() -> bool:
        codes.append(ask(server, init, InitProducerIdResponse, 5).error_code)
        return codes[-1] != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    found = ask(server, FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), FindCoordinatorResponse, 6)
    state = ask(server, DescribeTransactionsRequest([name]), DescribeTransactionsResponse).transaction_states[0]
    told = {
        "find": found.coordinators[0].error_code,
        "describe": state.error_code,
        "end": ask(server, EndTxnRequest(name, *producer.me, True), EndTxnResponse, 5).error_code,
    }
    until("producer ids", is_told)
    return {what: ErrorCode(code).name for what, code in {**told, "init": codes[-1]}.items()}


def test_ids_of_a_partition_that_is_missing_are_not_new(tmp_path: Path) -> None:
    """Apache Kafka makes the partition again, and knows none of its ids, so that nobody can end the transaction. Kavka
    has no coordinator for these ids, so that clients come again, until the files are back; then all is as it was.
    """
    (missing, *_), (other, *_) = in_partition(0), in_partition(1)
    with started(tmp_path) as pair:
        opened = [Producer(server, missing, 2) for server in pair]
        for producer in opened:
            producer.play("init begin")
            Producer(producer.server, other, 2).play("init begin commit")
        for server in pair:
            server.stop()
            shutil.move(server.data / f"{STATE}-0", tmp_path / server.directory.name)
            server.start()
            assert described(server, other) == "CompleteCommit"
        ours, theirs = map(answers, opened)
        assert theirs == {
            "find": "NONE",
            "describe": "TRANSACTIONAL_ID_NOT_FOUND",
            "end": "INVALID_PRODUCER_ID_MAPPING",
            "init": "NONE",
        }
        assert ours == {**dict.fromkeys(theirs, "NOT_COORDINATOR"), "find": "NONE"}
        pair.kavka.stop()
        shutil.rmtree(pair.kavka.data / f"{STATE}-0", ignore_errors=True)
        shutil.move(tmp_path / pair.kavka.directory.name / f"{STATE}-0", pair.kavka.data / f"{STATE}-0")
        pair.kavka.start()
        assert described(pair.kavka, missing) == "Ongoing"
        assert opened[0].end(commits=True)[0] == "NONE"
