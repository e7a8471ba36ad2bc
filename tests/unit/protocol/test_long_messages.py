"""Long messages: what their encoding takes beside their bytes."""

import tracemalloc

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)

NAMES = [f"topic-{number}" for number in range(10_000)]
TIMES_MAX = 3.0  # of the bytes of a message: the joined pieces, the message, and those that are not joined yet


def described(groups: int) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(
                group_id=f"group-{number}",
                assignor_name="uniform",
                members=[Member(member_id="m", subscribed_topic_names=NAMES)],
            )
            for number in range(groups)
        ]
    )


def test_a_long_message_takes_a_few_times_its_bytes_while_it_is_encoded() -> None:
    message = described(40)
    encode(message, 1)
    tracemalloc.start()
    try:
        data = encode(message, 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(data) > 40 * 10_000
    assert peak < TIMES_MAX * len(data)


def test_what_is_joined_on_the_way_is_read_as_it_was() -> None:
    message = described(3)
    assert decode(ConsumerGroupDescribeResponse, 1, memoryview(encode(message, 1))) == message
