"""Volumes: which may be taken away, which are missed, and where the metadata log stays."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import KafkaClusterStatus
from kavka_operator.api.stored_resources import resource_from
from kavka_operator.domain.observed import SeenNode, SeenPartition, SeenQuorum, SeenVolume, Survey, WantedNode
from kavka_operator.domain.plan import StartNode
from kavka_operator.platform.local import node_identity, volumes
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import Members
from kavka_operator.platform.local.server_properties import local_nodes
from kavka_operator.platform.local.unsupported import lost_volumes
from kavka_operator.reconcile import cluster as clusters
from kavka_operator.reconcile.volumes import empty_volumes, refusal
from tests.unit.operator.fakes import NOW, cluster

DATA = SeenVolume("data", "/data", ("__cluster_metadata-0", "orders-0"), has_metadata=True, directory_id="one")
FULL = SeenVolume("more", "/more", ("orders-1", "orders-2"), directory_id="two")
EMPTY = SeenVolume("more", "/more", directory_id="two")
VANISHED = SeenVolume("more", "/more", is_there=False, directory_id="two")
LOST_VOTE = SeenVolume("data", "/data", is_there=False, has_metadata=True, directory_id="one")
BROKER = ("broker",)


def node(*names: str, number: int = 0, roles: tuple[str, ...] = ("broker", "controller")) -> WantedNode:
    return WantedNode(number, "new", None, roles, names, "nodes")


def two_volumes(*names: str) -> KafkaCluster:
    return cluster(nodePools=[{"name": "nodes", "storage": {"volumes": [{"name": name} for name in names]}}])


@pytest.mark.parametrize(
    ("wanted", "seen", "words"),
    [
        (node("data", "more"), [DATA, FULL], None),
        (node("more", "data"), [DATA, FULL], None),
        (node("data"), [DATA, EMPTY], None),
        (node("data"), [DATA, FULL], 'volume "more" of node 0 holds 2 replicas (orders-1, orders-2); put it back'),
        (node("logs", "more"), [DATA, FULL], 'volume "data" of node 0 holds the metadata log, which stays'),
        (node("logs", "more", roles=BROKER), [DATA, FULL], "holds the metadata log, which stays"),
        (node("data"), [DATA, SeenVolume("more", "/more", None)], "cannot be read, so that nobody knows"),
        (node("data"), [DATA, SeenVolume("old", "/old", ("t-0",), was_used=False)], "or move /old away"),
        (node("data", "more"), [DATA, VANISHED], "has vanished from /more, and what it held is not known"),
        (node("data"), [DATA, VANISHED], "has vanished from /more, and what it held is not known"),
        (node("data"), [LOST_VOTE], "a controller never begins again by itself"),
        (node("data", roles=BROKER), [LOST_VOTE], "the annotation kavka.dev/forget-volumes=one"),
        (node("data"), [SeenVolume("data", "/data", ("t-0",), is_there=False)], "and no meta.properties"),
        (node("data", "new"), [DATA], None),
        (node("data", "more"), [DATA, SeenVolume("more", "/more", was_used=False, is_there=False)], None),
    ],
)
def test_reasons_against_the_start_of_a_node(wanted: WantedNode, seen: list[SeenVolume], words: str | None) -> None:
    found = refusal(wanted, seen)
    assert found == words or (words is not None and words in (found or ""))


def test_a_volume_that_a_person_gives_up_is_formatted_again_unless_it_has_the_metadata_log() -> None:
    assert refusal(node("data", "more"), [DATA, VANISHED], ("two",)) is None
    assert refusal(node("data"), [DATA, VANISHED], ("two",)) is None
    assert refusal(node("data"), [LOST_VOTE], ("one",)) is not None


def test_other_nodes_are_started_and_none_is_restarted() -> None:
    nodes = [node("data", "more", number=number) for number in range(2)]
    seen = {0: [DATA, FULL], 1: [DATA, VANISHED]}
    plan = clusters.reconcile(two_volumes("data", "more"), nodes, {}, None, None, NOW, seen)
    assert plan.actions == (StartNode(0),)
    stale = {number: SeenNode(number, "Running", "old") for number in range(2)}
    plan = clusters.reconcile(two_volumes("data", "more"), nodes, stale, None, None, NOW, seen)
    assert (plan.actions, plan.words[0].reason) == ((), "VolumeRefused")
    assert 'volume "more" of node 1' in plan.words[0].message


def test_volumes_that_may_go_are_those_that_are_empty_on_every_node() -> None:
    nodes = [node("data", "more", number=number) for number in range(2)]
    wanted = two_volumes("data", "more")
    assert empty_volumes(wanted, nodes, {0: [DATA, EMPTY], 1: [DATA, EMPTY]}) == ("nodes/more",)
    assert empty_volumes(wanted, nodes, {0: [DATA, EMPTY], 1: [DATA, FULL]}) == ()
    assert empty_volumes(wanted, nodes, {0: [DATA, EMPTY]}) == ()


def test_the_metadata_log_stays_in_its_volume_whatever_the_order() -> None:
    layout = Layout(Path("/state"), "default", "main")

    def directory(known: Members, *names: str) -> str | None:
        wanted = two_volumes(*names)
        (one,) = local_nodes(wanted, layout, known.joined_by(wanted, lambda _: True))
        return parse_properties(one.properties).get("metadata.log.dir")

    assert directory(Members(), "data", "more") is None
    known = Members({0: 0}, (0,)).formatted(0, {"data": "one", "more": "two"})
    assert directory(known, "data", "more") is None
    assert directory(known, "front", "data") == "/state/data/node-0/data"
    assert list(known.formatted(0, {"front": "three", "data": "one"}).volumes[0]) == ["data", "front"]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout.of(tmp_path, "default", "main")
    made.make()
    for name in ("data", "more"):
        (made.data(0) / name / f"orders-{len(name)}").mkdir(parents=True)
        (made.data(0) / name / "meta.properties").write_text(f"version=1\ndirectory.id=id-of-{name}\n")
    (made.data(0) / "more" / "gone-0.0123-delete").mkdir()
    paths = ",".join(str(made.data(0) / name) for name in ("data", "more"))
    made.properties(0).write_text(f"node.id=0\nlog.dirs={paths}\n")
    made.members.write_text(json.dumps({"portOffsets": {"0": 0}, "voters": [0]}))
    return made


def test_the_directories_tell_what_is_in_them(layout: Layout) -> None:
    known = node_identity.read(layout).volumes[0]
    assert known == {"data": "id-of-data", "more": "id-of-more"}, "what earlier versions did not note is found out"
    place = str(layout.data(0) / "more")
    assert volumes.look(layout, 0, known)[1] == SeenVolume("more", place, ("orders-4",), directory_id="id-of-more")
    assert volumes.look(layout, 0, {})[1].was_used is False
    assert lost_volumes(two_volumes("data", "more"), layout, node_identity.read(layout)) is None
    words = lost_volumes(two_volumes("data"), layout, node_identity.read(layout)) or ""
    assert words.startswith('KafkaCluster "main": spec.nodePools: volume "more" of node 0 holds 1 replica (orders-4)')


def test_a_start_that_ended_before_its_volumes_were_formatted_misses_none(layout: Layout) -> None:
    layout.properties(1).write_text(f"node.id=1\nlog.dirs={layout.data(1)}/data\n")
    layout.members.write_text(json.dumps({"portOffsets": {"0": 0, "1": 1}, "voters": [0]}))
    assert 1 not in node_identity.read(layout).volumes
    assert volumes.look(layout, 1, {}) == ()


def sized(size: object) -> KafkaCluster:
    volume = {"name": "data"} if size is None else {"name": "data", "size": size}
    return cluster(nodePools=[{"name": "nodes", "storage": {"volumes": [volume]}}])


@pytest.mark.parametrize(
    ("old", "new", "is_kept"),
    [("10Gi", "10Gi", True), ("10Gi", "11G", True), ("10Gi", "10G", False), (None, "1Gi", True), ("1Gi", None, True)],
)
def test_a_volume_only_grows(old: object, new: object, is_kept: bool) -> None:
    assert bool(list(sized(new).spec.forbidden_changes(sized(old).spec))) != is_kept


@pytest.mark.parametrize(
    ("status", "names", "is_kept"),
    [
        ({"nodes": [{"id": 0, "state": "Running"}]}, ("data",), False),
        ({"nodes": [{"id": 0, "state": "Running"}]}, ("data", "renamed"), False),
        ({"nodes": [{"id": 0, "state": "Running"}]}, ("more", "data", "third"), True),
        ({"nodes": [{"id": 0, "state": "Running"}], "emptyVolumes": ["nodes/more"]}, ("data",), True),
        ({}, ("data",), True),
    ],
)
def test_an_api_server_is_told_which_volumes_may_go(status: object, names: tuple[str, ...], is_kept: bool) -> None:
    before = two_volumes("data", "more")
    old = before.replaced({"status": KafkaClusterStatus.decode(status)})
    assert (not list(two_volumes(*names).forbidden_changes(old))) == is_kept
    assert isinstance(resource_from({"kind": "KafkaCluster", **old.to_dict()}), KafkaCluster)


@pytest.mark.parametrize(
    ("isr", "given_up", "starts"),
    [((1, 2), "", True), ((0,), "", False), ((0, 1, 2), "", False), ((0,), "old", True), (None, "", False)],
)
def test_an_empty_volume_takes_the_place_of_a_lost_one_where_nothing_counts_on_it(
    isr: tuple[int, ...] | None, given_up: str, starts: bool
) -> None:
    wanted = cluster(metadata={"annotations": {"kavka.dev/forget-volumes": given_up}})
    lost = SeenNode(0, "Stopped", "new", message="the volume data is gone", lost=("old",))
    survey = None
    if isr is not None:
        survey = Survey((SeenPartition("orders", 7, None, (0, 1, 2), isr),), SeenQuorum(1, (1, 2), {}))
    plan = clusters.reconcile(wanted, [node("data")], {0: lost}, None, survey, NOW)
    assert list(plan.actions) == ([StartNode(0)] if starts else [])
    if not starts:
        assert "kavka.dev/forget-volumes=old" in plan.words[0].message
        assert plan.words[0].reason == "VolumeRefused"


@pytest.mark.parametrize(
    ("isr", "given_up", "starts"),
    [((1, 2), "", True), ((0,), "", False), ((0,), "node-0", True), ((0,), "node-1", False), (None, "", True)],
)
def test_a_node_of_which_nothing_is_left_begins_again_only_where_nothing_counts_on_it(
    isr: tuple[int, ...] | None, given_up: str, starts: bool
) -> None:
    wanted = cluster(metadata={"annotations": {"kavka.dev/forget-volumes": given_up}})
    survey = None
    if isr is not None:
        survey = Survey((SeenPartition("orders", 7, None, (0, 1, 2), isr),), SeenQuorum(1, (1, 2), {}))
    plan = clusters.reconcile(wanted, [node("data")], {}, None, survey, NOW)
    assert list(plan.actions) == ([StartNode(0)] if starts else [])
    if not starts:
        words = "none of its volumes is there, and it counts as in sync with orders-7"
        assert words in plan.words[0].message
        assert "kavka.dev/forget-volumes=node-0" in plan.words[0].message


LAST = SeenPartition("solo", 0, None, (0,), ())


@pytest.mark.parametrize(
    ("partition", "starts"),
    [
        (LAST, False),  # no broker tells who may lead: each replica counts
        (replace(LAST, elr=(0,)), False),
        (replace(LAST, last_known_elr=(0,)), False),
        (replace(LAST, replicas=(1,)), True),
        (replace(LAST, replicas=(0, 1)), False),
        (replace(LAST, replicas=(0, 1), elr=(1,), last_known_elr=(0,)), True),
        (replace(LAST, replicas=(0, 1), elr=(0, 1)), False),
        (replace(LAST, replicas=(0, 1), last_known_elr=(1,)), True),
        (replace(LAST, leader=1, replicas=(0, 1), isr=(1,), elr=(0,)), True),
    ],
)
@pytest.mark.parametrize("has_claims", [True, False])
def test_a_volume_is_begun_anew_only_where_the_controller_vouches_for_another_replica(
    partition: SeenPartition, starts: bool, has_claims: bool
) -> None:
    lost = SeenNode(0, "Stopped", "new", message="the volume data is gone", lost=("old",))
    survey = Survey((partition,), SeenQuorum(1, (1, 2), {}))
    plan = clusters.reconcile(cluster(), [node("data")], {0: lost} if has_claims else {}, None, survey, NOW)
    assert list(plan.actions) == ([StartNode(0)] if starts else [])
    if not starts:
        assert plan.words[0].reason == "VolumeRefused"
        assert "no other replica of solo-0 has all records" in plan.words[0].message


@pytest.mark.parametrize("doubt", [None, "there is no active controller"])
def test_a_former_node_of_which_nothing_is_left_waits_for_a_broker_to_tell_what_it_held(doubt: str | None) -> None:
    status = KafkaClusterStatus.decode({"clusterId": "id", "nodes": [{"id": 0, "state": "Running"}]})
    survey = None if doubt is None else Survey((), SeenQuorum(None, (1, 2), {}), doubt)
    nodes = [node("data"), node("data", number=1)]
    plan = clusters.reconcile(cluster().replaced({"status": status}), nodes, {}, None, survey, NOW)
    assert plan.actions == (StartNode(1),), "a new node may begin"
    plan = clusters.reconcile(cluster().replaced({"status": status}), nodes[:1], {}, None, survey, NOW)
    assert (plan.actions, plan.words[0].reason) == ((), "VolumeRefused")
    assert "no broker tells whether others have what it held" in plan.words[0].message
