"""What a topology may say, before anything is known of its topics."""

from dataclasses import replace

import pytest

from kavka_broker.core.streams_group.topology import CopartitionGroup, InternalTopic, Subtopology, Topology
from kavka_broker.core.streams_group.topology_checks import check_topic_names, check_topology, named_topics
from kavka_broker.protocol.errors import BrokerError, ErrorCode

LOG = InternalTopic("c", 0, 0, (("cleanup.policy", "compact"),))
PART = Subtopology(
    "0",
    ("a", "b"),
    state_changelog_topics=(LOG,),
    repartition_sink_topics=("s",),
    repartition_source_topics=(InternalTopic("r", 4),),
    copartition_groups=(CopartitionGroup((0, 1), (), (0,)),),
)


def refused(*parts: Subtopology, epoch: int = 0) -> tuple[ErrorCode, str | None]:
    with pytest.raises(BrokerError) as error:
        check_topology(Topology(epoch, parts))
    return error.value.code, error.value.message


def test_a_topology_in_order() -> None:
    other = replace(PART, subtopology_id="1", source_topics=("d",), repartition_source_topics=(), copartition_groups=())
    topology = Topology(0, (PART, other))
    check_topology(topology)
    names = named_topics(topology)
    assert sorted(names) == ["a", "b", "c", "d", "r", "s"]
    check_topic_names(names)


def test_source_topics_by_expression_are_not_served() -> None:
    code, message = refused(replace(PART, source_topic_regex=("a.*",)))
    assert (code, message) == (
        ErrorCode.INVALID_REQUEST,
        "Regular expressions for source topics are not supported yet.",
    )


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        (
            replace(PART, state_changelog_topics=(InternalTopic("c", 3),)),
            "Changelog topic c must have an undefined partition count, but it is set to 3.",
        ),
        (replace(PART, state_changelog_topics=(LOG, LOG)), "The topology names the internal topic c twice."),
        (
            replace(PART, repartition_source_topics=(InternalTopic("r", -1),)),
            "Internal topic r has -1 partitions.",
        ),
        (
            replace(PART, state_changelog_topics=(InternalTopic("c", configs=(("k", "1"), ("k", "2"))),)),
            "The topology names the config k twice.",
        ),
        (replace(PART, copartition_groups=(CopartitionGroup((2,)),)), "A copartition group has topic 2 of 2."),
        (
            replace(PART, copartition_groups=(CopartitionGroup((), (), (-1,)),)),
            "A copartition group has topic -1 of 1.",
        ),
        (replace(PART, copartition_groups=(CopartitionGroup((), (0,)),)), "A copartition group has topic 0 of 0."),
    ],
)
def test_topologies_that_are_refused(part: Subtopology, problem: str) -> None:
    assert refused(part) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, problem)


def test_epochs_and_ids_that_are_refused() -> None:
    assert refused(PART, epoch=-1)[1] == "The topology epoch is -1, but must be at least 0."
    assert refused(PART, PART)[1] == "The topology names the subtopology 0 twice."
    many = (Subtopology(f"{at}") for at in range(10_001))
    assert refused(*many)[1] == "The topology has 10001 subtopologies; at most 10000 are allowed."


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            ["a", "__consumer_offsets", "__share_group_state"],
            (
                "Use of Kafka internal topics __consumer_offsets,__share_group_state in a Kafka Streams topology is "
                "prohibited."
            ),
        ),
        (["a", "b c", ".."], "Topic names b c,.. are not valid topic names."),
        ([f"t{at}" for at in range(10_001)], "The topology names 10001 topics; at most 10000 are allowed."),
    ],
)
def test_names_that_are_refused(names: list[str], problem: str) -> None:
    with pytest.raises(BrokerError) as error:
        check_topic_names(names)
    assert (error.value.code, error.value.message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, problem)
