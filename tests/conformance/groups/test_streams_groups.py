"""Streams groups (KIP-1071) with Apache Kafka's programs: Kafka Streams, kafka-streams-groups and kafka-dump-log."""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.groups.members import eventually
from tests.conformance.transactions.copying import INPUT, NAME, OUTPUT, Application, Topics
from tests.conformance.transactions.test_streams import begin_round, count
from tests.support.both import running_both
from tests.support.nodes import cluster
from tests.support.programs import kafka_tool
from tests.support.servers import Server, start_apache_kafka
from tools.kafka_jars import streams_class_path
from tools.kafka_jvm import java

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX: Final = 90.0
RECORDS: Final = 60
PROGRAM: Final = Path(__file__).parents[1] / "transactions/Counter.java"
SESSION: Final = {
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.session.timeout.ms": "8000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "1000",
}
SOON: Final = {**SESSION, "group.streams.initial.rebalance.delay.ms": "0"}
TASK: Final = re.compile(r"\[\d\]")
RANDOM: Final = re.compile(r"127\.0\.0\.1:\d+ +\(\d\)|[\w-]{8}(?:-[\w-]{4}){3}-[\w-]{12}|\b[\w-]{22}\b")


def command(directory: Path, number: int = 0, replicas: int = 3, protocol: str = "streams") -> tuple[str, ...]:
    """The command of an instance of the application, with a directory of its own."""
    return (
        *java("256M"),
        f"-Dstate.dir={directory / f'state-{number}'}",
        f"-Dreplication.factor={replicas}",
        f"-Dgroup.protocol={protocol}",
        "-cp",
        streams_class_path(),
        str(PROGRAM),
    )


def switch_on(bootstrap: str) -> None:
    kafka_tool("features", "--bootstrap-server", bootstrap, "upgrade", "--feature", "streams.version=1")


def streams_groups(bootstrap: str, *arguments: str) -> str:
    return kafka_tool("streams-groups", "--bootstrap-server", bootstrap, *arguments)


def lines_of(output: str) -> list[list[str]]:
    """The lines without ids and ports, in an order of their own."""
    return sorted(RANDOM.sub("ID", line).split() for line in output.splitlines() if line.strip())


def active_tasks(bootstrap: str) -> list[int]:
    """How many active tasks each member of the group has."""
    described = streams_groups(bootstrap, "--describe", "--group", NAME, "--members", "--verbose")
    found = [re.search(r" ACTIVE: ([^A-Z]*)", line) for line in described.splitlines() if line.startswith(NAME)]
    return sorted(sum(tasks.count(",") + 1 for tasks in re.findall(r"\[([\d,]+)\]", one[1])) for one in found if one)


@pytest.mark.extended
def test_counts_are_exact_while_brokers_and_instances_are_killed(tmp_path: Path) -> None:
    with cluster(tmp_path, settings=SESSION) as nodes:
        switch_on(nodes.bootstrap)
        topics = Topics(nodes)
        first, second = (
            Application(command(tmp_path, number), nodes.bootstrap, tmp_path / f"application-{number}.log")
            for number in range(2)
        )
        try:
            first.start()
            count(nodes, topics)
            assert active_tasks(nodes.bootstrap) == [3, 3], "two threads"
            second.start()
            eventually("both instances have tasks", lambda: active_tasks(nodes.bootstrap) == [1, 1, 2, 2])
            begin_round(nodes, topics)
            victim = topics.coordinator("__consumer_offsets")
            nodes.kill(victim)
            count(nodes, topics)
            nodes.start(victim)
            nodes.wait("every replica is in sync", topics.are_in_sync)
            begin_round(nodes, topics)
            first.kill()
            count(nodes, topics)
            eventually("the other instance has all tasks", lambda: active_tasks(nodes.bootstrap) == [3, 3])
        finally:
            first.kill()
            second.kill()
        assert not first.lines("failed") + second.lines("failed")


