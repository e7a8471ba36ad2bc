"""A group of the new protocol (KIP-848) on three brokers, under load: members, the coordinator and another broker go.

Every record that was acknowledged is read at least once, committed offsets carry on, and no partition is with two
members at once: each says when it gets a partition, and when it has given it up.
"""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.cluster.history import QUIET, History, within
from tests.conformance.cluster.test_failover import SETTINGS
from tests.conformance.groups.members import Fleet, Member, eventually, fleet
from tests.support.committed import committed
from tests.support.nodes import Nodes, cluster
from tests.support.servers import is_apache_kafka
from tests.support.topics import create_topic, metadata
from tools.ktool import command

pytestmark = pytest.mark.slow

TOPIC, GROUP = "consumed", "consumers"
PARTITIONS = 6
LIBRARY = "consumer_protocol"
#: A member that is killed is missed soon; one that lives is never missed, unless the machine stands still.
GROUPS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "15000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}
SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Served:
    """The cluster, as members are started beside it."""

    bootstrap: str
    directory: Path


@contextmanager
def under_load(nodes: Nodes) -> Iterator[History]:
    """Produce to all partitions until the end of the block; all is acknowledged then."""
    history, ends = History(nodes, TOPIC, PARTITIONS), threading.Event()

    def produce() -> None:
        while not ends.is_set():
            history.produce(0.2)

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        yield history
    finally:
        ends.set()
        producing.join()
    history.finish()


