"""The groups of one of the newer protocols in one partition of `__consumer_offsets`, and the bytes that they take."""

from collections.abc import Iterator
from typing import Generic, Protocol, Self, TypeVar

from kavka_broker.core.consumer_group.settings import MEMBERS_BYTES_MAX, has_room_for
from kavka_broker.core.group.image import GroupImage
from kavka_broker.protocol.errors import BrokerError, ErrorCode


class Group(Protocol):
    """A group that is replaced by changed copies of it. `size_bytes` is what its members say of themselves."""

    @property
    def group_id(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    def copy(self) -> Self: ...


G = TypeVar("G", bound=Group)


class GroupTable(Generic[G]):
    """The `groups` of an image whose protocol this is. All of them together take no more than `bytes_max`."""

    def __init__(self, protocol: str, groups: dict[str, G], image: GroupImage) -> None:
        self._protocol = protocol
        self._groups = groups
        self._image = image
        self.bytes_max = MEMBERS_BYTES_MAX
        self._size_bytes = 0

    @property
    def room_bytes(self) -> int:
        """Bytes that the groups may grow by."""
        return self.bytes_max - self._size_bytes

    def all(self) -> list[G]:
        return list(self._groups.values())

    def get(self, group_id: str) -> G | None:
        return self._groups.get(group_id)

    def existing(self, group_id: str, kind: str = "Group") -> G:
        """Raises GROUP_ID_NOT_FOUND. `kind` is what Apache Kafka calls the group where a member of it is lost."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        if self._image.find(group_id) is not None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {self._protocol} group.")
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")

    def loaded(self) -> Iterator[G]:
        """Yield the groups that have been read from the log; each counts from then on."""
        for group in list(self._groups.values()):
            self._size_bytes += group.size_bytes
            yield group

    def check_room(self, growth_bytes: int) -> None:
        """Check again that a change has the room that it takes: others may have taken it while a thread worked. Raises
        COORDINATOR_LOAD_IN_PROGRESS, so that the member comes again.
        """
        if not has_room_for(growth_bytes, self.room_bytes):
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "other groups have taken the room meanwhile")

    def put(self, group: G) -> None:
        """Put a group in the place of what it was."""
        former = self._groups.get(group.group_id)
        self._size_bytes += group.size_bytes - (0 if former is None else former.size_bytes)
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        """Forget a group, if it is there."""
        former = self._groups.pop(group_id, None)
        if former is not None:
            self._size_bytes -= former.size_bytes

    def clear(self) -> None:
        """Forget all groups."""
        self._groups.clear()
