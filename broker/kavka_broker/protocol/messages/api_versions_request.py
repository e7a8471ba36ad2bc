"""ApiVersionsRequest."""

from kavka_broker.protocol.message import Message


class ApiVersionsRequest(Message):
    KIND = "request"
    API_KEY = 18
    VERSIONS = (0, 4)
    FLEXIBLE_FROM = 3
    __slots__ = ("client_software_name", "client_software_version")
    SCHEMA = (
        ("ClientSoftwareName", "client_software_name", "string", (3, 4), None, None, None, "", True),
        ("ClientSoftwareVersion", "client_software_version", "string", (3, 4), None, None, None, "", True),
    )

    def __init__(self, client_software_name: str = "", client_software_version: str = "") -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
