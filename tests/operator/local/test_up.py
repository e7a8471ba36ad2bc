"""`kavka up` with a real broker: what it makes, what it says, what it survives, and that nothing stays behind."""

import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from tests.operator.local.records import Writer, read_all
from tests.operator.local.support import Kavka, wait_until

SEED = int(os.environ.get("KAVKA_TEST_SEED", "1"))
RANDOM_POINTS = 4


def test_up_makes_what_the_file_says_and_get_shows_it(kavka: Kavka) -> None:
    kavka.up()
    assert 'create topic "flights"' in kavka.said
    assert "set producer_byte_rate=1Mi for client-id=backfill" in kavka.said
    assert kavka.bootstrap in kavka.said
    assert str(kavka.cluster) in kavka.said
    code, table = kavka.run_as_process("get")
    rows = [line.split() for line in table.splitlines() if line]
    assert code == 0
    assert rows[0] == ["NAME", "BROKERS", "ANSWERING", "BOOTSTRAP", "READY", "REASON", "ROLL", "AGE"]
    assert rows[1][:6] == ["quickstart", "1", "1", kavka.bootstrap, "True", "Ready"]
    assert rows[2] == ["NODE", "RACK", "STATE", "LEADERS", "UNDER-REPLICATED", "CONTROLLER", "RESTARTS", "ADDRESS"]
    assert rows[3] == ["0", "Running", "2", "0", "active", "0", kavka.bootstrap]
    assert rows[5][:6] == ["flights", "quickstart", "2", "1", "True", "Ready"]
    assert rows[7][:7] == ["backfill", "quickstart", "client-id=backfill", "7", "1Mi", "True", "Ready"]
    assert kavka.run("get", "kvt", "-o", "name") == (0, "topic.kavka.dev/flights\n")
    explained = kavka.run("explain", "quota", "--client-id", "backfill")[1]
    assert "producer_byte_rate 1Mi: level 7, client id" in explained
    assert kavka.run("describe", "kvq", "backfill")[1].count("in force on every broker") == 1


def test_resources_change_while_it_runs(kavka: Kavka) -> None:
    kavka.up()
    file = kavka.file(
        more="---\napiVersion: kavka.dev/v1alpha1\nkind: Topic\nmetadata: {name: more}\n"
        "spec: {clusterRef: {name: quickstart}}\n"
    )
    file.write_text(file.read_text().replace("partitions: 2", "partitions: 5").replace("1Mi", "3Mi"))
    code, said = kavka.run("apply", "-f", str(file))
    assert (code, said.splitlines()) == (
        0,
        [
            "kafkacluster.kavka.dev/quickstart unchanged",
            "topic.kavka.dev/flights configured",
            "topic.kavka.dev/more created",
            "clientquota.kavka.dev/backfill configured",
        ],
    )
    assert kavka.run("get", "kvt")[1].splitlines()[1].split()[2] == "5"
    assert "producer_byte_rate 3Mi" in kavka.run("explain", "quota", "--client-id", "backfill")[1]
    assert kavka.run("delete", "kvq", "backfill") == (0, "clientquota.kavka.dev/backfill deleted\n")
    assert "nothing limits this client" in kavka.run("explain", "quota", "--client-id", "backfill")[1]


def test_a_bad_file_applies_nothing(kavka: Kavka) -> None:
    kavka.up()
    before = kavka.everything()
    file = kavka.file(
        more="---\napiVersion: kavka.dev/v1alpha1\nkind: Topic\nmetadata: {name: more}\n"
        "spec: {clusterRef: {name: nowhere}}\n"
    )
    file.write_text(file.read_text().replace("1Mi", "9Mi"))
    code, said = kavka.run("apply", "-f", str(file))
    assert code == 1
    assert said == (
        f'error: {file}:34: Topic "more": spec.clusterRef.name: there is no KafkaCluster "nowhere" in namespace'
        ' "default"; add it to the file or name one that exists\nnothing was applied: 1 error\n'
    )
    assert kavka.everything() == before


