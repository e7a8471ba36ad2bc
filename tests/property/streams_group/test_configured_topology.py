"""Numbers of partitions of any topology whatever, beside rounds over all subtopologies, as the rule is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.streams_group.configured_topology import NEVER_WRITTEN, UNKNOWN_LOOP, configure
from kavka_broker.core.streams_group.topology import InternalTopic, Subtopology, Topology
from kavka_broker.protocol.errors import BrokerError
from tests.unit.streams_group.test_configured_topology import Existing

SOURCES = {"a": 2, "b": 3, "c": 5}


@st.composite
def subtopologies(draw: st.DrawFn) -> tuple[Subtopology, ...]:
    internal = st.sampled_from(["r", "s", "t", "u", "v"])
    fixed = draw(st.dictionaries(internal, st.integers(1, 9), max_size=2))
    return tuple(
        Subtopology(
            name,
            tuple(sorted(draw(st.sets(st.sampled_from(sorted(SOURCES)), max_size=2)))),
            repartition_sink_topics=tuple(draw(st.lists(internal, max_size=2, unique=True))),
            repartition_source_topics=tuple(
                InternalTopic(topic, fixed.get(topic, 0)) for topic in draw(st.lists(internal, max_size=2, unique=True))
            ),
        )
        for name in draw(st.lists(st.sampled_from("0123456"), min_size=1, unique=True))
    )


def by_rounds(parts: tuple[Subtopology, ...]) -> dict[str, int] | str:
    """The number of partitions of each repartition topic, or why there is none."""
    counts = {topic.name: topic.partitions for part in parts for topic in part.repartition_source_topics}
    counts = {name: count for name, count in counts.items() if count}
    while True:
        is_open, has_grown = False, False
        for part in sorted(parts, key=lambda one: one.subtopology_id):
            for sink in part.repartition_sink_topics:
                if sink not in counts:
                    known = [SOURCES[name] for name in part.source_topics]
                    known += [counts[topic.name] for topic in part.repartition_source_topics if topic.name in counts]
                    if known:
                        counts[sink], has_grown = max(known), True
                    else:
                        is_open = True
        if not is_open:
            break
        if not has_grown:
            return UNKNOWN_LOOP
    if any(topic.name not in counts for part in parts for topic in part.repartition_source_topics):
        return NEVER_WRITTEN
    return counts


@given(subtopologies())
def test_numbers_of_partitions_are_those_of_the_rounds(parts: tuple[Subtopology, ...]) -> None:
    expected = by_rounds(parts)
    has_sources = all(part.source_topics or part.repartition_source_topics for part in parts)
    if isinstance(expected, str) or not has_sources:
        with pytest.raises(BrokerError, match=expected if isinstance(expected, str) else "No source topics"):
            configure(Topology(0, parts), Existing(**SOURCES))
        return
    topology = configure(Topology(0, parts), Existing(**SOURCES))
    read = {topic.name for part in parts for topic in part.repartition_source_topics}
    assert {topic.name: topic.partitions for topic in topology.internal_topics} == {
        name: expected[name] for name in read
    }
    for part in parts:
        sources = [SOURCES[name] for name in part.source_topics]
        sources += [expected[topic.name] for topic in part.repartition_source_topics]
        assert topology.subtopologies[part.subtopology_id].tasks == max(sources)
