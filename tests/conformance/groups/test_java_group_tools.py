"""Apache Kafka's own tools on groups: kafka-consumer-groups in all its actions, and kafka-dump-log on the files."""

from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conformance.groups.members import LONG_SESSION_MS, eventually, fleet
from tests.support.programs import kafka_tool
from tests.support.servers import Server

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 60.0
PARTITIONS = 3


def groups(server: Server, *arguments: str) -> str:
    return kafka_tool("consumer-groups", "--bootstrap-server", server.bootstrap, *arguments)


def table(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if line.strip()]


def topic_with_offsets(server: Server, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(SECONDS_MAX)
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "acks": "all"})
    for number in range(30):
        producer.produce(name, str(number), partition=number % PARTITIONS)
    assert producer.flush(SECONDS_MAX) == 0
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": name})
    offsets = [confluent_kafka.TopicPartition(name, number, 4) for number in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def test_offsets_are_described_reset_and_deleted(server: Server, name: str) -> None:
    topic_with_offsets(server, name)
    described = table(groups(server, "--describe", "--group", name, "--offsets"))
    assert [name, name, "0", "4", "10", "6", "-", "-", "-"] in described

    reset = groups(server, "--reset-offsets", "--group", name, "--topic", name, "--shift-by", "3", "--execute")
    assert [name, name, "1", "7"] in table(reset)
    assert "Successful" in groups(server, "--delete-offsets", "--group", name, "--topic", f"{name}:2")
    described = table(groups(server, "--describe", "--group", name))
    assert sorted(row[2:4] for row in described if row[0] == name) == [["0", "7"], ["1", "7"]]

    assert "successful" in groups(server, "--delete", "--group", name)
    assert name not in groups(server, "--list").splitlines()


def test_members_and_state_are_described(start: Callable[..., Server], name: str) -> None:
    server = start()
    topic_with_offsets(server, name)
    with fleet(server, name, name, session_ms=LONG_SESSION_MS) as members:
        members.start("confluent_kafka")
        eventually("the member has all partitions", lambda: members.settled(PARTITIONS))
        (_, state) = table(groups(server, "--describe", "--group", name, "--state"))
        assert (state[0], state[-3:]) == (name, ["range", "Stable", "1"])
        (_, member) = table(groups(server, "--describe", "--group", name, "--members", "--verbose"))
        assert member[-2:] != ["0", "-"]
        assert "/127.0.0.1" in member


def test_the_files_are_read_by_kafkas_decoder(server: Server, name: str) -> None:
    topic_with_offsets(server, name)
    groups(server, "--delete", "--group", name)
    logs = ",".join(map(str, sorted(server.data.glob("__consumer_offsets-*/*.log"))))
    dumped = kafka_tool("dump-log", "--files", logs, "--offsets-decoder", "--deep-iteration")
    mine = [line for line in dumped.splitlines() if f'"group":"{name}"' in line]
    assert sum('"offset":4' in line for line in mine) == PARTITIONS
    assert sum("<DELETE>" in line for line in mine) == PARTITIONS + 1
    assert "isvalid: false" not in dumped
