"""The groups of one protocol in one partition, and the bytes that they take."""

from dataclasses import dataclass, replace

import pytest

from kavka_broker.coordinator.groups.group_table import GroupTable
from kavka_broker.core.consumer_group.settings import MEMBERS_BYTES_MAX
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.protocol.errors import BrokerError, ErrorCode


@dataclass(frozen=True)
class Sized:
    group_id: str
    size_bytes: int = 0

    def copy(self) -> "Sized":
        return replace(self)


def taken_bytes(table: GroupTable[Sized]) -> int:
    return MEMBERS_BYTES_MAX - table.room_bytes


def refusal(table: GroupTable[Sized], group_id: str, *kind: str) -> tuple[ErrorCode, str | None]:
    with pytest.raises(BrokerError) as raised:
        table.existing(group_id, *kind)
    return raised.value.code, raised.value.message


def test_a_group_takes_what_its_last_copy_takes() -> None:
    table = GroupTable[Sized]("share", {}, GroupImage())
    table.put(Sized("g", 100))
    table.put(Sized("h", 10))
    table.put(Sized("g", 30))
    assert (table.existing("g"), taken_bytes(table)) == (Sized("g", 30), 40)
    table.remove("g")
    table.remove("g")
    assert (table.get("g"), table.all(), taken_bytes(table)) == (None, [Sized("h", 10)], 10)


def test_groups_of_the_log_count_as_they_are_taken_up() -> None:
    table = GroupTable("share", {"g": Sized("g", 5), "h": Sized("h", 7)}, GroupImage())
    counts = [(group.group_id, taken_bytes(table)) for group in table.loaded()]
    assert counts == [("g", 5), ("h", 12)]


@pytest.mark.parametrize("growth", [-1, 0, 3])
def test_what_fits_may_grow(growth: int) -> None:
    table = GroupTable[Sized]("share", {}, GroupImage())
    table.put(Sized("g", MEMBERS_BYTES_MAX - 3))
    table.check_room(growth)


def test_what_has_no_room_comes_again() -> None:
    table = GroupTable[Sized]("share", {}, GroupImage())
    table.put(Sized("g", MEMBERS_BYTES_MAX - 3))
    with pytest.raises(BrokerError) as raised:
        table.check_room(4)
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    table.put(Sized("g", MEMBERS_BYTES_MAX + 1))  # records of the log may be more than the bound of today
    table.check_room(0)
    table.check_room(-1)


def test_a_group_of_another_protocol_is_named_as_such() -> None:
    image = GroupImage()
    image.groups["classic"] = ClassicGroup("classic")
    table = GroupTable[Sized]("share", {}, image)
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal(table, "classic") == (missing, "Group classic is not a share group.")
    assert refusal(table, "g") == (missing, "Group g not found.")
    assert refusal(table, "g", "Share group") == (missing, "Share group g not found.")
