"""A cluster that somebody else runs: what is said of it, when it is asked, and that nothing of it is touched."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.external import External
from kavka_operator.api.kinds import AnyResource
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.observed import SeenBroker
from kavka_operator.kafka.admin import AdminError, BarredError
from kavka_operator.loop.cluster_loop import ClusterLoop
from kavka_operator.loop.requeue import DRIFT_SECONDS
from kavka_operator.platform.external import ExternalPlatform, SecretError, security_of
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.secrets import read_secret
from tests.unit.operator.fakes import NOW, FakeKafka, FakePlatform, FakeResources, cluster, quota, topic

TLS = {"caSecret": {"name": "ca"}, "clientSecret": {"name": "me"}}
SASL = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "user"}}
SECRETS = {
    "ca": {"ca.crt": "A"},
    "me": {"tls.crt": "C", "tls.key": "K"},
    "user": {"username": "kavka", "password": "old"},
}


def external(metadata: Mapping[str, Any] | None = None, **asked: Any) -> KafkaCluster:
    spec = {"external": {"bootstrapServers": "a:1,b:2", **asked}}
    return KafkaCluster.decode({"metadata": {"name": "main", **(metadata or {})}, "spec": spec})


class Scene:
    """A loop of an external cluster."""

    def __init__(self, wanted: KafkaCluster) -> None:
        self.kafka, self.nodes = FakeKafka(), FakePlatform()
        self.kafka.brokers = {7: SeenBroker(7, "a:1", "rack-a", leaders=3)}
        self.secrets: dict[str, dict[str, str]] = {name: dict(texts) for name, texts in SECRETS.items()}
        self.wanted: list[AnyResource] = [
            wanted,
            topic("orders", partitions=3),
            quota("clicks", {"user": {"name": "bob"}}),
        ]
        self.resources = FakeResources(*self.wanted)
        self.seconds, self.asked = 0.0, list[tuple[str, Security]]()
        self.barred: AdminError | None = None
        platform = ExternalPlatform(self.nodes, self._secret, lambda: self.seconds)
        self.loop = ClusterLoop(
            self.resources, platform, self._connect, print, lambda: None, lambda: self.seconds, lambda: NOW
        )

    def _secret(self, name: str) -> dict[str, str]:
        if name not in self.secrets:
            raise SecretError(f'there is no Secret "{name}"; make it')
        return self.secrets[name]

    def _connect(self, bootstrap: str, security: Security = OPEN) -> FakeKafka:
        self.asked.append((bootstrap, security))
        if self.barred is not None:
            raise self.barred
        return self.kafka

    def look(self) -> None:
        """Let time pass until a look is due, and look."""
        self.seconds += self.loop.seconds_left
        question = self.loop.due()
        assert question is not None
        self.loop.follow(self.loop.look(question))

    def ready(self, place: int = 0) -> tuple[str, str, str]:
        """The condition Ready of a resource: status, reason, message."""
        conditions = self.resources.status(self.wanted[place])["conditions"]
        return next(
            (str(found["status"]), str(found["reason"]), str(found["message"]))
            for found in conditions
            if found["type"] == "Ready"
        )


def test_its_brokers_are_told_and_what_kafka_does_not_tell_is_said() -> None:
    scene = Scene(external())
    scene.look()
    status = scene.resources.status(scene.wanted[0])
    assert (status["bootstrapServers"], status["clusterId"], status["brokers"]) == ("a:1,b:2", "a-cluster", 1)
    (line,) = status["nodes"]
    assert (line["id"], line["rack"], line["leaders"], "restarts" in line) == (7, "rack-a", 3, False)
    assert scene.ready()[:2] == ("True", "Ready")
    assert "does not tell what clients use" in scene.ready()[2]
    assert scene.nodes.actions == []
    assert set(scene.kafka.topics) == {"orders"}


def test_users_of_an_external_cluster_may_have_names() -> None:
    scene = Scene(external())
    scene.look()
    assert {found["type"] for found in scene.resources.status(scene.wanted[2])["conditions"]} == {"Ready"}


def test_at_rest_nothing_is_written() -> None:
    scene = Scene(external(tls=TLS, sasl=SASL))
    scene.look()
    scene.look()
    before = scene.resources.writes, len(scene.kafka.writes)
    scene.look()
    assert (scene.resources.writes, len(scene.kafka.writes), len(scene.asked)) == (*before, 1)


def test_a_changed_secret_is_used_for_a_new_connection() -> None:
    scene = Scene(external(tls=TLS, sasl=SASL))
    scene.look()
    first = Security(True, "A", "C", "K", "SCRAM-SHA-512", "kavka", "old")
    assert scene.asked == [("a:1,b:2", first)]
    scene.secrets["user"]["password"] = "new"
    scene.look()
    scene.look()
    assert [asked.password for _, asked in scene.asked] == ["old", "new"]


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("ca", None, 'spec.external.tls.caSecret: there is no Secret "ca"; make it'),
        ("me", "tls.key", 'spec.external.tls.clientSecret: the Secret "me" has no tls.key; add it'),
        ("user", "password", 'spec.external.sasl.secretRef: the Secret "user" has no password; add it'),
    ],
)
def test_a_secret_that_is_missing_is_named_and_nobody_is_asked(name: str, key: str | None, words: str) -> None:
    scene = Scene(external(tls=TLS, sasl=SASL))
    if key is None:
        del scene.secrets[name]
    else:
        del scene.secrets[name][key]
    scene.look()
    assert scene.ready() == ("False", "SecretMissing", words)
    assert scene.ready(1)[:2] == ("Unknown", "ClusterUnavailable")
    assert scene.asked == []
    assert scene.loop.seconds_left == DRIFT_SECONDS
    scene.secrets = {name: dict(texts) for name, texts in SECRETS.items()}
    scene.look()
    assert scene.ready()[:2] == scene.ready(1)[:2] == ("True", "Ready")


def test_a_refused_password_is_not_tried_again_at_once() -> None:
    scene = Scene(external(tls=TLS, sasl=SASL))
    scene.barred = BarredError("NotAuthenticated", "spec.external.sasl: Kafka refuses user 'kavka'")
    scene.look()
    assert scene.ready()[1] == "NotAuthenticated"
    assert scene.loop.seconds_left == DRIFT_SECONDS


def test_a_cluster_that_does_not_answer_is_said_so_with_the_field() -> None:
    scene = Scene(external())
    scene.barred = AdminError("could not connect to a:1: DNS Resolution failure", retriable=True)
    scene.look()
    status, reason, words = scene.ready()
    assert (status, reason) == ("False", "NotAnswering")
    assert words.startswith("spec.external.bootstrapServers: could not connect")


def test_another_kafka_behind_the_address_is_left_alone_until_a_person_accepts_it() -> None:
    scene = Scene(external())
    scene.resources.documents[("KafkaCluster", "default", "main")]["status"] = {"clusterId": "former"}
    scene.look()
    assert scene.ready()[:2] == ("False", "ClusterReplaced")
    assert scene.kafka.writes == []
    assert scene.resources.status(scene.wanted[0])["clusterId"] == "former"
    accepted = external({"annotations": {"kavka.dev/forget-cluster-id": "former"}})
    document = {**accepted.to_dict(), "status": scene.resources.status(scene.wanted[0])}
    scene.resources.documents[("KafkaCluster", "default", "main")] = document
    scene.resources.version += 1
    scene.look()
    assert scene.ready()[:2] == ("True", "Ready")
    assert scene.resources.status(scene.wanted[0])["clusterId"] == "a-cluster"


def test_controllers_that_are_not_told_are_not_invented() -> None:
    scene = Scene(external())
    scene.kafka.untold = AdminError("could not look at the controllers: ClusterAuthorizationFailed")
    scene.look()
    assert scene.ready()[:2] == ("True", "Ready")
    status = scene.resources.status(scene.wanted[0])
    assert "activeController" not in status
    assert [found["status"] for found in status["conditions"] if found["type"] == "Available"] == ["Unknown"]


def test_what_a_broker_has_not_heard_of_yet_is_not_asked_for_twice() -> None:
    scene = Scene(external())
    scene.kafka.seen = scene.kafka.look(())
    scene.look()
    assert len(scene.kafka.writes) == 2, "one topic and one quota"
    assert scene.ready(1)[1] == "Creating"


def test_a_cluster_with_nodes_is_looked_after_as_ever() -> None:
    scene = Scene(cluster())
    scene.look()
    assert [str(action) for action in scene.nodes.actions] == ["start node 0"]


@pytest.mark.parametrize(
    "spec",
    [
        {"config": {"log.retention.ms": "5"}},
        {"image": "kavka:1"},
        {"rollout": {"hold": True}},
        {"metrics": {"enabled": False}},
        {"listeners": [{"name": "PLAINTEXT", "port": 9093}]},
        {"nodePools": [{"name": "nodes"}]},
    ],
)
def test_what_is_about_nodes_is_refused(spec: dict[str, Any]) -> None:
    asked = {"external": {"bootstrapServers": "a:1"}, **spec}
    with pytest.raises(InvalidError, match="somebody else run"):
        KafkaCluster.decode({"metadata": {"name": "main"}, "spec": asked})


def test_a_secret_on_one_machine_is_a_directory_with_a_file_for_each_key(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path, "default", "main")
    with pytest.raises(SecretError, match=r'no Secret "user"; make the directory .*/main/secrets/user'):
        read_secret(layout, "user")
    layout.secret("user").mkdir(parents=True)
    (layout.secret("user") / "username").write_text("kavka\n")
    (layout.secret("user") / "password").write_text(" pass word\r\n")
    wanted = External.decode({"bootstrapServers": "a:1", "sasl": SASL})
    found = security_of(wanted, lambda name: read_secret(layout, name))
    assert (found.username, found.password, found.protocol) == ("kavka", " pass word", "SASL_PLAINTEXT")
    assert "pass word" not in repr(found)
    (layout.secret("user") / "password").write_bytes(b"\xff\xfe")
    with pytest.raises(SecretError, match="cannot be read"):
        read_secret(layout, "user")
