"""`kavka up --console`: the page beside a cluster, which ends with it."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def test_a_quota_that_the_page_applies_is_what_kafka_has_until_the_page_deletes_it(kavka: Kavka) -> None:
    code, said = kavka.run("up", "--port", "0", "--detach")
    assert code == 0, said
    started = kavka.start("console", "--write", "--port", "0")
    wait_until(lambda: "edits quotas of" in kavka.said, "the console is ready")
    address = re.search(r"http://127\.0\.0\.1:\d+/\?key=\S+", kavka.said)
    name = re.search(r"edits quotas of (\S+);", kavka.said)
    assert address is not None
    assert name is not None
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(address[0], timeout=SECONDS_MAX) as answer:
        token = answer.geturl().partition("#token=")[2]
    root, cluster = address[0].partition("?")[0], name[1]
    with browser.open(f"{root}quota?cluster={cluster}&entity=new", timeout=SECONDS_MAX) as answer:
        found = json.load(answer)
    text = found["text"].replace("NAME", "web").replace("CLIENT-ID", "web")

    def post(path: str, **body: str) -> dict[str, Any]:
        headers = {
            "Origin": root.rstrip("/"), "X-Kavka-Token": token, "Content-Type": "application/json"
        }  # fmt: skip
        data = json.dumps({"text": text, **body}).encode()
        request = urllib.request.Request(f"{root}quota/{path}?cluster={cluster}", data, headers)
        with browser.open(request, timeout=SECONDS_MAX) as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    shown = post("difference")
    assert shown["change"] == "created"
    assert shown["actions"] == ["set producer_byte_rate=1Mi for client-id=web"]
    assert shown["obstacles"] == []
    assert post("apply", sum=shown["sum"])["name"] == "web"

    def state() -> str:
        with browser.open(f"{root}quota/state?cluster={cluster}&name=web", timeout=SECONDS_MAX) as answer:
            return str(json.load(answer)["ready"])

    wait_until(lambda: state() == "Ready", "the operator has followed")
    code, said = kavka.run("explain", "quota", "--client-id", "web")
    assert (code, "producer_byte_rate 1Mi" in said) == (0, True), said
    text = "web"
    shown = post("deletion")
    assert shown["actions"] == ["set no producer_byte_rate for client-id=web"]
    assert shown["obstacles"] == []
    assert post("delete", sum=shown["sum"])["change"] == "deleted"
    wait_until(lambda: state() == "gone", "the operator has deleted it")
    code, said = kavka.run("explain", "quota", "--client-id", "web")
    assert (code, "producer_byte_rate 1Mi" in said) == (0, False), said
    started.terminate()
    started.wait(SECONDS_MAX)


def test_without_a_cluster_there_is_no_page(kavka: Kavka) -> None:
    code, said = kavka.run("console")
    assert (code, "no cluster runs" in said) == (1, True), said
