"""AddOffsetsToTxnRequest."""

from kavka_broker.protocol.message import Message


class AddOffsetsToTxnRequest(Message):
    KIND = "request"
    API_KEY = 25
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 4)),
        ("ProducerId", "producer_id", "int64", (0, 4)),
        ("ProducerEpoch", "producer_epoch", "int16", (0, 4)),
        ("GroupId", "group_id", "string", (0, 4)),
    )

    def __init__(
        self,
        transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
