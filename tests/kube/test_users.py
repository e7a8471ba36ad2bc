"""KafkaUsers on a real API server and a real broker: their Secrets, who owns them, what is told, and a client of each.

The broker has a listener that asks who clients are, and an authorizer.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from kavka_operator.kafka.client import KafkaClient
from tests.conformance.security.test_kafka_users import AUTHORIZER, is_let_in, produced
from tests.conformance.security.test_scram import settings
from tests.kube.cluster import Kubernetes, verdict
from tests.kube.objects import external, ruled, user
from tests.kube.test_events import reasons
from tests.kube.test_many import asked, has_looked, made, ready
from tests.kube.test_operator import Operated, answered, own_topic
from tests.support.control_plane import Json
from tests.support.servers import Server, free_port, start_server
from tests.support.waiting import until_outside

MANY = 1000
MANY_SECONDS_MAX = 300.0
METRICS_SECONDS = 5


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker for all tests of this file, which asks who clients are."""
    ports = free_port(), free_port(), free_port()
    running = start_server(tmp_path_factory.mktemp("broker"), {**settings(*ports), **AUTHORIZER})
    yield running
    running.kill()


@pytest.fixture
def operated(kubernetes: Kubernetes, broker: Server, tmp_path: Path) -> Iterator[Operated]:
    """A namespace with a KafkaCluster that somebody else runs, and no operator yet."""
    scene = Operated(kubernetes, broker, tmp_path / "operator.log")
    assert kubernetes.create(external(bootstrapServers=broker.bootstrap)).is_well
    yield scene
    scene.stop()


def secret(scene: Operated, name: str) -> Json:
    """A Secret as it is stored; empty where there is none."""
    answer = scene.kubernetes.api.call("GET", f"/api/v1/namespaces/{scene.kubernetes.namespace}/secrets/{name}")
    return answer.body if answer.is_well else {}


def texts(scene: Operated, name: str) -> dict[str, str]:
    """The texts of a Secret; empty where there is none."""
    return {key: base64.b64decode(value).decode() for key, value in secret(scene, name).get("data", {}).items()}


def writer(scene: Operated, topic: str, **spec: Any) -> Json:
    """A user of this test alone, who may write one topic."""
    acl = {"resource": {"type": "Topic", "name": topic}, "operations": ["Write", "Describe"]}
    return user("etl", userName=f"{scene.kubernetes.namespace}-etl", acls=[acl], **spec)


def test_a_client_logs_in_with_the_secret_of_its_namespace(operated: Operated) -> None:
    orders = own_topic(operated, "orders", partitions=1)
    assert operated.kubernetes.create(orders).is_well
    other = own_topic(operated, "other", partitions=1)
    assert operated.kubernetes.create(other).is_well
    name = orders["spec"]["topicName"]
    assert operated.kubernetes.create(writer(operated, name, quotas={"producerByteRate": "10Mi"})).is_well
    operated.start()
    operated.until_ready(("Topic", "orders"), ("Topic", "other"), ("KafkaUser", "etl"))
    stored = operated.kubernetes.get("KafkaUser", "etl")
    assert verdict(stored) == "Current"
    assert (stored["status"]["secret"], stored["status"]["aclCount"]) == ("etl", 2)
    (owner,) = secret(operated, "etl")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("KafkaUser", stored["metadata"]["uid"])
    client = texts(operated, "etl")
    assert produced(client, name) is None
    refused = produced(client, other["spec"]["topicName"])
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    shown = operated.kubernetes.shows("get", "kvu", "etl")
    assert shown.split()[:8] == ["NAME", "CLUSTER", "USER", "LOGIN", "ACLS", "READY", "REASON", "AGE"]
    operated.at_rest()


