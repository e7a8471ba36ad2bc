"""What goes wrong with disk calls, media, volumes, clocks and packets of the dead.

All of it is drawn from `simulation.chance`, so that the faults of `faults` stay what they are. A node whose disk fails
may end at any moment, so each begins only where the promise allows that (`may_end`), and what takes records of a node
only where others have them (`may_lose_records`).
"""

import asyncio
import errno
from collections.abc import Callable
from functools import partial
from typing import Any, Final, get_args

from kavka_broker.storage.file_names import parse_partition
from tests.sim import damage
from tests.sim.faults import Fault, allow, begin
from tests.sim.node import Node
from tests.support.sim_disk import DiskError, Operation

Simulation = Any

DISK_FAULTS: Final[dict[str, Fault]] = {}
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)
NUMBERS: Final = (errno.EIO, errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES)
METADATA_DIRECTORY: Final = "__cluster_metadata-0"
REGISTRATION: Final = 62
#: Requests of a broker that its former process may have sent, and how often each is chosen: the registration first.
LATE_REQUESTS: Final = {REGISTRATION: 4, 63: 1, 56: 1, 73: 1, 1: 1, 67: 1}
STEP_ASIDE_SECONDS: Final = 4.0
READY_SECONDS_MAX: Final = 20.0


def fault(inject: Fault) -> Fault:
    DISK_FAULTS[inject.__name__] = inject
    return inject


def a_node(simulation: Simulation) -> Node:
    node: Node = simulation.chance.choice(simulation.nodes)
    return node


async def a_while(simulation: Simulation, longest: float = 4.0) -> None:
    await asyncio.sleep(min(simulation.chance.expovariate(1 / (longest / 4)), longest))


async def start_again(simulation: Simulation, node: Node, longest: float = 2.0) -> None:
    await a_while(simulation, longest)
    if not node.is_alive:
        node.start()


async def end(simulation: Simulation, node: Node) -> bool:
    """In a controlled way or not; whether it has ended."""
    if node.is_serving and simulation.chance.random() < 0.5:
        await node.stop("a roll")
    elif simulation.may_end(node):
        node.kill()
    return not node.is_alive


async def wait_until(is_so: Callable[[], bool], seconds_max: float) -> bool:
    for _ in range(int(seconds_max * 20)):
        if is_so():
            return True
        await asyncio.sleep(0.05)
    return is_so()


def somewhere(simulation: Simulation, node: Node) -> str:
    """The whole disk, one directory, one log, or the metadata: the beginning of a path."""
    directories = node.config.log_dirs
    logs = [directory for _, directory, _ in node.logs()]
    places = ["", f"{directories[-1]}/", f"{directories[0]}/{METADATA_DIRECTORY}/", *logs[:2]]
    return str(simulation.chance.choice(places))


# --- calls that fail ------------------------------------------------------------------------------------------------


@fault
async def failing_calls(simulation: Simulation) -> None:
    """Some kinds of call, in one place, once or for a while."""
    node, chance = a_node(simulation), simulation.chance
    if not allow(simulation, "failing_calls", simulation.may_end(node)):
        return
    operations = frozenset(chance.sample(OPERATIONS, chance.choice((1, 1, 2, 4))))
    error = DiskError(operations, somewhere(simulation, node), chance.choice(NUMBERS), chance.choice((1, 1, 3, None)))
    begin(simulation, "failing_calls", f"{node.host} {error.under!r} {sorted(operations)} {error.number} {error.times}")
    node.disk.errors = [*node.disk.errors, error]
    await a_while(simulation, 6.0)
    node.disk.errors = [other for other in node.disk.errors if other is not error]
    await renew(simulation, node)


async def renew(simulation: Simulation, node: Node) -> None:
    """Only a restart takes a directory that has failed into service again."""
    await a_while(simulation)
    if node.is_alive and node.has_failed_logs and simulation.may_end(node):
        node.kill()
    if not node.is_alive:
        await start_again(simulation, node)


@fault
async def bad_start(simulation: Simulation) -> None:
    """A directory is bad when the process starts; it comes back after a while, or with a later start."""
    node, chance = a_node(simulation), simulation.chance
    if not node.is_serving or not allow(simulation, "bad_start", simulation.may_end(node)):
        return
    if not await end(simulation, node):
        return
    directory = node.config.log_dirs[-1]
    kinds: list[Operation] = [
        "open",
        "read",
        "append",
        "write",
        "truncate",
        "sync",
        "names",
        "make_directory",
        "rename",
    ]
    operations = frozenset(chance.choice((kinds, ["read"], ["names"], ["sync", "write"], ["lock"], ["remove"])))
    under = chance.choice((f"{directory}/", f"{directory}/", f"{directory}/meta.properties", f"{directory}/recovery"))
    begin(simulation, "bad_start", f"{node.host} {under} {sorted(operations)}")
    error = DiskError(operations, under, chance.choice((errno.EIO, errno.ELOOP, errno.EACCES)))
    node.disk.errors = [*node.disk.errors, error]
    await start_again(simulation, node, 0.5)
    await a_while(simulation, 6.0)
    node.disk.errors = [other for other in node.disk.errors if other is not error]
    await renew(simulation, node)


