"""Secured clusters: what their nodes are told, and that the broker takes it; open ones are told what they were."""

from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.authentication.inter_node import to_brokers, to_controllers
from kavka_broker.core.authentication.settings import sasl_of
from kavka_broker.core.authentication.tls import tls_of
from kavka_broker.core.authorization.settings import settings_of
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.security import protocols_of
from kavka_operator.api.settings import broker_faults
from kavka_operator.domain.certificates import SeenCertificates
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.plan import Plan, ready
from kavka_operator.platform.kubernetes.objects import manifests
from kavka_operator.platform.kubernetes.objects.settings import Layout, fingerprint, properties
from kavka_operator.platform.kubernetes.objects.spec_hash import mark_of
from kavka_operator.platform.local.layout import Layout as Folder
from kavka_operator.platform.local.node_identity import Members
from kavka_operator.platform.local.server_properties import LocalNode, local_nodes
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile.status import PassResult, cluster_status, with_words
from tests.unit.operator.fakes import NOW, quota
from tests.unit.operator.pods import SIZED, main
from tools.definitions.crd import resource_schema

CLIENTS = {"name": "CLIENTS", "port": 9092, "protocol": "SASL_SSL", "sasl": {}}
STAFF = {"clientAuth": "required", "clientCaSecret": {"name": "staff"}}
TOKENS = {
    "jwksEndpointUrl": "https://issuer.example/keys",
    "expectedIssuer": "https://issuer.example",
    "expectedAudience": "kafka",
}


def secured(**spec: Any) -> KafkaCluster:
    return main(**{"listeners": [CLIENTS], "authorization": {"superUsers": ["User:alice"]}, **spec})


def layouts(cluster: KafkaCluster) -> list[Layout]:
    nodes = nodes_of(cluster, {})
    return [Layout(cluster, nodes, node, "data") for node in nodes]


def locally(cluster: KafkaCluster) -> list[LocalNode]:
    folder = Folder(Path("/state/default/main"), "default", "main")
    return local_nodes(cluster, folder, Members().joined_by(cluster, lambda _: True))


def told(text: str) -> BrokerConfig:
    return BrokerConfig.parse(parse_properties(text))


@pytest.mark.parametrize("text", [properties(layouts(secured())[0]), locally(secured())[0].properties])
def test_the_broker_reads_what_a_secured_cluster_asks_for(text: str) -> None:
    config = told(text)
    spoken = {listener.name: listener.security_protocol for listener in config.listeners.opened}
    assert spoken == {"CLIENTS": "SASL_SSL", "NODES": "SSL", "CONTROLLER": "SSL"}
    assert config.listeners.inter_broker_name == "NODES"
    clients, nodes, controllers = config.listeners.opened
    sasl, of_clients = sasl_of(config, clients), tls_of(config, clients)
    assert sasl is not None
    assert sasl.mechanisms == ("SCRAM-SHA-512",)
    assert of_clients is not None
    assert of_clients.client_auth == "none"
    for listener in (nodes, controllers):
        found = tls_of(config, listener)
        assert found is not None
        assert (found.client_auth, found.truststore) == ("required", config["ssl.truststore.location"])
    for link in (to_brokers(config), to_controllers(config)):
        assert link.tls is not None
        assert link.tls.checks_names
        assert link.login is None
    settings = settings_of(config.given)
    assert settings.super_users == ("User:CN=node,O=kavka.dev", "User:CN=operator,O=kavka.dev", "User:alice")


def test_a_listener_has_its_own_certificates_and_tokens() -> None:
    listeners = [
        {"name": "STAFF", "port": 9092, "protocol": "SSL", "tls": STAFF},
        {"name": "WEB", "port": 9094, "protocol": "SSL", "tls": {"secretRef": {"name": "kafka-tls"}}},
        {
            "name": "TOKENS",
            "port": 9095,
            "protocol": "SASL_SSL",
            "sasl": {"mechanisms": ["OAUTHBEARER", "SCRAM-SHA-256"], "oauthbearer": TOKENS},
        },
    ]
    config = told(properties(layouts(secured(listeners=listeners))[0]))
    staff, web, tokens, *_ = config.listeners.opened
    of_staff, of_web, sasl = tls_of(config, staff), tls_of(config, web), sasl_of(config, tokens)
    assert of_staff is not None
    assert (of_staff.client_auth, Path(of_staff.truststore or "").name) == ("required", "listener-staff-clients.pem")
    assert of_web is not None
    assert Path(of_web.keystore).name == "listener-web.pem"
    assert sasl is not None
    assert sasl.mechanisms == ("OAUTHBEARER", "SCRAM-SHA-256")
    assert sasl.tokens is not None


def test_nodes_keep_their_subject_whatever_rule_is_set_for_clients() -> None:
    config = told(properties(layouts(secured(config={"ssl.principal.mapping.rules": "RULE:^CN=(.*),O=.*$/$1/"}))[0]))
    of_nodes = tls_of(config, next(one for one in config.listeners.opened if one.name == "NODES"))
    assert of_nodes is not None
    assert [rule.user("CN=node,O=kavka.dev") for rule in of_nodes.rules] == ["CN=node,O=kavka.dev"]


