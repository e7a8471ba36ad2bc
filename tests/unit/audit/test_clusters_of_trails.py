"""Whose trail it is: what heads say of their cluster, with nodes of before, which named none."""

import json
from dataclasses import replace

import pytest

from kavka_broker.core.audit.chain import HEAD_MS, Chain, Kind
from kavka_broker.core.audit.heads import HeadValue, read_head, value_of
from kavka_broker.core.audit.verification import Fault, State
from tests.unit.audit.trails import CLUSTER, KEY, OTHER_CLUSTER, SECOND_MS, Node, Trail, long_trail


def older(trail: Trail) -> Trail:
    """The trail with nodes whose heads name no cluster."""
    trail.nodes = [Node(number, cluster="") for number in (1, 2, 3)]
    return trail


def test_every_head_names_the_cluster_and_the_first_one_what_was_before() -> None:
    trail = long_trail()
    for source in ("1-1", "1-2"):
        first, *later = (json.loads(trail.entries[place].value) for place in trail.heads_of(source))
        assert first["cluster"] == CLUSTER
        assert [end["source"] for end in first["before"]] == ([] if source == "1-1" else ["1-1"])
        assert later
        assert all(value == {"cluster": CLUSTER} for value in later)
    assert {verdict.cluster for verdict in trail.verdicts().values()} == {CLUSTER}


def test_the_whole_trail_of_another_cluster_is_not_sound() -> None:
    """With the same key, shown as this cluster's: until now sound, exit code 0."""
    trail = long_trail()
    assert {found.state for found in trail.verdicts(cluster=CLUSTER).values()} == {State.SOUND}
    for keys in ((KEY,), ()):
        for verdict in trail.verdicts(keys, OTHER_CLUSTER).values():
            (damage,) = verdict.damages
            assert (verdict.state, damage.fault, damage.cluster) == (State.DAMAGED, Fault.FOREIGN, CLUSTER)
            assert (verdict.proved, verdict.proved_sequence, verdict.cluster) == (0, -1, "")


def test_a_head_of_another_cluster_behind_the_cut_of_retention_is_foreign_too() -> None:
    """Each head names the cluster, as the first one may be deleted."""
    trail = long_trail()
    trail.forget(len(trail.entries) - 200)
    assert {found.state for found in trail.verdicts(cluster=OTHER_CLUSTER).values()} == {State.DAMAGED}


def test_a_trail_of_older_nodes_is_judged_and_it_is_said_what_it_does_not_prove() -> None:
    trail = older(Trail())
    trail.run(3 * HEAD_MS // SECOND_MS)
    assert all(not entry.value for entry in trail.entries if entry.kind is Kind.HEAD)
    for cluster in ("", CLUSTER):
        verdicts = trail.verdicts(cluster=cluster)
        assert {(found.state, found.is_unnamed, found.cluster) for found in verdicts.values()} == {
            (State.SOUND, True, "")
        }
    required = trail.verdicts(cluster=CLUSTER, is_required=True)
    assert {(found.state, found.lacks_cluster) for found in required.values()} == {(State.UNSIGNED, True)}
    trail.entries[50] = replace(trail.entries[50], time_ms=1)
    assert [found.state for found in trail.verdicts().values()].count(State.DAMAGED) == 1


def test_a_newer_start_of_a_node_proves_the_cluster_of_its_older_ones() -> None:
    trail = older(Trail())
    trail.run(70)
    trail.stop(0)
    trail.run(70)
    trail.stop(0)
    for node in trail.nodes:
        node.cluster = CLUSTER
    trail.run(70)
    found = trail.verdicts(cluster=CLUSTER, is_required=True)
    assert {source: verdict.state for source, verdict in found.items() if source[0] == "1"} == {
        "1-1": State.SOUND, "1-2": State.SOUND, "1-3": State.SOUND
    }  # fmt: skip
    assert {found[source].cluster for source in ("1-1", "1-2", "1-3")} == {CLUSTER}
    assert {found[source].lacks_cluster for source in ("2-1", "3-1")} == {True}, "those nodes have not started since"


def test_an_older_chain_of_another_cluster_is_not_taken_where_the_cluster_has_to_be_named() -> None:
    trail, chain = long_trail(), Chain("9-1", KEY)
    now_ms = trail.entries[-1].time_ms
    trail.entries += [chain.head(now_ms), chain.event(b"{}", now_ms), chain.end(now_ms)]
    assert trail.verdicts()["9-1"].is_unnamed
    states = {source: found.state for source, found in trail.verdicts(cluster=CLUSTER, is_required=True).items()}
    assert [source for source, state in states.items() if state is not State.SOUND] == ["9-1"]


@pytest.mark.parametrize(
    "value",
    [b"{", b"[]", b"1", b'"x"', b'{"cluster":1}', b'{"cluster":null}', b"\xff", b"[" * 100_000],
    ids=lambda value: value[:20],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_value_of_another_kind_is_refused(value: bytes, is_first: bool) -> None:
    with pytest.raises(ValueError, match=r"^no value of a head: "):
        read_head(value, is_first=is_first)


def test_a_first_head_without_ends_that_has_a_value_is_refused() -> None:
    """Readers of before the cluster was named want them, and every node writes them."""
    with pytest.raises(ValueError, match=r"^no ends of chains: "):
        read_head(b'{"cluster":"x"}', is_first=True)
    assert read_head(b'{"cluster":"x"}', is_first=False) == HeadValue("x")
    assert read_head(value_of("x", ()), is_first=True) == HeadValue("x")
    assert read_head(b"", is_first=True) == HeadValue()
    assert value_of("", ()) == value_of("", None) == b""


def test_a_head_whose_value_cannot_be_read_proves_nothing() -> None:
    trail, chain = Trail(), Chain("1-1", None, (), CLUSTER)
    trail.entries = [chain.head(0), chain.event(b"{}", 1), chain._add(Kind.HEAD, 2, b"[]")]
    (verdict,) = trail.verdicts(()).values()
    assert [(damage.fault, damage.sequence) for damage in verdict.damages] == [(Fault.FLIPPED, 2)]
    assert verdict.proved_sequence == 0
