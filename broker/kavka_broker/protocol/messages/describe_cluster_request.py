"""DescribeClusterRequest."""

from kavka_broker.protocol.message import Message


class DescribeClusterRequest(Message):
    KIND = "request"
    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")
    SCHEMA = (
        ("IncludeClusterAuthorizedOperations", "include_cluster_authorized_operations", "bool", (0, 2)),
        ("EndpointType", "endpoint_type", "int8", (1, 2), None, None, None, 1),
        ("IncludeFencedBrokers", "include_fenced_brokers", "bool", (2, 2)),
    )

    def __init__(
        self,
        include_cluster_authorized_operations: bool = False, endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers
