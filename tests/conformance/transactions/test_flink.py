"""Flink's KafkaSink with EXACTLY_ONCE, whose job fails once while each broker is killed: each number comes once."""

import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.nodes import Nodes, cluster
from tests.support.reading import read_committed
from tests.support.topics import create_topic, metadata
from tools.kafka_jars import flink_class_path
from tools.kafka_jvm import java

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

TOPIC: Final = "numbers"
A_SECOND: Final = 100
FAILS_AT: Final = 300
COMPILE_SECONDS_MAX: Final = 180
PROGRAM: Final = Path(__file__).with_name("FlinkSink.java")


def test_each_number_comes_once(tmp_path: Path) -> None:
    with cluster(tmp_path) as nodes:
        create_topic(nodes, TOPIC, 1, 3)
        path, log_path = f"{flink_class_path()}:{compiled(tmp_path)}", tmp_path / "flink.log"
        command = [*java("384M"), "-cp", path, PROGRAM.stem, nodes.bootstrap, TOPIC, str(A_SECOND), str(FAILS_AT)]
        with log_path.open("wb") as log:
            job = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
        try:
            for victim in nodes.broker_ids:
                wait_for_more(nodes)
                nodes.kill(victim)
                wait_for_more(nodes)
                nodes.start(victim)
                nodes.wait("every replica is in sync", lambda: in_sync(nodes))
            nodes.wait("the job has failed and gone on", lambda: len(numbers(nodes)) > FAILS_AT)
            assert job.poll() is None, log_path.read_text()[-4_000:]
        finally:
            job.kill()
            job.wait()
        assert "failed" in log_path.read_text().splitlines()
        found = numbers(nodes)
        assert Counter(found) == Counter(range(len(found)))


def wait_for_more(nodes: Nodes) -> None:
    before = len(numbers(nodes))
    nodes.wait("transactions are committed", lambda: len(numbers(nodes)) > before)


def compiled(directory: Path) -> Path:
    """Compile the job: Flink's own class loader finds only classes that are files."""
    path = directory / "classes"
    line = ["javac", "-nowarn", "-d", str(path), "-cp", flink_class_path(), str(PROGRAM)]
    subprocess.run(line, check=True, timeout=COMPILE_SECONDS_MAX)
    return path


def in_sync(nodes: Nodes) -> bool:
    (partition,) = (
        metadata(AdminClient({"bootstrap.servers": nodes.bootstrap}), TOPIC).topics[TOPIC].partitions.values()
    )
    return len(partition.isrs) == len(partition.replicas)


def numbers(nodes: Nodes) -> list[int]:
    return [int(message.value() or b"") for message in read_committed(nodes, TOPIC, 0)]
