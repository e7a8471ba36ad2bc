"""Single moments, each played in a few worlds: what a seed has once found, said so that it stays found."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.sim.clients import Admin
from tests.sim.cluster import Outcome, Shape, Simulation
from tests.sim.damage import payload_bit
from tests.sim.history import History
from tests.sim.node import CLIENT_PORT, Node
from tests.sim.observed import damaged_on
from tests.sim.readers import Reader
from tests.support.drawn import in_turn

WORLDS = 4
READERS_A_NODE = 8
READERS_SECONDS_MAX = 60
SMALL_FETCHES = {
    "controller.quorum.fetch.max.bytes": "1",
    "controller.quorum.fetch.snapshot.max.bytes": "50",
    "metadata.log.max.record.bytes.between.snapshots": "500",
    "metadata.max.retention.bytes": "1",
}


def leader_of(simulation: Simulation, index: int = 0) -> Node:
    """Of the topic's partition, as the newest image has it."""
    state = simulation.invariants.partition_state((simulation.places[index][0], index))
    leader: Node = simulation.nodes[state.leader - 1]
    return leader


def play(seed: int, scenario: Callable[[Simulation], Awaitable[None]], shape: Shape | None = None) -> Outcome:
    outcome = Simulation(seed, shape or Shape(partitions=1), scenario).run()
    assert outcome.failure is None, "\n".join([*outcome.story[-40:], outcome.failure or ""])
    assert outcome.acknowledged > 0
    return outcome


async def in_sync(simulation: Simulation, count: int = 3) -> None:
    """Until so many are."""
    while len(simulation.invariants.partition_state(simulation.places[0]).isr) != count:
        await asyncio.sleep(0.05)


async def roll(simulation: Simulation, node: Node) -> None:
    """Stop and start, and wait until it is in sync again."""
    await node.stop("a roll")
    node.start()
    while not node.is_serving:
        await asyncio.sleep(0.05)
    await in_sync(simulation)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_leader_back_from_an_unnoticed_loss_of_power_leads_nothing(seed: int) -> None:
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
def test_a_leader_with_a_full_disk_hands_over_and_follows_when_there_is_room(seed: int) -> None:
    """Its replicas leave the in-sync sets at once, too: nobody's acknowledgements wait for what it cannot write."""

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        leader = leader_of(simulation)
        leader.disk.space_bytes = 0
        await asyncio.sleep(1)
        assert leader_of(simulation) is not leader
        assert leader.node_id not in simulation.invariants.partition_state(simulation.places[0]).isr
        acknowledged = simulation.history.acknowledged_count
        await asyncio.sleep(2)
        assert simulation.history.acknowledged_count > acknowledged
        leader.disk.space_bytes = None
        while leader.node_id not in simulation.invariants.partition_state(simulation.places[0]).isr:
            await asyncio.sleep(0.05)

    play(seed, scenario)


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
def test_all_brokers_are_killed_at_once(seed: int) -> None:
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


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_replica_that_could_not_be_opened_is_opened_when_the_disk_is_well_again(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        disk = simulation.nodes[2].disk
        disk.fail_writes, disk.fail_under = True, "/data/spare"
        admin = Admin("admin", simulation.loop, [(simulation.nodes[0].host, CLIENT_PORT)], History())
        await simulation.loop.create_task(admin.create("spare0", 1, 3), context=admin.process.context())
        await asyncio.sleep(1)
        assert simulation.events.counts["partition.not_opened"] >= 1
        disk.fail_writes = False

    play(seed, scenario)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_damaged_leader_is_found_and_begins_again(seed: int) -> None:
    """A bit of it has turned over while it was down, and nobody has read there until it leads."""

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        damaged = simulation.nodes[0]
        await damaged.stop("a roll")
        assert payload_bit(damaged, simulation.random, simulation.invariants.committed_ends)
        damaged.start()
        await in_sync(simulation)
        while leader_of(simulation) is not damaged:
            await roll(simulation, leader_of(simulation))

    outcome = play(seed, scenario)
    assert outcome.events["replica.restarted"] == 1


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_damaged_leader_that_was_alone_is_replaced_when_others_are_back(seed: int) -> None:
    """Nobody has what is damaged but for those who are down: it stays until they are back, and is not forgotten."""

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        damaged, *others = simulation.nodes
        await damaged.stop("a roll")
        assert payload_bit(damaged, simulation.random, simulation.invariants.committed_ends)
        damaged.start()
        await in_sync(simulation)
        for other in others:
            await other.stop("maintenance")
        await in_sync(simulation, 1)
        assert leader_of(simulation) is damaged
        reader = Reader("early", simulation.loop, [(damaged.host, CLIENT_PORT)], History(), simulation.places)
        reading = simulation.loop.create_task(reader.read_all(simulation.places[0]), context=reader.process.context())
        # Where it is in what a start looks at, it was found there, and replaced while the others were up.
        while not (damaged_on(damaged) or simulation.events.counts["replica.restarted"]):
            await asyncio.sleep(0.05)
        reading.cancel()
        for other in others:
            other.start()

    outcome = play(seed, scenario)
    assert outcome.events["replica.restarted"] == 1


@pytest.mark.parametrize("seed", range(2))
def test_a_node_that_starts_while_disk_calls_are_slow_serves_once_they_are_not(seed: int) -> None:
    """A start makes more calls at once than fit into the time for healing; the disk is well again, and so are they."""

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        node = simulation.nodes[0]
        node.kill()
        node.disk.call_seconds = 10.0
        node.start()
        await asyncio.sleep(1)
        assert node.process.is_busy

    play(seed, scenario)


@pytest.mark.parametrize("seed", in_turn(range(2), 2))
def test_a_voter_gets_on_by_a_batch_and_by_a_few_bytes_of_a_snapshot_at_a_time(seed: int) -> None:
    """However small a fetch of the quorum is: it is answered with a whole batch, and with a piece of the snapshot."""

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        behind = simulation.nodes[2]
        behind.kill()
        admin = Admin("admin", simulation.loop, [(simulation.nodes[0].host, CLIENT_PORT)], History())
        for number in range(20):
            creating = admin.create(f"spare{number}", 1, 2)
            await simulation.loop.create_task(creating, context=admin.process.context())
        behind.start()
        while not behind.is_serving:
            await asyncio.sleep(0.05)

    outcome = play(seed, scenario, Shape(partitions=1, settings=SMALL_FETCHES))
    assert outcome.events["metadata.snapshot.adopted"] >= 1


@pytest.mark.parametrize("seed", range(WORLDS))
def test_readers_of_one_host_make_room_for_each_other(seed: int) -> None:
    """An address has fewer connections than its readers want, each of one to every broker: without an end they would
    keep those that they have, and wait for those that others have.
    """

    async def scenario(simulation: Simulation) -> None:
        for node in simulation.nodes * READERS_A_NODE:
            simulation.read_anew(node)
        async with asyncio.timeout(READERS_SECONDS_MAX):
            while any(task.get_name().startswith("reader0.") for task in asyncio.all_tasks()):
                await asyncio.sleep(0.1)

    play(seed, scenario, Shape(readers=1, pace=10, settings={"max.connections.per.ip": "3"}))
