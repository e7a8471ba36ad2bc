"""`kavka up --console`: the page beside a cluster, which ends with it."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from kavka_operator.platform.local.probe import port_is_taken
from tests.operator.local.support import Kavka, free_ports, wait_until

SECONDS_MAX = 60


@pytest.fixture
def kavka(tmp_path: Path) -> Iterator[Kavka]:
    command = Kavka(tmp_path)
    yield command
    command.end()


def commands_of_all() -> Iterator[str]:
    """The words of each process that runs."""
    for process in psutil.process_iter(["cmdline"]):
        yield " ".join(process.info["cmdline"] or ())


def test_the_page_is_there_once_the_cluster_is_and_ends_with_it(kavka: Kavka) -> None:
    (port,) = free_ports(1)
    up = kavka.start("up", "--ephemeral", "--port", "0", "--console", str(port), "-o", "json")
    wait_until(lambda: '"console"' in kavka.said, "the cluster is ready")
    told = json.loads(next(line for line in kavka.said.splitlines() if '"console"' in line))
    page, key = told["console"].split("?key=")
    assert page == f"http://127.0.0.1:{port}/"
    assert key not in "".join(commands_of_all()), "other users see the words of a command"
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(told["console"], timeout=SECONDS_MAX) as answer:
        assert b"<title>Kavka</title>" in answer.read()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(page, timeout=SECONDS_MAX)
    producer = Producer({"bootstrap.servers": told["bootstrapServers"]})
    producer.produce("orders", "x")
    assert producer.flush(SECONDS_MAX) == 0
    with browser.open(f"{page}records?cluster={told['cluster']}&topic=orders", timeout=SECONDS_MAX) as answer:
        found = json.load(answer)
    assert [record["value"] for record in found["records"]] == ["x"]
    code, said = kavka.run("up", "--console", str(port), "--name", "other")
    assert (code, f"--console: port {port} of 127.0.0.1 is in use" in said) == (1, True), said
    up.terminate()
    up.wait(SECONDS_MAX)
    wait_until(lambda: not port_is_taken("127.0.0.1", port), "the page is gone")


def test_without_a_cluster_there_is_no_page(kavka: Kavka) -> None:
    code, said = kavka.run("console")
    assert (code, "no cluster runs" in said) == (1, True), said
