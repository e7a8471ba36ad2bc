"""Delegation tokens (KIP-48): Apache Kafka's tool makes, shows, renews and ends them, and its clients log in by them.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.security.test_plain import MODULE as PLAIN_MODULE
from tests.conformance.security.test_scram import MODULE as SCRAM_MODULE
from tests.support.programs import kafka_tool
from tests.support.servers import Server, free_port, is_apache_kafka, start_apache_kafka, start_server
from tests.support.topics import create_topic

pytestmark = pytest.mark.java

USERS = {"alice": "of alice", "bob": "of bob", "carol": "of carol"}
TOKEN_LINE = re.compile(
    r"^(?P<id>[\w-]{22}) +(?P<hmac>[A-Za-z0-9+/]{86}==) +(?P<owner>\S+) +(?P<requester>\S+) +", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A broker, its address for clients that log in, and a directory for their properties."""

    server: Server
    address: str
    directory: Path

    def properties(self, name: str, mechanism: str, module: str, **options: str) -> Path:
        words = " ".join(f'{option}="{text}"' for option, text in options.items())
        path = self.directory / f"{name}.properties"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={module} required {words};\n"
        )
        return path

    def of_user(self, user: str) -> Path:
        return self.properties(user, "PLAIN", PLAIN_MODULE, username=user, password=USERS[user])

    def of_token(self, mechanism: str, token_id: str, hmac: str) -> Path:
        return self.properties(
            f"token-{mechanism}", mechanism, SCRAM_MODULE, username=token_id, password=hmac, tokenauth="true"
        )

    def tool(self, user: str, *arguments: str) -> str:
        client = str(self.of_user(user))
        return kafka_tool(
            "delegation-tokens", "--bootstrap-server", self.address, "--command-config", client, *arguments
        )

    def create(self, user: str, *arguments: str) -> re.Match[str]:
        """A token, as the tool prints it."""
        said = self.tool(user, "--create", "--max-life-time-period", "-1", *arguments)
        found = TOKEN_LINE.search(said)
        assert found is not None, said
        return found


def settings(ports: dict[str, int]) -> dict[str, str]:
    """Of a broker that makes tokens."""
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
        "listener.name.clients.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "listener.name.clients.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "delegation.token.secret.key": "shared by all nodes",
    }


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokens]:
    ports = {name: free_port() for name in ("PLAINTEXT", "CLIENTS", "CONTROLLER")}
    directory = tmp_path_factory.mktemp("tokens")
    server = start_server(directory / "broker", settings(ports))
    yield Tokens(server, f"127.0.0.1:{ports['CLIENTS']}", directory)
    server.kill()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_java_clients_log_in_by_a_token(tokens: Tokens, name: str, mechanism: str) -> None:
    create_topic(tokens.server, name)
    made = tokens.create("alice")
    client = str(tokens.of_token(mechanism, made["id"], made["hmac"]))
    address = ("--bootstrap-server", tokens.address, "--topic", name)
    kafka_tool("console-producer", *address, "--command-config", client, stdin="by a token\n")
    read = ("--command-config", client, "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000")
    assert kafka_tool("console-consumer", *address, *read) == "by a token\n"


def test_a_token_is_shown_renewed_and_ended(tokens: Tokens) -> None:
    made = tokens.create("alice", "--renewer-principal", "User:bob")
    for user in ("alice", "bob"):
        shown = tokens.tool(user, "--describe", "--owner-principal", "User:alice")
        assert made["id"] in [line["id"] for line in TOKEN_LINE.finditer(shown)]
    renewed = tokens.tool("bob", "--renew", "--renew-time-period", "60000", "--hmac", made["hmac"])
    assert "Completed renew operation" in renewed
    with pytest.raises(AssertionError, match="DelegationTokenOwnerMismatch"):
        tokens.tool("carol", "--expire", "--expiry-time-period", "-1", "--hmac", made["hmac"])
    ended = tokens.tool("alice", "--expire", "--expiry-time-period", "-1", "--hmac", made["hmac"])
    assert "Completed expire operation" in ended
    with pytest.raises(AssertionError, match="DelegationTokenNotFound"):
        tokens.tool("alice", "--renew", "--renew-time-period", "-1", "--hmac", made["hmac"])
    client = str(tokens.of_token("SCRAM-SHA-256", made["id"], made["hmac"]))
    with pytest.raises(AssertionError, match="SaslAuthenticationException"):
        kafka_tool("topics", "--bootstrap-server", tokens.address, "--command-config", client, "--list")


def test_a_token_for_another_user_is_that_users(tokens: Tokens) -> None:
    made = tokens.create("alice", "--owner-principal", "User:carol")
    assert (made["owner"], made["requester"]) == ("User:carol", "User:alice")


def test_who_has_logged_in_by_a_token_makes_none(tokens: Tokens) -> None:
    made = tokens.create("alice")
    client = str(tokens.of_token("SCRAM-SHA-256", made["id"], made["hmac"]))
    words = ("--bootstrap-server", tokens.address, "--command-config", client)
    with pytest.raises(AssertionError, match="Delegation Token requests are not allowed"):
        kafka_tool("delegation-tokens", *words, "--create", "--max-life-time-period", "-1")


@pytest.mark.skipif(is_apache_kafka(), reason="it is on both sides already")
def test_a_token_of_apache_kafka_lets_in_here_and_one_of_ours_there(tmp_path: Path) -> None:
    """A cluster that goes from the one to the other and back, on the same directory."""
    ports = {name: free_port() for name in ("PLAINTEXT", "CLIENTS", "CONTROLLER")}
    address = f"127.0.0.1:{ports['CLIENTS']}"
    kafka = start_apache_kafka(tmp_path / "broker", settings(ports))
    there = Tokens(kafka, address, tmp_path)
    try:
        made = there.create("alice")
        assert kafka.stop() is not None
        theirs, config = kafka.command, str(tmp_path / "broker" / "server.properties")
        kafka.command = [sys.executable, "-m", "kavka_broker", "run", "--config", config]
        kafka.start()
        lists(there, made)
        ours = there.create("bob")
        kafka.stop()
        kafka.command = theirs
        kafka.start()
        lists(there, made)
        lists(there, ours)
    finally:
        kafka.kill()


def lists(tokens: Tokens, token: re.Match[str]) -> None:
    """Log in by a token, and ask for something."""
    client = str(tokens.of_token("SCRAM-SHA-256", token["id"], token["hmac"]))
    kafka_tool("topics", "--bootstrap-server", tokens.address, "--command-config", client, "--list")
