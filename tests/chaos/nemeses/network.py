"""Nodes that cannot reach each other, and packets that come late."""

import random
import time
from typing import Final

from tests.chaos.nemeses.nemesis import Nemesis, leader_of_most, minority
from tests.chaos.nemeses.processes import kill_leader
from tests.chaos.nodes import Cluster
from tests.chaos.proxy import REGISTRATION

CLIENTS: Final = 0
HELD_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.05


def part(cluster: Cluster, one: int, other: int) -> None:
    """Nothing of either arrives at the other; 0 stands for the clients."""
    cluster.network.cut(one, other)
    cluster.network.cut(other, one)


def isolate(cluster: Cluster, chance: random.Random) -> str:
    """A node alone: no other node, no client."""
    node = leader_of_most(cluster) if chance.random() < 0.5 else chance.choice(cluster.nodes)
    for other in (CLIENTS, *(other.node_id for other in cluster.nodes if other is not node)):
        part(cluster, node.node_id, other)
    return f"{node.node_id} alone"


def split(cluster: Cluster, chance: random.Random) -> str:
    """Two halves that clients still reach: the old leader may go on believing."""
    node_ids = [node.node_id for node in cluster.nodes]
    few = chance.sample(node_ids, minority(cluster))
    rest = [node_id for node_id in node_ids if node_id not in few]
    for one in few:
        for other in rest:
            part(cluster, one, other)
    return f"{few} and {rest} apart, clients reach both"


def bridge(cluster: Cluster, chance: random.Random) -> str:
    """Two nodes cannot reach each other, the others reach both."""
    one, other = chance.sample(cluster.nodes, 2)
    part(cluster, one.node_id, other.node_id)
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


def kill_while_apart(cluster: Cluster, chance: random.Random) -> str:
    """Two faults at once: a follower falls behind, then the leader dies."""
    done = bridge(cluster, chance)
    time.sleep(1.0)
    return f"{done}; {kill_leader(cluster, chance)}"


def late_packets(cluster: Cluster, chance: random.Random) -> str:
    """What a process had sent when it died arrives when the next one serves: its registration, or whatever came.

    The kernel goes on sending for a process that is dead; a proxy before each controller holds those bytes back.
    """
    node = chance.choice(cluster.nodes)
    wanted = chance.choice((REGISTRATION, None))
    node.kill()
    cluster.hold(node, wanted)
    node.start()
    deadline = time.monotonic() + HELD_SECONDS_MAX
    while not cluster.held() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    node.kill()
    cluster.let(node)
    node.start()
    cluster.wait_ready()
    held_bytes = cluster.held()
    cluster.deliver()
    what = "registration" if wanted is not None else "packets"
    return f"late {what} of the former process of {node.node_id}, {held_bytes} bytes"


ALL: Final = (
    Nemesis("isolate", isolate, needs_network=True),
    Nemesis("split", split, needs_network=True),
    Nemesis("deaf", deaf, needs_network=True),
    Nemesis("mute", mute, needs_network=True),
    Nemesis("bridge", bridge, needs_network=True),
    Nemesis("kill-while-apart", kill_while_apart, needs_network=True),
    Nemesis("late-packets", late_packets, needs_network=True),
)
