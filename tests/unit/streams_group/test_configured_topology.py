"""Numbers of partitions, tasks, and what is missing, beside the topics that exist."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from kavka_broker.core.streams_group.configured_topology import (
    NEVER_WRITTEN,
    TASKS_MAX,
    UNKNOWN_LOOP,
    ConfiguredTopology,
    configure,
)
from kavka_broker.core.streams_group.endpoint_partitions import endpoint_partitions
from kavka_broker.core.streams_group.statuses import Status, StatusCode
from kavka_broker.core.streams_group.topology import CopartitionGroup, InternalTopic, Subtopology, Topology
from kavka_broker.protocol.errors import BrokerError, ErrorCode


@dataclass(frozen=True)
class Topic:
    name: str
    topic_id: bytes
    partitions: Mapping[int, object]


class Existing:
    """Topics with so many partitions."""

    def __init__(self, **counts: int) -> None:
        self._topics = {name: Topic(name, name.encode(), dict.fromkeys(range(n))) for name, n in counts.items()}

    def get(self, name: str, /) -> Topic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: bytes, /) -> Topic | None:
        return self._topics.get(topic_id.decode())


def part(
    name: str,
    sources: str = "",
    reads: str = "",
    writes: str = "",
    logs: str = "",
    together: tuple[CopartitionGroup, ...] = (),
) -> Subtopology:
    """Return a subtopology. Topics are words; `reads=r:4` is a repartition topic with a number of its own."""
    return Subtopology(
        name,
        tuple(sources.split()),
        state_changelog_topics=tuple(map(InternalTopic, logs.split())),
        repartition_sink_topics=tuple(writes.split()),
        repartition_source_topics=tuple(map(internal, reads.split())),
        copartition_groups=together,
    )


def internal(text: str) -> InternalTopic:
    name, _, count = text.partition(":")
    return InternalTopic(name, int(count or 0))


def configured(*parts: Subtopology, **existing: int) -> ConfiguredTopology:
    return configure(Topology(3, parts), Existing(**existing))


def counts(topology: ConfiguredTopology) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in topology.internal_topics}


def problem(*parts: Subtopology, **existing: int) -> Status | None:
    return configured(*parts, **existing).problem


ALL = CopartitionGroup((0,), (), (0,))
REPARTITIONED = CopartitionGroup((), (), (0, 1))


def test_a_topology_without_internal_topics_is_ready_at_once() -> None:
    topology = configured(part("0", "a b"), a=3, b=5)
    assert (topology.epoch, topology.is_ready, topology.internal_topics) == (3, True, ())
    assert topology.subtopologies["0"].tasks == 5
    assert not topology.subtopologies["0"].is_stateful


def test_internal_topics_get_the_partitions_of_what_is_upstream() -> None:
    topology = configured(
        part("0", "a b", writes="r"), part("1", reads="r", logs="c", writes="s"), part("2", reads="s"), a=3, b=5
    )
    assert counts(topology) == {"r": 5, "s": 5, "c": 5}
    assert {name: one.tasks for name, one in topology.subtopologies.items()} == {"0": 5, "1": 5, "2": 5}
    assert topology.problem == Status(StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics are missing: c, r, s")
    assert not topology.is_ready
    there = configured(part("0", "a", writes="r"), part("1", reads="r", logs="c"), a=3, r=3, c=3)
    assert there.is_ready
    assert there.subtopologies["1"].state_changelog_topics["c"].partitions == 3


def test_a_subtopology_counts_the_sources_that_are_known_at_its_turn() -> None:
    # 1 has its turn before 2 writes s, so that t has the partitions of a. 3 has its turn after that.
    parts = part("1", "a", reads="s", writes="t"), part("2", "b", writes="s"), part("3", "a", reads="s", writes="u")
    topology = configured(*parts, part("4", reads="t u"), a=2, b=7)
    assert counts(topology) == {"s": 7, "t": 2, "u": 7}
    # 0 waits for 1, and has its turn after it.
    assert counts(
        configured(part("0", reads="r", writes="s"), part("1", "a", writes="r"), part("2", reads="s"), a=4)
    ) == {
        "r": 4,
        "s": 4,
    }


def test_a_repartition_topic_may_have_a_number_of_its_own() -> None:
    topology = configured(
        part("0", "a", writes="r"), part("1", reads="r:8", logs="c", writes="s"), part("2", reads="s"), a=3
    )
    assert counts(topology) == {"r": 8, "c": 8, "s": 8}
    assert topology.subtopologies["1"].tasks == 8


def test_copartitioned_topics_get_the_number_of_the_source_topic() -> None:
    parts = part("0", "a", writes="r"), part("1", "b", reads="r", logs="c", together=(ALL,))
    assert counts(configured(*parts, a=3, b=6)) == {"r": 6, "c": 6}
    assert counts(configured(*parts, a=6, b=3)) == {"r": 3, "c": 3}


def test_copartitioned_repartition_topics_get_the_fixed_or_the_largest_number() -> None:
    upstream = part("0", "a", writes="r"), part("1", "b", writes="s")
    assert counts(configured(*upstream, part("2", reads="r s", together=(REPARTITIONED,)), a=3, b=6)) == {
        "r": 6,
        "s": 6,
    }
    assert counts(configured(*upstream, part("2", reads="r:4 s", together=(REPARTITIONED,)), a=3, b=6)) == {
        "r": 4,
        "s": 4,
    }
    # The fixed number of a topic that is in no group with these is nothing to them, as it is in Apache Kafka 4.3.
    other = part("3", reads="t:9")
    assert counts(configured(*upstream, part("2", reads="r s", together=(REPARTITIONED,)), other, a=3, b=6)) == {
        "r": 6,
        "s": 6,
        "t": 9,
    }


@pytest.mark.parametrize(
    ("parts", "existing", "code", "detail"),
    [
        (
            (part("0", "e a d c b"),),
            {"e": 1},
            StatusCode.MISSING_SOURCE_TOPICS,
            "Source topics a, b, c and 1 additional topics are missing.",
        ),
        (
            (part("0", "a b", together=(CopartitionGroup((0, 1)),)),),
            {"a": 2, "b": 3},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{a=2, b=3}]",
        ),
        (
            (part("0", "a", writes="r"), part("1", "b", reads="r:4", together=(ALL,))),
            {"a": 2, "b": 3},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            (
                "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [3] of the "
                "source topic."
            ),
        ),
        (
            (part("0", "a", writes="r s"), part("1", reads="r:4 s:5", together=(REPARTITIONED,))),
            {"a": 2},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Following topics do not have the same number of partitions: [{r=4, s=5}]",
        ),
        (
            (part("0", "a", logs="c"),),
            {"a": 2, "c": 3},
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            "Existing topic c has different number of partitions: expected 2, found 3",
        ),
        (
            (part("0", "a", logs="e d c b"),),
            {"a": 2},
            StatusCode.MISSING_INTERNAL_TOPICS,
            "Internal topics are missing: b, c, d and 1 additional topics",
        ),
    ],
)
def test_what_keeps_a_topology_from_being_run(
    parts: tuple[Subtopology, ...], existing: dict[str, int], code: StatusCode, detail: str
) -> None:
    topology = configured(*parts, **existing)
    assert topology.problem == (code, detail)
    assert (
        bool(topology.subtopologies) == bool(topology.internal_topics) == (code is StatusCode.MISSING_INTERNAL_TOPICS)
    )


@pytest.mark.parametrize(
    ("parts", "detail"),
    [
        ((part("0", reads="r", writes="s"), part("1", reads="s", writes="r")), UNKNOWN_LOOP),
        ((part("0", "a"), part("1", reads="r")), NEVER_WRITTEN),
        ((part("0", "a"), part("1", logs="c")), "No source topics found for subtopology 1"),
        (
            tuple(part(f"{at}", "b") for at in range(101)),
            f"The topology has 101000 tasks; at most {TASKS_MAX} are allowed.",
        ),
    ],
)
def test_topologies_that_cannot_be_run_at_all(parts: tuple[Subtopology, ...], detail: str) -> None:
    with pytest.raises(BrokerError) as refused:
        configured(*parts, a=2, b=1_000)
    assert (refused.value.code, refused.value.message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, detail)


def test_a_chain_that_is_listed_from_its_end_takes_no_longer() -> None:
    """Each of ten thousand subtopologies waits for the next: rounds over all of them would be 50 million turns."""
    chain = [part(f"{at:05}", reads=f"r{at}", writes=f"r{at - 1}" if at else "") for at in range(10_000)]
    topology = configured(*chain, part("last", "a", writes="r9999"), a=1)
    assert len(topology.internal_topics) == 10_000


def test_the_endpoint_of_a_member_has_the_partitions_that_its_tasks_read() -> None:
    topology = configured(part("0", "a b", writes="r"), part("1", reads="r"), a=2, b=4, r=4)
    served = endpoint_partitions(
        {"0": frozenset({1, 3}), "1": frozenset({0}), "9": frozenset({0})}, topology, Existing(a=2, b=4, r=4)
    )
    assert list(served) == [("a", [1]), ("b", [1, 3]), ("r", [0])]
