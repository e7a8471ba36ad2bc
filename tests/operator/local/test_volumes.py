"""Volumes of nodes that run: none is taken away, renamed or begun again while it holds anything."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import yaml
from confluent_kafka import Producer

from kavka_operator.platform.local.files import write_whole
from tests.operator.local.records import read_all
from tests.operator.local.support import Kavka, wait_until

RECORDS = 200
FILL_PERCENT_MAX = 8
"""What other programs may write meanwhile, and what only root may use of a file system."""


def file(kavka: Kavka, *volumes: str, partitions: int = 4, brokers: int = 1, annotation: str = "") -> Path:
    listed = ", ".join(f"{{name: {name}}}" for name in volumes)
    pools = f"[{{name: nodes, replicas: {brokers}, storage: {{volumes: [{listed}]}}}}]"
    path = kavka.file(pools=pools, replicas=brokers)
    text = path.read_text().replace("partitions: 2", f"partitions: {partitions}")
    if annotation:
        text = text.replace("  name: quickstart\n", f"  name: quickstart\n  annotations: {{{annotation}}}\n", 1)
    path.write_text(text)
    return path


def fill(kavka: Kavka, partitions: int = 4) -> list[bytes]:
    producer = Producer({"bootstrap.servers": kavka.bootstrap, "acks": "all"})
    values = [b"%d" % number for number in range(RECORDS)]
    for number, value in enumerate(values):
        producer.produce("flights", value, partition=number % partitions)
    assert producer.flush(60) == 0
    return sorted(values)


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    process.wait(60)


def reason(kavka: Kavka) -> str:
    (ready,) = [each for each in kavka.status()["conditions"] if each["type"] == "Ready"]
    return str(ready["reason"])


def test_a_volume_that_holds_replicas_is_neither_removed_nor_renamed(kavka: Kavka) -> None:
    kavka.up(file(kavka, "data", "data2"))
    values, pid = fill(kavka), kavka.broker_pid
    code, said = kavka.run("apply", "-f", str(file(kavka, "data")))
    assert code == 1
    assert 'spec.nodePools: volume "data2" of node 0 holds 2 replicas (flights-1, flights-3); put it back' in said
    code, said = kavka.run("apply", "-f", str(file(kavka, "logs", "data2")))
    assert (code, 'volume "data" of node 0 holds the metadata log, which stays where it is' in said) == (1, True), said
    assert kavka.broker_pid == pid
    assert sorted(read_all(kavka, "flights", 4)) == values


def test_a_resource_that_lost_a_volume_without_being_asked_starts_nothing_without_it(kavka: Kavka) -> None:
    """As an earlier version, or a hand in the state directory, would leave it."""
    process = kavka.up(file(kavka, "data", "data2"))
    values = fill(kavka)
    kept = kavka.cluster / "resources" / "kafkacluster.quickstart.yaml"
    value = yaml.safe_load(kept.read_text())
    del value["spec"]["nodePools"][0]["storage"]["volumes"][1]
    write_whole(kept, yaml.safe_dump(value))
    wait_until(lambda: reason(kavka) == "VolumeRefused", "the cluster is refused")
    os.kill(kavka.broker_pid, signal.SIGKILL)
    kavka.wait_for_answers(2)
    assert sorted(read_all(kavka, "flights", 4)) == values, "it came back with the volumes that it had"
    stop(process)
    code, said = kavka.run("up", "-f", str(file(kavka, "data")))
    assert (code, 'volume "data2" of node 0 holds' in said) == (1, True), said


def test_how_full_volumes_are_is_told_as_the_broker_tells_it(kavka: Kavka) -> None:
    kavka.up(file(kavka, "data", "data2"))

    def volumes() -> list[dict[str, object]]:
        found: list[dict[str, object]] = kavka.status()["nodes"][0].get("volumes", [])
        return found

    wait_until(lambda: [found["name"] for found in volumes()] == ["data", "data2"], "both volumes are told")
    there = shutil.disk_usage(kavka.cluster)
    for found in volumes():
        assert found["size"] == there.total
        assert (
            abs(int(str(found["used"]).rstrip("%")) - 100 * (there.total - there.free) / there.total) < FILL_PERCENT_MAX
        )


def test_an_empty_volume_may_go(kavka: Kavka) -> None:
    kavka.up(file(kavka, "data", "data2", partitions=1))
    values, pid = fill(kavka, 1), kavka.broker_pid
    wait_until(lambda: kavka.status().get("emptyVolumes") == ["nodes/data2"], "it is known to be empty")
    code, said = kavka.run("apply", "-f", str(file(kavka, "data", partitions=1)))
    assert code == 0, said
    wait_until(lambda: kavka.broker_pid != pid and reason(kavka) == "Ready", "it has started again")
    assert "data2" not in (kavka.cluster / "config" / "node-0.properties").read_text()
    assert sorted(read_all(kavka, "flights", 1)) == values


def test_a_volume_that_has_vanished_is_formatted_again_only_when_it_is_given_up(kavka: Kavka) -> None:
    process = kavka.up(file(kavka, "data", "data2"))
    values = fill(kavka)
    stop(process)
    disk, aside = kavka.cluster / "data" / "node-0" / "data2", kavka.directory / "aside"
    disk.rename(aside)
    code, said = kavka.run("up", "-f", str(file(kavka, "data", "data2")))
    lost = next(line for line in said.splitlines() if line.startswith("error:"))
    assert (code, f'volume "data2" of node 0 has vanished from {disk}' in lost) == (1, True), said
    assert not disk.exists(), "nothing was begun in its place"
    shutil.copytree(aside, disk)
    kavka.output.unlink()
    process = kavka.up(file(kavka, "data", "data2"))
    assert sorted(read_all(kavka, "flights", 4)) == values
    stop(process)
    shutil.rmtree(disk)
    kavka.output.unlink()
    forget = lost.rpartition(" ")[2].replace("=", ": ")
    stop(kavka.up(file(kavka, "data", "data2", annotation=forget)))
    shutil.rmtree(disk)
    code, said = kavka.run("up", "-f", str(file(kavka, "data", "data2", annotation=forget)))
    assert (code, "has vanished" in said) == (1, True), "what was given up once is not given up for good"


def test_a_controller_never_begins_a_new_metadata_log(kavka: Kavka) -> None:
    stop(kavka.up(file(kavka, "data", "data2")))
    disk = kavka.cluster / "data" / "node-0" / "data"
    text = (disk / "meta.properties").read_text()
    identity = next(line for line in text.splitlines() if line.startswith("directory.id")).partition("=")[2]
    shutil.rmtree(disk)
    for annotation in ("", f"kavka.dev/forget-volumes: {identity}"):
        code, said = kavka.run("up", "-f", str(file(kavka, "data", "data2", annotation=annotation)))
        assert (code, "a controller never begins again by itself" in said) == (1, True), said
        assert not disk.exists()


def test_one_volume_that_has_vanished_does_not_keep_the_other_nodes_down(kavka: Kavka) -> None:
    names = ("data", "data2")
    stop(kavka.up(file(kavka, *names, brokers=3)))
    disk, aside = kavka.cluster / "data" / "node-2" / "data2", kavka.directory / "aside"
    disk.rename(aside)
    kavka.output.unlink()
    kavka.start("up", "-f", str(file(kavka, *names, brokers=3)))
    wait_until(lambda: kavka.said.count("answers on") == 2, "two nodes run")
    wait_until(lambda: 'volume "data2" of node 2 has vanished' in kavka.said, "it says what is missing")
    aside.rename(disk)
    wait_until(lambda: "ready;" in kavka.said, "and is whole as soon as the volume is back")
