"""Reigns that follow each other faster than logs do: what each leader has written, nobody else has yet.

Leaders change by an order of a client, or by a loss of power, while fetches are held back. That a storm does the same
by itself takes two or three of its faults at the right moments.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.sim.changes import SET, TOPIC_RESOURCE
from tests.sim.clients import Admin
from tests.sim.faults import Fault, allow, begin
from tests.sim.history import History, Place
from tests.sim.invariants import METADATA
from tests.sim.moving import move
from tests.sim.node import Node
from tests.sim.occasions import occasion_random
from tests.sim.reigns import FETCH, active_controller, hold_fetches, lead, leader_of, let_fetch, send_once, until, whole

Simulation = Any

HELD_SECONDS_MAX: Final = 1.0
COPIED_SECONDS_MAX: Final = 6.0
SLOW_MS: Final = (900.0, 1_500.0)  # of a disk
REACTION_SECONDS: Final = 0.03
QUORUM_SECONDS_MAX: Final = 6.0
VOTERS: Final = 3


def end_on(simulation: Simulation, node: Node, place: Place) -> int:
    """Where the log of a replica ends."""
    view = simulation.invariants.views.get((node.node_id, place))
    return -1 if view is None else int(view.end_offset)


async def short_reigns(simulation: Simulation) -> None:
    """A leader gives records to one follower only. The other leads, and writes; then the first one. Each has what the
    others have not, and epochs that they have not, when all hear of each other again (KIP-101, KIP-279).
    """
    random, places = occasion_random(simulation, "short_reigns"), whole(simulation, 3)
    if not places or simulation.network.holds:
        return
    place = random.choice(places)
    state, first = simulation.invariants.partition_state(place), leader_of(simulation, place)
    others = [simulation.nodes[replica - 1] for replica in state.isr if replica != state.leader]
    second, third = random.sample(others, 2)
    if first is None:
        return
    begin(simulation, "short_reigns", f"{place} {first.host} {second.host} {third.host}")
    nodes, holds = [second], hold_fetches(simulation, [second])
    try:
        await until(simulation, lambda: bool(holds[0].pipes), HELD_SECONDS_MAX)
        for _ in range(random.randint(1, 3)):
            await send_once(simulation, place, first)
        is_ahead = lambda: end_on(simulation, third, place) > end_on(simulation, second, place)  # noqa: E731
        await until(simulation, is_ahead, HELD_SECONDS_MAX)
        if not simulation.network.holds.keys() & {first.host, third.host}:
            nodes, holds = [*nodes, first, third], [*holds, *hold_fetches(simulation, [first, third])]
        if await lead(simulation, place, second):
            for _ in range(random.randint(1, 4)):
                await send_once(simulation, place, second)
            await lead(simulation, place, third)
    finally:
        let_fetch(simulation, nodes, holds)


async def cut_while_moving(simulation: Simulation) -> None:
    """A leader whose records nobody else has moves into another directory. While the copy is synced it has to follow,
    and to cut its log.
    """
    random, places = occasion_random(simulation, "cut_while_moving"), whole(simulation, 2)
    if simulation.shape.directories < 2 or not places or simulation.network.holds:
        return
    place = random.choice(places)
    state, moving = simulation.invariants.partition_state(place), leader_of(simulation, place)
    others = [simulation.nodes[replica - 1] for replica in state.isr if replica != state.leader]
    if moving is None or moving.broker.replicas.moves.get(*place) is not None or moving.is_disk_faulty:
        return
    begin(simulation, "cut_while_moving", f"{place} on {moving.host}")
    holds = hold_fetches(simulation, others)
    try:
        await until(simulation, lambda: all(hold.pipes for hold in holds), HELD_SECONDS_MAX)
        await send_once(simulation, place, moving)
        moving.set_disk_delay(SLOW_MS)
        await move(simulation, place, moving)

        def is_copied() -> bool:
            replicas = getattr(getattr(moving.server, "broker", None), "replicas", None)
            known = None if replicas is None else replicas.moves.get(*place)
            return known is not None and known.future is not None and known.future.log_end_offset > 0 and not known.lag

        await until(simulation, is_copied, COPIED_SECONDS_MAX)
        await asyncio.sleep(REACTION_SECONDS)
        moving.set_disk_delay(None)
        await lead(simulation, place, random.choice(others))
    finally:
        moving.set_disk_delay(None)
        let_fetch(simulation, others, holds)
    leader = leader_of(simulation, place) or moving
    for _ in range(4 if leader is not moving else 0):
        await send_once(simulation, place, leader)


async def unsynced_decision(simulation: Simulation) -> None:
    """The leader of the quorum loses power while it syncs what one voter has already, and that one is cut off: the
    others may have it, or not, and nobody may have believed it.
    """
    random, controller = occasion_random(simulation, "unsynced_decision"), active_controller(simulation)
    voters = [] if controller is None else [voter.node_id for voter in controller.broker.quorum.voters]
    others = [simulation.nodes[voter - 1] for voter in voters if controller and voter != controller.node_id]
    are_there = len(voters) == VOTERS and all(node.is_serving for node in others)
    if controller is None or not are_there or simulation.network.holds or controller.is_disk_faulty:
        return
    if not allow(simulation, "unsynced_decision", simulation.may_lose_power(controller)):
        return
    having, lacking = random.sample(others, 2)
    begin(simulation, "unsynced_decision", f"{controller.host}, {having.host} has it, {lacking.host} not")
    hold = simulation.network.hold(lacking.host, FETCH, controller.host)
    deciding: asyncio.Task[None] | None = None
    parted: list[tuple[str, str]] = []
    try:
        await until(simulation, lambda: bool(hold.pipes), HELD_SECONDS_MAX)
        controller.set_disk_delay(SLOW_MS)
        before = end_on(simulation, controller, METADATA)
        deciding = simulation.loop.create_task(decide_something(simulation))
        is_had = lambda: end_on(simulation, having, METADATA) > before  # noqa: E731
        if await until(simulation, is_had, HELD_SECONDS_MAX):
            await asyncio.sleep(REACTION_SECONDS)
            if controller.is_alive and simulation.may_lose_power(controller):
                hosts = [node.host for node in simulation.nodes if node is not having]
                parted = [link for host in hosts for link in ((host, having.host), (having.host, host))]
                for link in parted:
                    simulation.network.cut(*link)
                controller.power_off()
    finally:
        controller.set_disk_delay(None)
        let_fetch(simulation, [lacking], [hold])
        if deciding is not None:
            deciding.cancel()
    if parted:
        try:
            await follow_on(simulation, controller, lacking)
        finally:
            for link in parted:
                simulation.network.heal(*link)


async def follow_on(simulation: Simulation, controller: Node, lacking: Node) -> None:
    """The former leader starts again; wait until it or the voter that lacks something leads the quorum."""
    if not controller.is_alive:
        controller.start()
    await until(simulation, lambda: active_controller(simulation) in (controller, lacking), QUORUM_SECONDS_MAX)


async def decide_something(simulation: Simulation) -> None:
    """Have the controller decide, whatever it is."""
    admin = Admin("decider", simulation.loop, simulation.addresses, History())
    admin.process.host = "changer"
    config = AlterableConfig("retention.bytes", SET, str(10**9))
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC_RESOURCE, simulation.places[0][0], [config])])
    asking = simulation.loop.create_task(
        admin.ask_any(request, IncrementalAlterConfigsResponse), context=admin.process.context()
    )
    try:
        await asking
    finally:
        asking.cancel()
        admin.leave()


SUCCESSIONS: Final[Mapping[str, Fault]] = {
    "short_reigns": short_reigns,
    "cut_while_moving": cut_while_moving,
    "unsynced_decision": unsynced_decision,
}
