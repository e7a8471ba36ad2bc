"""`kavka up` for an Apache Kafka that somebody else runs, with a user and a password out of files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka_operator.kafka.client import KafkaClient
from tests.operator.local.support import Kavka, wait_until
from tests.support.secured import EXTERNAL, PASSWORD, USER, Secured, start_secured

pytestmark = [pytest.mark.java]

RESOURCES = (
    EXTERNAL
    + """\
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: orders}
spec: {clusterRef: {name: quickstart}, partitions: 3, replicationFactor: 1}
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {name: alice}
spec: {clusterRef: {name: quickstart}, entity: {user: {name: alice}}, limits: {producerByteRate: 1Mi}}
"""
)


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    running = start_secured(tmp_path / "secured")
    yield running
    running.server.kill()


@pytest.fixture
def kavka(tmp_path: Path) -> Iterator[Kavka]:
    command = Kavka(tmp_path)
    yield command
    command.end()


def test_secrets_are_waited_for_and_used(secured: Secured, kavka: Kavka) -> None:
    file = kavka.directory / "external.yaml"
    file.write_text(RESOURCES % secured.address("SASL"))
    kavka.start("up", "-f", str(file))
    place = kavka.cluster / "secrets"
    wait_until(lambda: f"make the directory {place}/authority" in kavka.said, "the Secret that is missing is named")
    secret(place / "authority", **{"ca.crt": secured.certificates.text("ca.crt")})
    secret(place / "user", username=USER, password="wrong")
    wait_until(lambda: "Kafka refuses user" in kavka.said, "the wrong password is told")
    secret(place / "user", username=USER, password=PASSWORD)
    code, said = kavka.run(
        "wait", "kvc/quickstart", "kvt/orders", "kvq/alice", "--for", "condition=Ready", "--timeout=90s"
    )
    assert code == 0, said + kavka.said
    client = KafkaClient(secured.server.bootstrap)
    assert client.look(["orders"]).topics["orders"].partitions == 3
    client.close()
    status = kavka.status()
    assert (status["bootstrapServers"], status["brokers"]) == (secured.address("SASL"), 1)
    assert not [line for line in kavka.processes() if "kavka_broker" in line]
    assert PASSWORD not in kavka.said
    code, said = kavka.run("down")
    assert code == 0, said


def secret(directory: Path, **texts: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for key, text in texts.items():
        (directory / key).write_text(text)
