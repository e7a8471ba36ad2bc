"""The trail of a cluster that asks who its clients are: runs are a KafkaUser with the rights that the page of
documentation names and no other, and each number is what librdkafka's clients counted; without a Secret that lets them
in, the status says what they lack.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from confluent_kafka import KafkaError, Producer

from e2e.cluster_namespace import Scene
from e2e.images import ROOT
from e2e.kubectl import SECONDS_MAX, until
from e2e.release import install
from e2e.trail import (
    ANALYTICS,
    CONFIG,
    FLIGHTS,
    NODE,
    OLD,
    QUOTA_BYTES,
    RECORDS,
    SIZE,
    Clients,
    analytics,
    run,
    table,
    until_told,
)
from tests.kube.objects import user
from tests.support.control_plane import Json

PAGE = ROOT / "docs/how-to/audit-on-kubernetes.md"
SECURED = {"protocol": "SASL_SSL", "sasl": {"mechanisms": ["SCRAM-SHA-512"]}}
LISTENERS = [
    {"name": "INSIDE", "port": 9092, **SECURED},
    {"name": "OUTSIDE", "port": 9094, "service": {"type": "NodePort"}, **SECURED},
]
REFUSED = 3


def allowed(kind: str, name: str, *operations: str) -> Json:
    """A rule that lets a user do this."""
    return {"resource": {"type": kind, "name": name}, "operations": [*operations]}


USERS = {
    "importer": user(
        "importer",
        acls=[allowed("Topic", FLIGHTS, "Create", "Write", "Describe"), allowed("Topic", OLD, "Create", "Delete")],
    ),
    "loader": user("loader", acls=[allowed("Topic", FLIGHTS, "Write")], quotas={"producerByteRate": QUOTA_BYTES}),
    "reader": user("reader", acls=[allowed("Topic", FLIGHTS, "Read"), allowed("Group", "g", "Read")]),
    "stranger": user("stranger", acls=[allowed("Topic", FLIGHTS, "Describe")]),
}


def auditor() -> Json:
    """The KafkaUser of the page."""
    blocks = PAGE.read_text().split("```yaml\n")[1:]
    (found,) = (block.partition("```")[0] for block in blocks if "kind: KafkaUser" in block)
    made: Json = yaml.safe_load(found)
    return made


@pytest.fixture
def secured(scene: Scene) -> Iterator[Scene]:
    """A cluster of one node with certificates, logins and access rules; the user of its analytics is yet to come."""
    install(secured=scene.namespace)
    wants(scene, "auditor")
    scene.until_ready()
    for name, made in USERS.items():
        scene.make(made)
        scene.until_ready("kafkausers", name)
    yield scene
    install()


def wants(scene: Scene, secret: str) -> None:
    """Apply the cluster, with runs that are who a Secret says."""
    audit = {"analytics": {**ANALYTICS, "userSecret": {"name": secret}}}
    scene.wants(NODE, listeners=LISTENERS, authorization={}, config=CONFIG, audit=audit)


def of_secret(scene: Scene, name: str) -> dict[str, str]:
    """The texts of a Secret."""
    found = json.loads(scene.ask("get", "secret", name, "--output", "json"))["data"]
    return {key: b64decode(text).decode() for key, text in found.items()}


def who(scene: Scene, name: str) -> dict[str, Any]:
    """What librdkafka is told to be a user, out of Secrets and nothing besides."""
    secret = of_secret(scene, name)
    return {
        "bootstrap.servers": secret["bootstrap.servers"],
        "security.protocol": secret["security.protocol"],
        "sasl.mechanisms": secret["sasl.mechanism"],
        "sasl.username": secret["username"],
        "sasl.password": secret["password"],
        "ssl.ca.pem": of_secret(scene, "main-ca")["ca.crt"],
        "client.id": name,
    }


def be_refused(scene: Scene) -> None:
    """Produce as a user that may not; each producer is told so, and would not ask again itself."""
    told: list[bool] = []

    def refused(fault: KafkaError | None, _: object) -> None:
        told.append(fault is not None and fault.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED)

    for _ in range(REFUSED):
        producer = Producer(who(scene, "stranger"))
        producer.produce(FLIGHTS, b"x", partition=0, on_delivery=refused)
        assert producer.flush(SECONDS_MAX) == 0
    assert told == [True] * REFUSED


def test_runs_of_a_user_with_least_rights_tell_what_clients_counted(secured: Scene) -> None:
    """The user comes after the cluster: until then, a run says that its Secret is not there."""
    fails(secured, "early", 'Secret "auditor" has no client.properties')
    clients = Clients(lambda name: who(secured, name))
    clients.prepare()
    clients.write(RECORDS)
    clients.read()
    clients.be_held_back()
    be_refused(secured)
    secured.make(auditor())
    secured.until_ready("kafkausers", "auditor")

    said = until_told(secured, "told", clients)
    assert "/data/audit/report.html" in said
    assert "not told" not in said
    until(lambda: analytics(secured).get("state") == "Succeeded")
    assert table(secured, "audit_gaps") == []
    use = {
        (row["principal"], row["operation"]): row for row in table(secured, "top_talkers") if row["topic"] == FLIGHTS
    }
    assert use["User:importer", "WRITE"]["records"] == RECORDS
    assert use["User:loader", "WRITE"]["records"] == clients.held_back
    assert use["User:reader", "READ"]["bytes"] >= RECORDS * SIZE
    assert {principal for principal, _ in use} == {"User:importer", "User:loader", "User:reader"}
    (refusal,) = (row for row in table(secured, "denied_operations") if row["principal"] == "User:stranger")
    assert (refusal["operation"], refusal["resource"], refusal["times"]) == ("WRITE", FLIGHTS, REFUSED)
    incidents = table(secured, "throttle_incidents")
    assert {(row["principal"], row["quota_limit"]) for row in incidents} == {("User:loader", QUOTA_BYTES)}
    made = {(row["operation"], row["resource_type"], row["resource"]) for row in table(secured, "config_changes")}
    assert {("CREATE", "topic", FLIGHTS), ("CREATE", "topic", OLD), ("DELETE", "topic", OLD)} <= made
    no_password_is_told(secured, said)


def test_a_run_whose_secret_does_not_let_it_in_says_so_in_the_status(secured: Scene) -> None:
    """The password of another user, a property that no run knows, a Secret without the file; a right one heals all."""
    right = of_secret(secured, "importer")
    wrong = right["client.properties"].replace(right["password"], of_secret(secured, "reader")["password"])
    keep(secured, {"client.properties": wrong})
    wants(secured, "mine")
    until(lambda: "mine" in secured.ask("get", "cronjob", "main-audit", "--output", "yaml"))
    fails(secured, "password", 'userSecret: Secret "mine"', "sasl.jaas.config: Kafka refuses user 'importer'")
    keep(secured, {"client.properties": f"{right['client.properties']}\nsasl.kerberos.service.name=kafka\n"})
    fails(secured, "word", 'userSecret: Secret "mine"', "sasl.kerberos.service.name is not understood")
    keep(secured, {"other.properties": right["client.properties"]})
    fails(secured, "key", 'userSecret: Secret "mine" has no client.properties')
    secured.make(auditor())
    secured.until_ready("kafkausers", "auditor")
    keep(secured, {"client.properties": of_secret(secured, "auditor")["client.properties"]})
    end, words = run(secured, "right")
    assert end == "Complete", words
    until(lambda: analytics(secured).get("state") == "Succeeded")
    assert "message" not in analytics(secured)


def keep(scene: Scene, texts: dict[str, str]) -> None:
    """Write the Secret `mine`, with these files and no other."""
    scene.ask("delete", "secret", "mine", "--ignore-not-found")
    scene.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "stringData": texts})


def fails(scene: Scene, name: str, *words: str) -> None:
    """Run, and have the status say in these words why it failed; the cluster is ready all the same."""
    until(lambda: scene.ask("get", "cronjobs", "main-audit", "--ignore-not-found", "--output", "name"))
    end, said = run(scene, name)
    assert end == "Failed", said
    until(lambda: all(word in analytics(scene).get("message", "") for word in words))
    assert analytics(scene)["state"] == "Failed"
    assert scene.is_ready()


def no_password_is_told(scene: Scene, said: str) -> None:
    """No password stands in an object, an event, or in what a run says."""
    told = said + scene.ask("get", "kafkaclusters,kafkausers,pods,cronjobs,jobs,events", "--output", "json")
    assert "importer" in told
    assert not [name for name in (*USERS, "auditor") if of_secret(scene, name)["password"] in told]
