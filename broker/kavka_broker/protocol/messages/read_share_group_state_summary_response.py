"""ReadShareGroupStateSummaryResponse: response, key 87, versions 0 to 1, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class PartitionResult(Struct):
    __match_args__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
    )
    __slots__ = __match_args__
    SCHEMA = (
        ("Partition", "partition", "int32", (0, 1), None, None, None, 0, False, None),
        ("ErrorCode", "error_code", "int16", (0, 1), None, None, None, 0, False, None),
        ("ErrorMessage", "error_message", "string", (0, 1), (0, 1), None, None, None, False, None),
        ("StateEpoch", "state_epoch", "int32", (0, 1), None, None, None, 0, False, None),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 1), None, None, None, 0, False, None),
        ("StartOffset", "start_offset", "int64", (0, 1), None, None, None, 0, False, None),
        (
            "DeliveryCompleteCount", "delivery_complete_count", "int32",
            (1, 1), None, None, None, -1, True, None,
        ),
    )

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count


class ReadStateSummaryResult(Struct):
    __match_args__ = ("topic_id", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("TopicId", "topic_id", "uuid", (0, 1), None, None, None, b"", False, None),
        ("Partitions", "partitions", "[]PartitionResult", (0, 1), None, None, None, b"", False, None),
    )

    def __init__(self, topic_id: bytes = ZERO, partitions: list[PartitionResult] = EMPTY) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ReadShareGroupStateSummaryResponse(Message):
    NAME = "ReadShareGroupStateSummaryResponse"
    KIND = "response"
    API_KEY = 87
    VERSIONS = (0, 1)
    FLEXIBLE_FROM = 0
    __match_args__ = ("results",)
    __slots__ = __match_args__
    SCHEMA = (
        (
            "Results", "results", "[]ReadStateSummaryResult",
            (0, 1), None, None, None, b"", False, None,
        ),
    )

    def __init__(self, results: list[ReadStateSummaryResult] = EMPTY) -> None:
        self.results = [] if results is EMPTY else results
