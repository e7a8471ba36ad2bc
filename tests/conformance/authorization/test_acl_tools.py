"""Apache Kafka's tool for access rules, against the server under test: rules come, are listed, hold, and go."""

import json
from collections.abc import Iterator

import pytest

from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from tests.support.asking import ask
from tests.support.programs import kafka_tool
from tests.support.servers import Server, start_server
from tests.unit.operator.person import run

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
    server = start_server(tmp_path_factory.mktemp("guarded"), settings)
    ask(server.address, CreateTopicsRequest([CreatableTopic("orders", 1, 1)]), CreateTopicsResponse)
    yield server
    server.kill()


def acls(server: Server, *words: str) -> str:
    return kafka_tool("acls", "--bootstrap-server", server.bootstrap, *words)


def told(server: Server, *words: str) -> list[tuple[str, ...]]:
    """What `kavka acls` tells of rules about topics."""
    code, said = run("acls", "--bootstrap", server.bootstrap, "-o", "json", *words)
    assert code == 0, said
    keys = ("principal", "permission", "operation", "resourceName", "patternType", "host")
    return [tuple(rule[key] for key in keys) for rule in json.loads(said)["rules"] if rule["resourceType"] == "Topic"]


def test_rules_are_added_listed_and_removed(guarded: Server) -> None:
    acls(guarded, "--add", "--allow-principal", "User:a", "--producer", "--topic", "orders")
    acls(guarded, "--add", "--deny-principal", "User:b", "--deny-host", "10.0.0.0", "--operation", "Read",
         "--topic", "ord", "--resource-pattern-type", "prefixed")  # fmt: skip
    listed = acls(guarded, "--list")
    assert "resourceType=TOPIC, name=orders, patternType=LITERAL" in listed
    assert "principal=User:a, host=*, operation=WRITE, permissionType=ALLOW" in listed
    assert "principal=User:b, host=10.0.0.0, operation=READ, permissionType=DENY" in listed
    matching = acls(guarded, "--list", "--topic", "ordinary", "--resource-pattern-type", "match")
    assert "User:b" in matching
    assert "User:a" not in matching
    assert told(guarded, "--resource", "topic/ordinary") == [("User:b", "Deny", "Read", "ord", "Prefixed", "10.0.0.0")]
    ours = told(guarded, "--principal", "a")
    assert ("User:a", "Allow", "Write", "orders", "Literal", "*") in ours
    assert {rule[0] for rule in ours} == {"User:a"}
    acls(guarded, "--remove", "--force", "--topic", "orders", "--resource-pattern-type", "match")
    left = acls(guarded, "--list")
    assert "User:a" not in left
    assert "User:b" not in left


@pytest.mark.extended
def test_rules_outlive_a_restart(guarded: Server) -> None:
    acls(guarded, "--add", "--allow-principal", "User:c", "--operation", "All", "--group", "*")
    guarded.stop()
    guarded.start()
    assert "principal=User:c, host=*, operation=ALL, permissionType=ALLOW" in acls(guarded, "--list")
