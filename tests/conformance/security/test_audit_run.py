"""`kavka audit run` over a real cluster with users: each number is what librdkafka's clients and the admin counted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from deltalake import DeltaTable, QueryBuilder

from tests.conformance.security.test_audit import TOPIC, start_audited
from tests.conformance.security.test_plain import PASSWORDS, of_librdkafka
from tests.conformance.security.test_users_and_rules import produced
from tests.support.programs import kafka_tool
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.unit.operator.person import run

RECORDS = 2_000
SIZE = 1_000
BILL = "99.99"


@pytest.fixture
def sasl_port() -> int:
    return free_port()


@pytest.fixture
def server(tmp_path: Path, sasl_port: int) -> Iterator[Server]:
    found = start_audited(tmp_path, sasl_port)
    yield found
    found.kill()


def table(directory: Path, name: str) -> list[dict[str, Any]]:
    found = duckdb.read_parquet(str(directory / "tables" / f"{name}.parquet"))
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def write(sasl_port: int, user: str, topic: str, records: int) -> None:
    producer = Producer(of_librdkafka(sasl_port, user, PASSWORDS[user], **{"client.id": "writer"}))
    for _ in range(records):
        producer.produce(topic, b"v" * SIZE)
        producer.poll(0)
    assert producer.flush(60) == 0


def read(sasl_port: int, user: str, topic: str, records: int) -> None:
    consumer = Consumer(of_librdkafka(sasl_port, user, PASSWORDS[user], **{"group.id": "g", "client.id": "reader"}))
    consumer.assign([TopicPartition(topic, 0, 0)])
    for _ in range(records):
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
    consumer.close()


def test_the_answers_are_what_clients_counted(server: Server, sasl_port: int, tmp_path: Path) -> None:
    for topic in ("orders", "never"):
        create_topic(server, topic)
    address = ("--bootstrap-server", server.bootstrap)
    allowed = ("--add", "--allow-principal", "User:alice", "--operation", "All", "--topic")
    for topic in ("orders", "never"):
        kafka_tool("acls", *address, *allowed, topic)
    kafka_tool("acls", *address, "--add", "--allow-principal", "User:alice", "--operation", "All", "--group", "g")
    write(sasl_port, "alice", "orders", RECORDS)
    read(sasl_port, "alice", "orders", RECORDS)
    refused = produced(sasl_port, "orders", "bob")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    server.stop()
    server.start()

    directory = tmp_path / "audit"
    code, said = run("audit", "run", "--bootstrap", server.bootstrap, "--directory", str(directory), "--bill", BILL)
    assert code == 0, said
    assert str(directory / "report.html") in said
    assert "Who was refused?\n    " in said
    use = {
        (row["principal"], row["client_id"], row["operation"], row["topic"]): row
        for row in table(directory, "top_talkers")
    }
    assert use["User:alice", "writer", "WRITE", "orders"]["records"] == RECORDS
    assert use["User:alice", "reader", "READ", "orders"]["bytes"] >= RECORDS * SIZE
    assert {row["principal"] for row in table(directory, "denied_operations")} == {"User:bob"}
    assert sum(row["cents"] for row in table(directory, "chargeback")) == 9999
    unused = [(row["principal"], row["operation"], row["resource"]) for row in table(directory, "unused_grants")]
    assert unused == [("User:alice", "ALL", "never")]
    changes = table(directory, "config_changes")
    assert sum(row["operation"] == "CREATE" and row["resource_type"] == "acl" for row in changes) == 3
    (pair,) = table(directory, "lineage")
    assert (pair["writer"], pair["reader"], pair["topic"]) == ("User:alice", "User:alice", "orders")
    assert table(directory, "audit_gaps") == []
    assert table(directory, "deletable_topics") == []  # the trail is younger than a month
    page = (directory / "report.html").read_text()
    assert "User:alice" in page
    assert all(secret not in page for secret in PASSWORDS.values())

    code, said = run("audit", "run", "--bootstrap", server.bootstrap, "--directory", str(directory))
    assert code == 0, said
    again = {
        (row["principal"], row["client_id"], row["operation"], row["topic"]): row
        for row in table(directory, "top_talkers")
    }
    # Where a minute has ended meanwhile, the trail tells by now that the first run has read it.
    bytes_again = {key: row["bytes"] for key, row in again.items() if key[-1] != TOPIC}
    assert bytes_again == {key: row["bytes"] for key, row in use.items()}

    tables = tmp_path / "tables"
    words = ("--bootstrap", server.bootstrap, "--directory", str(tables), "--table-format", "delta")
    for _ in range(2):
        code, said = run("audit", "run", *words)
        assert code == 0, said
    by_delta = {
        (row["principal"], row["client_id"], row["operation"], row["topic"]): row["bytes"]
        for row in table(tables, "top_talkers")
    }
    assert {key: found for key, found in by_delta.items() if key[-1] != TOPIC} == bytes_again
    assert table(tables, "audit_gaps") == []
    found = QueryBuilder().register("chains", DeltaTable(tables / "chains")).execute("SELECT * FROM chains").read_all()
    with duckdb.connect() as connection:
        connection.register("chains", found)
        chains = connection.sql("SELECT source, verdict, entries, last_sequence + 1 FROM chains").fetchall()
    assert len(chains) == 2, "the broker has started twice"
    assert all((verdict, entries) == ("sound", until) for _, verdict, entries, until in chains), chains


def test_a_cluster_without_a_trail_is_told_what_makes_one(tmp_path: Path) -> None:
    server = start_kavka(tmp_path / "broker", {})
    try:
        code, said = run("audit", "run", "--bootstrap", server.bootstrap, "--directory", str(tmp_path / "audit"))
    finally:
        server.kill()
    assert code == 1
    assert "there is no topic __audit_events" in said
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--bill", "1.234", "--bill: '1.234' is no amount"),
        ("--bill", "nan", "--bill: 'nan' is no amount"),
        ("--unused-days", "0", "--unused-days: 0 is not from 1"),
        ("--new-days", "99999", "--new-days: 99999 is not from 1"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_its_name(option: str, value: str, words: str) -> None:
    code, said = run("audit", "run", "--bootstrap", "127.0.0.1:1", option, value)
    assert code == 1
    assert words in said