def test_a_bad_file_starts_nothing(kavka: Kavka) -> None:
    file = kavka.file(config="{num.partitons: 3}")
    code, said = kavka.run("up", "-f", str(file))
    assert code == 1
    assert 'spec.config.num.partitons: is not a setting of a broker; did you mean "num.partitions"?' in said
    assert not kavka.state.exists()


def test_a_second_up_is_refused(kavka: Kavka) -> None:
    kavka.up()
    code, said = kavka.run("up", "-f", str(kavka.file()))
    assert code == 1
    assert said.startswith('error: KafkaCluster "quickstart" is running already')


def test_a_port_in_use_is_named(kavka: Kavka) -> None:
    with socket.create_server(("127.0.0.1", kavka.port)):
        code, said = kavka.run("up", "-f", str(kavka.file()))
    assert code == 1
    assert f"error: node 0: port {kavka.port} of 127.0.0.1 is in use by another program" in said
    assert kavka.processes() == []


def test_more_controllers_than_at_the_first_start_are_refused(kavka: Kavka) -> None:
    kavka.up()
    file = kavka.file(brokers=3)
    code, said = kavka.run("apply", "-f", str(file))
    assert (code, "the controllers are nodes 0 since the first start" in said) == (1, True)


def test_what_was_acknowledged_survives_kill_9_of_the_broker(kavka: Kavka) -> None:
    kavka.up()
    writer = Writer(kavka, "flights")
    writer.start()
    try:
        for round_number in (1, 2):
            writer.wait_for_more(200)
            os.kill(kavka.broker_pid, signal.SIGKILL)
            kavka.wait_for_answers(round_number + 1)
        writer.wait_for_more(200)
    finally:
        writer.halt.set()
        writer.join()
    stored = read_all(kavka, "flights", 2)
    assert len(stored) == len(set(stored)), "a record stands twice"
    assert set(writer.acknowledged) <= set(stored)
    assert "was killed by signal 9; starting it again" in kavka.said

    def rows() -> list[list[str]]:
        return [line.split() for line in kavka.run("get", "kvc")[1].splitlines()[1:] if line]

    wait_until(lambda: rows()[0][4:6] == ["True", "Ready"], "it is ready again")
    _, _, node = rows()
    assert (node[1], node[4], node[5]) == ("Running", "active", "2")


def test_records_and_identity_survive_a_stop(kavka: Kavka) -> None:
    first = kavka.up()
    producer = Producer({"bootstrap.servers": kavka.bootstrap})
    producer.produce("flights", b"kept")
    assert producer.flush(60) == 0
    identity = (kavka.cluster / "cluster-id").read_text()
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == 0
    assert kavka.processes() == []
    assert "Unknown" in kavka.run("get", "kvc")[1]
    kavka.output.unlink()
    kavka.up()
    assert read_all(kavka, "flights", 2) == [b"kept"]
    assert (kavka.cluster / "cluster-id").read_text() == identity
    assert "create topic" not in kavka.said


def test_a_log_directory_of_another_cluster_is_refused(kavka: Kavka) -> None:
    first = kavka.up()
    first.send_signal(signal.SIGINT)
    first.wait(60)
    meta = kavka.cluster / "data" / "node-0" / "data" / "meta.properties"
    mine = (kavka.cluster / "cluster-id").read_text().strip()
    meta.write_text(meta.read_text().replace(mine, "AAAAAAAAAAAAAAAAAAAAAA"))
    before = meta.read_bytes()
    code, said = kavka.run("up", "-f", str(kavka.file()))
    assert code == 1
    assert f"error: node 0: {meta.parent} belongs to cluster AAAAAAAAAAAAAAAAAAAAAA, and this is {mine}" in said
    assert meta.read_bytes() == before


