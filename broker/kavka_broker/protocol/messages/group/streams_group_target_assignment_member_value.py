"""StreamsGroupTargetAssignmentMemberValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions")
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
    )

    def __init__(self, subtopology_id: str = "", partitions: list[int] = EMPTY) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions


class StreamsGroupTargetAssignmentMemberValue(Message):
    KIND = "coordinator-value"
    API_KEY = 21
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    SCHEMA = (
        ("ActiveTasks", "active_tasks", "[]TaskIds", (0, 0)),
        ("StandbyTasks", "standby_tasks", "[]TaskIds", (0, 0)),
        ("WarmupTasks", "warmup_tasks", "[]TaskIds", (0, 0)),
    )

    def __init__(
        self,
        active_tasks: list[TaskIds] = EMPTY, standby_tasks: list[TaskIds] = EMPTY,
        warmup_tasks: list[TaskIds] = EMPTY,
    ) -> None:
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
