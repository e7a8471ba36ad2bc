"""EndTxnMarker."""

from kavka_broker.protocol.message import Message


class EndTxnMarker(Message):
    KIND = "data"
    VERSIONS = (0, 0)
    __slots__ = ("coordinator_epoch",)
    SCHEMA = (
        ("CoordinatorEpoch", "coordinator_epoch", "int32", (0, 0)),
    )

    def __init__(self, coordinator_epoch: int = 0) -> None:
        self.coordinator_epoch = coordinator_epoch
