"""`server.properties` of a node that is a pod: the broker itself reads it, and says what it makes of it."""

import pytest

from kavka_broker.controller.format import Voters, _check_voters, parse_voters
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.platform.kubernetes.objects.settings import Layout, fingerprint, properties
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.platform.random_ids import draw_id
from tests.unit.operator.pods import SIZED, main

APART = [
    {"name": "brokers", "replicas": 2, "roles": ["broker"], "racks": ["a", "b"], "storage": SIZED},
    {"name": "controllers", "replicas": 3, "roles": ["controller"], "storage": SIZED},
]


def layouts(cluster: KafkaCluster) -> dict[int, Layout]:
    nodes = nodes_of(cluster, {})
    return {node.id: Layout(cluster, nodes, node, "data") for node in nodes}


def config(layout: Layout) -> BrokerConfig:
    return BrokerConfig.parse(parse_properties(properties(layout)))


def test_nodes_listen_everywhere_and_are_told_by_their_host_names() -> None:
    told = config(layouts(main())[1])
    assert [str(listener) for listener in told.listeners.opened] == ["PLAINTEXT://:9092", "CONTROLLER://:10092"]
    host = "main-nodes-1-0.main-nodes.default.svc"
    assert [str(listener) for listener in told.listeners.advertised] == [f"PLAINTEXT://{host}:9092"]
    assert [str(listener) for listener in told.listeners.advertised_controllers] == [f"CONTROLLER://{host}:10092"]
    assert told.log_dirs == ("/var/lib/kavka/data",)
    assert not told["controller.quorum.voters"]
    assert len(told["controller.quorum.bootstrap.servers"]) == 3


def test_brokers_and_controllers_in_pools_of_their_own_get_their_own_settings() -> None:
    found = layouts(main(nodePools=APART))
    broker, controller = config(found[1]), config(found[100])
    assert (broker["broker.rack"], broker.roles) == ("b", ("broker",))
    assert [str(listener) for listener in controller.listeners.opened] == ["CONTROLLER://:10092"]
    assert found[100].address == "main-controllers-100-0.main-nodes.default.svc:10092"
    assert broker["controller.quorum.bootstrap.servers"] == controller["controller.quorum.bootstrap.servers"]


def test_a_controller_alone_is_told_how_brokers_are_reached_where_it_keeps_a_trail() -> None:
    listeners = [{"name": "INSIDE", "port": 9092}]
    silent = config(layouts(main(nodePools=APART, listeners=listeners))[100])
    assert "inter.broker.listener.name" not in silent.given
    told = config(layouts(main(nodePools=APART, listeners=listeners, audit={}))[100])
    assert (told.listeners.inter_broker_name, told.listeners.protocol_of("INSIDE")) == ("INSIDE", "PLAINTEXT")


def test_clients_may_be_told_another_address() -> None:
    listeners = [
        {"name": "OUTSIDE", "port": 9094, "advertised": "kafka-{id}.example.com:{port}"},
        {"name": "INSIDE", "port": 9092},
    ]
    layout = layouts(main(listeners=listeners))[2]
    told = config(layout)
    assert [str(listener) for listener in told.listeners.advertised] == [
        "OUTSIDE://kafka-2.example.com:9094",
        "INSIDE://main-nodes-2-0.main-nodes.default.svc:9092",
    ]
    assert told.listeners.inter_broker_name == "INSIDE"
    assert (layout.address, layout.bootstrap) == (
        "kafka-2.example.com:9094",
        "main-nodes-2-0.main-nodes.default.svc:9092",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"num.io.threads": "4"}},
        {"image": "kavka/broker:2"},
        {"replicas": 2},  # min.insync.replicas follows
        {"metrics": {"port": 9645}},
        {"metrics": {"enabled": False}},
        {"listeners": [{"name": "PLAINTEXT", "port": 9094}]},
        {"nodePools": [{"name": "nodes", "replicas": 3, "storage": SIZED, "racks": ["a"]}]},
        {"nodePools": [{"name": "nodes", "replicas": 3, "storage": SIZED, "resources": {"limits": {"cpu": "1"}}}]},
    ],
    ids=str,
)
def test_what_the_resource_asks_for_changes_the_fingerprint(change: dict[str, object]) -> None:
    changed = main(**change)  # type: ignore[arg-type]
    assert fingerprint(layouts(changed)[0]) != fingerprint(layouts(main())[0])


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"log.retention.ms": "1000"}},  # brokers take it while they run
        {"replicas": 4},  # more controllers to ask for the quorum
        {"rollout": {"hold": True}},
        {"nodePools": [{"name": "nodes", "replicas": 3, "storage": {"volumes": [{"name": "data", "size": "9Gi"}]}}]},
    ],
    ids=str,
)
def test_what_needs_no_restart_does_not(change: dict[str, object]) -> None:
    changed = main(**change)  # type: ignore[arg-type]
    assert fingerprint(layouts(changed)[0]) == fingerprint(layouts(main())[0])


def test_the_first_controllers_can_be_formatted_with_it() -> None:
    found = layouts(main())
    entries = [f"{number}@{layout.host}:10092:{draw_id()}" for number, layout in found.items()]
    voters = Voters(initial=parse_voters(",".join(entries), "CONTROLLER"))
    for layout in found.values():
        _check_voters(config(layout), voters)
