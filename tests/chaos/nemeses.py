"""What goes wrong, one thing at a time or two: each strikes, lasts a while, and is undone by `Cluster.start_all`.

At most a minority of the nodes is harmed in a way that costs data (a loss of power), so nothing acknowledged may be
lost. All of them may die or stop at once: then the cluster is away, and must be back by itself.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos import disks
from tests.chaos.asking import partitions_of
from tests.chaos.nodes import Cluster, Node
from tests.chaos.workload import TOPIC

Strike = Callable[[Cluster, random.Random], str]
CLIENTS: Final = 0


@dataclass(frozen=True, slots=True)
class Nemesis:
    """A kind of fault. `strike` does it and says what it did."""

    name: str
    strike: Strike
    needs_network: bool = False
    needs_disk: bool = False


def leader_of_most(cluster: Cluster) -> Node:
    """The node that leads most partitions; any where nobody answers."""
    for node in cluster.nodes:
        try:
            led = [partition.leader for partition in partitions_of(node.address, TOPIC)]
        except OSError:
            continue
        known = {other.node_id for other in cluster.nodes}
        leading = [leader for leader in led if leader in known]
        if leading:
            return cluster.node(max(sorted(set(leading)), key=leading.count))
    return cluster.nodes[0]


def minority(cluster: Cluster) -> int:
    return (len(cluster.nodes) - 1) // 2


def kill_leader(cluster: Cluster, chance: random.Random) -> str:
    node = leader_of_most(cluster)
    node.kill()
    return f"kill -9 of the leader {node.node_id}"


def kill_some(cluster: Cluster, chance: random.Random) -> str:
    victims = chance.sample(cluster.nodes, chance.randint(1, minority(cluster)))
    for node in victims:
        node.kill()
    return f"kill -9 of {names(victims)}"


def kill_and_restart(cluster: Cluster, chance: random.Random) -> str:
    """Back before any session can have ended."""
    node = chance.choice(cluster.nodes)
    node.kill()
    node.start()
    return f"kill -9 and start of {node.node_id}"


def kill_all(cluster: Cluster, chance: random.Random) -> str:
    for node in chance.sample(cluster.nodes, len(cluster.nodes)):
        node.kill()
    return "kill -9 of all"


def stop_one(cluster: Cluster, chance: random.Random) -> str:
    node = chance.choice(cluster.nodes)
    seconds = node.stop()
    return f"SIGTERM of {node.node_id}, gone after {seconds:.1f} s"


def pause_leader(cluster: Cluster, chance: random.Random) -> str:
    node = leader_of_most(cluster)
    node.pause()
    return f"SIGSTOP of the leader {node.node_id}"


def pause_some(cluster: Cluster, chance: random.Random) -> str:
    victims = chance.sample(cluster.nodes, chance.randint(1, len(cluster.nodes)))
    for node in victims:
        node.pause()
    return f"SIGSTOP of {names(victims)}"


def isolate(cluster: Cluster, chance: random.Random) -> str:
    """A node alone: no other node, no client."""
    node = leader_of_most(cluster) if chance.random() < 0.5 else chance.choice(cluster.nodes)
    for other in (CLIENTS, *(other.node_id for other in cluster.nodes if other is not node)):
        cluster.network.cut(node.node_id, other)
        cluster.network.cut(other, node.node_id)
    return f"{node.node_id} alone"


def split(cluster: Cluster, chance: random.Random) -> str:
    """Two halves that clients still reach: the old leader may go on believing."""
    node_ids = [node.node_id for node in cluster.nodes]
    few = chance.sample(node_ids, minority(cluster))
    rest = [node_id for node_id in node_ids if node_id not in few]
    for one in few:
        for other in rest:
            cluster.network.cut(one, other)
            cluster.network.cut(other, one)
    return f"{few} and {rest} apart, clients reach both"


def bridge(cluster: Cluster, chance: random.Random) -> str:
    """Two nodes cannot reach each other, the others reach both."""
    one, other = chance.sample(cluster.nodes, 2)
    cluster.network.cut(one.node_id, other.node_id)
    cluster.network.cut(other.node_id, one.node_id)
    return f"{one.node_id} and {other.node_id} apart"


def deaf(cluster: Cluster, chance: random.Random) -> str:
    """A node that is heard by the others and hears none of them."""
    node = chance.choice(cluster.nodes)
    for other in cluster.nodes:
        if other is not node:
            cluster.network.cut(other.node_id, node.node_id)
    return f"{node.node_id} hears nobody"


def mute(cluster: Cluster, chance: random.Random) -> str:
    """A node that hears the others and is not heard."""
    node = chance.choice(cluster.nodes)
    for other in cluster.nodes:
        if other is not node:
            cluster.network.cut(node.node_id, other.node_id)
    return f"{node.node_id} is not heard"


def fill_disk(cluster: Cluster, chance: random.Random) -> str:
    """A full disk: the node may give up, and is started again when there is room."""
    node = chance.choice(cluster.nodes)
    disks.fill(node.directory / "disk")
    return f"no room on the disk of {node.node_id}"


def lose_power(cluster: Cluster, chance: random.Random) -> str:
    node = chance.choice(cluster.nodes)
    node.kill()
    lost = disks.lose_unsynced(node.data, chance)
    return f"power loss of {node.node_id}, {lost:,} bytes gone"


def kill_while_apart(cluster: Cluster, chance: random.Random) -> str:
    """Two faults at once: a follower falls behind, then the leader dies."""
    done = bridge(cluster, chance)
    time.sleep(1.0)
    return f"{done}; {kill_leader(cluster, chance)}"


def names(nodes: Sequence[Node]) -> str:
    return ", ".join(str(node.node_id) for node in sorted(nodes, key=lambda node: node.node_id))


ALL: Final = (
    Nemesis("kill-leader", kill_leader),
    Nemesis("pause-leader", pause_leader),
    Nemesis("isolate", isolate, needs_network=True),
    Nemesis("lose-power", lose_power),
    Nemesis("split", split, needs_network=True),
    Nemesis("fill-disk", fill_disk, needs_disk=True),
    Nemesis("kill-all", kill_all),
    Nemesis("kill-and-restart", kill_and_restart),
    Nemesis("deaf", deaf, needs_network=True),
    Nemesis("mute", mute, needs_network=True),
    Nemesis("stop-one", stop_one),
    Nemesis("pause-some", pause_some),
    Nemesis("bridge", bridge, needs_network=True),
    Nemesis("kill-some", kill_some),
    Nemesis("kill-while-apart", kill_while_apart, needs_network=True),
)
