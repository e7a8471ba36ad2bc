"""What a medium does to the metadata of a voter that is down: its log, its snapshots, and what it has promised.

A decision that is committed may be on a bare majority of the voters, so one voter at a time loses some of it, while all
others are well and have lost nothing; and it counts as one that has not got well until its log is as long as it was.

Nor is a voter removed by somebody who does not look: a voter that has forgotten something does not vote, so with the
leader's removal not committed, or of two that are left, nobody might be elected until an operator comes.

Left out is what makes a node refuse its start, for an operator has to come then: a damaged snapshot that the log begins
behind, and both files of the vote at once. Left out is as well a loss of power just before: what a voter has promised
may be older than its log then, and a log that ends early looks like one that was torn.
"""

import asyncio
from random import Random
from typing import Any, Final

from kavka_broker.controller.quorum_state_file import COPY, SYNCED
from kavka_broker.controller.snapshot_files import parse_id
from kavka_broker.core.raft.quorum_state import FILE_NAME
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage.file_names import LOG
from tests.sim.damage import inode_at, turn_header_bit, turn_payload_bit
from tests.sim.disk_faults import METADATA_DIRECTORY, end, start_again
from tests.sim.faults import Fault, allow, begin
from tests.sim.node import DIRECTORIES, Node, as_written, whole_batches
from tests.support.sim_inode import SECTOR_BYTES

Simulation = Any

HOME: Final = f"{DIRECTORIES[0]}/{METADATA_DIRECTORY}"
WELL_VOTERS_MIN: Final = 2
REMOVAL_SECONDS: Final = 5.0
BEHIND_SHARE: Final = 0.5
BEHIND_SECONDS: Final = (0.3, 4.0)
WAYS: Final = ("bit", "zeros", "short", "gone")


def is_whole(node: Node) -> bool:
    """Whether it serves, and its metadata log has all that it has promised."""
    if not node.is_serving or not hasattr(node.server, "broker"):
        return False
    log = node.broker.quorum.log
    return bool(log.end_offset >= log.promised_offset)


def has_forgotten(node: Node) -> bool:
    """Whether its metadata was damaged, and it has not got well since."""
    if node.spoiled_life is not None and node.lives > node.spoiled_life and is_whole(node):
        node.spoiled_life = None
    return node.spoiled_life is not None


def may_lose_metadata(simulation: Simulation, node: Node, voters: list[int]) -> bool:
    others = [other for other in simulation.nodes if other is not node and other.node_id in voters]
    are_enough = node.node_id in voters and len(others) >= WELL_VOTERS_MIN and not is_removing(simulation, voters)
    return are_enough and all(map(is_whole, others)) and not any(map(has_forgotten, simulation.nodes))


def is_removing(simulation: Simulation, voters: list[int]) -> bool:
    """Whether somebody has just asked to take a vote away, or not everybody knows of it."""
    asked_ago = simulation.loop.time() - simulation.voter_removed_at
    serving = [node.server.broker.quorum for node in simulation.nodes if is_whole(node)]
    return asked_ago < REMOVAL_SECONDS or any(
        sorted(voter.node_id for voter in quorum.voters) != sorted(voters) for quorum in serving
    )


def has_told_all(node: Node, synced_offset: int) -> bool:
    """Whether its promise is as long as its log, and can be read: it may be damaged already."""
    files = node.disk.peek(HOME)
    words = bytes(files[SYNCED].data).split() if SYNCED in files else []
    return bool(words) and words[-1].isdigit() and int(words[-1]) >= synced_offset


Found = tuple[str, int, BatchHeader]  # a batch: path, position, header


def behind_newest_snapshot(node: Node, found: list[Found]) -> list[Found]:
    """The batch that follows on what the newest snapshot stands for."""
    ids = [parse_id(name) for name in node.disk.peek(HOME)]
    end_offset = max((snapshot_id.end_offset for snapshot_id in ids if snapshot_id is not None), default=-1)
    return [stored for stored in found if stored[2].base_offset == end_offset]


