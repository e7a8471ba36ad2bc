"""AddPartitionsToTxnResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AddPartitionsToTxnPartitionResult(Struct):
    __slots__ = ("partition_index", "partition_error_code")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (0, 5)),
        ("PartitionErrorCode", "partition_error_code", "int16", (0, 5)),
    )

    def __init__(self, partition_index: int = 0, partition_error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(Struct):
    __slots__ = ("name", "results_by_partition")
    SCHEMA = (
        ("Name", "name", "string", (0, 5)),
        ("ResultsByPartition", "results_by_partition", "[]AddPartitionsToTxnPartitionResult", (0, 5)),
    )

    def __init__(
        self,
        name: str = "", results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is EMPTY else results_by_partition


class AddPartitionsToTxnResult(Struct):
    __slots__ = ("transactional_id", "topic_results")
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (4, 5)),
        ("TopicResults", "topic_results", "[]AddPartitionsToTxnTopicResult", (4, 5)),
    )

    def __init__(
        self,
        transactional_id: str = "", topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is EMPTY else topic_results


class AddPartitionsToTxnResponse(Message):
    KIND = "response"
    API_KEY = 24
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 5)),
        ("ErrorCode", "error_code", "int16", (4, 5), None, None, None, 0, True),
        ("ResultsByTransaction", "results_by_transaction", "[]AddPartitionsToTxnResult", (4, 5)),
        ("ResultsByTopicV3AndBelow", "results_by_topic_v3_and_below", "[]AddPartitionsToTxnTopicResult", (0, 3)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is EMPTY else results_by_transaction
        self.results_by_topic_v3_and_below = [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below
