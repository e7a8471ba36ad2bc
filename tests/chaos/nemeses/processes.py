"""Processes that die, stop, stand still, or get a tenth of their time."""

import random
from typing import Final

from tests.chaos.nemeses.nemesis import Nemesis, leader_of_most, minority, names
from tests.chaos.nodes import Cluster


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


def slow_node(cluster: Cluster, chance: random.Random) -> str:
    """A node that gets a tenth of its time: stopped for nine hundredths of a second out of ten."""
    node = chance.choice(cluster.nodes)
    node.slow_down()
    cluster.struck = (node.node_id,)
    return f"{node.node_id} ten times slower"


ALL: Final = (
    Nemesis("kill-leader", kill_leader),
    Nemesis("pause-leader", pause_leader),
    Nemesis("kill-all", kill_all),
    Nemesis("kill-and-restart", kill_and_restart),
    Nemesis("stop-one", stop_one),
    Nemesis("pause-some", pause_some),
    Nemesis("kill-some", kill_some),
    Nemesis("slow-node", slow_node),
)