def test_a_secret_is_made_again_rotated_and_goes_with_its_user(operated: Operated) -> None:
    assert operated.kubernetes.create(writer(operated, "x")).is_well
    figures, people = free_port(), free_port()
    operated.start(KAVKA_LISTEN=f"127.0.0.1:{figures}", KAVKA_CONSOLE=f"127.0.0.1:{people}")
    operated.until_ready(("KafkaUser", "etl"))
    first = texts(operated, "etl")
    operated.kubernetes.shows("delete", "secret", "etl")
    operated.until(lambda: texts(operated, "etl").get("password", first["password"]) != first["password"])
    second = texts(operated, "etl")
    operated.until(lambda: is_let_in(texts(operated, "etl")))
    assert not is_let_in(first)
    assert operated.kubernetes.apply(writer(operated, "x", authentication={"rotate": "now"})).is_well
    operated.until(lambda: texts(operated, "etl")["password"] != second["password"])
    operated.until(lambda: is_let_in(texts(operated, "etl")))
    third = texts(operated, "etl")
    patch = {"stringData": {"password": "chosen by a person"}}
    operated.kubernetes.shows("patch", "secret", "etl", "--patch", json.dumps(patch))
    operated.until(lambda: 'password="chosen by a person"' in texts(operated, "etl")["sasl.jaas.config"])
    operated.until(lambda: is_let_in(texts(operated, "etl")))
    assert not is_let_in(third)
    operated.until(lambda: {"SecretWritten", "PasswordSet"} <= set(reasons(operated, "KafkaUser", "etl")))
    hidden = [found[key] for found in (first, second, third) for key in ("password",)]
    hidden += [json.loads(found["kavka.json"])["key"] for found in (first, second, third)]
    told = [
        operated.log.read_text(),
        operated.kubernetes.shows("get", "events", "--output", "json"),
        operated.kubernetes.shows("get", "kvc,kvt,kvq,kvu", "--output", "json"),
        answered(figures, "/metrics"),
        answered(people, "/"),
    ]
    assert all(told), told
    assert not [words for words in told for password in hidden if password in words]
    operated.kubernetes.shows("delete", "kvu", "etl", "--timeout=120s")
    operated.until(lambda: not secret(operated, "etl"))
    client = KafkaClient(operated.broker.bootstrap)
    assert f"{operated.kubernetes.namespace}-etl" not in client.access([1]).credentials
    client.close()


def test_a_secret_of_somebody_else_stays_as_it_is(operated: Operated) -> None:
    operated.kubernetes.shows("create", "secret", "generic", "etl", "--from-literal=password=of-a-database")
    assert operated.kubernetes.create(writer(operated, "x")).is_well
    operated.start()
    operated.until(lambda: operated.condition("KafkaUser", "etl")[1] == "SecretTaken")
    assert texts(operated, "etl") == {"password": "of-a-database"}
    taken = writer(operated, "x", authentication={"passwordFrom": {"name": "etl"}})
    assert operated.kubernetes.apply(taken).is_well
    operated.until_ready(("KafkaUser", "etl"))
    assert texts(operated, "etl") == {"password": "of-a-database"}


def test_a_user_that_is_retained_keeps_its_secret(operated: Operated) -> None:
    assert operated.kubernetes.create(writer(operated, "x")).is_well
    operated.start()
    operated.until_ready(("KafkaUser", "etl"))
    assert operated.kubernetes.apply(writer(operated, "x", deletionPolicy="Retain")).is_well
    operated.until(lambda: "ownerReferences" not in secret(operated, "etl")["metadata"])
    kept = texts(operated, "etl")
    operated.until(lambda: not operated.kubernetes.get("KafkaUser", "etl")["metadata"].get("finalizers"))
    operated.kubernetes.shows("delete", "kvu", "etl", "--timeout=120s")
    assert operated.kubernetes.create(writer(operated, "x")).is_well
    operated.until_ready(("KafkaUser", "etl"))
    operated.until(lambda: "ownerReferences" in secret(operated, "etl")["metadata"])
    assert texts(operated, "etl")["password"] == kept["password"]
    assert is_let_in(texts(operated, "etl"))


@pytest.mark.slow
@pytest.mark.extended
def test_a_thousand_users_take_few_requests_and_none_that_writes_at_rest(operated: Operated, tmp_path: Path) -> None:
    place = operated.kubernetes.namespace
    acls = ruled()["spec"]["acls"]
    users = [user(f"u{number}", userName=f"{place}-{number}", acls=acls) for number in range(MANY)]
    made(operated.kubernetes, users, tmp_path)
    operated.start()
    until_outside(lambda: ready(operated, "KafkaUser") == MANY, MANY_SECONDS_MAX)
    found = asked(operated)
    for kind in ("AlterUserScramCredentialsRequest", "CreateAclsRequest"):
        assert found[kind] <= MANY / 200 + 1, found
    # A write shows at the API server a moment before the operator tells of it: with the next look it has.
    looks = found["DescribeClientQuotasRequest"] + 1
    until_outside(lambda: has_looked(operated, looks), MANY_SECONDS_MAX)
    written = operated.writes()
    until_outside(lambda: has_looked(operated, looks + 1), MANY_SECONDS_MAX)
    again = Counter(operated.writes()[len(written) :])
    assert not [what for what in again if "KafkaUser" in what or "Secret" in what or "password" in what], again
