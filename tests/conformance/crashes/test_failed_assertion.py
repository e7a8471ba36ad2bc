"""A broker whose own rule is broken ends with a report, and its successor counts that in its metrics."""

import json
import sys
import urllib.request
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from kavka_broker.runtime.crash import EXIT_CRASH, FILE_NAME
from tests.support.servers import Server, free_port, start_kavka

SECONDS_MAX = 60.0

#: A defect in the placement: both replicas of a partition on one broker.
PLANTED = """
import sys
from kavka_broker.cli import main
from kavka_broker.core.metadata.decide import topics
topics.place = lambda partitions, factor, sites, rotation=0: [(1, 1)] * partitions
main(sys.argv[1:])
"""


def failed_total(admin: str) -> str:
    with urllib.request.urlopen(f"http://{admin}/metrics", timeout=SECONDS_MAX) as answer:
        lines: list[str] = answer.read().decode().splitlines()
    return next(line for line in lines if line.startswith("kavka_assertions_failed_total"))


def ended(server: Server) -> int:
    """The exit status of a process that ends by itself."""
    assert server.process is not None
    process, server.process = server.process, None
    return process.wait(SECONDS_MAX)


def test_a_failed_assertion_is_told_and_counted_after_the_restart(tmp_path: Path) -> None:
    admin = f"127.0.0.1:{free_port()}"
    server = start_kavka(tmp_path, {"kavka.admin.listener": admin, "kavka.log.format": "json"})
    sound = server.command
    try:
        assert failed_total(admin) == "kavka_assertions_failed_total 0.0"
        server.stop()

        server.command = [sys.executable, "-c", PLANTED, *sound[sound.index("run") :]]
        server.start()
        client = AdminClient({"bootstrap.servers": server.bootstrap})
        asked = client.create_topics([NewTopic("orders", 1, 1)])
        assert ended(server) == EXIT_CRASH
        assert asked["orders"].exception(SECONDS_MAX) is not None  # no client was told that it is there

        (crash,) = [line for line in map(json.loads, server.log_lines()) if line["event"] == "broker.crashed"]
        assert crash["where"].startswith("core/metadata/decide/topics.py:")
        assert "partition 0 would begin twice on a broker: (1, 1)" in crash["traceback"]
        assert (crash["node"], crash["failed_total"], crash["leader"]) == (1, 1, 1)
        (report,) = map(json.loads, (server.data / FILE_NAME).read_text().splitlines())
        assert report["what"] == "AssertionError: partition 0 would begin twice on a broker: (1, 1)"

        server.command = sound
        server.start()
        assert failed_total(admin) == "kavka_assertions_failed_total 1.0"
        assert server.stop() == 0
    finally:
        server.kill()
