"""`kavka up` without a file: a broker for who has none yet, and for a test that wants one."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.operator.local.records import read_all
from tests.operator.local.support import Kavka, wait_until


def produce(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(topic, key=str(number), value=b"value")
    assert producer.flush(60) == 0


def up(kavka: Kavka, *words: str) -> dict[str, Any]:
    """`kavka up -d -o json`: what it says."""
    code, said = kavka.run("up", "-d", "-o", "json", *words)
    assert code == 0, said
    found: dict[str, Any] = json.loads(said)
    kavka.bootstrap = found["bootstrapServers"]
    return found


def test_a_broker_keeps_its_records_and_its_port_until_it_is_removed(kavka: Kavka) -> None:
    first = up(kavka, "--port", "0", "--name", "mine")
    produce(kavka.bootstrap, "flights")
    assert kavka.run("down")[0] == 0
    second = up(kavka, "--name", "mine")
    assert second == first
    assert len(read_all(kavka, "flights", 1)) == 10
    assert kavka.run("up", "--name", "mine", "--brokers", "3")[0] == 1
    code, said = kavka.run("down", "--volumes")
    assert (code, said) == (0, "kafkacluster.kavka.dev/mine stopped and removed\n")
    assert not Path(first["stateDirectory"]).exists()


def test_an_ephemeral_broker_says_where_it_is_on_one_line_and_goes_with_its_process(kavka: Kavka) -> None:
    command = kavka.command("up", "--ephemeral", "--port", "0", "-o", "json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        produce(found["bootstrapServers"], "flights")
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "")
    assert not Path(found["stateDirectory"]).exists()
    assert kavka.processes() == []


def test_three_brokers_replicate_by_themselves(kavka: Kavka) -> None:
    found = up(kavka, "--brokers", "3", "--port", "0", "--ephemeral")
    assert len(found["bootstrapServers"].split(",")) == len(found["metrics"]) == 3
    produce(kavka.bootstrap, "flights")
    code, said = kavka.run("export", "--bootstrap", kavka.bootstrap)
    assert (code, "replicationFactor: 3" in said) == (0, True), said
    kavka.run("down")
    wait_until(lambda: not Path(found["stateDirectory"]).exists(), "the cluster is removed")


def test_a_port_that_another_program_has_ends_the_command_at_once(kavka: Kavka) -> None:
    up(kavka, "--port", "0", "--name", "first")
    port = kavka.bootstrap.rpartition(":")[2]
    code, said = kavka.run("up", "--port", port, "--name", "second")
    assert (code, f"port {port} of 127.0.0.1 is in use by another program" in said) == (1, True), said
