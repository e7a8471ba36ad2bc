"""What Apache Kafka may have written that no part of Kavka acts on yet: delegation tokens.

They are kept whole, so that a snapshot taken here loses nothing of a cluster that was begun there.
"""

from collections.abc import Iterator
from typing import Final

from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.delegation_token_record import DelegationTokenRecord
from kavka_broker.protocol.messages.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord

KINDS: Final = (DelegationTokenRecord, RemoveDelegationTokenRecord)


class Kept:
    """Records by their subject; a record that takes away removes the one that gave."""

    def __init__(self) -> None:
        self._by_subject: dict[tuple[object, ...], Message] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and self._by_subject == other._by_subject

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> "Kept":
        copy = Kept()
        copy._by_subject = dict(self._by_subject)
        return copy

    def replay(self, record: Message) -> None:
        match record:
            case DelegationTokenRecord(token_id=token_id):
                self._by_subject["token", token_id] = record
            case RemoveDelegationTokenRecord(token_id=token_id):
                assert ("token", token_id) in self._by_subject, f"there is no delegation token {token_id} to take away"
                del self._by_subject["token", token_id]
            case _:
                raise AssertionError(f"{record} is not kept")

    def records(self) -> Iterator[Message]:
        yield from self._by_subject.values()
