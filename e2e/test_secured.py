"""Pods whose nodes and clients speak TLS: certificates from Secrets, taken over by brokers that run on."""

import json
from base64 import b64decode
from collections.abc import Iterator

import pytest

from e2e.cluster_namespace import Scene
from e2e.kubectl import until
from e2e.release import OPERATOR, OPERATORS, install

CLIENTS = {"name": "CLIENTS", "port": 9092, "protocol": "SSL"}
SHOWN = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], 9092), ca_certs='/etc/ca/ca.crt'))"


@pytest.fixture
def secured(scene: Scene) -> Iterator[Scene]:
    """Three brokers with certificates, and a client that trusts their authority."""
    install(secured=scene.namespace)
    made = Scene(scene.namespace, authority="main-ca")
    made.wants(listeners=[CLIENTS])
    made.until_ready()
    made.produces()
    yield made
    install()


def shown(scene: Scene, number: int) -> str:
    """The certificate that a broker shows a client which checks it."""
    host = f"main-nodes-{number}-0.main-nodes.{scene.namespace}.svc"
    return scene.ask("exec", "producer", "--", "python", "-c", SHOWN, host)


def test_a_renewed_certificate_is_shown_by_a_broker_that_ran_on(secured: Scene) -> None:
    """A Secret that is lost is written again with another certificate, which comes to the pod as a renewal does."""
    (told,) = secured.status()["listeners"]
    assert (told["protocol"], told["bootstrapServers"]) == ("SSL", secured.bootstrap)
    before, first = secured.pods(), shown(secured, 1)
    secured.ask("delete", "secret", "main-nodes-1-certificates")
    until(lambda: shown(secured, 1) != first)
    assert secured.changed(before) == set()
    secured.until_more()
    no_key_is_told(secured)
    secured.has_lost_nothing()


def test_secured_nodes_are_rolled_without_a_loss(secured: Scene) -> None:
    before = secured.pods()
    secured.wants(listeners=[CLIENTS], config={"queued.max.requests": 400})
    until(lambda: len(secured.changed(before)) == 3)
    secured.until_ready()
    secured.has_lost_nothing()


def no_key_is_told(scene: Scene) -> None:
    """No key of a Secret stands in an object, an event or a log."""
    secrets = json.loads(scene.ask("get", "secrets", "--output", "json"))["items"]
    texts = [b64decode(text).decode() for secret in secrets for text in secret["data"].values()]
    keys = [text.split("-----BEGIN CERT")[0] for text in texts if "PRIVATE KEY" in text]
    lines = {line for key in keys for line in key.splitlines()[1:-1] if line}
    assert lines
    told = scene.ask("get", "kafkaclusters,pods,statefulsets,services,events", "--output", "json")
    told += scene.ask("logs", OPERATOR, "--namespace", OPERATORS)
    told += "".join(scene.ask("logs", pod) for pod in scene.pods())
    assert "PRIVATE KEY" not in told
    assert not any(line in told for line in lines)
