"""AlterUserScramCredentialsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ScramCredentialDeletion(Struct):
    __slots__ = ("name", "mechanism")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Mechanism", "mechanism", "int8", (0, 0)),
    )

    def __init__(self, name: str = "", mechanism: int = 0) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Struct):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")
    SCHEMA = (
        ("Name", "name", "string", (0, 0)),
        ("Mechanism", "mechanism", "int8", (0, 0)),
        ("Iterations", "iterations", "int32", (0, 0)),
        ("Salt", "salt", "bytes", (0, 0)),
        ("SaltedPassword", "salted_password", "bytes", (0, 0)),
    )

    def __init__(
        self,
        name: str = "", mechanism: int = 0, iterations: int = 0, salt: bytes = b"", salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Message):
    KIND = "request"
    API_KEY = 51
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("deletions", "upsertions")
    SCHEMA = (
        ("Deletions", "deletions", "[]ScramCredentialDeletion", (0, 0)),
        ("Upsertions", "upsertions", "[]ScramCredentialUpsertion", (0, 0)),
    )

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] = EMPTY, upsertions: list[ScramCredentialUpsertion] = EMPTY,
    ) -> None:
        self.deletions = [] if deletions is EMPTY else deletions
        self.upsertions = [] if upsertions is EMPTY else upsertions
