"""Open transactions of Kavka and Apache Kafka, as `kavka doctor`, `kavka top` and `kavka describe topic` tell them."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from kavka_operator.doctor.transactions import HELD_RECORDS
from tests.conformance.side_by_side.transacting import transactional
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.unit.operator.person import run

pytestmark = [pytest.mark.java]

SECONDS_MAX: Final = 60.0
TRANSACTION: Final = "settle"
ORDERS, LOST = "orders", "lost"
READ: Final = 10
#: Only a broker that does not verify takes a record of a transaction that no coordinator knows.
SETTINGS: Final = {"transaction.partition.verification.enable": "false", "num.partitions": "1"}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory: Path = tmp_path_factory.mktemp("transactions")
    with running_both(directory, SETTINGS) as pair:
        open_ones = [left_open(server) for server in pair]
        yield pair
        del open_ones


def left_open(server: Server) -> Producer:
    """Begin a transaction of many records; another hangs, and a group has read a little."""
    plain = Producer({"bootstrap.servers": server.bootstrap})
    for topic in (ORDERS, LOST):
        for _ in range(READ + 5):
            plain.produce(topic, b"x", partition=0)
    assert plain.flush(SECONDS_MAX) == 0
    producer = transactional(server.bootstrap, TRANSACTION)
    producer.begin_transaction()
    for _ in range(HELD_RECORDS):
        producer.produce(ORDERS, b"x", partition=0)
    assert producer.flush(SECONDS_MAX) == 0
    produce_hanging(server)
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition(ORDERS, 0, READ)], asynchronous=False)
    consumer.close()
    return producer


def produce_hanging(server: Server) -> None:
    """Write a record of an hour ago that belongs to a transaction, which nobody has begun."""
    producer = ask(server.address, InitProducerIdRequest(None, 60_000), InitProducerIdResponse, 4)
    hour_ago = int(time.time() * 1000) - 3_600_000
    batch = build_batch(
        [(None, b"x")],
        timestamp_ms=hour_ago,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    data = TopicProduceData(LOST, partition_data=[PartitionProduceData(0, bytes(batch))])
    answer = ask(server.address, ProduceRequest("nobody", -1, 60_000, [data]), ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def told(server: Server, *words: str) -> dict[str, Any]:
    code, said = run(*words, "--bootstrap", server.bootstrap, "-o", "json")
    assert code in {0, 1}, said
    found: dict[str, Any] = json.loads(said)
    assert not found["untold"]
    return found


def findings(server: Server) -> dict[str, str]:
    return {finding["code"]: finding["evidence"] for finding in told(server, "doctor")["findings"]}


def test_the_doctor_finds_what_hangs_and_what_holds_readers_back(both: Both) -> None:
    for server in both:
        deadline = time.monotonic() + SECONDS_MAX
        while "stable-offset-held" not in (found := findings(server)):  # a transaction is open for long after 10 s
            assert time.monotonic() < deadline, found
        assert re.fullmatch(
            rf"orders-0 \({HELD_RECORDS:,} records, by settle, open \d+ s\)", found["stable-offset-held"]
        )
        assert re.fullmatch(r"lost-0 \(producer \d+, silent for 36\d\d s\)", found["transaction-hangs"])
        assert "transaction-overdue" not in found


def test_top_shows_both_with_what_they_hold_back(both: Both) -> None:
    for server in both:
        rows = told(server, "top", "--once", "--every", "0.5", "--view", "transactions")["transactions"]
        known, hanging = rows
        assert (known["transactionalId"], known["state"], known["where"]) == (TRANSACTION, "Ongoing", "orders-0")
        assert (known["heldBack"], known["timeout"], known["partitions"]) == (HELD_RECORDS, 900, 1)
        assert known["coordinator"] is not None
        assert 0 <= known["open"] < 900
        assert (hanging["transactionalId"], hanging["coordinator"], hanging["where"]) == (None, None, "lost-0")
        assert (hanging["heldBack"], hanging["open"] > 3_500) == (1, True)


def test_a_topic_is_described_with_the_lag_at_both_isolation_levels(both: Both) -> None:
    texts = []
    for server in both:
        code, said = run("describe", "topic", ORDERS, "--bootstrap", server.bootstrap)
        assert code == 0, said
        texts.append(re.sub(r"\d+ (s|min)\)", "AGE)", said).splitlines())
    assert texts[0] == texts[1]
    lines = [line.split() for line in texts[0]]
    assert ["readers", "Empty", "0", f"{HELD_RECORDS + 5:,}", "5"] in lines
    held = ["0", "1", "0", "15", f"{HELD_RECORDS + 15:,}", "settle", "(Ongoing,", "AGE)"]
    assert held[:1] + held[2:] in [line[:1] + line[2:] for line in lines], "brokers may have other ids"
    assert run("describe", "topic", "none", "--bootstrap", both.kavka.bootstrap)[0] == 1
