"""The assignor `simple`: what it promises, for small groups that are drawn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.consumer_group.assignors import Subscriber
from kavka_broker.core.share_group.assignor import simple
from kavka_broker.core.share_group.state import Target

T, U = b"t" * 16, b"u" * 16


def members(count: int, *topics: bytes, last: dict[str, Target] | None = None) -> list[Subscriber]:
    names = [f"m{number:02}" for number in range(count)]
    return [Subscriber(name, frozenset(topics), (last or {}).get(name, {})) for name in names]


def counts(targets: dict[str, Target]) -> list[int]:
    return sorted(sum(map(len, target.values())) for target in targets.values())


def sharing(targets: dict[str, Target]) -> Counter[tuple[bytes, int]]:
    return Counter(
        (topic_id, index) for target in targets.values() for topic_id, indexes in target.items() for index in indexes
    )


@pytest.mark.parametrize(
    ("count", "partitions", "each", "shared"),
    [
        (1, 4, [4], 1),
        (2, 4, [2, 2], 1),
        (3, 4, [1, 1, 2], 1),
        (4, 4, [1, 1, 1, 1], 1),
        (5, 4, [1, 1, 2, 2, 2], 2),
        (8, 4, [1] * 8, 2),
        (3, 1, [1, 1, 1], 3),
        (3, 2, [1, 1, 2], 2),
    ],
)
def test_members_share_evenly(count: int, partitions: int, each: list[int], shared: int) -> None:
    targets = simple(members(count, T), {T: frozenset(range(partitions))})
    assert counts(targets) == each
    assert set(sharing(targets).values()) == {shared}


def test_without_members_or_partitions_nothing_is_assigned() -> None:
    assert simple([], {T: frozenset({0})}) == {}
    assert simple(members(2, T), {}) == {"m00": {}, "m01": {}}
    assert simple(members(2), {T: frozenset({0})}) == {"m00": {}, "m01": {}}


def test_topics_of_different_subscriptions_are_shared_by_themselves() -> None:
    both = [*members(2, T), Subscriber("u0", frozenset({U})), Subscriber("x", frozenset({T, U}))]
    targets = simple(both, {T: frozenset(range(3)), U: frozenset(range(2))})
    assert {name: len(target.get(T, ())) for name, target in targets.items()} == {"m00": 1, "m01": 1, "u0": 0, "x": 1}
    assert {name: len(target.get(U, ())) for name, target in targets.items()} == {"m00": 0, "m01": 0, "u0": 1, "x": 1}


def test_the_order_of_members_says_nothing() -> None:
    some = members(5, T, U)
    partitions = {T: frozenset(range(3)), U: frozenset(range(4))}
    assert simple(some, partitions) == simple(some[::-1], dict(reversed(partitions.items())))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 6), st.data())
def test_every_assignment_is_even_and_keeps_what_it_can(
    before: int, after: int, partitions: int, more: int, data: st.DataObject
) -> None:
    first = simple(members(before, T), {T: frozenset(range(partitions))})
    # Targets that another assignor has left: any partition with any members.
    odd = {
        name: {T: frozenset(data.draw(st.sets(st.integers(0, partitions - 1))))}
        for name in data.draw(st.sets(st.sampled_from(sorted(first))))
    }
    last = {**first, **odd}
    now = frozenset(range(partitions + more))
    targets = simple(members(after, T, last=last), {T: now})
    shared = sharing(targets)
    each = -(-after // len(now))
    assert shared == {(T, index): each for index in now}
    sizes = counts(targets)
    assert sizes[-1] - sizes[0] <= 1
    if before == after and not more and not odd:
        assert targets == first, "nothing has changed"
