"""UnregisterBrokerRequest."""

from kavka_broker.protocol.message import Message


class UnregisterBrokerRequest(Message):
    KIND = "request"
    API_KEY = 64
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id",)
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 0)),
    )

    def __init__(self, broker_id: int = 0) -> None:
        self.broker_id = broker_id
