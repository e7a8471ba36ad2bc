"""GetTelemetrySubscriptionsRequest."""

from kavka_broker.protocol.message import ZERO, Message


class GetTelemetrySubscriptionsRequest(Message):
    KIND = "request"
    API_KEY = 71
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("client_instance_id",)
    SCHEMA = (
        ("ClientInstanceId", "client_instance_id", "uuid", (0, 0)),
    )

    def __init__(self, client_instance_id: bytes = ZERO) -> None:
        self.client_instance_id = client_instance_id
