"""Delegation tokens (KIP-48): who owns each, who asked for it, who may renew it, and how long it holds.

The secret of a token is not here: a node with the key works it out from the id (`core/authentication/delegation.py`).
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kavka_broker.protocol.messages.metadata.delegation_token_record import DelegationTokenRecord
from kavka_broker.protocol.messages.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord


class DelegationToken(NamedTuple):
    """One token. Principals are written with their type, like `User:alice`; times are since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    expires_ms: int

    @property
    def ends_ms(self) -> int:
        """The last moment at which it holds."""
        return min(self.max_ms, self.expires_ms)

    def is_over(self, now_ms: int) -> bool:
        return self.ends_ms < now_ms

    def concerns(self, principal: str) -> bool:
        """Whether a principal owns it, has asked for it, or may renew it."""
        return principal in (self.owner, self.requester, *self.renewers)

    def may_be_renewed_by(self, principal: str) -> bool:
        return principal in (self.owner, *self.renewers)

    def record(self) -> DelegationTokenRecord:
        """Return the record that makes it true."""
        return DelegationTokenRecord(
            self.owner,
            self.requester,
            list(self.renewers),
            self.issued_ms,
            self.max_ms,
            self.expires_ms,
            self.token_id,
        )


class DelegationTokens:
    """Every token that was not removed, in the order in which they were made."""

    def __init__(self) -> None:
        self._by_id: dict[str, DelegationToken] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DelegationTokens) and self._by_id == other._by_id

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def by_id(self) -> Mapping[str, DelegationToken]:
        return MappingProxyType(self._by_id)

    def of(self, token_id: str) -> DelegationToken | None:
        """The token of this id, over or not; None where there is none."""
        return self._by_id.get(token_id)

    def copy(self) -> "DelegationTokens":
        copy = DelegationTokens()
        copy._by_id = dict(self._by_id)
        return copy

    def replay(self, record: DelegationTokenRecord | RemoveDelegationTokenRecord) -> None:
        if isinstance(record, RemoveDelegationTokenRecord):
            assert record.token_id in self._by_id, f"there is no delegation token {record.token_id} to take away"
            del self._by_id[record.token_id]
            return
        self._by_id[record.token_id] = DelegationToken(
            record.token_id,
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )

    def records(self) -> Iterator[DelegationTokenRecord]:
        for token in self._by_id.values():
            yield token.record()
