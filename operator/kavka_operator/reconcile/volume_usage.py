"""How full the volumes of nodes are: lines of a status that stay at rest, and a word where room runs out. Pure.

A share that moves by less than `STEP_PERCENT` is told as it was told before, so that a log that grows and is cut again
costs no writes.
"""

from collections.abc import Collection, Iterator, Sequence

from kavka_operator.api.cluster_status import NodeStatus, VolumeStatus
from kavka_operator.domain.name_lists import some
from kavka_operator.domain.observed import SeenDisk, SeenNode
from kavka_operator.domain.plan import Word

STEP_PERCENT = 3
NEARLY_FULL_PERCENT = 90
LARGER = "make size in spec.nodePools[].storage.volumes larger, shorten retention.ms, or add brokers"
OF_A_MACHINE = (
    "it is on the disk of its machine, which Kubernetes evicts pods from when that is full: make room there, shorten"
    " retention.ms, or add brokers"
)


def lines(seen: SeenNode | None, before: NodeStatus | None) -> tuple[VolumeStatus, ...]:
    """The lines of a node's volumes; as they were before, where the broker has not told."""
    former = {line.name: line for line in before.volumes} if before is not None else {}
    disks = seen.disks if seen is not None else ()
    if not disks:
        return tuple(former.values())
    told = sorted(
        (disk for disk in disks if disk.percent is not None or not disk.is_online), key=lambda disk: disk.volume
    )
    return tuple(_line(disk, former.get(disk.volume)) for disk in told)


def _line(disk: SeenDisk, before: VolumeStatus | None) -> VolumeStatus:
    percent = _steady(disk.percent, before) if disk.is_online else None
    size = disk.total if disk.is_online else None
    return VolumeStatus(name=disk.volume, size=size, used=None if percent is None else f"{percent}%")


def _steady(percent: int | None, before: VolumeStatus | None) -> int | None:
    """The share, or that of before where it is nearly the same."""
    told = int(before.used.rstrip("%")) if before is not None and before.used else None
    return told if percent is not None and told is not None and abs(percent - told) < STEP_PERCENT else percent


def words(nodes: Sequence[NodeStatus], ephemeral: Collection[int] = ()) -> list[Word]:
    """The condition of volumes that cannot be used, or have little room left, by the lines of the status.

    The volumes of `ephemeral` nodes, by their ids, share the disks of their machines, and no size makes them larger.
    """
    offline, full, shared = list[str](), list[str](), list[str]()
    told = [(node.id, line) for node in nodes for line in node.volumes]
    for number, line in told:
        name = f'volume "{line.name}" of node {number}'
        if line.used is None and line.size is None:
            offline.append(name)
        elif line.used is not None and int(line.used.rstrip("%")) >= NEARLY_FULL_PERCENT:
            (shared if number in ephemeral else full).append(f"{name} is {line.used} full")
    return [*_offline(offline), *_full(full, LARGER), *_full(shared, OF_A_MACHINE)][:1]


def _offline(names: Sequence[str]) -> Iterator[Word]:
    if names:
        are = "is" if len(names) == 1 else "are"
        advice = "the broker cannot write there; see its log, and restart it when that is mended"
        yield Word("VolumesAtRisk", "True", "VolumeOffline", f"{some(names)} {are} offline: {advice}")


def _full(told: Sequence[str], advice: str) -> Iterator[Word]:
    if told:
        yield Word("VolumesAtRisk", "True", "NearlyFull", f"{some(told)}; {advice}")
