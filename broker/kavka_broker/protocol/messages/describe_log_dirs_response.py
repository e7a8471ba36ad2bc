"""DescribeLogDirsResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeLogDirsPartition(Struct):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")
    SCHEMA = (
        ("PartitionIndex", "partition_index", "int32", (1, 5)),
        ("PartitionSize", "partition_size", "int64", (1, 5)),
        ("OffsetLag", "offset_lag", "int64", (1, 5)),
        ("IsFutureKey", "is_future_key", "bool", (1, 5)),
    )

    def __init__(
        self,
        partition_index: int = 0, partition_size: int = 0, offset_lag: int = 0, is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (1, 5)),
        ("Partitions", "partitions", "[]DescribeLogDirsPartition", (1, 5)),
    )

    def __init__(self, name: str = "", partitions: list[DescribeLogDirsPartition] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeLogDirsResult(Struct):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")
    SCHEMA = (
        ("ErrorCode", "error_code", "int16", (1, 5)),
        ("LogDir", "log_dir", "string", (1, 5)),
        ("Topics", "topics", "[]DescribeLogDirsTopic", (1, 5)),
        ("TotalBytes", "total_bytes", "int64", (4, 5), None, None, None, -1, True),
        ("UsableBytes", "usable_bytes", "int64", (4, 5), None, None, None, -1, True),
        ("IsCordoned", "is_cordoned", "bool", (5, 5), None, None, None, False, True),
    )

    def __init__(
        self,
        error_code: int = 0, log_dir: str = "", topics: list[DescribeLogDirsTopic] = EMPTY, total_bytes: int = -1,
        usable_bytes: int = -1, is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is EMPTY else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


class DescribeLogDirsResponse(Message):
    KIND = "response"
    API_KEY = 35
    VERSIONS = (1, 5)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "error_code", "results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (1, 5)),
        ("ErrorCode", "error_code", "int16", (3, 5), None, None, None, 0, True),
        ("Results", "results", "[]DescribeLogDirsResult", (1, 5)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, results: list[DescribeLogDirsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is EMPTY else results
