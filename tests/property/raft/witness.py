"""A quorum under random faults, and what must hold whatever happens to it.

The names are those of the Raft paper and of the TLA+ specifications:

    ElectionSafety        an epoch has one leader at most
    LogMatching           two logs with a batch of the same offset and epoch are equal up to it
    LeaderCompleteness    whoever leads has everything that was ever committed
    NoCommittedRecordLost what one node has committed, no node commits anything else for
    MonotonicHighWatermark
    MajorityReachedHighWatermark  a leader commits what a majority of the voters has on disk
    MonotonicEpoch        no node goes back to an epoch that it has left, not even by a crash
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from kavka_broker.core.raft.effects import Committed, Effect, Led
from kavka_broker.core.raft.settings import Settings
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from tests.unit.raft.memory_log import Batch
from tests.unit.raft.world import CLUSTER, Process, World, voter


class Violation(AssertionError):
    """An invariant does not hold."""


#: By the size of a fetch: a batch at a time keeps logs apart for longer.
SETTINGS = {size: Settings(request_timeout_ms=500, fetch_bytes_max=size) for size in (1, 1 << 20)}


@dataclass(frozen=True)
class Plan:
    """One history: a quorum, how bad its network is, and what happens to it."""

    seed: int
    size: int
    observers: int
    loss: float
    twice: float
    delay_max_ms: int
    sync_max_ms: int
    fetch_bytes_max: int
    steps: tuple[tuple[str, int, int], ...]


class Witness(World):
    """Checks every step of every node."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(seed=plan.seed, settings=SETTINGS[plan.fetch_bytes_max])
        self.plan = plan
        self.leaders: dict[int, int] = {}
        self.batches: dict[tuple[int, int], tuple[bytes, tuple[int, int]]] = {}  # offset, epoch -> data, the one before
        self.committed: dict[int, tuple[int, bytes]] = {}  # offset -> epoch and data of the batch there
        self.committed_to = 0
        self.known: dict[int, tuple[int, int]] = {}  # node -> incarnation and high watermark, as last seen
        self.epochs: dict[int, int] = {}
        self.seen: dict[int, Sequence[Batch]] = {}
        self.is_healed = False

    # --- faults ------------------------------------------------------------------------------------------------------

    def deliver(self, sender: int, receiver: int, step: Any) -> None:
        if (sender, receiver) in self.cut:
            return
        chance = self.random.random
        if not self.is_healed and chance() < self.plan.loss:
            return
        copies = 2 if not self.is_healed and chance() < self.plan.twice else 1
        for _ in range(copies):
            self.after(1 if self.is_healed else self.random.randint(1, self.plan.delay_max_ms), step)

    def carried(self, message: Message) -> Message:
        return message  # the scenarios go through bytes; here there would be millions of them

    # --- what must hold ----------------------------------------------------------------------------------------------

    def witnessed(self, process: Process, effect: Effect) -> None:
        match effect:
            case Led(epoch):
                self._check_leader(process, epoch)
            case Committed(high_watermark):
                self._check_committed(process, high_watermark)

    def after_step(self, process: Process) -> None:
        node = process.node
        if node is None:
            return
        require(node.epoch >= self.epochs.get(process.node_id, 0), "MonotonicEpoch", process, node.epoch)
        self.epochs[process.node_id] = node.epoch
        incarnation, known = self.known.get(process.node_id, (0, 0))
        if incarnation == process.incarnation:
            require(node.high_watermark >= known, "MonotonicHighWatermark", process, (known, node.high_watermark))
        self.known[process.node_id] = (process.incarnation, node.high_watermark)
        self._check_log(process)

    def _check_log(self, process: Process) -> None:
        batches = process.log.batches
        before = self.seen.get(process.node_id, ())
        shared = next((at for at, (old, new) in enumerate(zip(before, batches, strict=False)) if old is not new), None)
        first = min(len(before), len(batches)) if shared is None else shared
        for at in range(first, len(batches)):
            batch = batches[at]
            previous = (batches[at - 1].base_offset, batches[at - 1].epoch) if at else None
            data, known = self.batches.setdefault((batch.base_offset, batch.epoch), (batch.data, previous or (-1, -1)))
            require(data == batch.data, "LogMatching", process, batch)
            if previous is not None and known != (-1, -1):
                require(known == previous, "LogMatching", process, (batch, known, previous))
        self.seen[process.node_id] = [*batches]

    def _check_leader(self, process: Process, epoch: int) -> None:
        known = self.leaders.setdefault(epoch, process.node_id)
        require(known == process.node_id, "ElectionSafety", process, (epoch, known))
        have = {batch.base_offset: (batch.epoch, batch.data) for batch in process.log.batches}
        for offset, batch in self.committed.items():
            if offset >= process.log.start_offset:
                require(have.get(offset) == batch, "LeaderCompleteness", process, (epoch, offset))
        require(process.log.end_offset >= self.committed_to, "LeaderCompleteness", process, self.committed_to)

    def _check_committed(self, process: Process, high_watermark: int) -> None:
        require(process.log.end_offset >= high_watermark, "NoCommittedRecordLost", process, high_watermark)
        for batch in process.log.batches:
            if batch.end_offset <= high_watermark:
                known = self.committed.setdefault(batch.base_offset, (batch.epoch, batch.data))
                require(known == (batch.epoch, batch.data), "NoCommittedRecordLost", process, batch.base_offset)
        self.committed_to = max(self.committed_to, high_watermark)
        node = process.node
        if node is not None and node.is_leader:
            logs = [self.processes[one.node_id].log for one in node.voters]
            reached = [log for log in logs if min(log.synced_offset, log.end_offset) >= high_watermark]
            is_majority = len(reached) > len(node.voters) // 2
            require(is_majority, "MajorityReachedHighWatermark", process, high_watermark)


