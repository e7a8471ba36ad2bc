"""ElectLeadersResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class PartitionResult(Struct):
    __slots__ = ("partition_id", "error_code", "error_message")
    SCHEMA = (
        ("PartitionId", "partition_id", "int32", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (0, 2), (0, 2)),
    )

    def __init__(self, partition_id: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Struct):
    __slots__ = ("topic", "partition_result")
    SCHEMA = (
        ("Topic", "topic", "string", (0, 2)),
        ("PartitionResult", "partition_result", "[]PartitionResult", (0, 2)),
    )

    def __init__(self, topic: str = "", partition_result: list[PartitionResult] = EMPTY) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is EMPTY else partition_result


class ElectLeadersResponse(Message):
    KIND = "response"
    API_KEY = 43
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("ErrorCode", "error_code", "int16", (1, 2)),
        ("ReplicaElectionResults", "replica_election_results", "[]ReplicaElectionResult", (0, 2)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is EMPTY else replica_election_results