def damaged_log(node: Node, chance: Random) -> str | None:
    """A bit of a batch, a sector, the end of a segment of the metadata log, or all around the newest snapshot's end."""
    found = [
        (f"{HOME}/{name}", position, header)
        for name, inode in node.disk.peek(HOME).items()
        if name.endswith(LOG)
        for position, header, _ in whole_batches(as_written(inode))
    ]
    if not found:
        return None
    how = chance.choice(("header", "payload", "zeros", "short", "edge"))
    if how == "edge":
        found = behind_newest_snapshot(node, found) or found
    path, position, header = chance.choice(found)
    match how:
        case "edge":
            start = max(0, position - position % SECTOR_BYTES - SECTOR_BYTES)
            node.disk.wipe(path, start, position + header.size_bytes - start)
        case "header":
            how = turn_header_bit(node, chance, path, position)
        case "payload":
            turn_payload_bit(node, chance, path, position, header.size_bytes)
        case "zeros":
            start = position - position % SECTOR_BYTES
            size_bytes = len(inode_at(node, path).data)
            node.disk.wipe(path, start, min(SECTOR_BYTES, size_bytes - start))
        case "short":
            node.disk.cut_short(path, chance.randrange(position, position + header.size_bytes))
    return f"{node.host}:{path}: {how} at offset {header.base_offset}"


def damaged_file(node: Node, chance: Random, names: list[str]) -> str | None:
    """One of these files: a bit, zeros, cut or gone."""
    there = [name for name in names if name in node.disk.peek(HOME)]
    if not there:
        return None
    path, how = f"{HOME}/{chance.choice(there)}", chance.choice(WAYS)
    data = bytes(inode_at(node, path).data)
    match how:
        case "bit" if data:
            at = chance.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        case "zeros":
            data = bytes(len(data))
        case "short":
            data = data[: chance.randrange(len(data) + 1)]
    node.disk.overwrite(path, None if how == "gone" else data)
    return f"{node.host}:{path}: {how}"


def spare_snapshots(quorum: Any) -> list[str]:
    """The newest, where the log or an older one still has what it stands for."""
    ids, start_offset = quorum.log.files.ids, quorum.log.start_offset
    if (
        not ids
        or start_offset not in (0, *(snapshot_id.end_offset for snapshot_id in ids[:-1]))
        or not ids[-1].end_offset
    ):
        return []
    return [quorum.log.files.path(ids[-1]).rpartition("/")[2]]


async def fall_behind(simulation: Simulation, node: Node) -> None:
    """One that hears nothing for a while lacks what the others have decided meanwhile."""
    hosts = [other.host for other in simulation.nodes if other is not node]
    links = [(node.host, host) for host in hosts] + [(host, node.host) for host in hosts]
    for link in links:
        simulation.network.cut(*link)
    try:
        await asyncio.sleep(simulation.chance.uniform(*BEHIND_SECONDS))
    finally:
        for link in links:
            simulation.network.heal(*link)


async def damaged_metadata(simulation: Simulation) -> None:
    """One voter's metadata changes while it is down. The leader may die then, and others have to elect: with it, and
    with one that is behind.
    """
    chance = simulation.chance
    node: Node = chance.choice(simulation.nodes)
    if not is_whole(node):
        return
    quorum = node.broker.quorum
    voters = [voter.node_id for voter in quorum.voters]
    if not allow(simulation, "damaged_metadata", may_lose_metadata(simulation, node, voters)):
        return
    snapshots, leader_id = spare_snapshots(quorum), quorum.leader_id
    behind: asyncio.Task[None] | None = None
    others = [
        other
        for other in simulation.nodes
        if other.node_id in voters and other.node_id not in (node.node_id, leader_id)
    ]
    if others and chance.random() < BEHIND_SHARE:
        behind = asyncio.create_task(fall_behind(simulation, chance.choice(others)))
        await asyncio.sleep(BEHIND_SECONDS[0])
    try:
        await end(simulation, node)
        is_told = not node.is_alive and has_told_all(node, quorum.log.synced_offset)
        where = None
        if is_told and may_lose_metadata(simulation, node, voters):
            where = damaged(node, chance, snapshots)
        if where is not None:
            node.spoiled_life = node.lives
            begin(simulation, "damaged_metadata", where)
            leader = next((other for other in simulation.nodes if other.node_id == leader_id), node)
            if behind is not None and leader.is_alive and simulation.may_end(leader):
                leader.kill()
                behind.cancel()
                await start_again(simulation, node, 0.1)
                await start_again(simulation, leader, 12.0)
    finally:
        if behind is not None:
            behind.cancel()
    await start_again(simulation, node)


def damaged(node: Node, chance: Random, snapshots: list[str]) -> str | None:
    match chance.choice(("log", "log", "vote", "snapshot")):
        case "log":
            return damaged_log(node, chance)
        case "vote":
            return damaged_file(node, chance, [FILE_NAME, COPY])
        case _:
            return damaged_file(node, chance, snapshots)


METADATA_FAULTS: Final[dict[str, Fault]] = {"damaged_metadata": damaged_metadata}
