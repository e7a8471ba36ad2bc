"""ApiVersionsRequest."""

from kavka_broker.protocol.message import Message


class ApiVersionsRequest(Message):
    KIND = "request"
    API_KEY = 18
    VERSIONS = (0, 5)
    FLEXIBLE_FROM = 3
    __slots__ = ("client_software_name", "client_software_version", "cluster_id", "node_id")
    SCHEMA = (
        ("ClientSoftwareName", "client_software_name", "string", (3, 5), None, None, None, "", True),
        ("ClientSoftwareVersion", "client_software_version", "string", (3, 5), None, None, None, "", True),
        ("ClusterId", "cluster_id", "string", (5, 5), (5, 5), None, None, None, True),
        ("NodeId", "node_id", "int32", (5, 5), None, None, None, -1, True),
    )

    def __init__(
        self,
        client_software_name: str = "", client_software_version: str = "", cluster_id: str | None = None,
        node_id: int = -1,
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.cluster_id = cluster_id
        self.node_id = node_id
