"""UserScramCredentialRecord."""

from kavka_broker.protocol.message import Message


class UserScramCredentialRecord(Message):
    KIND = "metadata"
    API_KEY = 11
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("name", "mechanism", "salt", "stored_key", "server_key", "iterations")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Mechanism", "mechanism", "int8", (0, 0)),
        ("Salt", "salt", "bytes", (0, 0)),
        ("StoredKey", "stored_key", "bytes", (0, 0)),
        ("ServerKey", "server_key", "bytes", (0, 0)),
        ("Iterations", "iterations", "int32", (0, 0)),
    )

    def __init__(
        self,
        name: str = "", mechanism: int = 0, salt: bytes = b"", stored_key: bytes = b"", server_key: bytes = b"",
        iterations: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
