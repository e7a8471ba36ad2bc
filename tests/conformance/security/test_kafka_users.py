"""KafkaUsers from resources to clients: who logs in with the Secret that was made, may do what the resource says, is
denied the rest and throttled as declared. The operator is `kavka up`, on a Kafka that somebody else runs.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaConsumer

from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.observed import SeenAccess
from kavka_operator.domain.plan import CreateAcls, DeleteAcls, DropCredential, SetCredential
from kavka_operator.kafka.client import KafkaClient
from tests.conformance.security.test_scram import settings
from tests.operator.local.support import Kavka, wait_until
from tests.support.refusals import refusals
from tests.support.servers import Server, free_port, start_server
from tests.support.topics import create_topic

ANSWER_SECONDS_MAX = 60.0
READY_SECONDS = "90s"
RATE = 100_000
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # ANONYMOUS reaches the listener of the nodes
}
CLUSTER = """\
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: quickstart}
spec: {external: {bootstrapServers: %s}}
"""
USER = """\
---
apiVersion: kavka.dev/v1alpha1
kind: KafkaUser
metadata: {name: %s}
spec:
  clusterRef: {name: quickstart}
"""
RULES = """\
  acls:
    - {resource: {type: Topic, name: orders}, operations: [Write, Describe, Read]}
    - {resource: {type: Group, name: etl-, patternType: Prefixed}, operations: [Read]}
    - {resource: {type: Topic, name: secret}, operations: [All], permission: Deny}
