"""EndTxnRequest."""

from kavka_broker.protocol.message import Message


class EndTxnRequest(Message):
    KIND = "request"
    API_KEY = 26
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 5)),
        ("ProducerId", "producer_id", "int64", (0, 5)),
        ("ProducerEpoch", "producer_epoch", "int16", (0, 5)),
        ("Committed", "committed", "bool", (0, 5)),
    )

    def __init__(
        self,
        transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
