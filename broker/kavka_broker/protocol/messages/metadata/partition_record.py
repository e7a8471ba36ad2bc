"""PartitionRecord."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message


class PartitionRecord(Message):
    KIND = "metadata"
    API_KEY = 3
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "partition_id", "topic_id", "replicas", "isr", "removing_replicas", "adding_replicas", "leader",
        "leader_recovery_state", "leader_epoch", "partition_epoch", "directories", "eligible_leader_replicas",
        "last_known_elr",
    )
    SCHEMA = (
        ("PartitionId", "partition_id", "int32", (0, 2), None, None, None, -1),
        ("TopicId", "topic_id", "uuid", (0, 2)),
        ("Replicas", "replicas", "[]int32", (0, 2)),
        ("Isr", "isr", "[]int32", (0, 2)),
        ("RemovingReplicas", "removing_replicas", "[]int32", (0, 2)),
        ("AddingReplicas", "adding_replicas", "[]int32", (0, 2)),
        ("Leader", "leader", "int32", (0, 2), None, None, None, -1),
        ("LeaderRecoveryState", "leader_recovery_state", "int8", (0, 2), None, (0, 2), 0),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 2), None, None, None, -1),
        ("PartitionEpoch", "partition_epoch", "int32", (0, 2), None, None, None, -1),
        ("Directories", "directories", "[]uuid", (1, 2)),
        ("EligibleLeaderReplicas", "eligible_leader_replicas", "[]int32", (2, 2), (2, 2), (2, 2), 1, None),
        ("LastKnownElr", "last_known_elr", "[]int32", (2, 2), (2, 2), (2, 2), 2, None),
    )

    def __init__(
        self,
        partition_id: int = -1, topic_id: bytes = ZERO, replicas: list[int] = EMPTY, isr: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY, adding_replicas: list[int] = EMPTY, leader: int = -1,
        leader_recovery_state: int = 0, leader_epoch: int = -1, partition_epoch: int = -1,
        directories: list[bytes] = EMPTY, eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = [] if replicas is EMPTY else replicas
        self.isr = [] if isr is EMPTY else isr
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = [] if directories is EMPTY else directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