def require(holds: bool, invariant: str, process: Process, what: object) -> None:
    if not holds:
        raise Violation(f"{invariant}: node {process.node_id} at {process.world.now_ms} ms: {what}")


# --- a history -------------------------------------------------------------------------------------------------------


def live(plan: Plan, kind: type[Witness] = Witness) -> Witness:
    """Let the history happen, then heal everything and see the quorum work again."""
    world = happen(plan, kind)
    heal(world)
    return world


def happen(plan: Plan, kind: type[Witness] = Witness) -> Witness:
    """Let the history happen."""
    world = kind(plan)
    voters = [voter(node_id) for node_id in range(1, plan.size + 1)]
    for one in voters:
        world.add(one.node_id, voters)
    for node_id in range(plan.size + 1, plan.size + plan.observers + 1):
        world.add(node_id, [])
    for process in world.processes.values():
        process.start()
    for step in plan.steps:
        world.sync_ms = world.random.randint(1, plan.sync_max_ms)
        take(world, *step)
    return world


#: Elections that are never left to end; voters that come and go; processes that die at any moment.
RESTLESS = ["wait"] * 8 + ["append"] + ["blip", "restart", "depose"] * 2 + ["start"] * 4
CHANGING = ["wait"] * 12 + ["append", "blip", "restart", "depose", "start", "start", "start", "add", "remove"] * 2
DYING = ["wait"] * 6 + ["restart"] * 6 + ["blip", "blip", "start"]


def restless(seed: int, verbs: Sequence[str] = RESTLESS, *, observers: int = 0, **fixed: Any) -> Plan:
    """A history without a minute's peace."""
    draw = Random(seed)
    plan = Plan(
        seed=seed,
        size=draw.choice([3, 3, 5]) if not observers else draw.choice([2, 3, 4]),
        observers=observers,
        loss=draw.choice([0, 0.05, 0.2]),
        twice=0,
        delay_max_ms=draw.choice([5, 20, 50]),
        sync_max_ms=draw.choice([1, 50, 100]),
        fetch_bytes_max=1,
        steps=tuple((draw.choice(verbs), draw.randint(1, 7), draw.randint(0, 1_500)) for _ in range(100)),
    )
    return replace(plan, **fixed)


def take(world: Witness, verb: str, node_id: int, amount: int) -> None:
    """One step; what makes no sense now does nothing."""
    process = world.processes[(node_id - 1) % len(world.processes) + 1]
    if verb in TIME_AND_NETWORK:
        TIME_AND_NETWORK[verb](world, process, amount)
    elif process.node is None:
        if verb == "start":
            process.start()
    elif verb in UP:
        UP[verb](world, process, amount)


def blip(world: Witness, _process: Process, _amount: int) -> None:
    for process in world.processes.values():
        process.handle(lambda node: node.leader_lost(world.now_ms))