def test_a_broker_that_cannot_start_is_given_up_with_its_reason(kavka: Kavka) -> None:
    first = kavka.up()
    first.send_signal(signal.SIGINT)
    first.wait(60)
    meta = kavka.cluster / "data" / "node-0" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("version=1", "version=9"))
    code, said = kavka.run("up", "-f", str(kavka.file()))
    assert code == 1
    assert "error: node 0: died 2 times in a row" in said
    assert kavka.processes() == []


def test_changed_settings_restart_the_node(kavka: Kavka) -> None:
    kavka.up()
    before = kavka.broker_pid
    code, said = kavka.run("apply", "-f", str(kavka.file(config="{num.partitions: 4}")))
    assert (code, said.splitlines()[0]) == (0, "kafkacluster.kavka.dev/quickstart configured")
    wait_until(lambda: kavka.broker_pid != before, "it has started again")
    assert "restart node 0: num.partitions has changed" in kavka.said
    code, said = kavka.run("apply", "-f", str(kavka.file(config="{node.id: 4}")))
    assert (code, "node.id follows from other fields" in said) == (1, True)


def test_detached_it_stays_until_down(kavka: Kavka) -> None:
    code, said = kavka.run("up", "-f", str(kavka.file()), "--detach")
    assert (code, "`kavka down` stops it" in said) == (0, True)
    assert len(kavka.processes()) == 2
    os.kill(kavka.broker_pid, signal.SIGKILL)
    log = kavka.cluster / "logs" / "up.log"
    wait_until(lambda: log.read_text().count("answers on") == 2, "the broker is back")
    code, said = kavka.run("down")
    assert (code, said.splitlines()[0]) == (0, "kafkacluster.kavka.dev/quickstart stopped")
    assert said.splitlines()[-1].split()[:2] == ["0", "Stopped"]
    assert kavka.processes() == []
    assert kavka.run("down") == (0, "kafkacluster.kavka.dev/quickstart is not running\n")


def test_kill_9_of_up_takes_the_broker_along(kavka: Kavka) -> None:
    process = kavka.up()
    assert [ready for _, ready in standings(kavka)] == ["True"] * 3
    process.kill()
    process.wait()
    wait_until(lambda: kavka.processes() == [], "the broker is gone too")
    assert standings(kavka) == [(kind, "Unknown") for kind in ("KafkaCluster", "Topic", "ClientQuota")]
    status = kavka.status()
    assert (status["readyBrokers"], [each["state"] for each in status["nodes"]]) == (0, ["Stopped"])
    assert "not running; start it with `kavka up`" in kavka.run("get", "kvc", "-o", "wide")[1]
    assert 'KafkaCluster "quickstart" is not running' in kavka.run("describe", "kvt", "flights")[1]
    kavka.output.unlink()
    kavka.up()


def standings(kavka: Kavka) -> list[tuple[str, str]]:
    """What `kavka get` says of whether each resource is ready."""
    items = json.loads(kavka.run("get", "all", "-o", "json")[1])["items"]
    return [(each["kind"], each["status"]["conditions"][0]["status"]) for each in items]


POINTS: dict[str, Callable[[Kavka], bool]] = {
    "at once": lambda _: True,
    "the state directory is there": lambda kavka: kavka.cluster.exists(),
    "the settings are written": lambda kavka: (kavka.cluster / "config" / "node-0.properties").exists(),
    "the node is formatted": lambda kavka: any(kavka.cluster.glob("data/node-0/*/meta.properties")),
    "the broker is started": lambda kavka: (kavka.cluster / "node-0.pid").exists(),
    "the broker answers": lambda kavka: "answers on" in kavka.said,
    "the first topic is made": lambda kavka: "create topic" in kavka.said,
    "it is ready": lambda kavka: "ready;" in kavka.said,
}


@pytest.mark.parametrize("point", POINTS)
def test_ctrl_c_leaves_no_process(kavka: Kavka, point: str) -> None:
    process = kavka.start("up", "-f", str(kavka.file()))
    wait_until(lambda: POINTS[point](kavka) or process.poll() is not None, point)
    ctrl_c_and_nothing_is_left(kavka, process)


