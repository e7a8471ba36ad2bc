"""ShareUpdateValue."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class StateBatch(Struct):
    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    SCHEMA = (
        ("FirstOffset", "first_offset", "int64", (0, 0)),
        ("LastOffset", "last_offset", "int64", (0, 0)),
        ("DeliveryState", "delivery_state", "int8", (0, 0)),
        ("DeliveryCount", "delivery_count", "int16", (0, 0)),
    )

    def __init__(
        self,
        first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


class ShareUpdateValue(Message):
    KIND = "coordinator-value"
    API_KEY = 1
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("snapshot_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")
    SCHEMA = (
        ("SnapshotEpoch", "snapshot_epoch", "int32", (0, 0)),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 0)),
        ("StartOffset", "start_offset", "int64", (0, 0)),
        ("DeliveryCompleteCount", "delivery_complete_count", "int32", (0, 0), None, (0, 0), 0, -1),
        ("StateBatches", "state_batches", "[]StateBatch", (0, 0)),
    )

    def __init__(
        self,
        snapshot_epoch: int = 0, leader_epoch: int = 0, start_offset: int = 0, delivery_complete_count: int = -1,
        state_batches: list[StateBatch] = EMPTY,
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is EMPTY else state_batches
