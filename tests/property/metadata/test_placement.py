"""Placement: for all counts of brokers, racks and replicas, the rules that its module states."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.placement import Site, TooFewBrokers, interleave_racks, place

BROKERS_MAX = 12

racks = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=BROKERS_MAX)
equal_racks = st.tuples(st.integers(1, 4), st.integers(1, 4))


def sites_of(where: list[str | None]) -> list[Site]:
    return [Site(broker_id, rack) for broker_id, rack in enumerate(where, 1)]


@given(where=racks, partitions=st.integers(0, 40), rotation=st.integers(0, 1000), data=st.data())
def test_replicas_are_distinct_and_racks_too_as_long_as_there_are_some(
    where: list[str | None], partitions: int, rotation: int, data: st.DataObject
) -> None:
    sites = sites_of(where)
    factor = data.draw(st.integers(1, len(sites)))
    rack_of = {site.broker_id: site.rack for site in sites}
    placed = place(partitions, factor, sites, rotation)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({rack_of[broker_id] for broker_id in replicas}) == min(factor, len(set(where)))


@given(where=racks, partitions=st.integers(1, 60), rotation=st.integers(0, 1000), data=st.data())
def test_leaders_are_spread_within_one(
    where: list[str | None], partitions: int, rotation: int, data: st.DataObject
) -> None:
    sites = sites_of(where)
    factor = data.draw(st.integers(1, len(sites)))
    leaders = Counter(replicas[0] for replicas in place(partitions, factor, sites, rotation))
    counts = [leaders[site.broker_id] for site in sites]
    assert max(counts) - min(counts) <= 1


@given(shape=equal_racks, rounds=st.integers(1, 6), rotation=st.integers(0, 100), data=st.data())
def test_with_equal_racks_replicas_are_spread_evenly(
    shape: tuple[int, int], rounds: int, rotation: int, data: st.DataObject
) -> None:
    racks_count, size = shape
    sites = sites_of([f"rack-{number % racks_count}" for number in range(racks_count * size)])
    factor = data.draw(st.integers(1, min(4, len(sites))))
    placed = place(rounds * len(sites), factor, sites, rotation)
    load = Counter(broker_id for replicas in placed for broker_id in replicas)
    counts = [load[site.broker_id] for site in sites]
    assert max(counts) - min(counts) <= 4


@given(where=racks, sizes=st.lists(st.integers(1, 9), max_size=12), rotation=st.integers(0, 1000), data=st.data())
def test_many_small_topics_spread_as_one_large_topic_does(
    where: list[str | None], sizes: list[int], rotation: int, data: st.DataObject
) -> None:
    """A topic that grows spreads as one that was made so large: what is placed stays, the rest goes on from there."""
    sites = sites_of(where)
    factor = data.draw(st.integers(1, len(sites)))
    together = place(sum(sizes), factor, sites, rotation)
    apart: list[tuple[int, ...]] = []
    for size in sizes:
        apart += place(size, factor, sites, rotation + len(apart))
    assert apart == together


@given(shape=equal_racks, topics=st.integers(1, 300), size=st.integers(1, 7), data=st.data())
def test_with_equal_racks_many_small_topics_load_all_brokers_alike(
    shape: tuple[int, int], topics: int, size: int, data: st.DataObject
) -> None:
    racks_count, brokers = shape
    sites = sites_of([f"rack-{number % racks_count}" for number in range(racks_count * brokers)])
    factor = data.draw(st.integers(1, min(4, len(sites))))
    load = Counter(broker_id for replicas in place(topics * size, factor, sites) for broker_id in replicas)
    counts = [load[site.broker_id] for site in sites]
    assert max(counts) - min(counts) <= 4


@given(where=racks, data=st.data())
def test_a_leader_has_other_followers_in_other_laps(where: list[str | None], data: st.DataObject) -> None:
    """Where a broker dies, its work goes to all others of the racks that follow it, not to the next one alone."""
    sites = sites_of(["a"] * len(where))
    factor = data.draw(st.integers(1, len(sites)))
    placed = place(12 * len(sites), factor, sites)
    seconds = {replicas[1] for replicas in placed if replicas[0] == 1 and factor > 1}
    assert len(seconds) >= min(3, len(sites) - 1) or factor == 1


@given(where=racks)
def test_the_order_in_which_brokers_are_named_does_not_matter(where: list[str | None]) -> None:
    sites = sites_of(where)
    assert interleave_racks(sites) == interleave_racks(reversed(sites))


@given(shape=equal_racks)
def test_neighbours_on_the_ring_stand_in_different_racks(shape: tuple[int, int]) -> None:
    racks_count, size = shape
    ring = interleave_racks(sites_of([f"rack-{number // size}" for number in range(racks_count * size)]))
    if racks_count > 1:
        assert all(one.rack != other.rack for one, other in pairwise(ring))


@pytest.mark.parametrize(("factor", "brokers"), [(0, 3), (-1, 3), (4, 3), (1, 0)])
def test_what_cannot_be_placed_is_said(factor: int, brokers: int) -> None:
    with pytest.raises(TooFewBrokers):
        place(1, factor, sites_of(["a"] * brokers))
