"""However replicas lie and whatever their number becomes: little moves, and racks are used as far as they go."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kavka_operator.reconcile.spread import spread


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
