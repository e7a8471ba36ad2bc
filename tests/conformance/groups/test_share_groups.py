"""Share groups (KIP-932) with Apache Kafka's programs: share consumers, kafka-share-groups and kafka-dump-log."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conformance.groups.members import eventually
from tests.conformance.groups.share_consumers import SECONDS_MAX, Consumers
from tests.support.both import running_both
from tests.support.nodes import cluster
from tests.support.programs import kafka_tool
from tests.support.servers import Server
from tests.unit.operator.person import run

pytestmark = [pytest.mark.java, pytest.mark.slow]

ALONE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
ADDRESS = re.compile(r"127\.0\.0\.1:\d+ +\(\d\)")


def begin_at_the_start(bootstrap: str, group: str) -> None:
    setting = ["--add-config", "share.auto.offset.reset=earliest"]
    where = ["--alter", "--entity-type", "groups", "--entity-name", group]
    kafka_tool("configs", "--bootstrap-server", bootstrap, *where, *setting)


def create(bootstrap: str, topic: str, partitions: int, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(SECONDS_MAX)


def produce(bootstrap: str, topic: str, values: Sequence[int], partitions: int = 1) -> None:
    """Produce numbers in small batches, to the partitions in turn."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.num.messages": 10})
    for value in values:
        producer.produce(topic, str(value), partition=value % partitions)
    assert producer.flush(SECONDS_MAX) == 0


def share_groups(bootstrap: str, *arguments: str) -> str:
    return kafka_tool("share-groups", "--bootstrap-server", bootstrap, *arguments)


def lines_of(output: str) -> list[list[str]]:
    return sorted(line.split() for line in ADDRESS.sub("COORDINATOR", output).splitlines() if line.strip())


def lag_of(bootstrap: str, group: str) -> list[str]:
    described = lines_of(share_groups(bootstrap, "--describe", "--group", group))
    return [row[-1] for row in described if row[0] == group]


def test_javas_share_consumers_share_a_partition(start: Callable[..., Server], name: str, tmp_path: Path) -> None:
    server = start()
    create(server.bootstrap, name, 1)
    begin_at_the_start(server.bootstrap, name)
    consumers = Consumers(tmp_path, server.bootstrap, name, name)
    try:
        consumers.start()
        consumers.start()
        eventually(
            "both are in the group",
            lambda: len(lines_of(share_groups(server.bootstrap, "--describe", "--group", name, "--members"))) == 3,
        )
        produced = 0

        def both_have_read() -> bool:
            nonlocal produced
            produce(server.bootstrap, name, range(produced, produced + 20))
            produced += 20
            return bool(consumers.read(0) and consumers.read(1))

        eventually("both have their share", both_have_read)
        eventually("all records are read", lambda: len(consumers.read_by_all()) >= produced)
        eventually("all records are accepted", lambda: lag_of(server.bootstrap, name) == ["0"])
        assert sorted(consumers.read_by_all()) == list(range(produced)), "each record once"
        (told,) = json.loads(kavka_groups(server.bootstrap, "--group", name, "--output", "json"))["groups"]
        assert (told["type"].lower(), told["state"], len(told["members"]), told["lag"]) == ("share", "Stable", 2, 0)
        assert told["partitions"][0]["startOffset"] == produced
    finally:
        consumers.end()


def test_the_tools_say_what_they_say_of_apache_kafka(tmp_path: Path) -> None:
    with running_both(tmp_path, ALONE) as both:
        ours, theirs = (story(server.bootstrap, tmp_path / str(server.address[1])) for server in both)
        for step, said in ours.items():
            assert said == theirs[step], step


