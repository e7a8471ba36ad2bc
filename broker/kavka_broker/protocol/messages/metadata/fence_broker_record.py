"""FenceBrokerRecord."""

from kavka_broker.protocol.message import Message


class FenceBrokerRecord(Message):
    KIND = "metadata"
    API_KEY = 7
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("id", "epoch")
    SCHEMA = (
        ("Id", "id", "int32", (0, 0)),
        ("Epoch", "epoch", "int64", (0, 0)),
    )

    def __init__(self, id: int = 0, epoch: int = 0) -> None:
        self.id = id
        self.epoch = epoch
