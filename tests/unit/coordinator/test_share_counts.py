"""The counts of records of share groups: all together, and by group and topic as far as there is room."""

import pytest

from kavka_broker.coordinator.share import share_counts
from kavka_broker.coordinator.share.share_counts import CountsByTopic
from kavka_broker.core.share.share_partition import Acquired


def test_pairs_have_a_bound_and_go_with_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_counts, "PAIRS_MAX", 2)
    counts = CountsByTopic()
    for group, topic in (("a", "t"), ("a", "u"), ("b", "t")):
        counts.of(group, topic).acquired([Acquired(0, 4, 2)])
    assert list(counts.by_pair) == [("a", "t"), ("a", "u")]
    assert counts.total.by_event["redelivered"] == 15
    counts.forget("a")
    assert not counts.by_pair
    counts.of("b", "t").acquired([Acquired(0, 0, 2)])
    assert counts.by_pair["b", "t"].by_event["redelivered"] == 1


def test_groups_whose_labels_are_the_same_are_forgotten_one_by_one() -> None:
    counts, first, second = CountsByTopic(), "g" * 30_000 + "1", "g" * 30_000 + "2"
    kept = counts.of(second, "t")
    counts.of(first, "t")
    counts.forget(first)
    assert counts.of(second, "t") is kept