@fault
async def volume_away(simulation: Simulation) -> None:
    """A volume is not mounted when the process starts, and its place is empty; later it is there again, as it was.

    What the node writes meanwhile is hidden then, and what it had before is old.
    """
    node = a_node(simulation)
    if len(node.config.log_dirs) < 2 or not node.is_serving or node.volume is not None:
        return
    if not allow(simulation, "volume_away", simulation.may_lose_directory(node)) or not await end(simulation, node):
        return
    if not simulation.may_lose_directory(node):  # any more: ending takes time, and another may have ended meanwhile
        await start_again(simulation, node)
        return
    begin(simulation, "volume_away", node.host)
    simulation.invariants.lost_power(node)
    node.unmount()
    await start_again(simulation, node, 0.5)
    await a_while(simulation, 8.0)
    while not simulation.may_lose_directory(node):
        await a_while(simulation)
    simulation.invariants.lost_power(node)
    node.mount()
    await start_again(simulation, node, 0.5)


@fault
async def ending_in_a_call(simulation: Simulation) -> None:
    """A process is killed, or the machine loses power, between two calls that belong together."""
    node, chance = a_node(simulation), simulation.chance
    is_dark = chance.random() < 0.5
    if not node.is_alive or not (simulation.may_lose_power(node) if is_dark else simulation.may_end(node)):
        return
    process, calls = node.process, chance.choice((5, 40, 200))
    node.disk.on_last_call = partial(last_call, simulation, node, is_dark=is_dark)
    node.disk.calls_left = chance.randint(1, calls)
    await a_while(simulation)
    if node.process is process and node.is_alive:
        node.disk.calls_left = None
    else:
        await start_again(simulation, node)


def last_call(simulation: Simulation, node: Node, *, is_dark: bool) -> None:
    if is_dark and simulation.may_lose_power(node):
        begin(simulation, "ending_in_a_call", f"{node.host} without power")
        node.power_off()
    elif not is_dark and simulation.may_end(node):
        begin(simulation, "ending_in_a_call", node.host)
        node.kill()


# --- syncs that do not do what they say -----------------------------------------------------------------------------


def is_of_records(path: str) -> bool:
    """Whether it belongs to a log of records. What voters promise each other is left alone: it needs the truth."""
    parts = path.split("/")
    return len(parts) > 2 and parts[2] != METADATA_DIRECTORY and parse_partition(parts[2]) is not None


@fault
async def lying_disk(simulation: Simulation) -> None:
    """A sync says that it is done and writes nothing."""
    node = a_node(simulation)
    begin(simulation, "lying_disk", node.host)
    node.disk.lies_about = is_of_records
    await a_while(simulation, 8.0)
    node.disk.lies_about = nothing


@fault
async def dropped_pages(simulation: Simulation) -> None:
    """A sync fails, and what it should have written counts as written from then on."""
    node = a_node(simulation)
    if not allow(simulation, "dropped_pages", simulation.may_end(node)):
        return
    begin(simulation, "dropped_pages", node.host)
    error = DiskError(frozenset({"sync"}), simulation.chance.choice(node.config.log_dirs), times=1)
    node.disk.drops = is_of_records
    node.disk.errors = [*node.disk.errors, error]
    await a_while(simulation)
    node.disk.errors = [other for other in node.disk.errors if other is not error]
    node.disk.drops = nothing
    await renew(simulation, node)


def nothing(path: str) -> bool:
    del path
    return False


# --- media ----------------------------------------------------------------------------------------------------------


@fault
async def damaged_log(simulation: Simulation) -> None:
    """The medium forgets a part of what is committed, while the node is down. Others have it all."""
    node, chance = a_node(simulation), simulation.chance
    if not node.is_serving or node.is_damaged:
        return
    if not allow(simulation, "damaged_log", simulation.may_lose_records(node)):
        return
    if simulation.is_synced or chance.random() < 0.7:
        await node.stop("a roll")
    else:
        node.kill()
    is_well_ended = node.is_clean or not simulation.is_synced
    if not node.is_alive and is_well_ended and simulation.may_lose_records(node):
        what = chance.choice(list(damage.LOGS))
        where = damage.LOGS[what](node, chance, simulation.invariants.committed_ends)
        if where is not None:
            begin(simulation, "damaged_log", f"{what}: {where}")
            simulation.invariants.was_damaged(node)
    await start_again(simulation, node)
    while node.is_damaged:
        await a_while(simulation)  # type: ignore[unreachable] # it was not, before the fault
        simulation.read_anew(node)


@fault
async def damaged_files(simulation: Simulation) -> None:
    """And of the files beside the records, which are derived from them or vouch for them."""
    node, chance = a_node(simulation), simulation.chance
    if not node.is_serving or node.is_damaged:
        return
    if not allow(simulation, "damaged_files", simulation.may_lose_records(node)):
        return
    await end(simulation, node)
    if not node.is_alive and simulation.may_lose_records(node):
        for _ in range(chance.choice((1, 1, 3))):
            what = chance.choice(list(damage.FILES))
            where = damage.FILES[what](node, chance, simulation.invariants.committed_ends)
            if where is not None:
                begin(simulation, "damaged_files", f"{what}: {where}")
                simulation.invariants.was_damaged(node)
    await start_again(simulation, node)


