"""A node that the others are missing waits for them, says what it waits for, and stops when it is told to."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.conformance.cluster.history import create_topic
from tests.support.nodes import apart, cluster, combined
from tests.support.servers import POLL_SECONDS, free_port, is_apache_kafka

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(is_apache_kafka(), reason="the pages of Kavka's admin port"),
]

SECONDS_MAX = 60.0


def obstacles(port: int) -> set[str]:
    """What stands between a node and its clients."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as refusal:
        text = refusal.read().decode()
    return set(json.loads(text).get("because", ()))


def wait_for(port: int, wanted: set[str]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            found = obstacles(port)
        except OSError:
            found = {"unreachable"}
        if found == wanted:
            return
        assert time.monotonic() < deadline, f"{found}, not {wanted}"
        time.sleep(POLL_SECONDS)


def test_a_node_without_a_majority_says_so_and_stops(tmp_path: Path) -> None:
    port = free_port()
    with cluster(tmp_path, combined(3), {"kavka.admin.listener": f"127.0.0.1:{port}"}, started=False) as nodes:
        nodes[1].launch()
        wait_for(port, {"quorum", "logs", "registration", "listeners", "fenced"})
        assert nodes[1].stop() == 0, "it waits for nobody"


@pytest.mark.extended
def test_a_broker_without_a_controller(tmp_path: Path) -> None:
    port = free_port()
    with cluster(tmp_path, apart(1, 1), {"kavka.admin.listener": f"127.0.0.1:{port}"}, started=False) as nodes:
        nodes[1].launch()
        wait_for(port, {"quorum", "logs", "registration", "listeners", "fenced"})
        assert nodes[1].stop() == 0, "it waits for nobody"


def test_ready_when_unfenced(tmp_path: Path) -> None:
    ports = {node_id: free_port() for node_id in (1, 2, 3)}
    with cluster(tmp_path, combined(3), started=False) as nodes:
        for node_id, port in ports.items():
            with (nodes[node_id].directory / "server.properties").open("a") as file:
                file.write(f"kavka.admin.listener=127.0.0.1:{port}\n")
        nodes.start()
        create_topic(nodes)
        for port in ports.values():
            wait_for(port, set())
