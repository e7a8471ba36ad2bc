"""Users of a secured cluster, from resources alone: logins over TLS with a Secret that was made, ACLs, and no tool."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.conformance.security.test_kafka_users import is_let_in, of_librdkafka
from tests.operator.local.support import wait_until
from tests.operator.local.test_secured import Secured

pytestmark = [pytest.mark.slow, pytest.mark.extended]

USERS = """---
apiVersion: kavka.dev/v1alpha1
kind: KafkaUser
metadata: {name: etl}
spec:
  clusterRef: {name: quickstart}
  acls:
    - {resource: {type: Topic, name: flights}, operations: [Write, Describe]}
  quotas: {producerByteRate: 10Mi}
---
apiVersion: kavka.dev/v1alpha1
kind: KafkaUser
metadata: {name: stranger}
spec: {clusterRef: {name: quickstart}}
"""


@pytest.fixture
def kavka(tmp_path: Path) -> Iterator[Secured]:
    command = Secured(tmp_path)
    yield command
    command.end()


def test_a_user_of_a_secured_cluster_needs_its_resource_alone(kavka: Secured) -> None:
    file = kavka.secured(brokers=1)
    file.write_text(f"{file.read_text()}\n{USERS}")
    kavka.up(file)
    words = ("wait", "kvu/etl", "kvu/stranger", "--for", "condition=Ready", "--timeout=120s")
    code, said = kavka.run(*words)
    assert code == 0, said + kavka.said
    authority = str(kavka.certificates / "ca.crt")
    errors: dict[str, KafkaError | None] = {}
    for name in ("etl", "stranger"):
        place = Path(json.loads(kavka.run("get", "kvu", name, "-o", "json")[1])["status"]["secret"])
        addresses = place / "bootstrap.servers"
        wait_until(addresses.exists, "addresses stand in it")
        secret = {path.name: path.read_text() for path in place.iterdir() if not path.name.startswith(".")}
        assert secret["security.protocol"] == "SASL_SSL"
        assert is_let_in(secret, **{"ssl.ca.location": authority})

        def told(error: KafkaError | None, message: Message, name: str = name) -> None:
            errors[name] = error

        producer = Producer(of_librdkafka(secret, **{"ssl.ca.location": authority, "message.timeout.ms": 20_000}))
        producer.produce("flights", b"x", on_delivery=told)
        assert producer.flush(60) == 0
    assert errors["etl"] is None
    refused = errors["stranger"]
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