def unread_epoch(simulation: Simulation, node: Node, path: str) -> int | None:
    """The epoch in which a node leads a log that it cannot read, though it could hand over; otherwise None."""
    name = parse_partition(path.split("/")[2])
    state = None if name is None else simulation.invariants.partition_state(tuple(name))
    if state is None:
        return None
    is_free = state.leader == node.node_id and len(state.isr) > 1
    are_well = all(other.is_serving and not other.process.is_busy for other in simulation.nodes)
    return int(state.leader_epoch) if is_free and are_well and not simulation.network.has_cuts else None


@fault
async def bad_sector(simulation: Simulation) -> None:
    """A segment that is committed cannot be read any more. Others have it all."""
    node, chance = a_node(simulation), simulation.chance
    if not node.is_serving or node.is_damaged:
        return
    found = damage.committed_batches(node, simulation.invariants.committed_ends)
    if not found or not allow(simulation, "bad_sector", simulation.may_lose_records(node)):
        return
    path = chance.choice(found)[0]
    begin(simulation, "bad_sector", f"{node.host}:{path}")
    inode = damage.inode_at(node, path)
    inode.is_unreadable = node.has_flipped = True
    simulation.invariants.was_damaged(node)
    unmoved = 0.0
    while node.is_damaged and node.is_alive:  # type: ignore[unreachable] # it was not, before the fault
        simulation.read_anew(node)  # type: ignore[unreachable] # likewise
        failed, epoch = inode.failed_reads, unread_epoch(simulation, node, path)
        await asyncio.sleep(STEP_ASIDE_SECONDS / 4)
        is_stuck = epoch is not None and epoch == unread_epoch(simulation, node, path) and inode.failed_reads > failed
        unmoved = unmoved + STEP_ASIDE_SECONDS / 4 if is_stuck else 0.0
        if unmoved >= STEP_ASIDE_SECONDS:
            simulation.fail(f"UnreadableStepsAside: {node.host} leads {path} and cannot read it; others could")
    inode.is_unreadable = False
    await renew(simulation, node)


# --- time -----------------------------------------------------------------------------------------------------------


@fault
async def slow_node(simulation: Simulation) -> None:
    """Each step of it takes time, and everything that it has to do waits."""
    node = a_node(simulation)
    step_ms = simulation.chance.choice((0.1, 0.5, 2.0))
    begin(simulation, "slow_node", f"{node.host} {step_ms} ms a step")
    node.set_step_seconds(step_ms / 1000)
    await a_while(simulation, simulation.chance.choice((2.0, 10.0)))
    node.set_step_seconds(0.0)


@fault
async def slow_calls(simulation: Simulation) -> None:
    """Calls of the disk hold the loop, where no thread makes them."""
    node = a_node(simulation)
    call_ms = simulation.chance.choice((1.0, 10.0, 100.0))
    begin(simulation, "slow_calls", f"{node.host} {call_ms} ms a call")
    node.disk.call_seconds = call_ms / 1000
    await a_while(simulation, simulation.chance.choice((2.0, 10.0)))
    node.disk.call_seconds = 0.0


@fault
async def clock_drift(simulation: Simulation) -> None:
    node = a_node(simulation)
    rate = simulation.chance.choice((0.9, 0.97, 1.03, 1.1))
    begin(simulation, "clock_drift", f"{node.host} at {rate}")
    node.clock.run_at(rate)
    await a_while(simulation, 20.0)
    node.clock.run_at(1.0)


# --- packets of the dead --------------------------------------------------------------------------------------------


@fault
async def late_packets(simulation: Simulation) -> None:
    """What a process has sent arrives when the next one serves already."""
    node, chance = a_node(simulation), simulation.chance
    if node.is_serving and allow(simulation, "late_packets", simulation.may_end(node)):
        api_key = chance.choices(list(LATE_REQUESTS), list(LATE_REQUESTS.values()))[0]
        await bring_late(simulation, node, "late_packets", api_key)


async def bring_late(simulation: Simulation, node: Node, what: str, api_key: int) -> None:
    """A request of a node comes to be under way; it is killed and started again, and then the request arrives."""
    hold = simulation.network.hold(node.host, api_key)
    if api_key == REGISTRATION:
        node.kill()
        node.start()
    try:
        await wait_until(lambda: bool(hold.pipes), 4.0)
        await a_while(simulation, 0.5)
    finally:
        simulation.network.hold_no_more(node.host)
    try:
        if hold.pipes and node.is_alive and simulation.may_end(node):
            begin(simulation, what, f"{node.host} api {api_key}")
            node.kill()
            await start_again(simulation, node, 0.5)
            await wait_until(lambda: node.is_serving, READY_SECONDS_MAX)
    finally:
        simulation.network.release(hold)
    await start_again(simulation, node)
