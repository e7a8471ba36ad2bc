"""The assignors: even, sticky, and a function of their input alone."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.consumer_group.assignors import ASSIGNORS, Subscriber
from kavka_broker.core.consumer_group.state import Target

T, U, V = b"t" * 16, b"u" * 16, b"v" * 16


def subscriber(name: str, *topics: bytes, last: Target | None = None) -> Subscriber:
    return Subscriber(name, frozenset(topics), last or {})


def sizes(targets: dict[str, Target]) -> list[int]:
    return sorted(sum(map(len, target.values())) for target in targets.values())


def moved(before: dict[str, Target], after: dict[str, Target]) -> int:
    """How many partitions have another owner than before."""
    owners = {(topic, index): name for name, target in before.items() for topic in target for index in target[topic]}
    return sum(
        owners.get((topic, index), name) != name
        for name, target in after.items()
        for topic in target
        for index in target[topic]
    )


def test_uniform_deals_a_topic_to_different_members() -> None:
    targets = ASSIGNORS["uniform"]([subscriber(name, T, U) for name in "abc"], {T: 3, U: 3})
    assert targets == {name: {T: frozenset({at}), U: frozenset({at})} for at, name in enumerate("abc")}


def test_range_gives_neighbours_and_joins_topics_alike() -> None:
    targets = ASSIGNORS["range"]([subscriber(name, T, U) for name in "ab"], {T: 5, U: 5, V: 2})
    assert targets["a"] == {T: frozenset({0, 1, 2}), U: frozenset({0, 1, 2})}
    assert targets["b"] == {T: frozenset({3, 4}), U: frozenset({3, 4})}


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_a_member_that_comes_takes_no_more_than_its_share(name: str) -> None:
    assign = ASSIGNORS[name]
    first = assign([subscriber(one, T) for one in "abc"], {T: 12})
    members = [*(subscriber(one, T, last=first[one]) for one in "abc"), subscriber("d", T)]
    second = assign(members, {T: 12})
    assert (sizes(second), moved(first, second)) == ([3, 3, 3, 3], 3)
    third = assign([subscriber(one, T, last=second[one]) for one in "abd"], {T: 12})
    assert (sizes(third), moved(second, third)) == ([4, 4, 4], 3)


def test_members_with_different_topics_are_evened_out() -> None:
    # The one member that alone reads v has its load; the others share what it need not take.
    members = [subscriber("a", T, V), subscriber("b", T), subscriber("c", T, U)]
    assert sizes(ASSIGNORS["uniform"](members, {T: 4, U: 2, V: 3})) == [3, 3, 3]


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[Subscriber], dict[bytes, int]]:
    counts = {topic: draw(st.integers(1, 6)) for topic in (T, U, V)}
    free = {topic: list(range(count)) for topic, count in counts.items()}
    members = []
    for name in "abcdef"[: draw(st.integers(1, 6))]:
        topics = draw(st.sets(st.sampled_from([T, U, V]), min_size=1))
        last = {
            topic: frozenset(free[topic].pop() for _ in range(draw(st.integers(0, len(free[topic])))))
            for topic in sorted(topics)
        }
        members.append(subscriber(name, *topics, last=last))
    return members, counts


@given(groups(), st.sampled_from(["uniform", "range"]), st.integers(0, 99))
def test_every_partition_has_one_owner_and_the_order_of_the_input_says_nothing(
    group: tuple[list[Subscriber], dict[bytes, int]], name: str, seed: int
) -> None:
    members, counts = group
    targets = ASSIGNORS[name](members, counts)
    taken = sorted((topic, index) for target in targets.values() for topic in target for index in target[topic])
    read = {topic for member in members for topic in member.topics}
    assert taken == sorted((topic, index) for topic in read for index in range(counts[topic]))
    assert all(set(targets[member.member_id]) <= member.topics for member in members)
    shuffled = Random(seed).sample(members, len(members))
    assert ASSIGNORS[name](shuffled, dict(reversed(counts.items()))) == targets
    again = [Subscriber(member.member_id, member.topics, targets[member.member_id]) for member in members]
    assert ASSIGNORS[name](again, counts) == targets, "what is balanced already was moved"


@given(groups())
def test_uniform_is_even_as_far_as_subscriptions_allow(group: tuple[list[Subscriber], dict[bytes, int]]) -> None:
    members, counts = group
    targets = ASSIGNORS["uniform"](members, counts)
    loads = {name: sum(map(len, target.values())) for name, target in targets.items()}
    for giver in members:
        for taker in members:
            could = [topic for topic, indexes in targets[giver.member_id].items() if indexes and topic in taker.topics]
            assert not could or loads[giver.member_id] - loads[taker.member_id] <= 1
