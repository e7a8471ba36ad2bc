"""StreamsGroupMetadataValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class LastAssignmentConfig(Struct):
    __slots__ = ("key", "value")
    SCHEMA = (
        ("Key", "key", "string", (0, 0)),
        ("Value", "value", "string", (0, 0)),
    )

    def __init__(self, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


class StreamsGroupMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 17
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("epoch", "metadata_hash", "validated_topology_epoch", "last_assignment_configs")
    SCHEMA = (
        ("Epoch", "epoch", "int32", (0, 0)),
        ("MetadataHash", "metadata_hash", "int64", (0, 0)),
        ("ValidatedTopologyEpoch", "validated_topology_epoch", "int32", (0, 0), None, (0, 0), 0, -1),
        ("LastAssignmentConfigs", "last_assignment_configs", "[]LastAssignmentConfig", (0, 0), (0, 0), (0, 0), 1),
    )

    def __init__(
        self,
        epoch: int = 0, metadata_hash: int = 0, validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | None = EMPTY,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is EMPTY else last_assignment_configs
