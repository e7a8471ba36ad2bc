"""Single moments, each played in a few worlds: what a seed has once found, said so that it stays found."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.sim.cluster import Shape, Simulation
from tests.sim.node import Node

WORLDS = 4


def leader_of(simulation: Simulation, index: int = 0) -> Node:
    """Of the topic's partition, as the newest image has it."""
    state = simulation.invariants.partition_state((simulation.places[index][0], index))
    return simulation.nodes[state.leader - 1]


def play(seed: int, scenario: Callable[[Simulation], Awaitable[None]], shape: Shape | None = None) -> None:
    outcome = Simulation(seed, shape or Shape(partitions=1), scenario).run()
    assert outcome.failure is None, "\n".join([*outcome.story[-40:], outcome.failure or ""])
    assert outcome.acknowledged > 0


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_leader_that_is_back_from_a_loss_of_power_before_anybody_noticed_leads_nothing(seed: int) -> None:
    """It has to register first: the image still says that it leads, in the epoch in which it lost its log's end."""

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        leader = leader_of(simulation)
        leader.power_off()
        await asyncio.sleep(0.05)
        leader.start()
        await asyncio.sleep(3)

    play(seed, scenario)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_log_directory_that_fails_hands_its_leaders_over(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        leader = leader_of(simulation)
        leader.disk.fail_syncs = True
        await asyncio.sleep(3)
        assert leader_of(simulation) is not leader

    play(seed, scenario, Shape(partitions=1, topic_configs={"flush_messages": "1"}))


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_paused_leader_comes_back_to_a_new_epoch(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        leader = leader_of(simulation)
        leader.pause()
        await asyncio.sleep(15)
        assert leader_of(simulation) is not leader
        leader.resume()
        await asyncio.sleep(2)

    play(seed, scenario)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_everybody_is_killed_at_once(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        for node in simulation.nodes:
            node.kill()
        for node in simulation.nodes:
            await asyncio.sleep(simulation.random.uniform(0, 1))
            node.start()
        await asyncio.sleep(3)

    play(seed, scenario)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_killed_broker_is_replaced_in_less_than_a_second(seed: int) -> None:
    """Of simulated time: nothing of it depends on the machine."""

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        leader = leader_of(simulation)
        leader.kill()
        await asyncio.sleep(0.9)
        assert leader_of(simulation) is not leader
        leader.start()
        await asyncio.sleep(2)
        assert leader.is_serving

    play(seed, scenario)
