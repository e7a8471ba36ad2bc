"""Certificates of pods: which Secrets are written, who mounts them, and what happens when they are renewed."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import Security
from kavka_operator.domain.cluster_view import View
from kavka_operator.platform.certificates.authority import facts, is_signed_by
from kavka_operator.platform.certificates.bundles import parted
from kavka_operator.platform.kubernetes.live.api import ApiError, Document
from tests.unit.operator.pods import Died, Scene, main

CLIENTS = {"name": "CLIENTS", "port": 9092, "protocol": "SASL_SSL", "sasl": {}}
OUTSIDE = {**CLIENTS, "name": "OUTSIDE", "port": 9094, "service": {"type": "LoadBalancer"}}
BEGIN = datetime(2026, 11, 25, 19, 0, tzinfo=UTC)


class SecuredScene(Scene):
    """A secured cluster on an API server in memory. `lets_in` is what brokers say to who shows a certificate."""

    def __init__(self, wanted: KafkaCluster | None = None) -> None:
        self.time, self.lets_in = BEGIN, True
        self.asked: list[tuple[str, int]] = []
        super().__init__(wanted or secured())

    def begin(self, image: str | None = "kavka/broker:1") -> Any:
        host = super().begin(image)
        host.certified.now = lambda: self.time
        host.certified.answers = self._answers
        return host

    def _answers(self, host: str, port: int, security: Security) -> bool:
        self.asked.append((host, port))
        return self.lets_in

    def later(self, days: int) -> View:
        self.time += timedelta(days=days)
        self.seconds += days * 86_400
        return self.look()

    def texts(self, name: str) -> dict[str, str]:
        data = self.api.one("Secret", name)["data"]
        return {key: base64.b64decode(text).decode() for key, text in data.items()}


def secured(**spec: Any) -> KafkaCluster:
    return main(**{"listeners": [CLIENTS], "authorization": {}, **spec})


def volume(document: Document, name: str) -> Document:
    found: Document = next(one for one in document["spec"]["volumes"] if one["name"] == name)
    return found


def test_each_pod_mounts_the_certificate_of_its_node_and_no_other() -> None:
    scene = SecuredScene()
    view = scene.start()
    nodes = [f"main-nodes-{number}" for number in range(3)]
    assert scene.api.names("Secret") == sorted(
        ["main-authority", "main-ca", "main-operator", *(f"{node}-certificates" for node in nodes)]
    )
    for node in nodes:
        pod = scene.api.one("Pod", f"{node}-0")
        assert volume(pod, "kavka-certificates")["secret"] == {
            "secretName": f"{node}-certificates",
            "defaultMode": 0o440,
        }
        (mount,) = [one for one in pod["spec"]["containers"][0]["volumeMounts"] if one["name"] == "kavka-certificates"]
        assert mount == {"name": "kavka-certificates", "mountPath": "/etc/kavka-certificates", "readOnly": True}
        assert "PRIVATE KEY" not in json.dumps(pod)
    assert scene.texts("main-ca").keys() == {"ca.crt"}
    assert "PRIVATE KEY" not in json.dumps(scene.texts("main-ca"))
    assert view.security.protocol == "SSL"
    assert view.security.authority == scene.texts("main-ca")["ca.crt"]
    assert view.bootstrap == ",".join(f"{node}-0.main-nodes.default.svc:11092" for node in nodes)
    assert view.outside == {"CLIENTS": "main-bootstrap.default.svc:9092"}
    owners = [
        one["metadata"]["ownerReferences"][0]["name"]
        for (kind, _), one in scene.api.objects.items()
        if kind == "Secret"
    ]
    assert owners == ["main"] * 6


def test_an_open_cluster_has_no_secret() -> None:
    scene = SecuredScene(main())
    scene.start()
    assert scene.api.names("Secret") == []
    assert "kavka-certificates" not in json.dumps(scene.api.one("Pod", "main-nodes-0-0"))


def test_at_rest_nothing_is_written_and_a_renewal_restarts_nobody() -> None:
    scene = SecuredScene()
    scene.start()
    before, text = len(scene.api.writes), scene.texts("main-nodes-0-certificates")["node.pem"]
    scene.later(30)
    scene.begin()
    scene.look()
    assert len(scene.api.writes) == before
    view = scene.later(31)
    assert scene.texts("main-nodes-0-certificates")["node.pem"] != text
    assert {words.split()[1] for words in scene.api.writes[before:]} == {"Secret"}
    assert all(node.fingerprint == view.seen[node.id].fingerprint for node in view.wanted)


def test_the_next_authority_signs_when_every_broker_lets_it_in() -> None:
    scene = SecuredScene()
    scene.lets_in = False
    scene.start()
    view = scene.later(1826 - 100)
    assert view.certificates is not None
    assert view.certificates.step == "Both"
    assert scene.asked == []
    view = scene.later(20)
    assert scene.asked == [("main-nodes-0-0.main-nodes.default.svc", 11092)], "the first that does not is enough"
    scene.lets_in = True
    view = scene.later(1)
    assert view.certificates is not None
    assert view.certificates.step == "Signing"
    authority = scene.texts("main-authority")
    assert authority.keys() == {"tls.crt", "tls.key", "former.crt"}
    for number in range(3):
        node = parted(scene.texts(f"main-nodes-{number}-certificates")["node.pem"])
        assert is_signed_by(node.certificate, authority["tls.crt"])


def test_certificates_name_every_host_by_which_a_broker_is_reached() -> None:
    scene = SecuredScene(secured(listeners=[CLIENTS, OUTSIDE]))
    scene.look()
    for number in range(3):
        document = scene.api.one("Service", f"main-nodes-{number}-9094")
        document["status"] = {"loadBalancer": {"ingress": [{"ip": f"192.0.2.{number}"}]}}
        scene.api.place(document)
    scene.look()
    found = facts(parted(scene.texts("main-nodes-1-certificates")["node.pem"]))
    assert found is not None
    assert found.names >= {
        "main-nodes-1-0.main-nodes.default.svc",
        "main-nodes-1-0.main-nodes.default.svc.cluster.local",
        "main-bootstrap.default.svc",
        "192.0.2.1",
    }
    assert "192.0.2.0" not in found.names


def test_an_operator_that_dies_after_any_write_is_followed_by_one_with_the_same_authority() -> None:
    whole = SecuredScene()
    whole.start()
    for last in range(len(whole.api.writes)):
        scene = SecuredScene()
        scene.api.last = last
        with pytest.raises(Died):
            scene.start()
        before = scene.texts("main-authority") if "main-authority" in scene.api.names("Secret") else None
        scene.api.last = None
        scene.begin()
        scene.start()
        assert before in (None, scene.texts("main-authority"))
        assert {node.state for node in scene.look().seen.values()} == {"Running"}


def test_a_secret_of_somebody_else_is_left_alone() -> None:
    scene = SecuredScene()
    theirs = {"kind": "Secret", "metadata": {"name": "main-ca", "namespace": "default"}, "data": {"ca.crt": "dGhlaXJz"}}
    scene.api.place(theirs)
    view = scene.look()
    assert view.refusal is not None
    assert 'Secret "main-ca" is there and is not of this KafkaCluster' in view.refusal
    assert scene.texts("main-ca") == {"ca.crt": "theirs"}
    assert scene.api.names("StatefulSet") == []


def test_an_operator_that_may_not_write_secrets_says_which_value_lets_it() -> None:
    scene = SecuredScene()
    scene.look()
    scene.begin()
    scene.api.unreadable = ApiError("secrets is forbidden", 403)
    view = scene.look()
    assert view.refusal is not None
    assert "securedNamespaces: [default]" in view.refusal


def test_a_listener_shows_a_certificate_of_cert_manager_and_its_next_one() -> None:
    scene = SecuredScene(secured(listeners=[{**CLIENTS, "tls": {"secretRef": {"name": "kafka-tls"}}}]))
    refusal = scene.look().refusal or ""
    assert 'spec.listeners[CLIENTS].tls.secretRef: there is no Secret "kafka-tls"' in refusal
    scene.api.secrets["kafka-tls"] = {"tls.crt": "first", "tls.key": "key", "ca.crt": "their authority"}
    scene.start()
    assert scene.texts("main-nodes-0-certificates")["listener-clients.pem"] == "key\nfirst\n"
    scene.api.secrets["kafka-tls"]["tls.crt"] = "second"
    scene.seconds += 61
    scene.look()
    assert scene.texts("main-nodes-0-certificates")["listener-clients.pem"] == "key\nsecond\n"
    assert scene.look().seen[0].changed == ()


def test_no_key_is_told() -> None:
    scene = SecuredScene()
    view = scene.start()
    keys = [scene.texts(name).get("tls.key", "") for name in ("main-authority", "main-operator")]
    lines = {line for key in keys for line in key.splitlines()[1:-1]}
    assert lines
    told = [
        repr(view),
        *scene.api.writes,
        *(json.dumps(one) for (kind, _), one in scene.api.objects.items() if kind != "Secret"),
    ]
    assert not any(line in text for line in lines for text in told)


def test_a_node_that_leaves_has_certificates_until_it_has_gone() -> None:
    scene = SecuredScene()
    scene.start()
    before = facts(parted(scene.texts("main-nodes-2-certificates")["node.pem"]))
    scene.wanted = secured(replicas=2)
    view = scene.later(65)
    assert [node.id for node in view.leaving] == [2]
    after = facts(parted(scene.texts("main-nodes-2-certificates")["node.pem"]))
    assert before is not None
    assert after is not None
    assert (after.names, after.ends > before.ends) == (before.names, True)
