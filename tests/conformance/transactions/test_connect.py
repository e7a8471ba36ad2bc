"""A source connector of Kafka Connect with exactly-once, whose worker is killed: each line comes once."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.connect import WORKER, ConnectProgram, write_properties
from tests.support.nodes import Nodes, cluster
from tests.support.reading import read_committed
from tests.support.servers import free_port
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC: Final = "lines"
ROUND: Final = 2_000
SECONDS_MAX: Final = 150.0
POLL_SECONDS: Final = 0.5
WORKER_PROPERTIES: Final = {
    "group.id": "connect",
    "exactly.once.source.support": "enabled",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.partitions": "2",
    "config.storage.topic": "connect-configs",
    "status.storage.topic": "connect-status",
    "status.storage.partitions": "1",
    "scheduled.rebalance.max.delay.ms": "0",
}


class Connect:
    """A worker on a cluster, and its connector that reads `source`."""

    def __init__(self, nodes: Nodes, directory: Path) -> None:
        self._address = f"http://127.0.0.1:{free_port()}"
        self._source = directory / "lines.txt"
        config = {**WORKER_PROPERTIES, "bootstrap.servers": nodes.bootstrap, "listeners": self._address}
        path = write_properties(directory / "connect.properties", config)
        self.program = ConnectProgram(WORKER, path, directory / "connect.log")
        self.written = 0

    def write(self) -> None:
        """Append more lines to the file."""
        with self._source.open("a") as file:
            file.writelines(f"line {number}\n" for number in range(self.written, self.written + ROUND))
        self.written += ROUND

    def begin_to_read(self) -> None:
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(self._source),
            "topic": TOPIC,
            "tasks.max": "1",
            "batch.size": "100",
            "exactly.once.support": "required",
        }
        self.until("the worker takes the connector", lambda: self._asked("PUT", "/connectors/lines/config", config))

    def until(self, what: str, condition: Callable[[], Any]) -> None:
        """Wait for it, and start a task again that has failed, as an operator does.

        Java's producer asks whether records wait before it takes the lock under which it looks for its next request,
        so that it may end a transaction of which it has sent nothing yet. While the markers of the one before are
        written both products answer PRODUCER_FENCED, and the task fails: about once in fifty runs of this test.
        """
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            self._asked("POST", "/connectors/lines/restart?includeTasks=true&onlyFailed=true", {})
            assert time.monotonic() < deadline, f"not within {SECONDS_MAX:g} s: {what}\n{self.program.last_lines()}"
            time.sleep(POLL_SECONDS)

    def _asked(self, method: str, path: str, body: Any) -> bool:
        request = urllib.request.Request(self._address + path, json.dumps(body).encode(), method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
                return bool(answer.status < 300)
        except (urllib.error.URLError, ConnectionError):
            return False


def test_each_line_comes_once(tmp_path: Path) -> None:
    with cluster(tmp_path) as nodes:
        create_topic(nodes, TOPIC, 1, 3)
        connect = Connect(nodes, tmp_path)
        connect.write()
        try:
            connect.program.start()
            connect.begin_to_read()
            connect.until("some lines are there", lambda: lines(nodes))
            connect.program.kill()
            connect.write()
            connect.program.start()
            connect.until("more lines are there", lambda: len(lines(nodes)) > ROUND)
            nodes.kill(leader := nodes.broker_ids[-1])
            connect.write()
            connect.until("all lines are there", lambda: len(lines(nodes)) >= connect.written)
            nodes.start(leader)
        finally:
            connect.program.kill()
        assert lines(nodes) == [f"line {number}" for number in range(connect.written)]


def lines(nodes: Nodes) -> list[str]:
    return [(message.value() or b"").decode() for message in read_committed(nodes, TOPIC, 0)]
