"""However replicas lie and whatever their number becomes: little moves, and racks are used as far as they go."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_operator.reconcile import replica_placement as spread_module
from kavka_operator.reconcile.replica_placement import PASSES_MAX, spread


@st.composite
def shapes(draw: st.DrawFn) -> tuple[dict[int, tuple[int, ...]], int, dict[int, str | None]]:
    racks = dict(enumerate(draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=8))))
    count = st.integers(1, len(racks))
    assignment = {
        index: tuple(draw(st.permutations(sorted(racks)))[: draw(count)]) for index in range(draw(st.integers(0, 6)))
    }
    return assignment, draw(count), racks


@given(shapes())
def test_every_partition_gets_its_number_and_keeps_what_it_can(
    shape: tuple[dict[int, tuple[int, ...]], int, dict[int, str | None]],
) -> None:
    before, factor, racks = shape
    changed = spread(before, factor, racks)
    after = {**before, **changed}
    for index, replicas in after.items():
        old = before[index]
        assert len(replicas) == len(set(replicas)) == factor
        assert replicas[0] == old[0], "the preferred leader stays"
        if len(old) <= factor:
            assert replicas[: len(old)] == old
            assert (index in changed) == (len(old) < factor)
        else:
            assert [broker for broker in old if broker in replicas] == list(replicas)
        if len(old) < factor:
            fresh = Counter(racks[broker] for broker in old)
            for broker in replicas[len(old) :]:
                free = [fresh[rack] for other, rack in racks.items() if other not in replicas[: replicas.index(broker)]]
                assert fresh[racks[broker]] == min(free), "a rack with fewer replicas had a broker"
                fresh[racks[broker]] += 1
        elif len(old) > factor:
            assert len({racks[broker] for broker in replicas}) == min(factor, len({racks[broker] for broker in old}))
    assert spread(after, factor, racks) == {}


@given(st.integers(1, 12), st.integers(2, 6))
def test_more_replicas_spread_over_the_brokers(partitions: int, brokers: int) -> None:
    before = {index: (index % brokers,) for index in range(partitions)}
    after = before | spread(before, 2, dict.fromkeys(range(brokers)))
    load = Counter(dict.fromkeys(range(brokers), 0))
    load.update(broker for replicas in after.values() for broker in replicas)
    assert max(load.values()) - min(load.values()) <= 2


@given(shapes())
def test_where_brokers_are_balanced_no_replica_that_moved_would_ease_any(
    shape: tuple[dict[int, tuple[int, ...]], int, dict[int, str | None]],
) -> None:
    before, factor, racks = shape
    after = before | spread(before, factor, racks, over_racks=True, over_brokers=True)
    load = Counter(broker for replicas in after.values() for broker in replicas)
    for replicas in after.values():
        for many in replicas:
            for few in racks.keys() - set(replicas):
                moved = {racks[few if broker == many else broker] for broker in replicas}
                loses_rack = len(moved) < len({racks[broker] for broker in replicas})
                assert loses_rack or load[many] - load[few] < 2
    assert spread(after, factor, racks, over_racks=True, over_brokers=True) == {}


def test_racks_of_unequal_size_cost_no_more_than_some_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    racks = dict(enumerate([*"a" * 10, *"b" * 5, "c"]))
    before = dict.fromkeys(range(100), (0, 10, 15))
    asked, keeps = [0], spread_module._keeps_racks

    def counted(*about: object) -> bool:
        asked[0] += 1
        return keeps(*about)  # type: ignore[arg-type]

    monkeypatch.setattr(spread_module, "_keeps_racks", counted)
    after = before | spread(before, 3, racks, over_racks=True, over_brokers=True)
    assert asked[0] <= PASSES_MAX * 300 * len(racks)
    load = Counter(broker for replicas in after.values() for broker in replicas)
    assert [load[broker] for broker in racks] == [10] * 10 + [20] * 5 + [100]