def story(bootstrap: str, directory: Path) -> dict[str, list[list[str]]]:
    """What kafka-share-groups prints at each step of a group's life."""
    directory.mkdir()
    create(bootstrap, "t", 2)
    produce(bootstrap, "t", range(60), partitions=2)
    begin_at_the_start(bootstrap, "g")
    consumers = Consumers(directory, bootstrap, "t", "g")
    consumers.start("--max-messages", "60", "--timeout-ms", "60000")
    consumers.wait()
    assert sorted(consumers.read(0)) == list(range(60))
    eventually("all records are accepted", lambda: lag_of(bootstrap, "g") == ["0", "0"])
    steps = {
        "list": ["--list"],
        "state": ["--describe", "--group", "g", "--state"],
        "members": ["--describe", "--group", "g", "--members"],
        "dry run": ["--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--dry-run"],
        "reset": ["--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute"],
        "moved": ["--describe", "--group", "g"],
        "to the end": ["--reset-offsets", "--group", "g", "--all-topics", "--to-latest", "--execute"],
        "at the end": ["--describe", "--group", "g", "--verbose"],
        "forget": ["--delete-offsets", "--group", "g", "--topic", "t"],
        "forgotten": ["--describe", "--group", "g"],
        "delete": ["--delete", "--group", "g"],
        "deleted": ["--list"],
    }
    said: dict[str, list[list[str]]] = {}
    for name, arguments in steps.items():
        said[name] = lines_of(share_groups(bootstrap, *arguments))
        if name == "moved":
            said["kavka groups"] = lines_of(kavka_groups(bootstrap))
            assert said["kavka groups"][1][:6] == ["g", "share", "Empty", "0", "1", "60"]
    return said


def kavka_groups(bootstrap: str, *arguments: str) -> str:
    """What `kavka groups` prints of any Kafka."""
    code, said = run("groups", "--bootstrap", bootstrap, *arguments)
    assert code == 0, said
    return said


def test_a_leader_that_dies_loses_no_record(tmp_path: Path, name: str) -> None:
    with cluster(tmp_path, settings={"share.coordinator.state.topic.num.partitions": "3"}) as nodes:
        create(nodes.bootstrap, name, 1, replicas=3)
        begin_at_the_start(nodes.bootstrap, name)
        consumers = Consumers(tmp_path, nodes.bootstrap, name, name)
        try:
            consumers.start()
            produce(nodes.bootstrap, name, range(1000))
            eventually("records are read", lambda: len(consumers.read(0)) >= 500)
            nodes.kill(leader_of(nodes.bootstrap, name))
            produce(nodes.bootstrap, name, range(1000, 2000))
            eventually("all records are read", lambda: set(consumers.read(0)) == set(range(2000)))
            eventually("all records are accepted", lambda: lag_of(nodes.bootstrap, name) == ["0"])
        finally:
            consumers.end()


def leader_of(bootstrap: str, topic: str) -> int:
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=SECONDS_MAX)
    leader: int = metadata.topics[topic].partitions[0].leader
    return leader


def test_the_files_are_read_by_kafkas_decoder(start: Callable[..., Server], name: str, tmp_path: Path) -> None:
    server = start(share_coordinator_snapshot_update_records_per_snapshot="2")
    create(server.bootstrap, name, 1)
    begin_at_the_start(server.bootstrap, name)
    consumers = Consumers(tmp_path, server.bootstrap, name, name)
    try:
        consumers.start()
        for first in range(0, 50, 10):
            produce(server.bootstrap, name, range(first, first + 10))
            eventually("they are read", lambda: len(consumers.read(0)) == first + 10)  # noqa: B023 - called at once
        eventually("all records are accepted", lambda: lag_of(server.bootstrap, name) == ["0"])
        consumers.leave()
    finally:
        consumers.end()
    assert "successful" in share_groups(server.bootstrap, "--delete", "--group", name)
    logs = ",".join(map(str, sorted(server.data.glob("__share_group_state-*/*.log"))))
    dumped = kafka_tool("dump-log", "--files", logs, "--share-group-state-decoder", "--deep-iteration")
    mine = [line for line in dumped.splitlines() if f'"groupId":"{name}"' in line]
    assert sum("snapshotEpoch" in line for line in mine) >= 4
    assert sum("<DELETE>" in line for line in mine) == 1
    assert "isvalid: false" not in dumped
