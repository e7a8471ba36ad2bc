"""PartitionChangeRecord."""

from kavka_broker.protocol.message import ZERO, Message


class PartitionChangeRecord(Message):
    KIND = "metadata"
    API_KEY = 5
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "partition_id", "topic_id", "isr", "leader", "replicas", "removing_replicas", "adding_replicas",
        "leader_recovery_state", "directories", "eligible_leader_replicas", "last_known_elr",
    )
    SCHEMA = (
        ("PartitionId", "partition_id", "int32", (0, 2), None, None, None, -1),
        ("TopicId", "topic_id", "uuid", (0, 2)),
        ("Isr", "isr", "[]int32", (0, 2), (0, 2), (0, 2), 0, None),
        ("Leader", "leader", "int32", (0, 2), None, (0, 2), 1, -2),
        ("Replicas", "replicas", "[]int32", (0, 2), (0, 2), (0, 2), 2, None),
        ("RemovingReplicas", "removing_replicas", "[]int32", (0, 2), (0, 2), (0, 2), 3, None),
        ("AddingReplicas", "adding_replicas", "[]int32", (0, 2), (0, 2), (0, 2), 4, None),
        ("LeaderRecoveryState", "leader_recovery_state", "int8", (0, 2), None, (0, 2), 5, -1),
        ("Directories", "directories", "[]uuid", (1, 2), (1, 2), (1, 2), 8, None),
        ("EligibleLeaderReplicas", "eligible_leader_replicas", "[]int32", (2, 2), (2, 2), (2, 2), 6, None),
        ("LastKnownElr", "last_known_elr", "[]int32", (2, 2), (2, 2), (2, 2), 7, None),
    )

    def __init__(
        self,
        partition_id: int = -1, topic_id: bytes = ZERO, isr: list[int] | None = None, leader: int = -2,
        replicas: list[int] | None = None, removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None, leader_recovery_state: int = -1,
        directories: list[bytes] | None = None, eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
