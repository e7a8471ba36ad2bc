"""Who leads a partition, decided by a client: an order of its replicas, and the election of the first."""

import asyncio
from typing import Any, Final

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kavka_broker.protocol.messages.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.history import History, Place
from tests.sim.holds import Hold
from tests.sim.node import CLIENT_PORT, CONTROLLER_PORT, EPOCH_MS, Node

Simulation = Any

FETCH: Final = 1
ACKS_OF_THE_LEADER: Final = 1
PREFERRED: Final = 0
ELECTION_SECONDS_MAX: Final = 3.0
LOOK_SECONDS: Final = 0.01


def whole(simulation: Simulation, replicas_min: int = 2) -> list[Place]:
    """Partitions of the main topic with so many replicas or more, all of them in sync and on nodes that serve."""
    found = []
    for place in simulation.places:
        state = simulation.invariants.partition_state(place)
        if state is None or state.leader < 0 or len(state.replicas) < replicas_min or state.adding or state.removing:
            continue
        are_there = all(simulation.nodes[replica - 1].is_serving for replica in state.replicas)
        if are_there and len(state.isr) == len(state.replicas):
            found.append(place)
    return found


def leader_of(simulation: Simulation, place: Place) -> Node | None:
    """Return the node that leads, as the newest image has it."""
    state = simulation.invariants.partition_state(place)
    return simulation.nodes[state.leader - 1] if state is not None and state.leader > 0 else None


def active_controller(simulation: Simulation) -> Node | None:
    found = [node for node in simulation.nodes if node.is_serving and node.broker.quorum.is_leader]
    return max(found, key=lambda controller: int(controller.broker.quorum.epoch), default=None)


async def lead(simulation: Simulation, place: Place, first: Node) -> bool:
    """Have this replica elected; whether it leads soon."""
    admin = Admin("elector of leaders", simulation.loop, simulation.addresses, History())
    admin.process.host = "changer"
    state = simulation.invariants.partition_state(place)
    order = [first.node_id, *(replica for replica in state.replicas if replica != first.node_id)]
    partition = ReassignablePartition(place[1], order)
    reordering = AlterPartitionReassignmentsRequest(1_000, topics=[ReassignableTopic(place[0], [partition])])
    electing = ElectLeadersRequest(PREFERRED, [TopicPartitions(place[0], [place[1]])], 1_000)

    async def ask() -> None:
        await admin.ask_any(reordering, AlterPartitionReassignmentsResponse)
        await admin.ask_any(electing, ElectLeadersResponse)

    asking = simulation.loop.create_task(ask(), context=admin.process.context())
    try:
        return await until(simulation, lambda: leader_of(simulation, place) is first, ELECTION_SECONDS_MAX)
    finally:
        asking.cancel()
        admin.leave()


async def until(simulation: Simulation, is_so: Any, seconds_max: float, *, look_seconds: float = LOOK_SECONDS) -> bool:
    """Wait for it, and no longer; whether it has come."""
    end = simulation.loop.time() + seconds_max
    while not is_so():
        if simulation.loop.time() > end:
            return False
        await asyncio.sleep(look_seconds)
    return True


def hold_fetches(simulation: Simulation, nodes: list[Node]) -> list[Hold]:
    """Of these nodes no fetch of records arrives any more; those of the quorum do. None where one is held already."""
    network = simulation.network
    if any(node.host in network.holds for node in nodes):
        return []
    return [network.hold(node.host, FETCH, but_to_port=CONTROLLER_PORT) for node in nodes]


def let_fetch(simulation: Simulation, nodes: list[Node], holds: list[Hold]) -> None:
    """What was held arrives, and nothing more is held."""
    for node, hold in zip(nodes, holds, strict=True):
        if simulation.network.holds.get(node.host) is hold:
            simulation.network.hold_no_more(node.host)
        simulation.network.release(hold)


async def send_once(simulation: Simulation, place: Place, leader: Node) -> None:
    """One record for this leader, which nobody sends again, and whose fate nobody knows."""
    simulation.sent_once += 1
    client = Client(f"once{simulation.sent_once}", simulation.loop, simulation.addresses, simulation.history)
    client.process.host = simulation.client_hosts[-1]

    async def send() -> None:
        topic, index = place
        while topic not in client.topic_ids:
            await client._learn(topic)
        simulation.history.sent(client.name, place, [value := f"{client.name}.1"])
        records = build_batch([(None, value.encode())], timestamp_ms=EPOCH_MS + simulation.loop.milliseconds())
        data = TopicProduceData(topic, client.topic_ids[topic], [PartitionProduceData(index, records)])
        request = ProduceRequest(None, ACKS_OF_THE_LEADER, 2_000, [data])
        try:
            await client.peer((leader.host, CLIENT_PORT)).ask(request, ProduceResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return

    await simulation.loop.create_task(send(), context=client.process.context())
    client.leave()
