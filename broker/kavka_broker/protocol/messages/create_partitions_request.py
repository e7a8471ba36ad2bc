"""CreatePartitionsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class CreatePartitionsAssignment(Struct):
    __slots__ = ("broker_ids",)
    SCHEMA = (
        ("BrokerIds", "broker_ids", "[]int32", (0, 3)),
    )

    def __init__(self, broker_ids: list[int] = EMPTY) -> None:
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids


class CreatePartitionsTopic(Struct):
    __slots__ = ("name", "count", "assignments")
    SCHEMA = (
        ("Name", "name", "string", (0, 3)),
        ("Count", "count", "int32", (0, 3)),
        ("Assignments", "assignments", "[]CreatePartitionsAssignment", (0, 3), (0, 3)),
    )

    def __init__(
        self,
        name: str = "", count: int = 0, assignments: list[CreatePartitionsAssignment] | None = EMPTY,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is EMPTY else assignments


class CreatePartitionsRequest(Message):
    KIND = "request"
    API_KEY = 37
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 2
    __slots__ = ("topics", "timeout_ms", "validate_only")
    SCHEMA = (
        ("Topics", "topics", "[]CreatePartitionsTopic", (0, 3)),
        ("TimeoutMs", "timeout_ms", "int32", (0, 3)),
        ("ValidateOnly", "validate_only", "bool", (0, 3)),
    )

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] = EMPTY, timeout_ms: int = 0, validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
