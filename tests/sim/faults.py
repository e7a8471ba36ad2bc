"""What goes wrong with processes, links and disks. `storm` says which of it, and when.

A fault that lasts is healed after a drawn time, while others may go on.

A loss of power takes what was not synced with it. As Apache Kafka promises it, a cluster survives that at one node
at a time while the others are in sync; where the topic is synced with each batch (`flush.messages=1`), any number of
nodes may lose power at once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.sim.damage import payload_bit
from tests.sim.node import Node

Simulation = Any
Fault = Callable[[Simulation], Awaitable[None]]

FAULTS: Final[dict[str, Fault]] = {}
OCCASION_TRIES: Final = 40
OCCASION_SECONDS: Final = 0.2


def fault(inject: Fault) -> Fault:
    FAULTS[inject.__name__] = inject
    return inject


def begin(simulation: Simulation, name: str, detail: object) -> None:
    simulation.faults[name] += 1
    simulation.say(f"fault: {name} {detail}")


def allow(simulation: Simulation, name: str, is_safe: bool) -> bool:
    """`is_safe`; counts the faults that did not happen because they might have taken what is promised.

    What is safe is judged by what the replicas really hold (`eligible_replicas`): a broker that forgets who could take
    over does not make its own run gentler.
    """
    simulation.refused[name] += not is_safe
    return is_safe


async def occasion(simulation: Simulation, name: str, is_safe: Callable[[], bool]) -> bool:
    """As `allow`, of what is safe at few moments: it waits for one for a while."""
    for _ in range(OCCASION_TRIES):
        if is_safe():
            return True
        await asyncio.sleep(OCCASION_SECONDS)
    return allow(simulation, name, is_safe())


def some_node(simulation: Simulation) -> Node:
    node: Node = simulation.random.choice(simulation.nodes)
    return node


async def lasting(simulation: Simulation, longest: float = 4.0) -> None:
    """For a while; most of them are short."""
    await asyncio.sleep(min(simulation.random.expovariate(1 / (longest / 4)), longest))


async def restart(simulation: Simulation, node: Node) -> None:
    await lasting(simulation, simulation.random.choice((0.2, 3.0, 8.0)))
    if not node.is_alive:
        node.start()


# --- processes and machines -------------------------------------------------------------------------------------------


@fault
async def kill(simulation: Simulation) -> None:
    node = some_node(simulation)
    if node.is_alive and allow(simulation, "kill", simulation.may_end(node)):
        begin(simulation, "kill", node.host)
        node.kill()
        await restart(simulation, node)


@fault
async def kill_all(simulation: Simulation) -> None:
    if not allow(simulation, "kill_all", simulation.may_all_end()):
        return
    begin(simulation, "kill_all", "")
    for node in simulation.nodes:
        node.kill()
    for node in simulation.random.sample(simulation.nodes, len(simulation.nodes)):
        await restart(simulation, node)


@fault
async def power_loss(simulation: Simulation) -> None:
    node = some_node(simulation)
    if await occasion(simulation, "power_loss", lambda: bool(simulation.may_lose_power(node))):
        begin(simulation, "power_loss", node.host)
        node.power_off()
        await restart(simulation, node)


@fault
async def power_loss_of_several(simulation: Simulation) -> None:
    is_safe = simulation.may_all_end() and not any(node.has_unwritten_logs for node in simulation.nodes)
    if not simulation.is_synced or not allow(simulation, "power_loss_of_several", is_safe):
        return
    nodes = simulation.random.sample(simulation.nodes, simulation.random.randint(1, len(simulation.nodes)))
    begin(simulation, "power_loss_of_several", [node.host for node in nodes])
    for node in nodes:
        node.power_off()
    for node in nodes:
        await restart(simulation, node)


@fault
async def pause(simulation: Simulation) -> None:
    node = some_node(simulation)
    if node.is_alive and not node.process.is_paused:
        begin(simulation, "pause", node.host)
        node.pause()
        await lasting(simulation, simulation.random.choice((0.3, 4.0, 15.0)))
        node.resume()


@fault
async def controlled_restart(simulation: Simulation) -> None:
    node = some_node(simulation)
    if not node.is_serving:
        return
    # It hands over to others, of whose losses of power nobody may have heard yet; and it may fail to stop cleanly.
    is_safe = simulation.may_lose_records(node) if node.is_damaged else simulation.may_end(node)
    if allow(simulation, "controlled_restart", is_safe):
        begin(simulation, "controlled_restart", node.host)
        await node.stop("a roll")
        await restart(simulation, node)


@fault
async def clock_step(simulation: Simulation) -> None:
    node = some_node(simulation)
    step_ms = simulation.random.choice((-3_600_000, -5_000, -200, 200, 5_000, 3_600_000))
    begin(simulation, "clock_step", f"{node.host} by {step_ms} ms")
    node.clock.step_ms += step_ms


# --- the network ------------------------------------------------------------------------------------------------------


@fault
async def isolate(simulation: Simulation) -> None:
    """One node, from the other nodes and from all clients or none."""
    node = some_node(simulation)
    others = [other.host for other in simulation.nodes if other is not node]
    if simulation.random.random() < 0.5:
        others += simulation.client_hosts
    begin(simulation, "isolate", node.host)
    await cut(simulation, [(node.host, other) for other in others] + [(other, node.host) for other in others])


@fault
async def cut_one_way(simulation: Simulation) -> None:
    node = some_node(simulation)
    others = [other.host for other in simulation.nodes if other is not node]
    if not others:
        return
    chosen = simulation.random.sample(others, simulation.random.randint(1, len(others)))
    links = [(node.host, other) for other in chosen]
    if simulation.random.random() < 0.5:
        links = [(target, source) for source, target in links]
    begin(simulation, "cut_one_way", links)
    await cut(simulation, links)


@fault
async def cut_pair(simulation: Simulation) -> None:
    if len(simulation.nodes) > 1:
        first, second = (node.host for node in simulation.random.sample(simulation.nodes, 2))
        begin(simulation, "cut_pair", f"{first} {second}")
        await cut(simulation, [(first, second), (second, first)])


async def cut(simulation: Simulation, links: list[tuple[str, str]]) -> None:
    for source, target in links:
        simulation.network.cut(source, target)
    await lasting(simulation, simulation.random.choice((0.5, 4.0, 15.0)))
    for source, target in links:
        simulation.network.heal(source, target)


@fault
async def reset(simulation: Simulation) -> None:
    if simulation.network.reset_one():
        begin(simulation, "reset", "")


@fault
async def bad_weather(simulation: Simulation) -> None:
    weather = simulation.network.weather
    begin(simulation, "bad_weather", "")
    before = weather.delay_ms, weather.slow_share
    weather.delay_ms = (0.2, simulation.random.choice((5.0, 50.0, 200.0)))
    weather.slow_share = simulation.random.uniform(0, 0.3)
    await lasting(simulation)
    weather.delay_ms, weather.slow_share = before


# --- disks ------------------------------------------------------------------------------------------------------------


@fault
async def slow_disk(simulation: Simulation) -> None:
    node = some_node(simulation)
    begin(simulation, "slow_disk", node.host)
    node.set_disk_delay((1.0, simulation.random.choice((50.0, 500.0, 3_000.0))))
    await lasting(simulation)
    node.set_disk_delay(None)


@fault
async def failing_disk(simulation: Simulation) -> None:
    node = some_node(simulation)
    if not allow(simulation, "failing_disk", simulation.may_end(node)):
        return
    begin(simulation, "failing_disk", node.host)
    if simulation.random.random() < 0.5:
        node.disk.fail_syncs = True
    else:
        node.disk.fail_writes = True
    await lasting(simulation, 1.0)
    node.disk.fail_syncs = node.disk.fail_writes = False


@fault
async def full_disk(simulation: Simulation) -> None:
    node = some_node(simulation)
    if not allow(simulation, "full_disk", simulation.may_end(node)):
        return
    begin(simulation, "full_disk", node.host)
    node.disk.space_bytes = simulation.random.randint(0, 4_000)
    await lasting(simulation, 2.0)
    node.disk.space_bytes = None


@fault
async def failing_directory(simulation: Simulation) -> None:
    """One of several directories fails: the node stays, without the replicas in it, until it is started again."""
    node = some_node(simulation)
    directories = node.config.log_dirs
    if len(directories) < 2 or not allow(simulation, "failing_directory", simulation.may_end(node)):
        return
    begin(simulation, "failing_directory", node.host)
    node.disk.fail_under = directories[-1] + "/"
    node.disk.fail_syncs = simulation.random.random() < 0.5
    node.disk.fail_writes = not node.disk.fail_syncs
    await lasting(simulation, 8.0)
    node.disk.fail_syncs = node.disk.fail_writes = False
    node.disk.fail_under = ""
    await lasting(simulation)
    if node.is_alive and node.has_failed_logs and simulation.may_end(node):
        node.kill()
        await restart(simulation, node)


@fault
async def flipped_bit(simulation: Simulation) -> None:
    """The medium forgets a bit of what is committed, while the node is down. Others have it all."""
    node = some_node(simulation)
    if not node.is_serving or node.is_damaged:
        return
    if not allow(simulation, "flipped_bit", simulation.may_lose_records(node)):
        return
    if simulation.is_synced or simulation.random.random() < 0.7:
        await node.stop("a roll")
    else:
        node.kill()
    is_well_ended = node.is_clean or not simulation.is_synced
    if not node.is_alive and is_well_ended and simulation.may_lose_records(node):
        where = payload_bit(node, simulation.random, simulation.invariants.committed_ends)
        if where is not None:
            begin(simulation, "flipped_bit", where)
            simulation.invariants.was_damaged(node)
    await restart(simulation, node)
    while node.is_damaged:
        await lasting(simulation)  # type: ignore[unreachable] # it was not, before the fault
        simulation.read_anew(node)
