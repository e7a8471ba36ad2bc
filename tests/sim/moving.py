"""Replicas that a client moves from one log directory of their node to the other."""

from typing import Any

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from tests.sim.clients import ANSWER_MS, Admin
from tests.sim.history import History, Place
from tests.sim.node import CLIENT_PORT, Node

Simulation = Any


async def move(simulation: Simulation, place: Place, node: Node) -> None:
    """Have a replica moved into the other directory of its node."""
    replica = node.broker.partitions.get(*place)
    home = "" if replica is None else replica.log.directory.rpartition("/")[0]
    target = next(directory for directory in node.config.log_dirs if directory != home)
    admin = Admin("mover", simulation.loop, simulation.addresses, History())
    admin.process.host = "changer"

    async def ask() -> None:
        moved = AlterReplicaLogDir(target, [AlterReplicaLogDirTopic(place[0], [place[1]])])
        try:
            peer = admin.peer((node.host, CLIENT_PORT))
            await peer.ask(AlterReplicaLogDirsRequest([moved]), AlterReplicaLogDirsResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return

    await simulation.loop.create_task(ask(), context=admin.process.context())
    admin.leave()
