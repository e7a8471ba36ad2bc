"""Replays the records of groups of the newer protocols, each of which says what its own records do to a group."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kavka_broker.protocol.message import Message

G = TypeVar("G")


class GroupKey(Protocol):
    """The key of a record, with the id of its group."""

    group_id: str


@dataclass(slots=True)
class GroupReplay(Generic[G]):
    """Replays records with these `keys`: `put` changes a group as a value says, `bury` as a tombstone does.

    A group begins with its first record, in whatever order they come, and is over where `ends` is true of it and of the
    key of a tombstone.
    """

    keys: tuple[type[GroupKey], ...]
    make: Callable[[str], G]
    put: Callable[[G, Message, Message], None]
    bury: Callable[[G, Message], None]
    ends: Callable[[G, Message], bool]

    def __call__(self, groups: dict[str, G], key: Message, value: Message | None) -> None:
        """Change the groups as a record says."""
        assert isinstance(key, self.keys), f"{key} is no key of these groups"
        group_id: str = key.group_id
        group = groups.get(group_id)
        if value is None:
            if group is not None:
                self.bury(group, key)
                if self.ends(group, key):
                    del groups[group_id]
            return
        if group is None:
            group = groups[group_id] = self.make(group_id)
        self.put(group, key, value)
