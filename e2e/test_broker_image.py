"""The broker's image as a pod: it becomes ready, a real client speaks to it, and its records outlive the pod."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from e2e.cluster import kubectl, localized
from e2e.needs import service_addresses
from tests.support.waiting import until_outside

MANIFEST = Path(__file__).parent / "broker.yaml"
BOOTSTRAP = "10.96.0.50:9092"
NAMESPACE = "broker-image"
SECONDS_MAX = 120


def ask(*arguments: str, stdin: str = "") -> str:
    """What kubectl says in this test's namespace."""
    line = [*kubectl(), "--namespace", NAMESPACE, *arguments]
    ran = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def broker() -> Iterator[None]:
    """The pod, ready."""
    service_addresses()
    ask("create", "namespace", NAMESPACE)
    begin()
    yield
    ask("delete", "namespace", NAMESPACE, f"--timeout={SECONDS_MAX}s")


def begin() -> None:
    ask("apply", "--filename", "-", stdin=localized(MANIFEST.read_text()))
    ask("wait", "--for=condition=Ready", "pod/broker", f"--timeout={SECONDS_MAX}s")


def produced(value: bytes) -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "message.timeout.ms": 60_000})
    refused: list[object] = []
    producer.produce("flights", value, on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(SECONDS_MAX) == 0
    assert refused == [None]


def consumed(count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": f"g{count}", "auto.offset.reset": "earliest"})
    found: list[bytes | None] = []
    with closing(consumer):
        consumer.subscribe(["flights"])
        until_outside(lambda: len(found) >= count or take(consumer, found), SECONDS_MAX)
    return found


def take(consumer: Consumer, found: list[bytes | None]) -> bool:
    """Add what comes within a second; always False, to be asked again."""
    found += [message.value() for message in consumer.consume(10, 1.0) if message.error() is None]
    return False


@pytest.mark.usefixtures("broker")
def test_a_client_speaks_to_the_pod_and_its_records_outlive_it() -> None:
    produced(b"before")
    assert consumed(1) == [b"before"]
    ask("delete", "pod", "broker", "--wait")
    begin()
    produced(b"after")
    assert consumed(2) == [b"before", b"after"]


@pytest.mark.usefixtures("broker")
def test_the_process_has_no_right_and_no_place_to_write() -> None:
    status = ask("exec", "broker", "--", "python", "-c", "print(open('/proc/1/status').read())")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["10001"] * 4
    assert int(fields["CapEff"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    tried = ask("exec", "broker", "--", "python", "-c", "import os; print(os.access('/opt/kavka', os.W_OK))")
    assert tried == "False\n"
