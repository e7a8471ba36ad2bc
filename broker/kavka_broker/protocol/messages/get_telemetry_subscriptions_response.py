"""GetTelemetrySubscriptionsResponse."""

from kavka_broker.protocol.message import EMPTY, ZERO, Message


class GetTelemetrySubscriptionsResponse(Message):
    KIND = "response"
    API_KEY = 71
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "throttle_time_ms", "error_code", "client_instance_id", "subscription_id", "accepted_compression_types",
        "push_interval_ms", "telemetry_max_bytes", "delta_temporality", "requested_metrics",
    )
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("ClientInstanceId", "client_instance_id", "uuid", (0, 0)),
        ("SubscriptionId", "subscription_id", "int32", (0, 0)),
        ("AcceptedCompressionTypes", "accepted_compression_types", "[]int8", (0, 0)),
        ("PushIntervalMs", "push_interval_ms", "int32", (0, 0)),
        ("TelemetryMaxBytes", "telemetry_max_bytes", "int32", (0, 0)),
        ("DeltaTemporality", "delta_temporality", "bool", (0, 0)),
        ("RequestedMetrics", "requested_metrics", "[]string", (0, 0)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, client_instance_id: bytes = ZERO, subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY, push_interval_ms: int = 0, telemetry_max_bytes: int = 0,
        delta_temporality: bool = False, requested_metrics: list[str] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = [] if accepted_compression_types is EMPTY else accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is EMPTY else requested_metrics
