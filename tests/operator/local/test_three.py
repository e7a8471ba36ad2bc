"""Three brokers in three racks: what is shown of them, and what clients notice when one dies or all are restarted."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import PartitionMetadata

from kavka_operator.platform.local.node_processes import STOP_SECONDS_MAX
from tests.operator.local.records import Writer, read_all
from tests.operator.local.support import Kavka, wait_until

NODES = (0, 1, 2)
PARTITIONS = 6


def three(kavka: Kavka, config: str = "{}") -> Path:
    return kavka.file(brokers=3, replicas=3, config=config)


@pytest.fixture
def cluster(kavka: Kavka) -> Kavka:
    kavka.up(three(kavka))
    return kavka


@contextmanager
def writing(kavka: Kavka, count: int = PARTITIONS) -> Iterator[Writer]:
    """Somebody produces meanwhile; at the end, all that was acknowledged is there, and nothing twice."""
    writer = Writer(kavka, "flights")
    writer.start()
    try:
        writer.wait_for_more(200)
        yield writer
        writer.wait_for_more(200)
    finally:
        writer.halt.set()
        writer.join()
    stored = read_all(kavka, "flights", count)
    assert len(stored) == len(set(stored)), "a record stands twice"
    assert set(writer.acknowledged) <= set(stored), "an acknowledged record is lost"


def partitions(kavka: Kavka) -> dict[int, tuple[int, list[int], list[int]]]:
    """Leader, replicas and in-sync replicas of each partition of the topic."""
    consumer = Consumer({"bootstrap.servers": ",".join(kavka.addresses()), "group.id": "looker"})
    found: dict[int, PartitionMetadata] = {}

    def are_known() -> bool:
        found.update(consumer.list_topics("flights", timeout=60).topics["flights"].partitions)
        return bool(found)

    try:
        wait_until(are_known, "the broker that is asked knows the topic")  # one that has just come up need not
        return {number: (each.leader, list(each.replicas), sorted(each.isrs)) for number, each in found.items()}
    finally:
        consumer.close()


def active_controller(kavka: Kavka) -> int:
    """The node that decides; -1 where there is none for a moment."""
    return int(kavka.status().get("activeController", -1))


def until_somebody(find: Callable[[], int]) -> int:
    """Wait until a node leads, and answer which."""
    found: list[int] = []

    def leads() -> bool:
        found.append(find())
        return found[-1] >= 0

    wait_until(leads, "somebody leads")
    return found[-1]


def are_restarted(kavka: Kavka, before: dict[int, int]) -> bool:
    return all(kavka.pid(node) != pid for node, pid in before.items())


def is_as_it_should_be(kavka: Kavka) -> bool:
    """Every replica in sync, every partition led by the replica that stands first."""
    return all(isr == [0, 1, 2] and leader == replicas[0] for leader, replicas, isr in partitions(kavka).values())


def test_get_has_a_line_for_each_node(cluster: Kavka) -> None:
    rows = [line.split() for line in cluster.run("get")[1].splitlines() if line]
    assert rows[1][:3] == ["quickstart", "3", "3"]
    nodes = rows[3:6]
    assert [row[:3] for row in nodes] == [[str(n), f"rack-{n}", "Running"] for n in NODES]
    assert [row[3:5] for row in nodes] == [["2", "0"]] * 3, "two leaders each, nothing under-replicated"
    assert sorted(row[5] for row in nodes)[-2:] == ["voter", "voter"]
    assert until_somebody(lambda: active_controller(cluster)) in NODES
    assert [row[7] for row in nodes] == cluster.addresses()
    assert rows[7][:6] == ["flights", "quickstart", "6", "3", "True", "Ready"]
    described = cluster.run("describe", "kvc", "quickstart")[1]
    assert "3 nodes run" in described
    assert is_as_it_should_be(cluster)


def test_what_was_acknowledged_survives_kill_9_of_a_leader(cluster: Kavka) -> None:
    with writing(cluster):
        finders: tuple[Callable[[], int], ...] = (lambda: partitions(cluster)[0][0], lambda: active_controller(cluster))
        for find in finders:
            node = until_somebody(find)
            before = cluster.pid(node)
            os.kill(before, signal.SIGKILL)
            wait_until(lambda: cluster.pid(node) != before, "it is started again")  # noqa: B023 - awaited at once
            wait_until(lambda: all(isr == [0, 1, 2] for _, _, isr in partitions(cluster).values()), "all are in sync")
    assert cluster.said.count("was killed by signal 9; starting it again") == 2


def test_a_setting_that_needs_a_restart_rolls_all_brokers_and_clients_notice_nothing(cluster: Kavka) -> None:
    before = {node: cluster.pid(node) for node in NODES}
    with writing(cluster):
        code, said = cluster.run("apply", "-f", str(three(cluster, "{queued.max.requests: 400}")))
        assert (code, "restart node" in said) == (0, True), said
        wait_until(lambda: are_restarted(cluster, before), "all were restarted")
        wait_until(lambda: "rollout" not in cluster.status(), "the roll is over")
    restarted = [line.split()[2] for line in cluster.said.splitlines() if line.startswith("restart node")]
    assert sorted(restarted) == ["0:", "1:", "2:"], "each once"
    wait_until(lambda: is_as_it_should_be(cluster), "all in sync, and led as they should be")
    assert [each["restarts"] for each in cluster.status()["nodes"]] == [0, 0, 0], "none of them died"


def test_a_dynamic_setting_restarts_no_broker(cluster: Kavka) -> None:
    before = {node: cluster.pid(node) for node in NODES}
    code, said = cluster.run("apply", "-f", str(three(cluster, "{log.retention.ms: 123456789}")))
    assert code == 0, said
    wait_until(lambda: "set log.retention.ms=123456789 on all brokers, without a restart" in cluster.said, "it is set")
    wait_until(lambda: cluster.status().get("managedConfig") == ["log.retention.ms"], "it is known as ours")
    assert cluster.run("apply", "-f", str(three(cluster)))[0] == 0
    wait_until(lambda: "set log.retention.ms to its default on all brokers" in cluster.said, "it is given back")
    assert {node: cluster.pid(node) for node in NODES} == before


def test_a_roll_stops_at_the_first_broker_that_does_not_come_back(cluster: Kavka) -> None:
    before = {node: cluster.pid(node) for node in NODES}
    with writing(cluster):
        code, said = cluster.run("apply", "-f", str(three(cluster, "{queued.max.request.bytes: 5}")))
        assert (code, "did not come back" in said) == (1, True), said
        assert sum(cluster.pid(node) != before[node] for node in NODES) == 1, "the others keep their settings"
        code, said = cluster.run("apply", "-f", str(three(cluster)))
        assert code == 0, said
    wait_until(lambda: is_as_it_should_be(cluster), "all is well again")


def test_a_roll_can_be_held(cluster: Kavka) -> None:
    before = {node: cluster.pid(node) for node in NODES}
    file = three(cluster, "{queued.max.requests: 400}")
    text = file.read_text()
    file.write_text(text.replace("  metrics:", "  rollout: {approval: Manual}\n  metrics:", 1))
    code, said = cluster.run("apply", "-f", str(file))
    assert (code, "wait for the annotation" in said or "for the annotation" in said) == (0, True), said
    assert {node: cluster.pid(node) for node in NODES} == before
    plan = cluster.status()["rollout"]["plan"]
    note = f"  name: quickstart\n  annotations: {{kavka.dev/approve-rollout: {plan}}}\n"
    file.write_text(file.read_text().replace("  name: quickstart\n", note, 1))
    assert cluster.run("apply", "-f", str(file))[0] == 0
    wait_until(lambda: are_restarted(cluster, before), "all were restarted")
    wait_until(lambda: "rollout" not in cluster.status(), "the roll is over")


def test_the_number_of_replicas_can_be_changed_under_load(kavka: Kavka) -> None:
    kavka.up(kavka.file(brokers=3, replicas=1))
    assert all(len(replicas) == 1 for _, replicas, _ in partitions(kavka).values())
    with writing(kavka):
        assert kavka.run("apply", "-f", str(three(kavka)))[0] == 0
        wait_until(lambda: is_as_it_should_be(kavka), "three replicas each, all in sync")
    assert kavka.run("apply", "-f", str(kavka.file(brokers=3, replicas=4)))[0] == 1
    assert kavka.run("get", "kvt")[1].splitlines()[1].split()[4:6] == ["False", "Refused"]


def test_records_and_resources_are_there_again_after_a_stop(kavka: Kavka) -> None:
    process = kavka.up(three(kavka))
    with writing(kavka) as writer:
        writer.wait_for_more(200)
    before = sorted(read_all(kavka, "flights", PARTITIONS))
    identity, addresses = (kavka.cluster / "cluster-id").read_text(), kavka.addresses()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    kavka.output.unlink()
    kavka.up(three(kavka))
    assert sorted(read_all(kavka, "flights", PARTITIONS)) == before
    assert ((kavka.cluster / "cluster-id").read_text(), kavka.addresses()) == (identity, addresses)
    assert "create topic" not in kavka.said
    wait_until(lambda: all(isr == [0, 1, 2] for _, _, isr in partitions(kavka).values()), "all are in sync again")


def test_controllers_and_brokers_apart_are_rolled_and_grow(kavka: Kavka) -> None:
    controllers = "{name: controllers, replicas: 3, roles: [controller]}"
    pools = f"[{controllers}, {{name: brokers, replicas: 2, roles: [broker]}}]"
    kavka.up(kavka.file(pools=pools, replicas=2))
    assert kavka.addresses()[3] == kavka.bootstrap, "the first broker has the first port"
    nodes = (0, 1, 2, 100, 101)
    before = {node: kavka.pid(node) for node in nodes}
    code, said = kavka.run("apply", "-f", str(kavka.file(pools=pools, replicas=2, config="{queued.max.requests: 9}")))
    assert code == 0, said
    wait_until(lambda: are_restarted(kavka, before), "all were restarted")
    wait_until(lambda: "rollout" not in kavka.status(), "the roll is over")
    wider = f"[{controllers}, {{name: brokers, replicas: 3, roles: [broker]}}]"
    code, said = kavka.run("apply", "-f", str(kavka.file(pools=wider, replicas=3, config="{queued.max.requests: 9}")))
    assert code == 0, said
    wait_until(lambda: kavka.run("get", "kvt")[1].splitlines()[1].split()[3:5] == ["3", "True"], "three replicas")


def lone_and(more: int) -> str:
    """Pools: one node that is everything, and some brokers more."""
    return f"[{{name: nodes, replicas: 1}}, {{name: more, replicas: {more}, roles: [broker]}}]"


def test_a_broker_goes_when_its_replicas_have_moved(kavka: Kavka) -> None:
    def file(more: int) -> Path:
        path = kavka.file(pools=lone_and(more), config="{offsets.topic.replication.factor: 1}")
        path.write_text(path.read_text().replace("  partitions: 2", f"  partitions: {PARTITIONS}"))
        return path

    process = kavka.up(file(1))
    assert {node for _, replicas, _ in partitions(kavka).values() for node in replicas} == {0, 100}
    with writing(kavka):
        process.send_signal(signal.SIGINT)
        process.wait(60)
        kavka.output.unlink()
        kavka.start("up", "-f", str(file(0)))
        wait_until(lambda: kavka.said.count("answers on") == 2, "it is started again: no other has its replicas")
        wait_until(lambda: "stop node 100, which is no longer wanted and holds nothing" in kavka.said, "it goes")
    assert "move replicas of flights-" in kavka.said
    assert "away from node 100" in kavka.said
    order = ["give node 100 no new replicas", "move replicas", "let node 100 take new replicas again", "stop node 100,"]
    places = [kavka.said.rindex(words) if number else kavka.said.index(words) for number, words in enumerate(order)]
    assert places == sorted(places), "it is cordoned while it is emptied, and no longer than that"
    wait_until(lambda: [each["id"] for each in kavka.status()["nodes"]] == [0], "it is gone")
    assert {node for _, replicas, _ in partitions(kavka).values() for node in replicas} == {0}
    wait_until(lambda: kavka.run("get", "kvc")[1].splitlines()[1].split()[4:6] == ["True", "Ready"], "all is well")
    assert not (kavka.cluster / "node-100.pid").exists()


def test_a_broker_that_is_gone_with_the_only_replicas_is_told_until_it_is_back(kavka: Kavka) -> None:
    one_replica = "{offsets.topic.replication.factor: 1}"
    process = kavka.up(kavka.file(pools=lone_and(1), config=one_replica, brokers=2))
    with writing(kavka, count=4):
        pass
    before = sorted(read_all(kavka, "flights", 4))
    process.send_signal(signal.SIGINT)
    process.wait(60)
    kept = {
        kavka.cluster / "data" / "node-100": kavka.directory / "disk",
        kavka.cluster / "config" / "node-100.properties": kavka.directory / "properties",
    }
    for place, aside in kept.items():
        place.rename(aside)
    kavka.start("up", "-f", str(kavka.file(pools=lone_and(0), config=one_replica, brokers=2)))
    wait_until(lambda: "ShrinkRefused" in condition(kavka), "it is told")
    assert "nobody has it in sync but node 100, which is away; want it again" in condition(kavka)
    for place, aside in kept.items():
        aside.rename(place)
    wait_until(lambda: "stop node 100, which is no longer wanted and holds nothing" in kavka.said, "it is emptied")
    wait_until(lambda: [each["id"] for each in kavka.status()["nodes"]] == [0], "it is gone")
    assert sorted(read_all(kavka, "flights", 4)) == before


def condition(kavka: Kavka) -> str:
    """Reason and message of Ready."""
    found = next(each for each in kavka.status()["conditions"] if each["type"] == "Ready")
    return f"{found['reason']}: {found['message']}"


def test_a_broker_stays_while_too_few_others_do(kavka: Kavka) -> None:
    kavka.up(kavka.file(pools=lone_and(1), replicas=2))
    code, said = kavka.run("apply", "-f", str(kavka.file(pools=lone_and(0), replicas=2)))
    assert (code, "more replicas than brokers that stay and serve (1); want node 100 again" in said) == (1, True), said
    status = kavka.status()
    assert [each["id"] for each in status["nodes"]] == [0, 100], "it is shown for as long as it runs"
    assert status["bootstrapServers"] == ",".join(kavka.addresses())


@pytest.mark.parametrize("moment", ["forming", "whole", "rolling"])
def test_ctrl_c_leaves_no_process(kavka: Kavka, moment: str) -> None:
    process = kavka.start("up", "-f", str(three(kavka)))
    wait_until(lambda: len(list(kavka.cluster.glob("node-*.pid"))) == 3, "three are started")
    if moment != "forming":
        wait_until(lambda: "ready;" in kavka.said, "it is ready")
    if moment == "rolling":
        kavka.start("apply", "-f", str(three(kavka, "{queued.max.requests: 400}")))
        wait_until(lambda: "restart node" in kavka.said, "a node is on its way down")
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    process.wait(60)
    assert time.monotonic() - began < STOP_SECONDS_MAX - 1, "no node had to be killed"
    wait_until(lambda: not [each for each in kavka.processes() if "apply" not in each], "no process is left")
