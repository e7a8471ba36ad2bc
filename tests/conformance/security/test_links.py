"""Nodes that ask each other who they are: three of them, ordinary clients, a node killed; and nodes that are strangers.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

import ssl
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.conformance.cluster.history import create_topic, is_whole
from tests.conformance.cluster.test_failover import survive
from tests.conformance.security.test_plain import jaas
from tests.conformance.security.test_scram import MODULE as SCRAM_MODULE
from tests.support.nodes import Nodes, apart, cluster, combined
from tests.support.programs import kafka_tool
from tests.support.secured import certificates
from tests.support.servers import is_apache_kafka
from tests.support.wire import Connection

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

PASSWORD = "a node's own secret"
ADDRESSES = "DNS:localhost,IP:127.0.0.1"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALONE = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
#: By name: what brokers and controllers speak, by which mechanism brokers log in, and who the nodes are then.
KINDS = {
    "certificates": ("SSL", "SSL", "", "CN=broker"),
    "passwords": ("SASL_PLAINTEXT", "SASL_PLAINTEXT", "PLAIN", "node"),
    "passwords over TLS": ("SASL_SSL", "SASL_SSL", "PLAIN", "node"),
    "SCRAM over TLS": ("SASL_SSL", "SSL", "SCRAM-SHA-512", "node"),
}
#: Fetch, Vote, BeginQuorumEpoch, AlterPartition, Envelope, BrokerRegistration, by their oldest flexible versions.
OF_NODES = {1: 12, 52: 1, 53: 1, 56: 2, 58: 0, 62: 0}
ADD_USER = ("--add-scram", f"SCRAM-SHA-512=[name=node,password={PASSWORD}]")


def settings(kind: str, keys: Path, password: str = PASSWORD) -> dict[str, str]:
    """What a node of a kind is configured with. All may do everything that log in as the nodes do, and at PLAINTEXT."""
    brokers, controllers, mechanism, user = KINDS[kind]
    login = jaas(username="node", password=password, user_node=PASSWORD).replace("\\", "\\\\")
    scram = f'{SCRAM_MODULE} required username="node" password="{password}";'
    found = {
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,INSIDE:{brokers},CONTROLLER:{controllers}",
        "inter.broker.listener.name": "INSIDE",
        "super.users": f"User:{user};User:ANONYMOUS;User:CN=broker",
        "authorizer.class.name": AUTHORIZER,
    }
    if "SSL" in {*brokers.split("_"), *controllers.split("_")}:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keys / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(keys / "ca.crt"),
            "ssl.client.auth": "required",
        }
    if mechanism:
        found["sasl.mechanism.inter.broker.protocol"] = mechanism
        found["sasl.enabled.mechanisms"] = mechanism
        found[f"listener.name.inside.{mechanism.lower()}.sasl.jaas.config"] = scram if "SCRAM" in mechanism else login
    if controllers.startswith("SASL"):
        found["sasl.mechanism.controller.protocol"] = "PLAIN"
        found["listener.name.controller.sasl.enabled.mechanisms"] = "PLAIN"
        found["listener.name.controller.plain.sasl.jaas.config"] = login
    return found


@pytest.mark.parametrize("shape", ["combined", "apart"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_where_nodes_ask_each_other_who_they_are(tmp_path: Path, kind: str, shape: str) -> None:
    keys = certificates(tmp_path / "keys", ADDRESSES).directory
    places = combined(3) if shape == "combined" else apart(controllers=1, brokers=3)
    with cluster(tmp_path, places, settings(kind, keys), options=ADD_USER) as nodes:
        admin = create_topic(nodes)
        survive(nodes, lambda: nodes.broker_ids[0], is_back=lambda: is_whole(admin), seconds=2)
        said = kafka_tool("metadata-quorum", "--bootstrap-server", nodes.bootstrap, "describe", "--status")
        assert "LeaderId" in said


@pytest.mark.parametrize("kind", ["passwords", "certificates"])
def test_a_node_that_the_others_do_not_know_does_not_join_and_says_why(tmp_path: Path, kind: str) -> None:
    keys = certificates(tmp_path / "keys", ADDRESSES).directory
    with cluster(tmp_path, apart(controllers=1, brokers=2), settings(kind, keys), started=False) as nodes:
        strangers = certificates(tmp_path / "strangers", ADDRESSES).directory
        path = nodes[2].directory / "server.properties"
        other = "another secret" if kind == "passwords" else PASSWORD
        changed = settings(kind, strangers if kind == "certificates" else keys, other)
        if kind == "certificates":  # it trusts the others, and only they do not trust it
            changed["ssl.truststore.location"] = str(keys / "ca.crt")
        with path.open("a") as file:  # of a key that stands twice the last counts
            file.write("".join(f"{key}={value}\n" for key, value in changed.items()))
        nodes.start(100, 1)
        nodes[2].launch()
        nodes.wait("the second says why", lambda: says_why(nodes, kind))
        assert brokers_told(nodes) == {1}


@pytest.mark.skipif(is_apache_kafka(), reason="its words are its own")
def test_a_node_that_may_not_do_what_nodes_do_is_told_what_to_change(tmp_path: Path) -> None:
    keys = certificates(tmp_path / "keys", ADDRESSES).directory
    given = {**settings("passwords", keys), "super.users": "User:ANONYMOUS"}
    with cluster(tmp_path, apart(controllers=1, brokers=1), given, started=False) as nodes:
        nodes[100].launch()
        nodes[1].launch()
        nodes.wait("the broker says what to change", lambda: "super.users" in nodes[1].log_path.read_text())


def says_why(nodes: Nodes, kind: str) -> bool:
    """Whether the second node says why it is not let in, or where that is told."""
    said = nodes[2].log_path.read_text()
    if kind == "passwords":
        return "Invalid username or password" in said
    theirs = nodes[100].log_path.read_text()
    return "before this node was known there" in said and "certificate verify failed" in theirs


def brokers_told(nodes: Nodes) -> set[int]:
    """The ids of the brokers that a client of the first is told."""
    return set(AdminClient({"bootstrap.servers": nodes[1].bootstrap}).list_topics(timeout=60).brokers)


@pytest.mark.parametrize("kind", ["passwords", "certificates"])
def test_a_stranger_is_answered_nothing_of_what_nodes_ask(tmp_path: Path, kind: str) -> None:
    keys = certificates(tmp_path / "keys", ADDRESSES).directory
    with cluster(tmp_path, combined(1), {**settings(kind, keys), **ALONE}) as nodes:
        (place,) = nodes.places
        for port in (place.inside_port, place.controller_port):
            for api_key, version in OF_NODES.items():
                with Connection(("127.0.0.1", port)) as stranger:
                    assert stranger.request(api_key, version, bytes(64), flexible=True) is None, (port, api_key)
            if kind == "certificates":
                context = ssl.create_default_context(cafile=keys / "ca.crt")
                assert not speaks(context, port)


def speaks(context: ssl.SSLContext, port: int) -> bool:
    """Whether a client without a certificate gets an answer to ApiVersions."""
    with Connection(("127.0.0.1", port)) as plain:
        try:
            with context.wrap_socket(plain.socket, server_hostname="localhost") as wrapped:
                wrapped.sendall(bytes.fromhex("0000000a0012000000000007ffff"))
                return bool(wrapped.recv(1))
        except (ssl.SSLError, ConnectionError):
            return False
