"""What is kept of users' passwords for SCRAM (KIP-554), by user and mechanism. No password can be read from it."""

from collections.abc import Iterable, Iterator

from kavka_broker.core.authentication.scram import Credential
from kavka_broker.protocol.messages.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kavka_broker.protocol.messages.metadata.user_scram_credential_record import UserScramCredentialRecord


class Credentials:
    """The credentials of every user, in the order in which they were first given."""

    def __init__(self) -> None:
        self._by_user: dict[str, dict[int, Credential]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Credentials) and self._by_user == other._by_user

    __hash__ = None  # type: ignore[assignment]

    def of(self, user: str, mechanism: int) -> Credential | None:
        """What is kept of a user's password for a mechanism; None of one who has none."""
        return self._by_user.get(user, {}).get(mechanism)

    @property
    def users(self) -> Iterable[str]:
        """The users of whom something is kept."""
        return self._by_user.keys()

    def iterations_of(self, user: str) -> dict[int, int]:
        """The iterations by mechanism; none of a user who has no credential."""
        return {number: credential.iterations for number, credential in self._by_user.get(user, {}).items()}

    def iterations(self) -> dict[str, dict[int, int]]:
        """The iterations by mechanism, by user."""
        return {user: self.iterations_of(user) for user in self._by_user}

    def copy(self) -> "Credentials":
        copy = Credentials()
        copy._by_user = {user: dict(kept) for user, kept in self._by_user.items()}
        return copy

    def replay(self, record: UserScramCredentialRecord | RemoveUserScramCredentialRecord) -> None:
        if isinstance(record, UserScramCredentialRecord):
            given = Credential(record.salt, record.stored_key, record.server_key, record.iterations)
            self._by_user.setdefault(record.name, {})[record.mechanism] = given
            return
        kept = self._by_user.get(record.name, {})
        assert record.mechanism in kept, f"{record.name} has no credential {record.mechanism} to take away"
        del kept[record.mechanism]
        if not kept:
            del self._by_user[record.name]

    def records(self) -> Iterator[UserScramCredentialRecord]:
        for user, kept in self._by_user.items():
            for number, (salt, stored_key, server_key, iterations) in kept.items():
                yield UserScramCredentialRecord(user, number, salt, stored_key, server_key, iterations)
