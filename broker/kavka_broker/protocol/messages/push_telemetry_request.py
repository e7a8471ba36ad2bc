"""PushTelemetryRequest."""

from kavka_broker.protocol.message import ZERO, Message


class PushTelemetryRequest(Message):
    KIND = "request"
    API_KEY = 72
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")
    SCHEMA = (
        ("ClientInstanceId", "client_instance_id", "uuid", (0, 0)),
        ("SubscriptionId", "subscription_id", "int32", (0, 0)),
        ("Terminating", "terminating", "bool", (0, 0)),
        ("CompressionType", "compression_type", "int8", (0, 0)),
        ("Metrics", "metrics", "bytes", (0, 0)),
    )

    def __init__(
        self,
        client_instance_id: bytes = ZERO, subscription_id: int = 0, terminating: bool = False,
        compression_type: int = 0, metrics: bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics
