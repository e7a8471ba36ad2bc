"""DescribeClusterResponse."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeClusterBroker(Struct):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 2)),
        ("Host", "host", "string", (0, 2)),
        ("Port", "port", "int32", (0, 2)),
        ("Rack", "rack", "string", (0, 2), (0, 2), None, None, None),
        ("IsFenced", "is_fenced", "bool", (2, 2)),
    )

    def __init__(
        self,
        broker_id: int = 0, host: str = "", port: int = 0, rack: str | None = None, is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Message):
    KIND = "response"
    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "throttle_time_ms", "error_code", "error_message", "endpoint_type", "cluster_id", "controller_id",
        "brokers", "cluster_authorized_operations",
    )
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 2)),
        ("ErrorCode", "error_code", "int16", (0, 2)),
        ("ErrorMessage", "error_message", "string", (0, 2), (0, 2), None, None, None),
        ("EndpointType", "endpoint_type", "int8", (1, 2), None, None, None, 1),
        ("ClusterId", "cluster_id", "string", (0, 2)),
        ("ControllerId", "controller_id", "int32", (0, 2), None, None, None, -1),
        ("Brokers", "brokers", "[]DescribeClusterBroker", (0, 2)),
        ("ClusterAuthorizedOperations", "cluster_authorized_operations", "int32",
         (0, 2), None, None, None, -2147483648),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None, endpoint_type: int = 1,
        cluster_id: str = "", controller_id: int = -1, brokers: list[DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
