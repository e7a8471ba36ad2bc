"""The fixtures of `kavka[test]`, as a project uses them that has nothing of ours but the installation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRODUCE = """
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition


def produce(kafka, topic, **more):
    producer = Producer({"bootstrap.servers": str(kafka), **more})
    for number in range(200):
        producer.produce(topic, key=str(number), value=bytes(10_000))
    assert producer.flush(60) == 0


def end(kafka, topic):
    consumer = Consumer({"bootstrap.servers": str(kafka), "group.id": "reader"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 60)
    consumer.close()
    return end

"""

IN_PROCESS = """
def test_a_topic_of_its_own(kafka):
    first, second = kafka.topic(partitions=2, retention_ms=60_000), kafka.topic()
    assert first != second
    produce(kafka, first)
    assert len(kafka.metrics) == 1


def refused(kafka, topic):
    errors = []
    more = {"message.send.max.retries": 0, "enable.idempotence": False}
    producer = Producer({"bootstrap.servers": str(kafka), **more})
    producer.produce(topic, b"too much", on_delivery=lambda error, _: errors.append(error and error.name()))
    assert producer.flush(60) == 0
    return errors


def test_the_disk_is_full_for_a_while(kafka):
    topic = kafka.topic()
    produce(kafka, topic)
    full = kafka.fill_disk(leader_of=topic)
    assert refused(kafka, topic) == ["KAFKA_STORAGE_ERROR"]
    assert end(kafka, topic) == 200
    kafka.mend(full)
    produce(kafka, topic)
    kafka.fill_disk(full)


def test_the_disk_has_room_again(kafka):
    produce(kafka, kafka.topic())


def test_a_client_is_throttled(kafka):
    throttled = []
    kafka.throttle("slow", produce="100Ki")
    produce(kafka, kafka.topic(), **{"client.id": "slow", "throttle_cb": throttled.append})
    assert throttled
"""

PROCESSES = """
def test_the_only_broker_is_killed(kafka_process):
    topic = kafka_process.topic()
    assert kafka_process.kill(leader_of=topic) == kafka_process.leader(topic)
    kafka_process.faults.drop("Produce", times=2)
    produce(kafka_process, topic)
    assert len(kafka_process.faults.played) == 2
    full = kafka_process.fill_disk(leader_of=topic)
    assert kafka_process.leader(topic) == full


def test_a_leader_dies_and_another_hangs(kafka_cluster):
    topic = kafka_cluster.topic()
    killed = kafka_cluster.kill(leader_of=topic)
    produce(kafka_cluster, topic)
    assert kafka_cluster.leader(topic) != killed
    paused = kafka_cluster.pause(leader_of=(topic, 0))
    produce(kafka_cluster, topic)
    kafka_cluster.resume(paused)


def test_faults_are_played_by_every_broker(kafka_cluster):
    topic = kafka_cluster.topic(partitions=6)
    kafka_cluster.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", times=6)
    produce(kafka_cluster, topic)
    assert len(kafka_cluster.faults.played) == 6


def test_another_leads_where_a_disk_is_full(kafka_cluster):
    topic = kafka_cluster.topic()
    produce(kafka_cluster, topic)
    full = kafka_cluster.fill_disk(leader_of=topic)
    produce(kafka_cluster, topic)  # connected to the full broker alone, which cannot note who leads now
    assert kafka_cluster.leader(topic) != full
    kafka_cluster.mend(full)
    assert end(kafka_cluster, topic) == 400


def test_another_leads_where_a_broker_is_isolated(kafka_cluster):
    topic = kafka_cluster.topic()
    isolated = kafka_cluster.isolate(leader_of=topic)
    kafka_cluster.cut(isolated)  # clients too: the network of a whole machine
    produce(kafka_cluster, topic)
    assert kafka_cluster.leader(topic) != isolated
    kafka_cluster.mend(isolated)
    kafka_cluster.kill(leader_of=topic)
    produce(kafka_cluster, topic)
    assert end(kafka_cluster, topic) == 400


def test_brokers_are_restarted_one_by_one(kafka_cluster):
    topic = kafka_cluster.topic()
    kafka_cluster.restart()
    produce(kafka_cluster, topic)
    assert kafka_cluster.log.count("restart node") >= 3
"""

PLANS = """
@pytest.fixture(scope="session")
def kafka_config():
    return {"num.partitions": "2"}


def test_settings_of_the_project(kafka):
    produce(kafka, "made-on-first-use")
    assert kafka.leader("made-on-first-use", 1) == 1


def test_a_fault_that_is_not_reached(kafka):
    kafka.faults.answer("Produce", error="NOT_LEADER_OR_FOLLOWER", nth=1_000)
    produce(kafka, kafka.topic())


def test_no_fault_is_left_of_the_test_before(kafka):
    assert kafka.faults.unplayed == []
    produce(kafka, kafka.topic())


def test_a_failure_of_its_own_is_what_is_said(kafka):
    kafka.faults.drop("Fetch")
    assert False, "of its own"


@pytest.fixture
def silent(kafka):
    kafka.faults.black_hole(client_id="silent")
    producer = Producer({"bootstrap.servers": str(kafka), "client.id": "silent"})
    producer.produce(kafka.topic(), b"late")
    yield producer
    assert producer.flush(60) == 0, "the fault ends before the fixtures of its test"


def test_a_black_hole_ends_with_its_test(silent, kafka):
    assert silent.flush(1) == 1
    assert len(kafka.faults.played) > 0


def test_a_process_is_wanted(kafka):
    kafka.kill(1)
"""


def run(directory: Path, tests: str, *words: str) -> tuple[int, str]:
    """Run tests in a project of their own: pytest's exit status and what it says."""
    (directory / "test_orders.py").write_text(PRODUCE + tests)
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-W", "error", f"--basetemp={directory / 'base'}")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *words, str(directory)],
        cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    logs = {path.name for path in (directory / "base").rglob("*.log")}
    assert logs <= {"up.log", "broker.log"}, "records are removed"
    return ran.returncode, ran.stdout + ran.stderr


def test_a_project_uses_a_broker_in_its_process(tmp_path: Path) -> None:
    code, said = run(tmp_path, IN_PROCESS)
    assert (code, "4 passed" in said) == (0, True), said


def test_a_project_kills_and_restarts_brokers(tmp_path: Path) -> None:
    code, said = run(tmp_path, PROCESSES)
    assert (code, "6 passed" in said) == (0, True), said


def test_a_project_plays_faults(tmp_path: Path) -> None:
    code, said = run(tmp_path, PLANS)
    assert "3 failed, 3 passed" in said, said
    assert "the fault plan was not played: answer NOT_LEADER_OR_FOLLOWER for Produce, number 1000: " in said
    assert "AssertionError: of its own" in said
    assert "drop after the work for Fetch" not in said
    assert "ask for the fixture kafka_process (one broker)" in said
    assert code == 1


def test_workers_of_xdist_have_brokers_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is in requirements/lock.txt, and not installed here")
    tests = IN_PROCESS + "".join(
        f"\n\ndef test_number_{number}(kafka):\n    assert kafka.topic('orders-{number}') == 'orders-{number}'\n"
        f"    produce(kafka, 'orders-{number}')\n    print('at', kafka)\n"
        for number in range(4)
    )
    code, said = run(tmp_path, tests, "-n", "2", "-rP", "--dist", "load")
    assert (code, "8 passed" in said) == (0, True), said
    assert len({line for line in said.splitlines() if line.startswith("at 127.0.0.1:")}) == 2