def depose(world: Witness, _process: Process, amount: int) -> None:
    leader = world.leader()
    if leader is not None:
        world.crash(leader.node_id, leader.log.end_offset if amount % 2 else None)


def append(world: Witness, process: Process, amount: int) -> None:
    if process.node is None or not process.node.is_leader:
        process = world.leader() or process
    if process.node is not None and process.node.is_leader and not process.is_paused:
        process.append(f"{process.node_id}@{world.now_ms}", *(["more"] if amount % 2 else []))


def crash(world: Witness, process: Process, amount: int) -> None:
    unsynced = process.log.end_offset - process.log.synced_offset
    world.crash(process.node_id, process.log.synced_offset + amount % (unsynced + 1))


def restart(world: Witness, process: Process, amount: int) -> None:
    crash(world, process, amount)
    process.start()


def pause(_world: Witness, process: Process, _amount: int) -> None:
    process.is_paused = True


def resign(world: Witness, process: Process, _amount: int) -> None:
    process.handle(lambda node: node.resign(world.now_ms))


def lose(world: Witness, process: Process, _amount: int) -> None:
    process.handle(lambda node: node.leader_lost(world.now_ms))


def snapshot(_world: Witness, process: Process, amount: int) -> None:
    if process.node is None or process.node.high_watermark <= process.log.start_offset:
        return
    written = process.snapshot()
    if amount % 2:
        process.log.trim(min(written.end_offset, process.log.synced_offset))
        for old in process.log.snapshots[:-1]:
            del process.log.pieces[old]


Step = Callable[[Witness, Process, int], object]
TIME_AND_NETWORK: dict[str, Step] = {
    "run": lambda world, process, amount: world.run(amount),
    "wait": lambda world, process, amount: world.run(amount % 50),
    "cut": lambda world, process, amount: world.cut.add((process.node_id, amount % len(world.processes) + 1)),
    "isolate": lambda world, process, amount: world.isolate(process.node_id),
    "heal": lambda world, process, amount: world.cut.clear(),
    "resume": lambda world, process, amount: process.resume(),
    "blip": blip,
    "depose": depose,
}
UP: dict[str, Step] = {
    "append": append,
    "crash": crash,
    "restart": restart,
    "pause": pause,
    "lost": lose,
    "resign": resign,
    "snapshot": snapshot,
    "add": lambda world, process, amount: change_voters(world, "add", process),
    "remove": lambda world, process, amount: change_voters(world, "remove", process),
}


def change_voters(world: Witness, verb: str, process: Process) -> None:
    """Ask the leader, whichever node it is."""
    leader = world.leader()
    if leader is None or leader.node is None or leader.is_paused:
        return
    identity = process.identity
    now_ms = world.now_ms
    if verb == "add":
        listeners = [Listener(*endpoint) for endpoint in identity.endpoints]
        request = AddRaftVoterRequest(CLUSTER, 5_000, identity.node_id, identity.directory_id, listeners)
        response, effects = leader.node.add_voter(request, now_ms)
    elif len(leader.node.voters) == 1:
        return
    else:
        removal = RemoveRaftVoterRequest(CLUSTER, identity.node_id, identity.directory_id)
        response, effects = leader.node.remove_voter(removal, now_ms)  # type: ignore[assignment]
    leader.take(response, effects, lambda _: None)


def heal(world: Witness) -> None:
    """With every node up and every message delivered, a leader is found, and what it appends is committed by all."""
    world.is_healed = True
    world.cut.clear()
    world.sync_ms = 1
    for process in world.processes.values():
        if process.is_paused:
            process.resume()
        # Whoever has resigned for good is waiting to be stopped.
        if process.node is not None and process.node.role == "Resigned":
            world.crash(process.node_id)
        if process.node is None:
            process.start()
    world.run(20_000)
    leader = world.leader()
    if leader is None:
        raise Violation(f"Liveness: nobody leads: {[roles(one) for one in world.processes.values()]}")
    leader.append("the end")
    end_offset = leader.log.end_offset
    world.run(2_000)
    for process in world.processes.values():
        if process.node is None or process.node.high_watermark < end_offset:
            raise Violation(f"Liveness: node {process.node_id} is behind {end_offset}: {roles(process)}")


def roles(process: Process) -> str:
    node = process.node
    return "down" if node is None else f"{process.node_id} {node.role} {node.epoch} {node.high_watermark}"
