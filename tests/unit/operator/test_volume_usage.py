"""How full volumes are: told in the status, at rest, and a condition where room runs out."""

import pytest

from kavka_operator.api.cluster_status import NodeStatus, VolumeStatus
from kavka_operator.domain.observed import SeenDisk, SeenNode
from kavka_operator.reconcile.volume_usage import lines, words

GIB = 1 << 30


def node(*disks: SeenDisk) -> SeenNode:
    return SeenNode(0, "Running", disks=disks)


def disk(used: int, *, path: str = "/var/lib/kavka/data", is_online: bool = True) -> SeenDisk:
    return SeenDisk(path, 100 * GIB, (100 - used) * GIB, is_online)


def line(used: str | None, *, name: str = "data", size: int | None = 100 * GIB, number: int = 0) -> NodeStatus:
    return NodeStatus(id=number, state="Running", volumes=(VolumeStatus(name=name, size=size, used=used),))


def test_each_volume_has_a_line_by_its_name() -> None:
    told = lines(node(disk(40, path="/var/lib/kavka/more/"), disk(7)), None)
    assert told == (
        VolumeStatus(name="data", size=100 * GIB, used="7%"),
        VolumeStatus(name="more", size=100 * GIB, used="40%"),
    )


@pytest.mark.parametrize(
    ("before", "now", "told"), [(40, 41, "40%"), (40, 38, "40%"), (40, 43, "43%"), (40, 37, "37%")]
)
def test_a_share_that_hardly_moves_is_told_as_before(before: int, now: int, told: str) -> None:
    (found,) = lines(node(disk(now)), line(f"{before}%"))
    assert found.used == told


def test_while_a_broker_does_not_tell_its_lines_stay() -> None:
    assert lines(node(), line("40%")) == line("40%").volumes
    assert lines(None, line("40%")) == line("40%").volumes
    assert lines(None, None) == ()


def test_what_a_broker_does_not_know_is_not_guessed() -> None:
    assert lines(node(SeenDisk("/data")), None) == ()


def test_one_hundred_percent_is_no_byte_left() -> None:
    assert SeenDisk("/data", 1000, 1).percent == 99
    assert SeenDisk("/data", 1000, 0).percent == 100


def test_little_room_and_none_at_all_are_a_condition() -> None:
    assert words([line("89%")]) == []
    (word,) = words([line("92%"), line("95%", number=1)])
    assert (word.type, word.reason) == ("VolumesAtRisk", "NearlyFull")
    assert word.message.startswith(
        'volume "data" of node 0 is 92% full, volume "data" of node 1 is 95% full; make size'
    )
    (found,) = lines(node(disk(50, is_online=False)), None)
    (word,) = words([line("92%"), line(found.used, size=found.size, number=2)])
    assert word.reason == "VolumeOffline"
    assert word.message.startswith('volume "data" of node 2 is offline')


def test_an_ephemeral_volume_is_on_the_disk_of_its_machine() -> None:
    (word,) = words([line("89%"), line("92%", number=1)], ephemeral={1})
    assert word.message.startswith('volume "data" of node 1 is 92% full; it is on the disk of its machine')
    (word,) = words([line("95%"), line("92%", number=1)], ephemeral={1})
    assert word.message.startswith('volume "data" of node 0 is 95% full; make size')
