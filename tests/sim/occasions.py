"""Faults that come at one moment: a leader asks for a larger in-sync set, a topic goes and another takes its name.

Drawn blindly they hardly ever meet it: it lasts a few milliseconds.
"""

import asyncio
import errno
from collections.abc import Mapping
from random import Random
from typing import Any, Final

from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from tests.sim.clients import Admin
from tests.sim.disk_faults import REGISTRATION, bring_late
from tests.sim.faults import Fault, allow, begin
from tests.sim.history import History, Place
from tests.sim.holds import Hold
from tests.sim.node import CONTROLLER_PORT, Node
from tests.sim.reigns import FETCH, active_controller, leader_of, send_once, until, whole
from tests.support.sim_disk import DiskError

Simulation = Any

PROPOSAL: Final = "isr.proposed"
GIVEN_UP: Final = "isr.not_altered"
UNANSWERED_SECONDS_MAX: Final = 11.0
PROPOSAL_SECONDS_MAX: Final = 8.0
LATE_SECONDS: Final = (0.2, 1.5)
IN_PLACE_SECONDS: Final = (0.5, 3.0)


async def late_answer(simulation: Simulation) -> None:
    """A leader asks for a larger in-sync set. What the controller tells it then comes late, and so does the next fetch
    of the follower that is to come in: nobody can know whether it has.
    """
    held: asyncio.Future[list[Hold]] = simulation.loop.create_future()

    def proposed(process: str, fields: Mapping[str, Any]) -> None:
        if "added" in fields and not held.done():
            holds = hold_back(simulation, process, fields["added"][0])
            if holds:
                held.set_result(holds)

    listeners = simulation.events.listeners[PROPOSAL]
    listeners.append(proposed)
    try:
        async with asyncio.timeout(PROPOSAL_SECONDS_MAX):
            holds = await held
    except TimeoutError:
        return
    finally:
        listeners.remove(proposed)
    try:
        await asyncio.sleep(simulation.chance.uniform(*LATE_SECONDS))
    finally:
        for hold in holds:
            simulation.network.release(hold)


def hold_back(simulation: Simulation, process: str, joining_id: int) -> list[Hold]:
    """The controller's answers to the leader in this process, and the fetches of the follower; none where the leader
    is the controller itself.
    """
    leader = next(node for node in simulation.nodes if node.process.name == process)
    controller, joining = active_controller(simulation), simulation.nodes[joining_id - 1]
    hosts = [joining.host] if controller is None else [joining.host, controller.host]
    if controller in (None, leader) or any(host in simulation.network.holds for host in hosts):
        return []
    begin(simulation, "late_answer", f"{controller.host} to {leader.host}, {joining.host} is to come in")
    holds = [simulation.network.hold_answers(controller.host, leader.host)]
    if joining is not controller:
        holds.append(simulation.network.hold(joining.host, FETCH, leader.host))
    simulation.loop.call_later(LATE_SECONDS[0], let_go, simulation, hosts, holds)
    return holds


def let_go(simulation: Simulation, hosts: list[str], holds: list[Hold]) -> None:
    """Hold no more connections than those that were met so far."""
    for host in hosts:
        if simulation.network.holds.get(host) in holds:
            simulation.network.hold_no_more(host)


async def log_in_the_way(simulation: Simulation) -> None:
    """A topic with records is deleted, its log cannot be renamed on one node, and another topic takes its name."""
    chance: Random = simulation.chance
    found = [
        (node, replica.topic, replica.log.directory)
        for node in simulation.nodes
        if node.is_serving
        for replica in node.broker.partitions
        if replica.topic.startswith("spare") and replica.log.log_end_offset
    ]
    if not found:
        return
    node, topic, directory = chance.choice(found)
    begin(simulation, "log_in_the_way", f"{node.host} {directory}")
    error = DiskError(frozenset({"rename"}), directory, errno.ENOSPC)
    node.disk.errors = [*node.disk.errors, error]
    await recreated(simulation, topic)
    await asyncio.sleep(chance.uniform(*IN_PLACE_SECONDS))
    node.disk.errors = [other for other in node.disk.errors if other is not error]


async def recreated(simulation: Simulation, topic: str) -> None:
    """Delete a topic, and make another one of the name."""
    admin = Admin("replacer", simulation.loop, simulation.addresses, History())
    admin.process.host = "changer"

    async def replace() -> None:
        await admin.ask_any(DeleteTopicsRequest([DeleteTopicState(topic)], [topic], 1_000), DeleteTopicsResponse)
        await admin.ask_any(CreateTopicsRequest([CreatableTopic(topic, 2, -1)], 1_000), CreateTopicsResponse)

    await simulation.loop.create_task(replace(), context=admin.process.context())


