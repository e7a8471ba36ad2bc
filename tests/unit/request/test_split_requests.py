"""Requests in parts: what is asked of each element is the same, and so is the answer to all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kavka_broker.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.request.split_requests import Each, once_each

TOPICS = Each("topics.partition_indexes", "topics.partitions", per_turn=3)
MEMBERS = Each("members", "members", per_turn=3)


def answer(request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(topic.name, [PartitionResponse(index) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8))
def test_the_answers_to_the_parts_are_the_answer_to_all(topics: list[list[int]]) -> None:
    request = DescribeProducersRequest([TopicRequest(f"t{index}", wanted) for index, wanted in enumerate(topics)])
    parts = list(TOPICS.parts(request))
    for part in parts:
        assert isinstance(part, DescribeProducersRequest)
        assert sum(max(1, len(topic.partition_indexes)) for topic in part.topics) <= TOPICS.per_turn
    assert TOPICS.joined(answer(part) for part in parts) == answer(request)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_small_request_is_not_divided(count: int) -> None:
    request = LeaveGroupRequest("g", "", [MemberIdentity(f"m{index}") for index in range(count)])
    (part,) = MEMBERS.parts(request)
    assert part is request


def test_a_part_has_all_other_fields_of_the_request() -> None:
    request = LeaveGroupRequest("g", "", [MemberIdentity(f"m{index}") for index in range(4)])
    first, second = MEMBERS.parts(request)
    assert first == LeaveGroupRequest("g", "", request.members[:3])
    assert second == LeaveGroupRequest("g", "", request.members[3:])
    assert len(request.members) == 4


def test_the_answer_of_a_wholly_refused_part_is_the_answer_to_all() -> None:
    refused = LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    members = LeaveGroupResponse(members=[MemberResponse("m0")])
    assert MEMBERS.joined([members, refused]) is refused


def test_elements_that_are_named_again_are_dropped() -> None:
    path = (("group_ids",),)
    request = ConsumerGroupDescribeRequest(["b", "a", "b", "b"], True)
    assert once_each(request, path) == ConsumerGroupDescribeRequest(["b", "a"], True)
    assert request.group_ids == ["b", "a", "b", "b"], "the request itself stays as it is"
    different = ConsumerGroupDescribeRequest(["b", "a"])
    assert once_each(different, path) is different
    assert once_each(MetadataRequest(None), (("topics",),)) == MetadataRequest(None)


def test_a_config_resource_is_another_one_with_other_keys() -> None:
    def asked(*keys: str) -> DescribeConfigsResource:
        return DescribeConfigsResource(4, "1", list(keys))

    request = DescribeConfigsRequest([asked("x"), asked("x"), asked("y"), DescribeConfigsResource(4, "1", None)])
    distinct = once_each(request, (("resources",),))
    assert distinct.resources == [asked("x"), asked("y"), DescribeConfigsResource(4, "1", None)]


def test_partitions_are_dropped_within_groups_and_topics_that_are_joined() -> None:
    def asked(group_id: str, epoch: int, topics: dict[str, list[int]] | None) -> OffsetFetchRequestGroup:
        wanted = (
            None
            if topics is None
            else [OffsetFetchRequestTopics(name, partition_indexes=indexes) for name, indexes in topics.items()]
        )
        return OffsetFetchRequestGroup(group_id, None, epoch, wanted)

    groups = [
        asked("g", 1, {"t": [0, 0, 1]}),
        asked("h", 1, None),
        asked("g", 2, {"u": [5], "t": [1, 2]}),
        asked("h", 2, {"t": [1]}),
    ]
    distinct = once_each(OffsetFetchRequest(groups=groups), (("groups", "topics", "partition_indexes"),))
    assert distinct.groups == [asked("g", 1, {"t": [0, 1, 2], "u": [5]}), asked("h", 1, None)]


def test_a_topic_with_an_id_is_known_by_that_alone() -> None:
    by_id = [MetadataRequestTopic(bytes(15) + b"1", name) for name in ("a", "b", None)]
    by_name = [MetadataRequestTopic(name=name) for name in ("a", "b", "a")]
    distinct = once_each(MetadataRequest([*by_id, *by_name]), (("topics",),))
    assert distinct.topics == [by_id[0], *by_name[:2]]


def test_topics_of_different_ids_are_different_without_a_name() -> None:
    def asked(number: int, *indexes: int) -> OffsetFetchRequestTopics:
        return OffsetFetchRequestTopics("", bytes(15) + bytes([number]), list(indexes))

    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=[asked(1, 0), asked(2, 0), asked(1, 3)])])
    distinct = once_each(request, (("groups", "topics", "partition_indexes"),))
    assert distinct.groups[0].topics == [asked(1, 0, 3), asked(2, 0)]


def test_elements_that_nothing_names_are_a_mistake_of_the_one_who_says_once() -> None:
    request = LeaveGroupRequest(members=[MemberIdentity("a"), MemberIdentity("b")])
    with pytest.raises(AssertionError, match="nothing says which MemberIdentity one is"):
        once_each(request, (("members",),))
