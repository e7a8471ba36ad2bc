"""Brokers whose volumes end with their pods, on a real API server: each life begins empty, and no record is lost.

The tests stand in the place of scheduler and kubelets (`test_drain`): a pod that has a machine is the process of a real
broker, in a directory that is made and formatted for it. The API server itself binds no pod that has a gate.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.cluster.history import QUIET, History, create_topic, is_whole
from tests.kube.cluster import Kubernetes
from tests.kube.objects import cluster, pool, volumes
from tests.kube.test_drain import Machines, Producing, uids
from tests.kube.test_operator import Operated
from tests.kube.test_plan import planned
from tests.kube.test_pods import IMAGE, begun, find, message, place
from tests.support.control_plane import Json
from tests.support.nodes import Nodes, Place
from tests.support.nodes import cluster as running
from tests.support.servers import format_kavka
from tests.support.topics import metadata

BROKERS = (100, 101, 102)
READY = ("KafkaCluster", "pods")
TOPIC = "two"


class Emptying(Machines):
    """Machines on which a pod of a broker begins with an empty directory, as with an `emptyDir`."""

    def launch(self, number: int) -> None:
        if number in BROKERS:
            home = self.nodes[number].directory
            shutil.rmtree(home / "data", ignore_errors=True)
            format_kavka(home / "server.properties", "--no-initial-controllers")
        super().launch(number)

    def serves(self, number: int) -> bool:
        return super().serves(number) if number in BROKERS else self.nodes[number].process is not None


def wanted(**spec: object) -> Json:
    """A controller with a volume, and three brokers without."""
    voters = pool("voters", replicas=1, roles=["controller"], storage=volumes({"name": "data", "size": "1Gi"}))
    brokers = pool("brokers", roles=["broker"], storage={"type": "Ephemeral", "sizeLimit": "1Gi"})
    return cluster("pods", nodePools=[voters, brokers], image=IMAGE, **spec)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """A controller and three brokers, none of them started yet."""
    places = [Place(0, "controller"), *(Place(number, "broker", f"rack-{number}") for number in BROKERS)]
    with running(tmp_path / "nodes", places, started=False) as made:
        yield made


@pytest.fixture
def machines(kubernetes: Kubernetes, nodes: Nodes) -> Iterator[Machines]:
    made = Emptying(kubernetes, nodes, (f"{kubernetes.namespace}-a",))
    yield made
    made.end()


@pytest.fixture
def operated(kubernetes: Kubernetes, nodes: Nodes, tmp_path: Path) -> Iterator[Operated]:
    scene = Operated(kubernetes, nodes, tmp_path / "operator.log")
    scene.start()
    yield scene
    scene.stop()


def directory_ids(nodes: Nodes) -> dict[int, str]:
    """The ids of the directories that brokers have now."""
    lines = {number: (nodes[number].directory / "data" / "meta.properties").read_text() for number in BROKERS}
    return {number: text.partition("directory.id=")[2].split()[0] for number, text in lines.items()}


def gates(scene: Operated, number: int) -> list[str]:
    spec = find(scene, "pods", f"pods-brokers-{number}-0").get("spec", {})
    return [gate["name"] for gate in spec.get("schedulingGates", ())]


def test_a_roll_and_a_deleted_pod_begin_empty_and_lose_no_record(
    operated: Operated, machines: Machines, tmp_path: Path
) -> None:
    begun(operated, wanted(), pods=4)
    operated.until_ready(READY)
    first = directory_ids(machines.nodes)
    admin = create_topic(machines.nodes)
    producing = Producing(History(machines.nodes))
    before = uids(operated, machines)
    _, lines = planned(operated.kubernetes, tmp_path, wanted(config={"num.io.threads": "4"}))
    (empties,) = [line for line in lines if "empties: " in line]
    assert empties.startswith("  empties: nodes 100, 101, 102, as storage of pool brokers ends with the pod"), lines
    assert operated.kubernetes.apply(wanted(config={"num.io.threads": "4"})).is_well
    operated.until(lambda: operated.status(*READY).get("lastRollout", {}).get("nodes") == 4)
    operated.until_ready(READY)
    second, after = directory_ids(machines.nodes), uids(operated, machines)
    assert not {*first.values()} & {*second.values()}, "each broker was emptied"
    assert not {*before.values()} & {*after.values()}
    operated.kubernetes.shows("delete", "pod", "pods-brokers-101-0")
    operated.until(lambda: machines.running[101] != after["pods-brokers-101-0"])
    operated.until(lambda: is_whole(admin))
    operated.until_ready(READY)
    third = directory_ids(machines.nodes)
    assert {number for number in BROKERS if third[number] != second[number]} == {101}
    producing.has_lost_nothing()


def test_the_only_replica_is_held_by_a_roll_until_a_person_gives_it_up(operated: Operated, machines: Machines) -> None:
    begun(operated, wanted(), pods=4)
    operated.until_ready(READY)
    nodes, admin = machines.nodes, AdminClient({"bootstrap.servers": machines.nodes.bootstrap, **QUIET})
    made = NewTopic(TOPIC, 1, replica_assignment=[[102]])
    admin.create_topics([made])[TOPIC].result(60)
    operated.until(lambda: leader_and_isr(admin) == (102, [102]))
    write(nodes, b"alone")
    before = uids(operated, machines)
    assert operated.kubernetes.apply(wanted(config={"num.io.threads": "4"})).is_well
    held = f"no other replica of {TOPIC}-0 has all records"
    operated.until(lambda: held in message(operated) and operated.condition(*READY) == ("True", "Ready"))
    after = uids(operated, machines)
    assert {name for name in after if after[name] == before[name]} == {"pods-brokers-102-0"}, "the others are restarted"
    assert records(nodes) == [b"alone"]
    life = after["pods-brokers-102-0"]
    operated.kubernetes.shows("annotate", "kafkaclusters.kavka.dev", "pods", f"kavka.dev/forget-volumes={life}")
    operated.until(lambda: uids(operated, machines).get("pods-brokers-102-0", life) != life)
    operated.until_ready(READY)
    assert leader_and_isr(admin)[0] == -1, "its records are gone, and nothing is led as if they had never been"
    admin.delete_topics([TOPIC])[TOPIC].result(60)
    operated.until(lambda: "no leader" not in message(operated))


def leader_and_isr(admin: AdminClient) -> tuple[int, list[int]]:
    partition = metadata(admin, TOPIC).topics[TOPIC].partitions.get(0)
    return (partition.leader, sorted(partition.isrs)) if partition is not None else (-1, [])


def write(nodes: Nodes, value: bytes) -> None:
    """Produce a record, and have it acknowledged by all in-sync replicas."""
    producer = Producer({"bootstrap.servers": nodes.bootstrap, "acks": "all", **QUIET})
    producer.produce(TOPIC, value)
    assert producer.flush(60) == 0


def records(nodes: Nodes) -> list[bytes | None]:
    """The records of the topic."""
    consumer = Consumer(
        {"bootstrap.servers": nodes.bootstrap, "group.id": "g", "auto.offset.reset": "earliest", **QUIET}
    )
    of = TopicPartition(TOPIC, 0, 0)
    consumer.assign([of])
    _, end = consumer.get_watermark_offsets(of, timeout=60)
    found = [consumer.poll(60) for _ in range(end)]
    consumer.close()
    return [got.value() for got in found if got is not None and got.error() is None]


def is_led_by_one_that_lags(admin: AdminClient) -> bool:
    """Ask for an unclean election; whether there was one, as soon as the broker takes part again."""
    asked = TopicPartition(TOPIC, 0)
    return admin.elect_leaders(ElectionType.UNCLEAN, [asked]).result(60)[asked] is None


def test_the_last_copy_holds_the_gate_until_a_replica_that_lags_is_let_lead(
    operated: Operated, machines: Machines
) -> None:
    """Otherwise the empty replica would lead, and the other would truncate to it."""
    begun(operated, wanted(), pods=4)
    operated.until_ready(READY)
    nodes, admin = machines.nodes, AdminClient({"bootstrap.servers": machines.nodes.bootstrap, **QUIET})
    made = NewTopic(TOPIC, 1, replica_assignment=[[100, 101]], config={"min.insync.replicas": "1"})
    admin.create_topics([made])[TOPIC].result(60)
    operated.until(lambda: leader_and_isr(admin) == (100, [100, 101]))
    write(nodes, b"both")
    nodes.kill(101)
    operated.until(lambda: leader_and_isr(admin) == (100, [100]))
    write(nodes, b"one")
    nodes.kill(100)
    deleted = operated.kubernetes.api.call(
        "DELETE", place(operated, "pods", "pods-brokers-100-0"), {"gracePeriodSeconds": 0}
    )
    assert deleted.is_well
    nodes[101].launch()  # its container starts again, in the same pod
    operated.until(lambda: f"all records of {TOPIC}-0" in message(operated))
    assert operated.condition(*READY) == ("False", "VolumeRefused")
    assert gates(operated, 100) == ["kavka.dev/empty-volumes"]
    operated.until(lambda: is_led_by_one_that_lags(admin))
    operated.until(lambda: gates(operated, 100) == [])
    operated.until(lambda: leader_and_isr(admin)[1] == [100, 101])
    operated.until_ready(READY)
    assert records(nodes) == [b"both"], "what the lost replica alone had is gone, and nothing else"
