"""Disks that are full, fail, lose power, go away and come back, and files that are not what they were."""

import random
from typing import Final

from tests.chaos import damage, power
from tests.chaos.nemeses.nemesis import Nemesis
from tests.chaos.nodes import Cluster, Node

METADATA_SHARE: Final = 0.3  # of the files that are damaged


def fill_disk(cluster: Cluster, chance: random.Random) -> str:
    """A full disk, or two: the node may give up, and is started again when there is room."""
    node = chance.choice(cluster.nodes)
    full = chance.sample(node.disks, chance.randint(1, len(node.disks)))
    for disk in full:
        disk.fill()
    return f"no room on {' and '.join(disk.path.name for disk in full)} of {node.node_id}"


def lose_power(cluster: Cluster, chance: random.Random) -> str:
    node = chance.choice(cluster.nodes)
    if not node.has_own_disks:
        node.kill()
        lost = sum(power.lose_unsynced(disk.data, chance) for disk in node.disks)
        return f"power loss of {node.node_id}, {lost:,} bytes gone"
    node.pause()
    for disk in node.disks:
        disk.fail()
    node.kill()
    for disk in node.disks:
        disk.mend()
    return f"power loss of {node.node_id}"


def fail_directory(cluster: Cluster, chance: random.Random) -> str:
    """Every call on one of two log directories ends with EIO; that of the metadata ends the node as well."""
    node = chance.choice(cluster.nodes)
    disk = chance.choice(node.disks)
    disk.fail()
    return f"EIO on {disk.path.name} of {node.node_id}"


def taken_down(cluster: Cluster, chance: random.Random) -> Node:
    """A node that has just been killed, or stopped as it should be."""
    node = chance.choice(cluster.nodes)
    if chance.random() < 0.5:
        node.kill()
    else:
        node.stop()
    return node


def start_without_directory(cluster: Cluster, chance: random.Random) -> str:
    """A start while one log directory cannot be used, or is not mounted; it is back later, as old as it was."""
    node = taken_down(cluster, chance)
    by_a_loop = chance.random() < 0.5
    node.disks[-1].hide(by_a_loop=by_a_loop)
    node.start()
    cluster.wait_ready()  # a start that needs the directory fails here
    how = "a loop of links" if by_a_loop else "not mounted"
    return f"{node.node_id} starts without {node.disks[-1].path.name}: {how}"


def damage_file(cluster: Cluster, chance: random.Random) -> str:
    """A file is not what it was when the node comes back: of its replicas, or of its metadata where all others vote."""
    is_of_metadata = chance.random() < METADATA_SHARE and cluster.keep_votes()
    node = taken_down(cluster, chance)
    if is_of_metadata:
        return f"{node.node_id}: {damage.strike_metadata(node.disks[0].data / damage.METADATA_LOG, chance)}"
    return f"{node.node_id}: {damage.strike([disk.data for disk in node.disks], chance)}"


ALL: Final = (
    Nemesis("lose-power", lose_power),
    Nemesis("fill-disk", fill_disk, needs_disk=True),
    Nemesis("fail-directory", fail_directory, needs_disk=True),
    Nemesis("start-without-directory", start_without_directory, needs_disk=True),
    Nemesis("damage-file", damage_file),
)
