"""The operator moves replicas between three brokers: throttled, as the status says, and without anything left behind.

`KAVKA_TEST_SERVER=apache-kafka` shows the same on Apache Kafka.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from kavka_operator.api.kinds import key_of
from kavka_operator.api.topic import Move, Topic
from kavka_operator.domain.observed import SeenTopic
from kavka_operator.domain.plan import KafkaAction
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.loop.converge import converge
from kavka_operator.loop.observation import Observation
from kavka_operator.reconcile.reassignments import LISTS, RATES
from tests.support.nodes import Nodes, cluster
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.slow, pytest.mark.extended]

RECORD_BYTES, RECORDS = 10_000, 200
SLOW = 10_000
LIMITED = dict.fromkeys(RATES, str(SLOW))


class Mortal(KafkaClient):
    """A client whose process dies right after its Nth write."""

    last = 0
    count = 0

    def perform(self, action: KafkaAction) -> None:
        super().perform(action)
        self.count += 1
        if self.count == self.last:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three brokers, each in a rack of its own."""
    with cluster(tmp_path_factory.mktemp("moved")) as running:
        yield running


def resource(name: str, **spec: Any) -> Topic:
    """The Topic of a cluster "main"."""
    spec = {"clusterRef": {"name": "main"}, **spec}
    return Topic.decode({"metadata": {"name": name}, "spec": spec})


def fill(nodes: Nodes, name: str) -> None:
    """Give a topic two partitions of one replica each, both on broker 1, and records."""
    admin = KafkaAdminClient(bootstrap_servers=nodes.bootstrap)
    admin.create_topics({name: {"assignments": {0: [1], 1: [1]}, "configs": {"min.insync.replicas": "1"}}})
    admin.close()
    producer = KafkaProducer(bootstrap_servers=nodes.bootstrap, acks=1)
    for number in range(RECORDS):
        producer.send(name, b"x" * RECORD_BYTES, partition=number % 2)
    producer.flush()
    producer.close()


@dataclass(slots=True)
class Kept:
    """A resource as it was last written: what a look has found that did not end is lost."""

    topic: Topic

    def look(self, client: KafkaClient) -> Move | None:
        """Look once, and write the status; the move in it."""
        statuses = converge(Observation([self.topic], datetime.now(UTC)), client).statuses
        self.topic = self.topic.replaced({"status": statuses[key_of(self.topic)]})
        return self.topic.status.move

    def until_ready(self, client: KafkaClient) -> None:
        """Look until the topic is ready and its move is over: a broker may tell of what was before the last write."""

        def is_ready() -> bool:
            self.look(client)
            condition = self.topic.status.condition("Ready")
            return condition is not None and condition.status == "True" and self.topic.status.move is None

        until_outside(is_ready)


def seen(client: KafkaClient, name: str) -> SeenTopic:
    return client.look([name]).topics[name]


def nothing_is_left(client: KafkaClient, kept: Kept) -> None:
    """See that a topic has two replicas of each partition, and that nothing is throttled any more, at no broker."""
    name = kept.topic.topic_name
    until_outside(lambda: {len(replicas) for replicas in seen(client, name).assignment.values()} == {2})
    until_outside(lambda: not seen(client, name).overrides.keys() & set(LISTS))
    until_outside(lambda: client.rates([1, 2, 3]) == {1: {}, 2: {}, 3: {}})


def test_a_move_is_throttled_tells_how_far_it_is_and_may_be_made_faster(nodes: Nodes) -> None:
    fill(nodes, "slow")
    client, kept = (
        KafkaClient(nodes.bootstrap),
        Kept(resource("slow", replicationFactor=2, placement={"throttle": SLOW})),
    )
    try:
        decided, begun = kept.look(client), kept.look(client)
        assert decided is not None
        assert begun is not None
        until_outside(lambda: {*LISTS} <= seen(client, "slow").overrides.keys())
        until_outside(lambda: seen(client, "slow").moving == (0, 1))  # a hundred seconds at this rate
        brokers = begun.throttled_brokers
        until_outside(lambda: all(one == LIMITED for one in client.rates(brokers).values()))
        since = decided.since

        def is_under_way() -> bool:
            found = kept.look(client)
            return found is not None and (found.since, found.partitions, found.replicas_left) == (since, 2, 2)

        until_outside(is_under_way)  # another broker than before may not have heard of it yet
        faster = resource("slow", replicationFactor=2, placement={"throttle": "1Gi"})
        kept.topic = faster.replaced({"status": kept.topic.status})
        kept.until_ready(client)
        nothing_is_left(client, kept)
    finally:
        client.close()


def test_the_operator_may_die_after_each_write_of_a_move(nodes: Nodes) -> None:
    deaths = 0
    while dies_and_ends_well(nodes, deaths + 1):
        deaths += 1
    # At least: a broker that tells of what was before the last write has it written once more.
    assert deaths >= 5, "rates and lists are set, replicas moved, lists and rates taken away"


def dies_and_ends_well(nodes: Nodes, last: int) -> bool:
    """Move a topic with an operator that dies after its Nth write; whether it got that far."""
    name = f"dies-{last}"
    fill(nodes, name)
    kept, dying, has_died = Kept(resource(name, replicationFactor=2)), Mortal(nodes.bootstrap), False
    dying.last = last
    try:
        kept.until_ready(dying)
    except KeyboardInterrupt:
        has_died = True
    finally:
        dying.close()
    client = KafkaClient(nodes.bootstrap)
    try:
        kept.until_ready(client)
        nothing_is_left(client, kept)
    finally:
        client.close()
    return has_died
