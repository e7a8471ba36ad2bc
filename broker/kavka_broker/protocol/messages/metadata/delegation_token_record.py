"""DelegationTokenRecord."""

from kavka_broker.protocol.message import EMPTY, Message


class DelegationTokenRecord(Message):
    KIND = "metadata"
    API_KEY = 10
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiration_timestamp", "token_id",
    )
    SCHEMA = (
        ("Owner", "owner", "string", (0, 0)),
        ("Requester", "requester", "string", (0, 0)),
        ("Renewers", "renewers", "[]string", (0, 0)),
        ("IssueTimestamp", "issue_timestamp", "int64", (0, 0)),
        ("MaxTimestamp", "max_timestamp", "int64", (0, 0)),
        ("ExpirationTimestamp", "expiration_timestamp", "int64", (0, 0)),
        ("TokenId", "token_id", "string", (0, 0)),
    )

    def __init__(
        self,
        owner: str = "", requester: str = "", renewers: list[str] = EMPTY, issue_timestamp: int = 0,
        max_timestamp: int = 0, expiration_timestamp: int = 0, token_id: str = "",
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = [] if renewers is EMPTY else renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id