def test_the_tools_say_what_they_say_of_apache_kafka(tmp_path: Path) -> None:
    with running_both(
        tmp_path, {**SOON, "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
    ) as both:
        switch_on(both.kavka.bootstrap)
        ours, theirs = (story(server, tmp_path / str(server.address[1])) for server in both)
        for step, said in ours.items():
            assert said == theirs[step], step


@pytest.mark.extended
def test_a_group_goes_on_from_apache_kafka_to_kavka_and_back(tmp_path: Path) -> None:
    """The members stay, with their tasks: the one reads the records that the other wrote."""
    server = start_apache_kafka(tmp_path / "broker", {**SOON, "group.streams.assignment.interval.ms": "0"})
    config = server.directory / "server.properties"
    apache, kavka = server.command, [sys.executable, "-m", "kavka_broker", "run", "--config", str(config)]
    try:
        with counted(server.bootstrap, tmp_path):
            before = streams_groups(server.bootstrap, "--describe", "--group", NAME, "--members", "--verbose")
            written = RECORDS
            for command in (kavka, apache):
                server.stop()
                server.command = command
                server.start()
                produce(server.bootstrap, range(written, written + RECORDS))
                written += RECORDS
                eventually("all records are counted", lambda: has_counted(server.bootstrap, written))  # noqa: B023
                after = streams_groups(server.bootstrap, "--describe", "--group", NAME, "--members", "--verbose")
                assert tasks_of_members(after) == tasks_of_members(before)
    finally:
        server.kill()


@pytest.mark.extended
def test_an_application_changes_its_protocol_while_it_is_stopped(tmp_path: Path) -> None:
    with cluster(tmp_path, settings={**SESSION, "group.initial.rebalance.delay.ms": "0"}) as nodes:
        switch_on(nodes.bootstrap)
        topics, log = Topics(nodes), tmp_path / "application.log"
        for protocol in ("classic", "streams", "classic"):
            application = Application(command(tmp_path, protocol=protocol), nodes.bootstrap, log)
            application.start()
            try:
                count(nodes, topics)
            finally:
                application.kill()
            assert not application.lines("failed")
            listed = f"{NAME} {protocol.capitalize()} "
            assert listed in " ".join(kafka_tool("groups", "--bootstrap-server", nodes.bootstrap, "--list").split())
            tool = "streams-groups" if protocol == "streams" else "consumer-groups"
            described = ("--bootstrap-server", nodes.bootstrap, "--describe", "--group", NAME, "--state")
            eventually("all members are gone", lambda: " Empty " in kafka_tool(tool, *described))  # noqa: B023


def tasks_of_members(described: str) -> dict[str, str]:
    """The tasks of each member by its id."""
    rows = [line.split(None, 8) for line in described.splitlines() if line.startswith(NAME)]
    assert rows
    return {row[3]: row[8] for row in rows}


def has_counted(bootstrap: str, written: int) -> bool:
    """Whether every number of each digit is in the output, once."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
    }
    consumer, found, ended = confluent_kafka.Consumer(settings), Counter[str](), 0
    consumer.assign([confluent_kafka.TopicPartition(OUTPUT, index, 0) for index in range(2)])
    while ended < 2:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None
        error = message.error()
        if error is None:
            found[(message.value() or b"").decode()] += 1
        else:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
            ended += 1
    consumer.close()
    expected = Counter(f"{digit} {number}" for digit in range(10) for number in range(1, written // 10 + 1))
    assert found <= expected, f"more than once: {found - expected}"
    return found == expected


def story(server: Server, directory: Path) -> dict[str, list[list[str]]]:
    """What kafka-streams-groups prints at each step of a group's life."""
    directory.mkdir()
    with counted(server.bootstrap, directory):
        said = {
            "list": lines_of(streams_groups(server.bootstrap, "--list")),
            "state": lines_of(streams_groups(server.bootstrap, "--list", "--state")),
            # Which thread runs which task goes by its random id.
            "members": lines_of(
                TASK.sub("[N]", streams_groups(server.bootstrap, "--describe", "--group", NAME, "--members"))
            ),
            "offsets": lines_of(streams_groups(server.bootstrap, "--describe", "--group", NAME, "--offsets")),
        }
    eventually("all members are fenced", lambda: "Empty" in streams_groups(server.bootstrap, "--list", "--state"))
    steps = {
        "dry run": ["--reset-offsets", "--group", NAME, "--to-earliest", "--input-topic", INPUT, "--dry-run"],
        "reset": ["--reset-offsets", "--group", NAME, "--to-earliest", "--all-input-topics", "--execute"],
        "forget": ["--delete-offsets", "--group", NAME, "--input-topic", INPUT],
        "delete": ["--delete", "--group", NAME],
        "deleted": ["--list"],
    }
    return said | {name: lines_of(streams_groups(server.bootstrap, *arguments)) for name, arguments in steps.items()}


@contextmanager
def counted(bootstrap: str, directory: Path) -> Iterator[None]:
    """An instance of the application that has counted all records, and is killed at the end."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 2, 1) for topic in (INPUT, OUTPUT)]).values():
        future.result(SECONDS_MAX)
    produce(bootstrap, range(RECORDS))
    application = Application(command(directory, replicas=1), bootstrap, directory / "application.log")
    application.start()
    try:
        eventually("all records are counted", lambda: lags(bootstrap) == ["0"] * 4)
        yield
    finally:
        application.kill()


def produce(bootstrap: str, numbers: range) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in numbers:
        producer.produce(INPUT, str(number), partition=number % 2)
    assert producer.flush(SECONDS_MAX) == 0


def lags(bootstrap: str) -> list[str]:
    try:
        described = streams_groups(bootstrap, "--describe", "--group", NAME, "--offsets")
    except AssertionError:  # there is no such group yet
        return []
    return [line.split()[-1] for line in described.splitlines() if line.startswith(NAME)]
