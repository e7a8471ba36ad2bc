"""The fixtures of `kavka[test]`, as a project uses them that has nothing of ours but the installation."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
from confluent_kafka import Producer


def produce(kafka, topic, **more):
    producer = Producer({"bootstrap.servers": str(kafka), **more})
    for number in range(200):
        producer.produce(topic, key=str(number), value=bytes(10_000))
    assert producer.flush(60) == 0


def test_a_topic_of_its_own(kafka):
    first, second = kafka.topic(partitions=2, retention_ms=60_000), kafka.topic()
    assert first != second
    produce(kafka, first)
    assert len(kafka.metrics) == 1


def test_a_client_is_throttled(kafka):
    throttled = []
    kafka.throttle("slow", produce="100Ki")
    produce(kafka, kafka.topic(), **{"client.id": "slow", "throttle_cb": throttled.append})
    assert throttled


def test_a_leader_dies_and_another_hangs(kafka_cluster):
    topic = kafka_cluster.topic()
    killed = kafka_cluster.kill(leader_of=topic)
    produce(kafka_cluster, topic)
    assert kafka_cluster.leader(topic) != killed
    paused = kafka_cluster.pause(leader_of=(topic, 0))
    produce(kafka_cluster, topic)
    kafka_cluster.resume(paused)


def test_brokers_are_restarted_one_by_one(kafka_cluster):
    topic = kafka_cluster.topic()
    kafka_cluster.restart()
    produce(kafka_cluster, topic)
    assert kafka_cluster.log.count("restart node") >= 3
"""


def test_a_project_uses_the_fixtures_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(TESTS)
    base = tmp_path / "base"
    words = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-W", "error", f"--basetemp={base}", str(tmp_path))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout
    assert [path for path in base.rglob("*.log") if path.suffix == ".log" and path.name != "up.log"] == []
