"""StreamsGroupCurrentMemberAssignmentValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class TaskIds(Struct):
    __slots__ = ("subtopology_id", "partitions", "assignment_epochs")
    SCHEMA = (
        ("SubtopologyId", "subtopology_id", "string", (0, 0)),
        ("Partitions", "partitions", "[]int32", (0, 0)),
        ("AssignmentEpochs", "assignment_epochs", "[]int32", (0, 0), (0, 0), (0, 0), 0),
    )

    def __init__(
        self,
        subtopology_id: str = "", partitions: list[int] = EMPTY, assignment_epochs: list[int] | None = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions
        self.assignment_epochs = [] if assignment_epochs is EMPTY else assignment_epochs


class StreamsGroupCurrentMemberAssignmentValue(Message):
    KIND = "coordinator-value"
    API_KEY = 22
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "member_epoch", "previous_member_epoch", "state", "active_tasks", "standby_tasks", "warmup_tasks",
        "active_tasks_pending_revocation", "standby_tasks_pending_revocation", "warmup_tasks_pending_revocation",
    )
    SCHEMA = (
        ("MemberEpoch", "member_epoch", "int32", (0, 0)),
        ("PreviousMemberEpoch", "previous_member_epoch", "int32", (0, 0)),
        ("State", "state", "int8", (0, 0)),
        ("ActiveTasks", "active_tasks", "[]TaskIds", (0, 0)),
        ("StandbyTasks", "standby_tasks", "[]TaskIds", (0, 0)),
        ("WarmupTasks", "warmup_tasks", "[]TaskIds", (0, 0)),
        ("ActiveTasksPendingRevocation", "active_tasks_pending_revocation", "[]TaskIds", (0, 0)),
        ("StandbyTasksPendingRevocation", "standby_tasks_pending_revocation", "[]TaskIds", (0, 0)),
        ("WarmupTasksPendingRevocation", "warmup_tasks_pending_revocation", "[]TaskIds", (0, 0)),
    )

    def __init__(
        self,
        member_epoch: int = 0, previous_member_epoch: int = 0, state: int = 0, active_tasks: list[TaskIds] = EMPTY,
        standby_tasks: list[TaskIds] = EMPTY, warmup_tasks: list[TaskIds] = EMPTY,
        active_tasks_pending_revocation: list[TaskIds] = EMPTY,
        standby_tasks_pending_revocation: list[TaskIds] = EMPTY,
        warmup_tasks_pending_revocation: list[TaskIds] = EMPTY,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks
        self.active_tasks_pending_revocation = [] if active_tasks_pending_revocation is EMPTY else active_tasks_pending_revocation
        self.standby_tasks_pending_revocation = [] if standby_tasks_pending_revocation is EMPTY else standby_tasks_pending_revocation
        self.warmup_tasks_pending_revocation = [] if warmup_tasks_pending_revocation is EMPTY else warmup_tasks_pending_revocation
