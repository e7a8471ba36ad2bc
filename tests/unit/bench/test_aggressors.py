"""What aggressors wait for before they begin."""

from bench.aggressors import LIST_OFFSETS_VERSION, unopened
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


def test_partitions_without_an_end_are_not_open_yet() -> None:
    codes = (0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partitions = [ListOffsetsPartitionResponse(number, code) for number, code in enumerate(codes)]
    answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse("wide", partitions)])
    assert unopened(memoryview(encode(answer, LIST_OFFSETS_VERSION))) == 2
    assert unopened(memoryview(encode(ListOffsetsResponse(), LIST_OFFSETS_VERSION))) == 0
