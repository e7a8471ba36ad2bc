"""Commands that ask brokers, by the address and the resources that a real API server keeps: on a broker that runs."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event

import pytest
import yaml
from confluent_kafka import Producer

from kavka_broker.core.quota.entity import Entity
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.kafka.client import KafkaClient
from tests.conformance.quotas.test_recommended import LIMIT, produce
from tests.kube.cluster import Kubernetes
from tests.kube.objects import external, quota, topic
from tests.kube.test_command import COMMAND, kavka
from tests.kube.test_operator import Operated, answered
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside

SECONDS_MAX = 60.0
ETL = Entity(None, "etl")


@pytest.fixture
def pages() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def broker(tmp_path: Path, pages: str) -> Iterator[Server]:
    """A broker of this test's own: `export` prints everything that it has."""
    running = start_kavka(tmp_path / "broker", {"kavka.admin.listener": pages, "quota.window.num": "2"})
    with ExitStack() as stack:
        stack.callback(running.kill)
        yield running


@pytest.fixture
def scene(kubernetes: Kubernetes, broker: Server) -> Kubernetes:
    """A KafkaCluster that somebody else runs, a topic of it that has a resource, and a quota that has one."""
    wanted = quota("etl", entity={"clientId": {"name": "etl"}}, limits={"producerByteRate": str(LIMIT)})
    for made in (external(bootstrapServers=broker.bootstrap), topic("orders", partitions=1), wanted):
        assert kubernetes.create(made).is_well
    create_topic(broker, "orders")
    create_topic(broker, "Payments_v2")
    admin = KafkaClient(broker.bootstrap)
    admin.perform(AlterQuota(ETL, {"producer_byte_rate": float(LIMIT)}))
    admin.perform(AlterQuota(Entity("alice", None), {"consumer_byte_rate": 5e6}))
    admin.close()
    return kubernetes


def printed(scene: Kubernetes, *words: str) -> str:
    """What a command prints, without what it says on stderr."""
    line = [str(COMMAND), *words, "--kubeconfig", str(scene.plane.kubeconfig), "-n", scene.namespace]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=SECONDS_MAX).stdout


def test_explain_quota_names_the_resource_that_set_it(scene: Kubernetes) -> None:
    code, said = kavka(scene, "explain", "quota", "--client-id", "etl")
    assert code == 0, said
    (held,) = (line.split() for line in said.splitlines() if line.split()[-1:] == ["holds"])
    assert held == ["->", "7", "client", "id", "client-id=etl", "100k", "etl", "holds"]


def test_recommend_prints_what_the_api_server_takes(scene: Kubernetes, broker: Server, pages: str) -> None:
    done = Event()
    with ThreadPoolExecutor() as pool:
        busy = pool.submit(produce, broker, "orders", "etl", done)
        try:
            until_outside(lambda: 'client_id="etl"' in answered(int(pages.rpartition(":")[2]), "/metrics"))
            text = printed(scene, "quota", "recommend", "--metrics", pages, "--for", "4s")
        finally:
            done.set()
        assert busy.result() > 0
    (found,) = (document for document in yaml.safe_load_all(text) if document)
    assert found["spec"]["entity"] == {"clientId": {"name": "etl"}}
    assert scene.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text).returncode == 0


def test_doctor_finds_what_ails_the_brokers(scene: Kubernetes, broker: Server) -> None:
    create_topic(broker, "above", min_insync_replicas="3")
    code, said = kavka(scene, "doctor")
    assert code == 1, said
    assert "above" in said


def test_what_export_prints_is_adopted_with_no_write_to_kafka(
    scene: Kubernetes, broker: Server, tmp_path: Path
) -> None:
    text = printed(scene, "export")
    exported = [document for document in yaml.safe_load_all(text) if document]
    assert {document["kind"] for document in exported} == {"Topic", "ClientQuota"}
    assert scene.shows("apply", "--filename", "-", stdin=text).count("created") == len(exported)
    operated = Operated(scene, broker, tmp_path / "operator.log")
    operated.start()
    try:
        operated.until_ready(*((document["kind"], document["metadata"]["name"]) for document in exported))
    finally:
        operated.stop()
    kafka = [words for words in operated.writes() if not words.startswith(("Topic ", "ClientQuota ", "KafkaCluster "))]
    assert kafka == []


def test_top_shows_the_clients_of_the_brokers(scene: Kubernetes, broker: Server, pages: str) -> None:
    """On a terminal of its own: a person sees the client, and `q` ends it."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "etl"})
    main, side = pty.openpty()
    line = [str(COMMAND.with_name("kavka")), "top", "--every", "0.5", "--metrics", pages]
    line += ["--kubeconfig", str(scene.plane.kubeconfig), "-n", scene.namespace]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    screen = subprocess.Popen(line, stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True)
    os.close(side)
    shown, deadline = b"", time.monotonic() + SECONDS_MAX
    try:
        while b"etl" not in shown and time.monotonic() < deadline:
            producer.produce("orders", b"x" * 100)
            producer.flush(SECONDS_MAX)
            if select.select([main], [], [], 0.1)[0]:
                shown += os.read(main, 1 << 16)
        assert b"etl" in shown, shown[-2000:]
        os.write(main, b"q")
        with suppress(OSError):  # nobody is left on the other side
            while os.read(main, 1 << 16):
                pass
        assert screen.wait(SECONDS_MAX) == 0
    finally:
        screen.kill()
        screen.wait()
        os.close(main)