"""


@dataclass(slots=True)
class Scene:
    """A broker with a listener that asks who clients are, and the operator."""

    server: Server
    kavka: Kavka
    cluster: str = ""  # the KafkaCluster, where it says more than an address

    def apply(self, *users: str) -> None:
        """Apply the cluster and users, and start the operator if it does not run yet."""
        file = self.kavka.directory / "users.yaml"
        file.write_text((self.cluster or CLUSTER % self.server.bootstrap) + "".join(users))
        if not self.kavka.started:
            self.kavka.up(file)
        else:
            code, said = self.kavka.run("apply", "-f", str(file))
            assert code == 0, said

    def until_ready(self, *names: str) -> None:
        for name in names:
            words = ("wait", f"kvu/{name}", "--for", "condition=Ready", f"--timeout={READY_SECONDS}")
            code, said = self.kavka.run(*words)
            assert code == 0, said + self.kavka.said

    def document(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kavka.run("get", "kvu", name, "-o", "json")[1])
        return found

    def reason(self, name: str) -> str:
        conditions = self.document(name)["status"].get("conditions", ())
        return next((found["reason"] for found in conditions if found["type"] == "Ready"), "")

    def secret(self, name: str) -> dict[str, str]:
        """The Secret of a user, by its keys."""
        directory = Path(self.document(name)["status"]["secret"])
        return {path.name: path.read_text() for path in directory.iterdir() if not path.name.startswith(".")}

    def access(self) -> SeenAccess:
        client = KafkaClient(self.server.bootstrap)
        try:
            return client.access([1])
        finally:
            client.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    ports = free_port(), free_port(), free_port()
    server = start_server(tmp_path / "broker", {**settings(*ports), **AUTHORIZER})
    for topic in ("orders", "secret"):
        create_topic(server, topic)
    kavka = Kavka(tmp_path)
    yield Scene(server, kavka)
    kavka.end()
    server.kill()


def of_librdkafka(secret: dict[str, str], **more: Any) -> dict[str, Any]:
    """What librdkafka is told, out of a Secret and nothing besides."""
    return {
        "bootstrap.servers": secret["bootstrap.servers"],
        "security.protocol": secret["security.protocol"],
        "sasl.mechanisms": secret["sasl.mechanism"],
        "sasl.username": secret["username"],
        "sasl.password": secret["password"],
        "log_level": 0,
        **more,
    }


def produced(secret: dict[str, str], topic: str, value: bytes = b"x", **more: Any) -> KafkaError | None:
    """The error of one record; None if it is there."""
    found: list[KafkaError | None] = []

    def told(error: KafkaError | None, message: Message) -> None:
        del message
        found.append(error)

    producer = Producer(of_librdkafka(secret, **{"message.timeout.ms": 60_000, **more}))
    producer.produce(topic, value, on_delivery=told)
    assert producer.flush(2 * ANSWER_SECONDS_MAX) == 0  # the record's own time comes first
    return found[0]


def is_let_in(secret: dict[str, str], **more: Any) -> bool:
    """Whether librdkafka logs in; otherwise it was told that it may not."""
    return not refusals(of_librdkafka(secret, **more))


def test_a_user_logs_in_may_do_what_is_said_and_is_denied_the_rest(scene: Scene) -> None:
    scene.apply(USER % "etl" + RULES)
    scene.until_ready("etl")
    secret = scene.secret("etl")
    assert produced(secret, "orders") is None
    refused = produced(secret, "secret")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=secret["bootstrap.servers"],
        security_protocol=secret["security.protocol"],
        sasl_mechanism=secret["sasl.mechanism"],
        sasl_plain_username=secret["username"],
        sasl_plain_password=secret["password"],
        group_id="etl-1",
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
    )
    assert next(consumer).value == b"x"
    consumer.close()


def test_the_files_of_a_secret_are_this_users_alone_and_hold_the_only_copy(scene: Scene) -> None:
    """Everything else that the operator writes is searched for the password, and for the key of its version."""
    scene.apply(USER % "etl" + RULES)
    scene.until_ready("etl")
    first = scene.secret("etl")
    scene.apply(USER % "etl" + "  authentication: {rotate: now}\n" + RULES)
    wait_until(lambda: scene.secret("etl")["password"] != first["password"], "the password is rotated")
    scene.until_ready("etl")
    directory = Path(scene.document("etl")["status"]["secret"])
    modes = {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert (modes, stat.S_IMODE(directory.stat().st_mode)) == ({0o600}, 0o700)
    code, said = scene.kavka.run("describe", "kvu", "etl")
    assert code == 0, said
    told = [scene.kavka.said, said, json.dumps(scene.document("etl"))]
    told += [text for path in files(scene.kavka.directory, directory) if (text := text_of(path)) is not None]
    for texts in (first, scene.secret("etl")):
        for hidden in (texts["password"], json.loads(texts["kavka.json"])["key"]):
            assert not [words for words in told if hidden in words]


def files(directory: Path, besides: Path) -> Iterator[Path]:
    """All files below a directory, besides those of another. The broker and the operator go on: some are gone then."""
    for place, _, names in os.walk(directory):
        if Path(place) != besides:
            yield from (path for name in names if (path := Path(place) / name).is_file())


def text_of(path: Path) -> str | None:
    """What a file says; None where it is gone by now, as a draft is that has taken its place."""
    try:
        return path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None


def test_a_new_password_is_for_new_logins_and_who_is_logged_in_stays(scene: Scene) -> None:
    scene.apply(USER % "etl" + RULES)
    scene.until_ready("etl")
    first = scene.secret("etl")
    errors: list[KafkaError | None] = []
    producer = Producer(of_librdkafka(first))
    producer.produce("orders", b"before", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    scene.apply(USER % "etl" + "  authentication: {rotate: now}\n" + RULES)
    wait_until(lambda: scene.secret("etl")["password"] != first["password"], "the password is rotated")
    scene.until_ready("etl")
    wait_until(lambda: is_let_in(scene.secret("etl")), "the new password is in force")
    assert not is_let_in(first)
    producer.produce("orders", b"after", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(ANSWER_SECONDS_MAX) == 0
    assert errors == [None, None]


def test_limits_are_in_force_for_the_user_that_logs_in(scene: Scene) -> None:
    limits = f"  quotas: {{producerByteRate: {RATE}}}\n"
    scene.apply(USER % "etl" + RULES + limits, USER % "free" + RULES)
    scene.until_ready("etl", "free")
    throttled: list[float] = []
    took = {}
    for name in ("free", "etl"):
        more = {"throttle_cb": lambda event: throttled.append(event.throttle_time)} if name == "etl" else {}
        producer = Producer(of_librdkafka(scene.secret(name), **{"linger.ms": 0, "batch.num.messages": 10, **more}))
        began = time.monotonic()
        for _ in range(60):
            producer.produce("orders", b"x" * 25_000)
            producer.poll(0)
        assert producer.flush(2 * ANSWER_SECONDS_MAX) == 0
        took[name] = time.monotonic() - began
    assert max(throttled) > 0.5, throttled
    assert took["etl"] > 2.0, took
    code, said = scene.kavka.run("explain", "quota", "--user", "etl")
    assert code == 0, said
    assert "user=etl" in said


def rules_of(access: SeenAccess, user: str) -> frozenset[Binding]:
    """The access rules of a user."""
    return (access.rules or {}).get(f"User:{user}", frozenset())


def test_a_resource_that_goes_takes_the_user_with_it(scene: Scene) -> None:
    scene.apply(USER % "etl" + RULES)
    scene.until_ready("etl")
    secret, directory = scene.secret("etl"), Path(scene.document("etl")["status"]["secret"])
    by_hand = Binding("Allow", "Read", "Topic", "Literal", "*", "by-hand")
    client = KafkaClient(scene.server.bootstrap)
    client.perform(CreateAcls("User:etl", (by_hand,)))
    client.close()
    code, said = scene.kavka.run("delete", "kvu", "etl")
    assert code == 0, said
    wait_until(lambda: "etl" not in scene.access().credentials, "the password is gone")
    wait_until(lambda: rules_of(scene.access(), "etl") == {by_hand}, "the rules are gone, and another's is there")
    assert not is_let_in(secret)
    wait_until(lambda: not directory.exists(), "the Secret is gone")


def test_a_password_that_somebody_changes_in_kafka_is_put_back(scene: Scene) -> None:
    scene.apply(USER % "etl" + RULES)
    scene.until_ready("etl")
    client = KafkaClient(scene.server.bootstrap)
    client.perform(SetCredential("etl", "SCRAM-SHA-512", 4096, "another"))
    client.close()
    wait_until(lambda: "was another" in scene.document("etl")["status"].get("lastCorrection", {}).get("message", ""),
               "the change is told")  # fmt: skip
    wait_until(lambda: is_let_in(scene.secret("etl")), "the password of the Secret is in force again")


def test_passwords_of_others_are_left_alone_and_who_cannot_log_in_is_warned_of(scene: Scene) -> None:
    client = KafkaClient(scene.server.bootstrap)
    client.perform(SetCredential("bob", "SCRAM-SHA-512", 8192, "of bob"))
    client.close()
    scene.apply(USER % "bob", USER % "etl" + "  authentication: {type: tls}\n")
    wait_until(lambda: scene.reason("bob") == "PasswordOfOthers", "it says so")
    assert scene.access().credentials == {"bob": {"SCRAM-SHA-512": 8192}}
    scene.until_ready("etl")
    conditions = {found["type"]: found for found in scene.document("etl")["status"]["conditions"]}
    assert conditions["NotServed"]["reason"] == "NobodyCanLogIn"


def test_what_is_at_rest_is_written_by_nobody(scene: Scene) -> None:
    scene.apply(USER % "etl" + RULES + "  quotas: {consumerByteRate: 1Mi}\n")
    scene.until_ready("etl")
    before = scene.kavka.said, scene.document("etl"), scene.access()
    time.sleep(11)  # two looks
    assert (scene.kavka.said, scene.document("etl"), scene.access()) == before


def test_what_is_exported_changes_nothing_when_it_is_applied(scene: Scene) -> None:
    scene.apply(USER % "etl" + RULES)
    scene.until_ready("etl")
    client = KafkaClient(scene.server.bootstrap)
    client.perform(CreateAcls("User:bob", (Binding("Deny", "All", "Cluster", "Literal", "*", "kafka-cluster"),)))
    client.perform(SetCredential("carol", "SCRAM-SHA-256", 4096, "of carol"))
    client.close()
    code, said = scene.kavka.run("export")
    assert code == 0, said
    assert 'the password of user "carol": nobody can read it' in said
    assert "name: etl" not in said
    documents = "".join(f"---\n{part}" for part in said.split("---\n") if "kind: KafkaUser" in part)
    before = scene.access()
    scene.apply(USER % "etl" + RULES, documents.partition("left out")[0])
    scene.until_ready("bob", "carol")
    assert scene.access() == before


def test_odd_names_and_mechanisms_come_through_the_wire(scene: Scene) -> None:
    """The client alone: names with every kind of character, both mechanisms, rules of every kind, done twice."""
    client = KafkaClient(scene.server.bootstrap)
    names = ('CN="a\\b",O=c', "ünïcode ☃", "x" * 256, "a;b, c=d", "default")
    rules = (
        Binding("Allow", "All", "TransactionalId", "Prefixed", "10.0.0.1", "a b"),
        Binding("Deny", "CreateTokens", "User", "Literal", "*", "User:x"),
        Binding("Allow", "Describe", "DelegationToken", "Literal", "*", "t"),
        Binding("Allow", "ClusterAction", "Cluster", "Literal", "*", "kafka-cluster"),
    )
    for mechanism, iterations in (("SCRAM-SHA-256", 4097), ("SCRAM-SHA-512", 5120)):
        given = [SetCredential(name, mechanism, iterations, "pässword") for name in names]
        assert client.perform_many(given) == [None] * len(names)
    made = [CreateAcls(f"User:{name}", rules) for name in names]
    assert client.perform_many(made) == client.perform_many(made) == [None] * len(names)
    seen = client.access([1])
    assert seen.rules is not None
    for name in names:
        assert seen.credentials[name] == {"SCRAM-SHA-256": 4097, "SCRAM-SHA-512": 5120}
        assert seen.rules[f"User:{name}"] == frozenset(rules)
    assert seen.logins is not None
    assert set(seen.logins) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert client.perform_many([DeleteAcls(f"User:{name}", rules) for name in names]) == [None] * len(names)
    for _ in range(2):
        gone = [DropCredential(name, "SCRAM-SHA-256") for name in names]
        assert client.perform_many(gone) == [None] * len(names)
    after = client.access([1])
    assert (after.rules, set(after.credentials)) == ({}, set(names))
    client.close()
