"""Three nodes with an authorizer, whose brokers are let in as super users: records and rules reach all of them."""

from collections.abc import Iterator

import pytest

from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import CreateAclsResponse
from kavka_broker.protocol.messages.describe_acls_request import DescribeAclsRequest
from kavka_broker.protocol.messages.describe_acls_response import DescribeAclsResponse
from tests.support.asking import ask
from tests.support.nodes import Nodes, cluster
from tests.support.programs import kafka_tool

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

SETTINGS = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
RULE = AclCreation(2, "t", 3, "User:a", "10.0.0.0/8", 3, 3)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with cluster(tmp_path_factory.mktemp("guarded"), settings=SETTINGS) as running:
        yield running


def test_records_are_replicated_where_nodes_are_super_users(nodes: Nodes) -> None:
    kafka_tool("topics", "--bootstrap-server", nodes.bootstrap, "--create", "--topic", "t", "--partitions", "3")
    producing = ("--bootstrap-server", nodes.bootstrap, "--topic", "t")
    kafka_tool("console-producer", *producing, stdin="a\nb\n")
    read = kafka_tool("console-consumer", *producing, "--from-beginning", "--max-messages", "2")
    assert sorted(read.split()) == ["a", "b"]


def test_a_rule_reaches_every_node_and_outlives_its_leader(nodes: Nodes) -> None:
    first, *others = nodes.broker_ids
    created = ask(nodes[first].address, CreateAclsRequest([RULE]), CreateAclsResponse)
    assert created.results[0].error_code == 0

    def rules(node_id: int) -> list[str]:
        answer = ask(nodes[node_id].address, DescribeAclsRequest(1, None, 1, None, None, 1, 1), DescribeAclsResponse)
        topics = [resource for resource in answer.resources if resource.resource_type == RULE.resource_type]
        return [rule.host for resource in topics for rule in resource.acls]

    nodes.wait("the rule is everywhere", lambda: all(rules(node) == ["10.0.0.0/8"] for node in nodes.broker_ids))
    nodes.kill(first)
    assert rules(others[0]) == ["10.0.0.0/8"]
    nodes.start(first)
    nodes.wait("the rule is back", lambda: rules(first) == ["10.0.0.0/8"])


def test_controllers_serve_the_tool_too(nodes: Nodes) -> None:
    asked = ("--bootstrap-controller", nodes.bootstrap_controllers)
    kafka_tool("acls", *asked, "--add", "--allow-principal", "User:b", "--operation", "Describe", "--cluster")
    listed = kafka_tool("acls", *asked, "--list")
    assert "principal=User:b, host=*, operation=DESCRIBE, permissionType=ALLOW" in listed