@pytest.mark.parametrize("number", range(RANDOM_POINTS))
def test_ctrl_c_at_any_moment_leaves_no_process(kavka: Kavka, number: int) -> None:
    process = kavka.start("up", "-f", str(kavka.file()))
    time.sleep(random.Random(f"{SEED} {number}").uniform(0.0, 3.0))
    ctrl_c_and_nothing_is_left(kavka, process)


def ctrl_c_and_nothing_is_left(kavka: Kavka, process: object) -> None:
    process.send_signal(signal.SIGINT)  # type: ignore[attr-defined]
    process.wait(60)  # type: ignore[attr-defined]
    # What was just being started ends with `up`, though perhaps a moment later: the kernel tells it.
    wait_until(lambda: kavka.processes() == [], f"no process is left: {kavka.processes()}")
    # Python itself complains when it is interrupted while it loads; nothing of ours does.
    assert "Traceback" not in kavka.said or "KeyboardInterrupt" in kavka.said


TWO = """\
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {{name: {name}}}
spec: {{clusterRef: {{name: quickstart}}, topicName: shared, deletionPolicy: {policy}}}
"""


def test_deleting_one_of_two_resources_of_a_topic_leaves_it_to_the_other(kavka: Kavka) -> None:
    kavka.up()
    for name, policy in (("first", "Delete"), ("second", "Retain")):
        path = kavka.directory / f"{name}.yaml"
        path.write_text(TWO.format(name=name, policy=policy))
        code, said = kavka.run("apply", "-f", str(path))
        assert (code, "Conflict" in said) == ((0, False) if name == "first" else (1, True)), said
        time.sleep(1.0)  # a creation time has seconds: the first is to be the older
    producer = Producer({"bootstrap.servers": kavka.bootstrap})
    producer.produce("shared", b"kept")
    assert producer.flush(60) == 0
    code, said = kavka.run("delete", "kvt", "first")
    assert (code, 'topic "shared" itself stays: Topic "second" declares it too' in said) == (0, True), said
    assert read_all(kavka, "shared", 1) == [b"kept"]
    assert kavka.run("get", "kvt", "second")[1].splitlines()[1].split()[4:6] == ["True", "Ready"]
    assert "delete topic" not in kavka.said


RESOURCE = """\
apiVersion: kavka.dev/v1alpha1
kind: {kind}
metadata: {{name: {name}}}
spec: {{clusterRef: {{name: quickstart}}, {spec}}}
"""


def many(partitions_of_one: int, count: int = 40) -> str:
    """Topics and quotas, one of the topics with a number of partitions of its own."""
    partitions = [partitions_of_one if number == 7 else 1 for number in range(count)]
    topics = [RESOURCE.format(kind="Topic", name=f"t{n}", spec=f"partitions: {partitions[n]}") for n in range(count)]
    limits = "entity: {{user: {{name: u{}}}}}, limits: {{producerByteRate: 5}}"
    quotas = [RESOURCE.format(kind="ClientQuota", name=f"q{n}", spec=limits.format(n)) for n in range(count)]
    return "---\n".join([*topics, *quotas])


def test_many_resources_are_made_together_and_one_that_is_refused_is_named(kavka: Kavka) -> None:
    kavka.up()
    path = kavka.directory / "many.yaml"
    path.write_text(many(100_000))
    code, said = kavka.run("apply", "-f", str(path))
    errors = [line for line in said.splitlines() if line.startswith("error")]
    assert (code, len(errors)) == (1, 1), said
    assert errors[0].startswith('error: Topic "t7": Rejected: could not create topic "t7"')
    path.write_text(many(2))
    code, said = kavka.run("apply", "-f", str(path))
    assert code == 0, said
    items = json.loads(kavka.run("get", "all", "-o", "json")[1])["items"]
    assert {each["status"]["conditions"][0]["status"] for each in items} == {"True"}
    assert len(items) == 83