class JavaMember:
    """Apache Kafka's console consumer, which says what it reads."""

    def __init__(self, nodes: Nodes, directory: Path, protocol: str = "consumer", *more: str) -> None:
        spoken = (f"group.protocol={protocol}", "auto.offset.reset=earliest", "auto.commit.interval.ms=500", *more)
        shown = ("print.partition=true", "print.offset=true", "print.value=false")
        options = [f"--command-property={one}" for one in spoken] + [f"--formatter-property={one}" for one in shown]
        program = command("console-consumer", "--bootstrap-server", nodes.bootstrap, "--topic", TOPIC, "--group", GROUP)
        self.reads: list[tuple[int, int]] = []
        with (directory / "java-member.log").open("wb") as errors:
            self.process = subprocess.Popen([*program, *options], stdout=subprocess.PIPE, stderr=errors, text=True)
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("Partition:"):
                partition, offset = line.split()[:2]
                self.reads.append((int(partition.partition(":")[2]), int(offset.partition(":")[2])))

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(SECONDS_MAX)
        self._listening.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Story:
    """The group, and what was known of it before each fault."""

    def __init__(self, nodes: Nodes, members: Fleet) -> None:
        self.nodes, self.members = nodes, members
        self.admin = AdminClient({"bootstrap.servers": nodes.bootstrap, **QUIET})
        self.observer = confluent_kafka.Consumer({"bootstrap.servers": nodes.bootstrap, "group.id": GROUP, **QUIET})
        self.everybody: list[Member] = []
        self.ends: dict[int, float] = {}  # by pid of a member that was killed
        self.known: list[tuple[float, dict[int, int]]] = []  # what was committed, and when

    def start(self, library: str = LIBRARY, instance: str | None = None) -> Member:
        member = self.members.start(library, instance=instance)
        self.everybody.append(member)
        return member

    def kill(self, member: Member) -> None:
        member.kill()
        self.ends[member.process.pid] = time.monotonic()
        self.members.remove(member)

    def leave(self, member: Member) -> None:
        member.leave()
        self.members.remove(member)

    def committed(self) -> dict[int, int]:
        parts = [confluent_kafka.TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        return {part.partition: part.offset for part in committed(self.observer, parts)}

    def note(self) -> None:
        """Wait until something more is committed of every partition, and remember it."""
        before = self.known[-1][1] if self.known else dict.fromkeys(range(PARTITIONS), 0)
        found: dict[int, int] = {}

        def is_more() -> bool:
            found.update(self.committed())
            return all(found[index] > before[index] for index in before)

        eventually("every partition is read on, and committed", is_more)
        self.known.append((time.monotonic(), found))

    def described(self) -> Any:
        return self.admin.describe_consumer_groups([GROUP], request_timeout=SECONDS_MAX)[GROUP].result()

    def coordinator(self) -> int:
        return int(self.described().coordinator.id)

    def shares(self) -> list[int]:
        """How many partitions each member has, as the coordinator says."""
        return sorted(len(member.assignment.topic_partitions) for member in self.described().members)

    def is_whole(self) -> bool:
        partitions = metadata(self.admin, TOPIC).topics[TOPIC].partitions.values()
        return all(len(partition.isrs) == len(self.nodes.broker_ids) for partition in partitions)

    # --- the judgement ------------------------------------------------------------------------------------------

    def reads(self) -> set[tuple[int, int]]:
        return {read for member in self.everybody for read in member.reads}

    def went_back(self) -> list[tuple[int, int]]:
        """What was read once more though it had been committed before."""
        return [
            (index, offset)
            for when, found in self.known
            for member in self.everybody
            for event in member.events
            if "read" in event and event["at"] > when
            for index, offset in [event["read"]]
            if offset < found[index]
        ]

    def claims(self) -> list[tuple[int, float, float, int]]:
        """Each partition that a member had: from when, until when, and whose it was; until the end if it was lost, as
        only its coordinator knows when its session ended.
        """
        found = []
        for number, member in enumerate(self.everybody):
            since: dict[int, float] = {}
            for event in member.events:
                for index in event.get("gets", ()):
                    since[index] = event["at"]
                found += [(index, since.pop(index), event["at"], number) for index in event.get("gives", ())]
                for index in event.get("lost", ()):
                    since.pop(index)
            end = self.ends.get(member.process.pid, time.monotonic())
            found += [(index, began, end, number) for index, began in since.items()]
        return sorted(found)

    def with_two(self) -> list[str]:
        claims = self.claims()
        return [
            f"partition {index} is with {one} until {end:.3f}, and with {other} from {began:.3f} on"
            for index, since, end, one in claims
            for other_index, began, _, other in claims
            if index == other_index and one != other and since <= began < end
        ]


def test_a_group_goes_on_without_members_and_brokers(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**SETTINGS, **GROUPS, "offsets.topic.num.partitions": "1"}
    with cluster(tmp_path, settings=settings) as nodes:
        create_topic(nodes, TOPIC, PARTITIONS, 3)
        with fleet(Served(nodes.bootstrap, tmp_path), GROUP, TOPIC) as members:
            story = Story(nodes, members)
            for _ in range(3):
                story.start()
            eventually("three members share", lambda: members.settled(2, 2, 2))
            with under_load(nodes) as history:
                story.note()
                story.kill(members.members[0])
                eventually("two take over from the one that was killed", lambda: members.settled(3, 3))
                story.note()
                story.start()
                eventually("the new one gets its share", lambda: members.settled(2, 2, 2))
                story.note()
                coordinator = story.coordinator()
                nodes.kill(coordinator)
                story.note()
                nodes.start(coordinator)
                within("in sync", story.is_whole)
                story.note()
                other = next(node_id for node_id in nodes.broker_ids if node_id != coordinator)
                assert nodes[other].stop() == 0 or is_apache_kafka()
                story.note()
                nodes.start(other)
                within("in sync", story.is_whole)
                story.note()
            acknowledged = {(one.partition, one.offset) for one in history.acknowledged}
            eventually("all that was acknowledged is read", lambda: acknowledged <= story.reads())
            ends = {index: 1 + max(offset for part, offset in acknowledged if part == index) for index in range(6)}
            eventually("and committed", lambda: story.committed() == ends)
            assert members.settled(2, 2, 2)
            assert story.went_back() == []
            assert len(story.claims()) > PARTITIONS, "partitions have moved"
            assert story.with_two() == []
            for member in [*members.members]:
                member.leave()
                members.remove(member)


@pytest.mark.java
def test_clients_of_two_kinds_share_a_group(tmp_path: Path) -> None:
    """A Java consumer beside members of librdkafka, one of which is killed, and then the coordinator."""
    settings: dict[str, Any] = {**SETTINGS, **GROUPS, "offsets.topic.num.partitions": "1"}
    with cluster(tmp_path, settings=settings) as nodes:
        create_topic(nodes, TOPIC, PARTITIONS, 3)
        with fleet(Served(nodes.bootstrap, tmp_path), GROUP, TOPIC) as members:
            story = Story(nodes, members)
            java = JavaMember(nodes, tmp_path)
            try:
                story.start()
                story.start()
                eventually("three members share", lambda: story.shares() == [2, 2, 2])
                with under_load(nodes) as history:
                    story.note()
                    story.kill(members.members[0])
                    eventually("two take over from the one that was killed", lambda: story.shares() == [3, 3])
                    story.note()
                    coordinator = story.coordinator()
                    nodes.kill(coordinator)
                    story.note()
                    nodes.start(coordinator)
                acknowledged = {(one.partition, one.offset) for one in history.acknowledged}
                eventually("all that was acknowledged is read", lambda: acknowledged <= {*story.reads(), *java.reads})
            finally:
                java.end()
            eventually("the other one has everything", lambda: members.settled(6))
            assert java.reads
            assert story.went_back() == []
            assert story.with_two() == []