async def late_registration(simulation: Simulation) -> None:
    """A process that was killed has registered, and that arrives when its successor serves."""
    node: Node = simulation.chance.choice(simulation.nodes)
    if node.is_serving and allow(simulation, "late_registration", simulation.may_end(node)):
        await bring_late(simulation, node, "late_registration", REGISTRATION)


async def unheard_handover(simulation: Simulation) -> None:
    """A node stops in a controlled way while another hears nothing of what the controller decides, for less time than
    a session: the one that stops has to wait for it.
    """
    random = occasion_random(simulation, "unheard_handover")
    controller = active_controller(simulation)
    others = [node for node in simulation.nodes if node.is_serving and node is not controller]
    if controller is None or len(others) < 2:
        return
    leaving, unhearing = random.sample(others, 2)
    if unhearing.host in simulation.network.holds or leaving.is_damaged or not simulation.may_end(leaving):
        return
    begin(simulation, "unheard_handover", f"{leaving.host} stops, {unhearing.host} does not hear of it")
    unhearing.pause()
    session_ms = float(simulation.shape.settings.get("broker.session.timeout.ms", 9_000))
    resuming = simulation.loop.call_later(random.uniform(0.3, 0.6) * session_ms / 1000, unhearing.resume)
    try:
        await leaving.stop("a roll")
        await asyncio.sleep(random.uniform(0.0, 1.0))
    finally:
        resuming.cancel()
        unhearing.resume()
    if not leaving.is_alive:
        leaving.start()


async def lost_answer(simulation: Simulation) -> None:
    """A follower that was away is to come in. The controller lets it, and its answer to the leader is lost with the
    connection. The leader hears nothing more of the controller until it has given the answer up, and the follower gets
    nothing.
    """
    random = occasion_random(simulation, "lost_answer")
    controller, places = active_controller(simulation), whole(simulation, 3)
    place = random.choice(places) if places else ("", 0)
    leader = leader_of(simulation, place) if places else None
    is_long_enough = simulation.shape.seconds > UNANSWERED_SECONDS_MAX
    if controller is None or leader is None or leader is controller or simulation.network.holds or not is_long_enough:
        return
    state = simulation.invariants.partition_state(place)
    joining = simulation.nodes[random.choice([other for other in state.isr if other != leader.node_id]) - 1]
    if joining is controller or not allow(simulation, "lost_answer", simulation.may_end(joining)):
        return
    begin(simulation, "lost_answer", f"{controller.host} to {leader.host}, {joining.host} is to come in")
    holds: list[Hold] = []

    def proposed(process: str, fields: Mapping[str, Any]) -> None:
        is_it = process == leader.process.name and fields["partition"] == f"{place[0]}-{place[1]}"
        if is_it and joining.node_id in fields.get("added", ()) and not holds and not simulation.network.holds:
            holds.append(simulation.network.hold_answers(controller.host, leader.host))
            holds.append(simulation.network.hold(joining.host, FETCH, leader.host, but_to_port=CONTROLLER_PORT))

    given_up: list[str] = []

    def was_given_up(process: str, _: Mapping[str, Any]) -> None:
        given_up.extend([process] if process == leader.process.name else [])

    heard = {PROPOSAL: proposed, GIVEN_UP: was_given_up}
    for event, hear in heard.items():
        simulation.events.listeners.setdefault(event, []).append(hear)
    joining.kill()
    joining.start()
    try:
        if await until(simulation, lambda: bool(holds), PROPOSAL_SECONDS_MAX):
            await until(simulation, lambda: joining.node_id in isr_of(simulation, place), LATE_SECONDS[1])
            simulation.network.reset(holds[0])
            await until(simulation, lambda: bool(given_up), UNANSWERED_SECONDS_MAX)
            await send_once(simulation, place, leader)
            await asyncio.sleep(random.uniform(*LATE_SECONDS))
    finally:
        for event, hear in heard.items():
            simulation.events.listeners[event].remove(hear)
        let_go(simulation, [controller.host, joining.host], holds)
        for hold in holds:
            simulation.network.release(hold)


def isr_of(simulation: Simulation, place: Place) -> tuple[int, ...]:
    """As the newest image has it."""
    state = simulation.invariants.partition_state(place)
    return () if state is None else tuple(state.isr)


def occasion_random(simulation: Simulation, name: str) -> Random:
    """The chance of one kind of occasion in this seed, which moves no other draw."""
    chances: dict[str, Random] = simulation.occasion_chances
    return chances.setdefault(name, Random(f"occasion {name} {simulation.seed}"))


OCCASIONS: Final[dict[str, Fault]] = {
    "late_answer": late_answer,
    "log_in_the_way": log_in_the_way,
    "late_registration": late_registration,
    "unheard_handover": unheard_handover,
    "lost_answer": lost_answer,
}
