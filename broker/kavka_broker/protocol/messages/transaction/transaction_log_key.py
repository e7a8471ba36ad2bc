"""TransactionLogKey."""

from kavka_broker.protocol.message import Message


class TransactionLogKey(Message):
    KIND = "coordinator-key"
    API_KEY = 0
    VERSIONS = (0, 0)
    __slots__ = ("transactional_id",)
    SCHEMA = (
        ("TransactionalId", "transactional_id", "string", (0, 0)),
    )

    def __init__(self, transactional_id: str = "") -> None:
        self.transactional_id = transactional_id
