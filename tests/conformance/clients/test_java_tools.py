"""Apache Kafka 4.3's own console clients and tools, from its jars."""

import pytest

from tests.conformance.clients.records import COUNT, FIRST_PART, RECORDS, Pair, assert_resumed
from tests.support.drawn import in_turn
from tests.support.programs import kafka_tool, run
from tests.support.servers import Server
from tests.support.topics import create_topic
from tools.ktool import command

pytestmark = [pytest.mark.java, pytest.mark.slow]


def tool(server: Server, name: str, *arguments: str, stdin: str = "") -> str:
    return kafka_tool(name, "--bootstrap-server", server.bootstrap, *arguments, stdin=stdin)


def produce(server: Server, topic: str) -> None:
    lines = "".join(f"{key}|{value}\n" for key, value in RECORDS)
    separator = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=|")
    tool(server, "console-producer", "--topic", topic, *separator, stdin=lines)


PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def consume(server: Server, topic: str, group: str, count: int, protocol: str = "classic") -> list[Pair]:
    """Read some records; with one record a poll, what is committed at the end is what was printed."""
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator=|")
    settings = ("--command-property", "max.poll.records=1", "--command-property", "auto.offset.reset=earliest")
    spoken = ("--command-property", f"group.protocol={protocol}")
    limits = ("--max-messages", str(count), "--timeout-ms", "60000")
    output = tool(server, "console-consumer", "--topic", topic, "--group", group, *shown, *settings, *spoken, *limits)
    found = [line.partition("|") for line in output.splitlines()]
    return [(key, value) for key, _, value in found]


@PROTOCOLS
def test_console_clients_produce_consume_commit_resume(server: Server, name: str, protocol: str) -> None:
    tool(server, "topics", "--create", "--topic", name, "--partitions", "3", "--replication-factor", "1")
    produce(server, name)
    first = consume(server, name, name, FIRST_PART, protocol)
    assert_resumed(first, consume(server, name, name, COUNT - FIRST_PART, protocol))


def test_topics_are_created_described_altered_and_deleted(server: Server, name: str) -> None:
    tool(server, "topics", "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=60000")
    described = tool(server, "topics", "--describe", "--topic", name)
    assert "PartitionCount: 2" in described
    assert "retention.ms=60000" in described
    tool(server, "topics", "--alter", "--topic", name, "--partitions", "4")
    assert "PartitionCount: 4" in tool(server, "topics", "--describe", "--topic", name)
    tool(server, "topics", "--delete", "--topic", name)
    assert name not in tool(server, "topics", "--list").splitlines()


def test_configs_of_a_topic_are_altered_and_described(server: Server, name: str) -> None:
    create_topic(server, name)
    entity = ("--entity-type", "topics", "--entity-name", name)
    tool(server, "configs", "--alter", *entity, "--add-config", "retention.bytes=1000000,cleanup.policy=delete")
    assert "retention.bytes=1000000" in tool(server, "configs", "--describe", *entity)
    tool(server, "configs", "--alter", *entity, "--delete-config", "retention.bytes")
    assert "retention.bytes" not in tool(server, "configs", "--describe", *entity)


def quota_cases(name: str) -> list[tuple[tuple[str, ...], str]]:
    """The arguments of an entity, and how kafka-configs words it."""
    user, client = ("--entity-type", "users"), ("--entity-type", "clients")
    named, default = ("--entity-name", name), ("--entity-default",)
    return [
        ((*user, *named), f"user-principal '{name}'"),
        ((*client, *named), f"client-id '{name}'"),
        ((*user, *named, *client, *named), f"user-principal '{name}', client-id '{name}'"),
        ((*user, *named, *client, *default), f"user-principal '{name}', the default client-id"),
        ((*user, *default, *client, *named), f"the default user-principal, client-id '{name}'"),
        ((*user, *default), "the default user-principal"),
        ((*client, *default), "the default client-id"),
    ]


@pytest.mark.parametrize("case", in_turn(range(7), 3))
def test_quotas_are_altered_described_and_deleted(server: Server, name: str, case: int) -> None:
    entity, wording = quota_cases(name)[case]
    limits = "producer_byte_rate=1048576,consumer_byte_rate=2097152"
    # Far above what the other tests move, so that a default throttles none of them.
    limits = limits.replace("1048576", "1e12").replace("2097152", "2e12")
    tool(server, "configs", "--alter", *entity, "--add-config", limits)
    described = tool(server, "configs", "--describe", *entity)
    assert wording in described
    assert "producer_byte_rate=1.0E12" in described
    assert "consumer_byte_rate=2.0E12" in described
    tool(server, "configs", "--alter", *entity, "--delete-config", "producer_byte_rate,consumer_byte_rate")
    assert "producer_byte_rate" not in tool(server, "configs", "--describe", *entity)


@PROTOCOLS
def test_consumer_groups_are_described_reset_and_deleted(server: Server, name: str, protocol: str) -> None:
    create_topic(server, name)
    produce(server, name)
    consume(server, name, name, FIRST_PART, protocol)
    group = ("--group", name)
    assert name in tool(server, "consumer-groups", "--list").splitlines()
    types = [line.split()[:2] for line in tool(server, "groups", "--list").splitlines() if line.strip()]
    assert types[0] == ["GROUP", "TYPE"]
    assert [name, protocol.capitalize()] in types
    row = tool(server, "consumer-groups", "--describe", *group).splitlines()[-1].split()
    assert row[1:6] == [name, "0", str(FIRST_PART), str(COUNT), str(COUNT - FIRST_PART)]
    tool(server, "consumer-groups", *group, "--topic", name, "--reset-offsets", "--to-earliest", "--execute")
    row = tool(server, "consumer-groups", "--describe", *group).splitlines()[-1].split()
    assert row[3] == "0"
    tool(server, "consumer-groups", "--delete", *group)
    assert name not in tool(server, "consumer-groups", "--list").splitlines()


def test_the_broker_tells_its_versions(server: Server) -> None:
    told = tool(server, "broker-api-versions")
    assert "Produce(0): 0 to 13" in told
    assert "UNKNOWN" not in told


def test_offsets_are_listed_by_place_and_time(server: Server, name: str) -> None:
    create_topic(server, name)
    produce(server, name)
    for time, offset in (("earliest", 0), ("latest", COUNT), ("max-timestamp", None), ("0", 0)):
        line = tool(server, "get-offsets", "--topic", name, "--time", time).strip()
        topic, partition, found = line.split(":")
        assert (topic, partition) == (name, "0")
        assert offset is None or int(found) == offset


def test_records_are_deleted(server: Server, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    create_topic(server, name)
    produce(server, name)
    wanted = tmp_path_factory.mktemp("delete") / "offsets.json"
    wanted.write_text(f'{{"version": 1, "partitions": [{{"topic": "{name}", "partition": 0, "offset": 30}}]}}')
    tool(server, "delete-records", "--offset-json-file", str(wanted))
    assert tool(server, "get-offsets", "--topic", name, "--time", "earliest").strip() == f"{name}:0:30"


def test_transactions_of_a_java_producer_are_told_by_the_tools(server: Server, name: str) -> None:
    load = ("--topic", name, "--num-records", "20", "--record-size", "10", "--throughput", "-1")
    settings = ("--producer-props", f"bootstrap.servers={server.bootstrap}", "--transaction-duration-ms", "5")
    run(command("producer-perf-test", *load, *settings, "--transactional-id", name))
    assert name in tool(server, "transactions", "list")
    described = tool(server, "transactions", "describe", "--transactional-id", name)
    assert "CompleteCommit" in described
