"""DescribeTransactionsRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class DescribeTransactionsRequest(Message):
    KIND = "request"
    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("transactional_ids",)
    SCHEMA = (
        ("TransactionalIds", "transactional_ids", "[]string", (0, 0)),
    )

    def __init__(self, transactional_ids: list[str] = EMPTY) -> None:
        self.transactional_ids = [] if transactional_ids is EMPTY else transactional_ids
