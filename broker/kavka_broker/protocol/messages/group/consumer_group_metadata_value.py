"""ConsumerGroupMetadataValue."""

from kavka_broker.protocol.message import Message


class ConsumerGroupMetadataValue(Message):
    KIND = "coordinator-value"
    API_KEY = 3
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("epoch", "metadata_hash")
    SCHEMA = (
        ("Epoch", "epoch", "int32", (0, 0)),
        ("MetadataHash", "metadata_hash", "int64", (0, 0), None, (0, 0), 0),
    )

    def __init__(self, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
