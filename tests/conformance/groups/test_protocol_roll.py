"""A group is rolled from the classic protocol to KIP-848 and back, under load, and one member is killed at each step.

Members of librdkafka and of Java speak either protocol. Every record that was acknowledged is read, committed offsets
carry on, and no partition is with two members at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListGroupsResponse
from tests.conformance.cluster.test_failover import SETTINGS
from tests.conformance.groups.members import eventually, fleet
from tests.conformance.groups.test_consumer_protocol import (
    GROUP,
    GROUPS,
    PARTITIONS,
    TOPIC,
    JavaMember,
    Served,
    Story,
    under_load,
)
from tests.support.asking import ask
from tests.support.nodes import Nodes, cluster
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

CLASSIC, CONSUMER = "classic_protocol", "consumer_protocol"
SESSION_MS = 6_000
SETTINGS_OF_ROLL: dict[str, Any] = {
    **SETTINGS,
    **GROUPS,
    "offsets.topic.num.partitions": "1",
    "group.consumer.session.timeout.ms": "8000",
    "group.initial.rebalance.delay.ms": "500",
}


def types(nodes: Nodes) -> list[str]:
    """The type of the group, as brokers list it."""
    found = []
    for node_id in nodes.broker_ids:
        listed = ask(nodes[node_id].address, ListGroupsRequest(), ListGroupsResponse).groups
        found += [one.group_type for one in listed if one.group_id == GROUP]
    return found


@contextmanager
def rolling(tmp_path: Path) -> Iterator[Story]:
    """A cluster with a group, which is judged at the end of the block."""
    with cluster(tmp_path, settings=SETTINGS_OF_ROLL) as nodes:
        create_topic(nodes, TOPIC, PARTITIONS, 3)
        with fleet(Served(nodes.bootstrap, tmp_path), GROUP, TOPIC, session_ms=SESSION_MS) as members:
            yield Story(nodes, members)


def judge(story: Story, acknowledged: set[tuple[int, int]], others: set[tuple[int, int]]) -> None:
    eventually("all that was acknowledged is read", lambda: acknowledged <= story.reads() | others)
    assert story.went_back() == []
    assert len(story.claims()) > PARTITIONS, "partitions have moved"
    assert story.with_two() == []


def share(story: Story, *counts: int) -> None:
    eventually(f"members share as {counts}", lambda: story.shares() == sorted(counts))


def test_librdkafka_is_rolled_there_and_back(tmp_path: Path) -> None:
    with rolling(tmp_path) as story:
        classic = [story.start(CLASSIC) for _ in range(3)]
        share(story, 2, 2, 2)
        assert types(story.nodes) == ["classic"]
        with under_load(story.nodes) as history:
            story.note()
            new = [story.start(CONSUMER)]
            share(story, 1, 1, 2, 2)
            assert types(story.nodes) == ["consumer"]
            story.note()
            story.kill(classic.pop())
            share(story, 2, 2, 2)
            story.note()
            story.leave(classic.pop())
            new.append(story.start(CONSUMER))
            share(story, 2, 2, 2)
            story.kill(new.pop(0))
            share(story, 3, 3)
            story.note()
            story.leave(classic.pop())
            new.append(story.start(CONSUMER))
            share(story, 3, 3)
            story.note()
            assert types(story.nodes) == ["consumer"]
            classic.append(story.start(CLASSIC))
            share(story, 2, 2, 2)
            story.kill(new.pop())
            share(story, 3, 3)
            story.note()
            classic.append(story.start(CLASSIC))
            share(story, 2, 2, 2)
            story.note()
            story.kill(new.pop())
            eventually("the group is a classic one again", lambda: types(story.nodes) == ["classic"])
            share(story, 3, 3)
            story.note()
            story.kill(classic.pop())
            share(story, 6)
            story.note()
        judge(story, {(one.partition, one.offset) for one in history.acknowledged}, set())


@pytest.mark.java
def test_java_and_librdkafka_are_rolled_in_one_group(tmp_path: Path) -> None:
    with rolling(tmp_path) as story:
        java = [
            JavaMember(
                story.nodes, tmp_path, "classic", f"session.timeout.ms={SESSION_MS}", "heartbeat.interval.ms=500"
            )
        ]
        try:
            classic = story.start(CLASSIC)
            share(story, 3, 3)
            with under_load(story.nodes) as history:
                story.note()
                java.append(JavaMember(story.nodes, tmp_path))
                share(story, 2, 2, 2)
                assert types(story.nodes) == ["consumer"]
                story.note()
                java[0].end()
                share(story, 3, 3)
                story.note()
                story.kill(classic)
                share(story, 6)
                story.note()
                new = story.start(CONSUMER)
                share(story, 3, 3)
                story.note()
                back = JavaMember(
                    story.nodes, tmp_path, "classic", f"session.timeout.ms={SESSION_MS}", "heartbeat.interval.ms=500"
                )
                java.append(back)
                share(story, 2, 2, 2)
                story.note()
                story.kill(new)
                share(story, 3, 3)
                story.note()
                java[1].end()
                eventually("the group is a classic one again", lambda: types(story.nodes) == ["classic"])
                share(story, 6)
                story.note()
            acknowledged = {(one.partition, one.offset) for one in history.acknowledged}
            eventually(
                "all that was acknowledged is read",
                lambda: acknowledged <= story.reads().union(*(one.reads for one in java)),
            )
        finally:
            for one in java:
                if one.process.poll() is None:
                    one.end()
        assert all(one.reads for one in java)
        judge(story, acknowledged, {read for one in java for read in one.reads})
