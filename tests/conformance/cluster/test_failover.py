"""Three nodes on loopback: whichever is killed, acknowledgements go on at once and nothing acknowledged is lost.

The gaps are Kavka's promise (design: under a second after kill -9, back within two of the restart); Apache Kafka needs
nine to twenty seconds for the same, and is held to nothing but its safety here.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.conformance.cluster.history import History, busiest, create_topic, is_whole, within
from tests.support.drawn import in_turn
from tests.support.nodes import Nodes, Place, apart, cluster, combined
from tests.support.quorum import active_controller
from tests.support.servers import is_apache_kafka

pytestmark = pytest.mark.slow

#: No session ends while a test runs, however slow the machine is: who waited for that would be found out.
SETTINGS: dict[str, str] = {} if is_apache_kafka() else {"broker.session.timeout.ms": "60000"}
#: On a machine that does ten other things; the bench measures on a quiet one. Apache Kafka takes nine and twelve.
GAP_SECONDS_MAX = 30.0
BACK_SECONDS_MAX = 60.0

SHAPES: dict[str, tuple[Callable[[], list[Place]], bool]] = {
    "combined": (lambda: combined(3), False),
    "static voters": (lambda: combined(3), True),
    "apart": (lambda: apart(controllers=1, brokers=3), False),
}


@pytest.mark.parametrize("shape", in_turn(list(SHAPES), len(SHAPES)))
def test_a_killed_leader_of_partitions(tmp_path: Path, shape: str) -> None:
    make, static = SHAPES[shape]
    with cluster(tmp_path, make(), SETTINGS, static=static) as nodes:
        admin = create_topic(nodes)
        survive(nodes, lambda: busiest(admin, nodes.broker_ids), is_back=lambda: is_whole(admin))


@pytest.mark.extended
def test_a_cluster_survives_the_death_of_its_active_controller(tmp_path: Path) -> None:
    with cluster(tmp_path, settings=SETTINGS) as nodes:
        admin = create_topic(nodes)
        survive(nodes, lambda: active_controller(nodes), is_back=lambda: is_whole(admin))


def test_nothing_is_lost_when_each_is_killed_in_turn(tmp_path: Path) -> None:
    with cluster(tmp_path, settings=SETTINGS) as nodes:
        admin = create_topic(nodes)
        for node_id in nodes.broker_ids:
            survive(nodes, partial(int, node_id), is_back=lambda: is_whole(admin), seconds=2)


def survive(nodes: Nodes, choose: Callable[[], int], *, is_back: Callable[[], bool], seconds: float = 4) -> None:
    """Produce, kill the chosen one meanwhile, restart it, and look at what is there."""
    history = History(nodes)
    history.produce(0.5)
    victim = choose()
    nodes.kill(victim)
    history.produce(seconds)
    history.finish()
    began = time.monotonic()
    nodes.start(victim)
    within(f"node {victim} in sync", is_back)
    back_seconds = time.monotonic() - began
    history.check()
    if not is_apache_kafka():
        assert history.longest_gap() < GAP_SECONDS_MAX
        assert back_seconds < BACK_SECONDS_MAX


@pytest.mark.extended
def test_nothing_is_lost_when_all_are_killed_at_once(tmp_path: Path) -> None:
    """What was acknowledged is in every page cache, and a kill takes nothing from it."""
    with cluster(tmp_path, settings=SETTINGS) as nodes:
        admin = create_topic(nodes)
        history = History(nodes)
        history.produce(1)
        history.finish()
        nodes.kill(*nodes.broker_ids)
        nodes.start()
        within("in sync", lambda: is_whole(admin))
        history.produce(0.5)
        history.finish()
        history.check()


@pytest.mark.extended
def test_controllers_apart_are_killed_one_after_the_other(tmp_path: Path) -> None:
    places: list[Place] = apart(controllers=3, brokers=3)
    with cluster(tmp_path, places, SETTINGS) as nodes:
        create_topic(nodes)
        history = History(nodes)
        history.produce(0.5)
        for _ in range(2):
            victim = active_controller(nodes)
            nodes.kill(victim)
            history.produce(2)
            nodes[victim].launch()
            history.produce(2)
        history.finish()
        history.check()
        if not is_apache_kafka():
            assert history.longest_gap() < GAP_SECONDS_MAX
