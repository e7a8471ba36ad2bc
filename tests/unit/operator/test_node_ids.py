"""Ids of nodes belong to the name of a pool: no change of the list gives a node the id of another."""

import json
from pathlib import Path
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import POOL_NAMES_MAX
from kavka_operator.api.pools import NODE_IDS_PER_POOL, NodePool
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.node_ids import first_ids
from kavka_operator.domain.observed import SeenNode, WantedNode
from kavka_operator.domain.plan import Plan, ready
from kavka_operator.platform.local import node_identity
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import Members
from kavka_operator.platform.nodes import nodes_of
from kavka_operator.reconcile.status import PassResult, cluster_status
from tests.unit.operator.fakes import NOW, cluster
from tests.unit.operator.nowhere import Nowhere
from tests.unit.operator.person import Person


def pools(*names: str) -> list[NodePool]:
    return [NodePool(name=name) for name in names]


def of_pools(*names: str, **spec: Any) -> KafkaCluster:
    return cluster(nodePools=[{"name": name, "replicas": 2} for name in names], **spec)


def test_pools_are_numbered_as_they_come_and_keep_their_numbers() -> None:
    first = first_ids(pools("a", "b"), {})
    assert first == {"a": 0, "b": 100}
    assert first_ids(pools("b", "a"), first) == first
    assert first_ids(pools("new", "a", "b"), first) == {"a": 0, "b": 100, "new": 200}


def test_a_pool_that_comes_back_has_its_ids_and_no_other_pool_gets_them() -> None:
    first = first_ids(pools("a", "b"), {})
    without = first_ids(pools("b", "c"), first)
    assert without == {"a": 0, "b": 100, "c": 200}
    assert first_ids(pools("a", "b", "c"), without) == without


def test_the_names_that_are_remembered_are_bounded() -> None:
    known: dict[str, int] = {}
    for number in range(3 * POOL_NAMES_MAX):
        known = dict(first_ids(pools("stays", f"pool-{number}"), known))
        assert len(known) <= POOL_NAMES_MAX
        assert len(set(known.values())) == len(known)
    assert known["stays"] == 0
    assert max(known.values()) < POOL_NAMES_MAX * NODE_IDS_PER_POOL


def test_nodes_have_the_ids_of_their_pool_in_any_order_of_the_pools() -> None:
    known = {"a": 0, "b": 100}
    for wanted in (of_pools("a", "b"), of_pools("b", "a")):
        assert [(node.id, node.pool.name) for node in nodes_of(wanted, known)] == [
            (0, "a"),
            (1, "a"),
            (100, "b"),
            (101, "b"),
        ]


def test_ids_are_kept_in_the_status() -> None:
    platform, wanted = Nowhere(), of_pools("a", "b")
    status = cluster_status(wanted, View(platform.look(wanted).wanted), PassResult(Plan(words=ready("")), NOW))
    assert status.to_dict()["pools"] == [{"name": "a", "firstNodeId": 0}, {"name": "b", "firstNodeId": 100}]
    reordered = of_pools("front", "b", "a").replaced({"status": status})
    assert [(node.id, node.pool) for node in platform.look(reordered).wanted][:4] == [
        (0, "a"),
        (1, "a"),
        (100, "b"),
        (101, "b"),
    ]
    assert [node.id for node in platform.look(reordered).wanted][4:] == [200, 201]
    assert cluster_status(reordered, View(), PassResult(Plan(), NOW)).first_ids == {"a": 0, "b": 100, "front": 200}


def test_ids_are_kept_by_the_local_platform(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path, "default", "main")
    layout.make()
    known = Members().joined_by(of_pools("a", "b"), lambda _: True)
    node_identity.keep(layout, known)
    assert node_identity.read(layout) == known
    again = node_identity.read(layout).joined_by(of_pools("b", "c", "a"), lambda _: True)
    assert (again.pools, again.voters) == ({"a": 0, "b": 100, "c": 200}, (0, 1, 100, 101))
    assert known.offsets.items() <= again.offsets.items()


def test_a_cluster_of_an_earlier_version_keeps_the_ids_that_followed_from_its_list(tmp_path: Path) -> None:
    person = Person(tmp_path)
    text = """
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main}
spec: {nodePools: [POOLS]}
"""
    front, brokers = "{name: front}", "{name: brokers, roles: [broker]}"
    assert person.types("apply", "-f", person.file(text.replace("POOLS", f"{front}, {brokers}")))[0] == 0
    layout = Layout.of(tmp_path / "state", "default", "main")
    layout.members.write_text(json.dumps({"portOffsets": {"0": 0, "100": 1}, "voters": [0]}))
    assert node_identity.read(layout).pools == {"front": 0, "brokers": 100}
    assert person.types("apply", "-f", person.file(text.replace("POOLS", f"{brokers}, {front}")))[0] == 0
    assert node_identity.read(layout).pools == {"front": 0, "brokers": 100}
    (layout.resources / "kafkacluster.main.yaml").write_text("spec: {nodePools: 7}")
    layout.members.write_text(json.dumps({"portOffsets": {"0": 0}, "voters": [0]}))
    assert node_identity.read(layout).pools == {}


def changes(new: KafkaCluster, old: KafkaCluster) -> list[str]:
    return [broken.message for broken in (*new.spec.forbidden_changes(old.spec), *new.forbidden_changes(old))]


def test_a_pool_may_be_taken_out_or_moved_and_keeps_its_roles() -> None:
    seen = [{"id": 0, "state": "Running"}]
    old = KafkaCluster.decode({**of_pools("a", "b").to_dict(), "status": {"nodes": seen}})
    assert changes(of_pools("b", "a"), old) == []
    assert changes(of_pools("a"), old) == []
    other = cluster(nodePools=[{"name": "a"}, {"name": "b", "roles": ["broker"]}])
    assert changes(other, old) == ["a pool keeps its roles; add another pool beside it"]
    swapped = cluster(nodePools=[{"name": "a", "roles": ["controller", "broker"]}])
    assert changes(swapped, old) == []


def test_as_many_addresses_are_told_as_there_is_room_for() -> None:
    wanted = cluster()
    nodes = [WantedNode(number, "new", None, ("broker",)) for number in range(90)]
    places = {
        number: (f"main-nodes-{number}.main-nodes.of-some-length.svc.cluster.local:9092", None) for number in range(90)
    }
    outside = {"OUTSIDE": ",".join(address * 20 for address, _ in places.values())}
    seen = {number: SeenNode(number, "Running", "new") for number in range(90)}
    status = cluster_status(wanted, View(nodes, seen, places=places, outside=outside), PassResult(Plan(), NOW))
    told = status.bootstrap_servers or ""
    assert 4000 < len(told) <= 4096
    assert told.split(",") == [places[number][0] for number in range(len(told.split(",")))], "whole addresses"
    assert len(status.listeners[0].bootstrap_servers) <= 65536


def test_one_address_for_all_brokers_is_told_where_the_platform_has_it() -> None:
    nodes, places = [WantedNode(0, "new", None, ("broker",))], {0: ("main-nodes-0-0.main-nodes.default.svc:9092", None)}
    status = cluster_status(
        cluster(), View(nodes, places=places, begin="main-bootstrap.default.svc:9092"), PassResult(Plan(), NOW)
    )
    assert status.bootstrap_servers == "main-bootstrap.default.svc:9092"
    assert [line.address for line in status.nodes] == ["main-nodes-0-0.main-nodes.default.svc:9092"]