PINNED: dict[str, tuple[dict[str, Any], str, str]] = {
    "one listener": ({}, "6d9e79979486ca4e", "69379337caf53d30"),
    "a listener of another's NODES": (
        {
            "listeners": [
                {"name": "PLAINTEXT", "port": 9092},
                {"name": "NODES", "port": 9191, "advertised": "a-{id}:{port}"},
                {"name": "CONTROLLER", "port": 9093},
                {"name": "OUT", "port": 9094, "service": {"type": "NodePort"}},
            ],
            "config": {"num.io.threads": "4"},
            "nodePools": [
                {"name": "c", "replicas": 1, "roles": ["controller"], "storage": SIZED},
                {"name": "b", "replicas": 2, "roles": ["broker"], "storage": SIZED},
            ],
        },
        "866b3e37688d08f8",
        "ebd7b8159d58944f",
    ),
}


@pytest.mark.parametrize("name", PINNED)
def test_an_open_cluster_has_the_marks_that_the_version_before_this_gave_it(name: str) -> None:
    """So that no node is restarted because the operator is newer. The figures are of 2026-11-25, before this came."""
    spec, of_settings, of_what_is_asked = PINNED[name]
    layout = layouts(main(**spec))[0]
    assert (fingerprint(layout), mark_of(layout)) == (of_settings, of_what_is_asked)
    assert not any(word in properties(layout) for word in ("ssl.", "sasl.", "authorizer"))


@pytest.mark.parametrize(
    "spec",
    [
        {"authorization": {}},
        {"authorization": {"superUsers": ["User:alice"], "allowEveryoneIfNoAclFound": True}},
        {"listeners": [{**CLIENTS, "sasl": {"mechanisms": ["SCRAM-SHA-256"]}}]},
        {"listeners": [{**CLIENTS, "tls": {"secretRef": {"name": "kafka-tls"}}}]},
        {"listeners": [CLIENTS, {"name": "NODES", "port": 9191}]},
    ],
    ids=str,
)
def test_what_is_asked_of_security_restarts_nodes(spec: dict[str, Any]) -> None:
    before, after = layouts(secured())[0], layouts(secured(**spec))[0]
    assert fingerprint(before) != fingerprint(after)
    assert mark_of(before) != mark_of(after)


def test_how_long_certificates_hold_restarts_nobody() -> None:
    before, after = layouts(secured())[0], layouts(secured(tls={"certificates": {"validityDays": 60}}))[0]
    assert (fingerprint(before), mark_of(before)) == (fingerprint(after), mark_of(after))


def test_nodes_and_the_operator_come_by_a_listener_of_their_own() -> None:
    cluster = secured()
    host = "main-nodes-0-0.main-nodes.default.svc"
    assert layouts(cluster)[0].bootstrap == f"{host}:11092"
    assert layouts(cluster)[0].address == f"{host}:9092"
    node = locally(cluster)[1]
    assert (node.address, node.told, node.is_secured) == ("127.0.0.1:11093", "127.0.0.1:9093", True)
    services = {document["metadata"]["name"]: document["spec"] for document in manifests.shared(cluster)}
    assert [port["port"] for port in services["main-bootstrap"]["ports"]] == [9092, 11092]
    (policy,) = [document for document in manifests.shared(cluster) if document["kind"] == "NetworkPolicy"]
    everybody, nodes_only = policy["spec"]["ingress"]
    assert [port["port"] for port in everybody["ports"]] == [9092, 11092, 9644]
    assert [port["port"] for port in nodes_only["ports"]] == [10092]


def test_settings_that_follow_from_the_resource_are_refused_in_its_config() -> None:
    spec = secured().spec
    given = {
        "super.users": "User:mallory",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "listener.name.nodes.ssl.client.auth": "none",
        "listener.name.clients.ssl.keystore.location": "/tmp/other.pem",
        "listener.name.clients.scram-sha-512.sasl.jaas.config": "x",
        "connections.max.reauth.ms": "60000",
        "ssl.enabled.protocols": "TLSv1.3",
    }
    faults = dict(broker_faults(given, protocols_of(spec), is_secured=spec.is_secured))
    assert faults.keys() == given.keys() - {"connections.max.reauth.ms", "ssl.enabled.protocols"}
    assert dict(broker_faults({"ssl.enabled.protocols": "TLSv1.3"})), "an open cluster has no listener for it"


def test_the_status_tells_protocols_and_ends() -> None:
    cluster = secured()
    seen = SeenCertificates("Both", NOW, NOW, NOW, NOW)
    status = cluster_status(
        cluster,
        View(outside={"CLIENTS": "main-bootstrap.default.svc:9092"}, certificates=seen),
        PassResult(Plan(words=ready("all is well")), NOW),
    )
    (line,) = status.listeners
    assert (line.name, line.protocol, line.bootstrap_servers) == (
        *("CLIENTS", "SASL_SSL"),
        "main-bootstrap.default.svc:9092",
    )
    assert status.certificates is not None
    assert status.certificates.authority_end_time == NOW
    renewing = status.condition("AuthorityRenewing")
    assert renewing is not None
    assert renewing.reason == "BothTrusted"


def test_a_quota_of_a_user_meets_clients_where_listeners_ask_for_a_user() -> None:
    limit = quota("etl", entity={"user": {"name": "alice"}})
    assert with_words(limit, ready("applied"), NOW).condition("NotServed") is not None
    assert with_words(limit, ready("applied"), NOW, knows_users=True).condition("NotServed") is None


def test_what_is_left_out_of_a_stored_cluster_is_not_there_by_default() -> None:
    """An API server would secure, or audit, every cluster that it stores."""
    fields = resource_schema(KafkaCluster)["properties"]["spec"]["properties"]
    assert {name for name, part in fields.items() if part.get("default") == {}} == {"metrics", "rollout"}
    of_listeners = fields["listeners"]["items"]["properties"]
    assert not [name for name, part in of_listeners.items() if part.get("default") == {}]
    assert "x-left-out" not in str(fields)
