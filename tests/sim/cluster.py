"""One simulated world from its seed: nodes, clients, a time of faults, a time of healing, and the judgement.

    faults       clients work while `faults` does what the seed has drawn
    healing      links, clocks and disks are well again, every node runs; the cluster has to find its way back
    final reads  producers end, and everything that was acknowledged has to be there

A run fails with the first violated invariant, defect or anomaly, or where healing takes too long.
"""

import asyncio
import contextlib
import gc
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from kavka_broker.controller.format import AS_CONFIGURED, Voters
from tests.sim import durability
from tests.sim.availability import Availability, besiege
from tests.sim.changes import Changer
from tests.sim.clients import Admin
from tests.sim.closing import last_move, last_occasions, last_reign
from tests.sim.damaged_metadata import has_forgotten
from tests.sim.divergences import Divergences
from tests.sim.eligible_replicas import Heirs
from tests.sim.events import Events
from tests.sim.foreign import missing_foreign, plant
from tests.sim.handing_over import HANDOVERS_A_TURN, slices_of
from tests.sim.handovers import Handovers
from tests.sim.history import History, Place
from tests.sim.invariants import Invariant, Invariants
from tests.sim.joining import joins_complete
from tests.sim.large_groups import large_by
from tests.sim.log_starts import Trim
from tests.sim.loop import Deadlock, Ended, Escaped, Exhausted, SimFuture, SimLoop
from tests.sim.loop_syncs import LoopSyncs
from tests.sim.naming import NAMES_BYTES, names_up_to
from tests.sim.network import Network, Weather
from tests.sim.node import (
    CLIENT_PORT,
    CONTROLLER,
    CONTROLLER_PORT,
    DIRECTORIES,
    INTERNAL,
    INTERNAL_PORT,
    Node,
    traceback_of,
)
from tests.sim.outdated import OutdatedImages
from tests.sim.playbook import WORKLOADS
from tests.sim.producers import Producer
from tests.sim.readers import Reader
from tests.sim.registrations import Registrations
from tests.sim.releases import Releases
from tests.sim.replays import Replays
from tests.sim.rooms import rooms_from
from tests.sim.turns import FairTurns
from tests.sim.watchdog import watching

STARTING_SECONDS_MAX: Final = 60.0
STARTS_MAX: Final = 30  # of a node whose disk is well
HEALING_SECONDS_MAX: Final = 90.0
AFTERWARDS_SECONDS_MAX: Final = 300.0
TOPIC: Final = "t"


class Failed(Exception):
    """The run has shown that something is wrong."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the seed has drawn of the cluster before anything runs. A test may fix parts of it."""

    nodes: int = 3
    voters: int = 3  # of the quorum: the first nodes; the others are brokers only
    partitions: int = 2
    producers: int = 2
    readers: int = 2
    min_isr: int = 2
    seconds: float = 12.0
    settings: dict[str, str] = field(default_factory=dict)
    topic_configs: dict[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()  # what is changed while clients work
    pace: int = 1  # how much longer clients rest than the most hectic ones
    directories: int = 1  # of logs, on each node
    workloads: tuple[str, ...] = ()  # what clients do beside the main topic, see `playbook`
    has_journal_by_directory: bool = False  # on each disk: syncing one directory writes nothing of another
    is_besieged: bool = False  # after the storm, see `availability`
    has_voters_in_log: bool = False  # and all nodes are controllers, who may get a vote and lose it (KIP-853)
    has_foreign: bool = False  # users keep files of their own in the log directories, see `foreign`
    is_strained: bool = False  # each disk: threads make room for every batch, see `storage.preallocation`
    has_former_producers: bool | None = None  # in `coordinated`: of transaction version 1, all or none; else drawn
    has_releases: bool = False  # nodes of two releases, see `releases`
    handovers_a_turn: int = HANDOVERS_A_TURN  # partitions that a broker hands over in one turn of its loop

    @property
    def replication_factor(self) -> int:
        return min(3, self.nodes)

    @property
    def voters_count(self) -> int:
        return min(self.voters, self.nodes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    failure: str | None
    digest: str
    steps: int
    seconds: float
    acknowledged: int
    faults: Counter[str]
    refused: Counter[str]  # faults that might have taken what is promised, and did not happen
    events: Counter[str]
    story: tuple[str, ...]


class Simulation:
    """One run. `inject` is what goes wrong: a coroutine over the simulation."""

    def __init__(self, seed: int, shape: Shape, inject: Callable[["Simulation"], Awaitable[None]]) -> None:
        self.seed = seed
        self.shape = shape
        self.loop = SimLoop(seed)
        self.random = Random(f"faults {seed}")
        self.chance = Random(f"disks and clocks {seed}")  # of the faults in `disk_faults`
        self.network = self.loop.network = Network(self.loop)
        self.events = Events(self.loop)
        self.history = History(told=self._told, read=self._read)
        self.faults: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.invariants = Invariants(self)
        self.heirs = Heirs(self)
        self.registrations = Registrations(self)
        self.turns = FairTurns(self)
        self.replays = Replays(self)
        self.releases = Releases(self)
        self.looking: list[Callable[[Node], None]] = []  # workloads that look at nodes after their steps
        self.handovers = Handovers(self)
        self.divergences = Divergences(self)
        self._waiting_for: list[Running] = []
        self._inject = inject
        self.trims: dict[str, Trim] = {}  # by topic: what of it may go
        self.rules: dict[str, list[Invariant]] = {}  # by topic: which invariants hold, where it is not all of them
        self._is_bound_lowered = False
        self.voter_removed_at = -math.inf
        self._clean_lives: dict[tuple[int, int], None] = {}
        self.availability = Availability(self)
        self.anomalies: list[str] = []  # of the workloads
        self._readings = 0
        self._given: dict[tuple[int, int], str] = {}  # ids of producers
        self.occasion_chances: dict[str, Random] = {}
        self.sent_once = 0  # records that an occasion has sent
        self._ended = self.loop.create_future()
        self.events.failed = self.fail
        self.events.is_outdated = OutdatedImages(self).is_outdated
        self.events.listeners["isr.proposed"] = [partial(joins_complete, self.invariants)]
        self.events.listeners["connection.closed"] = [self.events.closed]
        self.nodes = [self._make_node(node_id) for node_id in range(1, shape.nodes + 1)]
        loop_syncs = LoopSyncs(self.events, self.fail)
        for node in self.nodes:
            node.disk.on_loop_sync = loop_syncs.met
        self.places: list[Place] = [(TOPIC, index) for index in range(shape.partitions)]
        self.addresses = [(node.host, CLIENT_PORT) for node in self.nodes]
        self.workloads = [WORKLOADS[name](self) for name in shape.workloads]

    def _make_node(self, node_id: int) -> Node:
        shape, host = self.shape, f"node{node_id}"
        is_controller = shape.has_voters_in_log or node_id <= shape.voters_count
        controller = f",{CONTROLLER}://{host}:{CONTROLLER_PORT}" if is_controller else ""
        voters = range(1, shape.voters_count + 1)
        if shape.has_voters_in_log:
            quorum = {
                "controller.quorum.bootstrap.servers": ",".join(f"node{voter}:{CONTROLLER_PORT}" for voter in voters)
            }
        else:
            quorum = {
                "controller.quorum.voters": ",".join(f"{voter}@node{voter}:{CONTROLLER_PORT}" for voter in voters)
            }
        settings = {
            "process.roles": "broker,controller" if is_controller else "broker",
            "controller.listener.names": CONTROLLER,
            **listeners(host, controller, is_apart=bool({"crowds", "logins"} & {*shape.workloads})),
            **quorum,
            "broker.rack": f"rack{node_id % 3}",
            "min.insync.replicas": str(shape.min_isr),
            "log.message.timestamp.after.max.ms": str(2**62),  # clocks of nodes are set
            "offsets.topic.replication.factor": str(shape.replication_factor),
            "default.replication.factor": str(shape.replication_factor),
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": str(shape.replication_factor),
            "transaction.state.log.min.isr": str(shape.min_isr),
            "share.coordinator.state.topic.replication.factor": str(shape.replication_factor),
            "share.coordinator.state.topic.min.isr": str(shape.min_isr),
            "transaction.state.log.num.partitions": "2",
            "log.dirs": ",".join(DIRECTORIES[: shape.directories]),
            **({"log.flush.interval.messages": "1"} if self.is_synced else {}),
            **shape.settings,
        }
        node = Node(node_id, self.network, self.events, settings, self.fail)
        node.disk.has_journal_by_directory = shape.has_journal_by_directory
        node.disk.is_strained = shape.is_strained
        node.on_start.append(self._watch)
        if self.shape.has_releases:
            node.on_start.append(self.releases.began)
        node.on_power_loss.append(self.invariants.lost_power)
        node.on_end.append(self.heirs.ended)
        node.on_end.append(partial(durability.checkpoint_is_synced, self.invariants))
        return node

    def began_cleanly(self, node_id: int, life: int) -> bool:
        """Whether the life before had ended in a controlled way."""
        return (node_id, life) in self._clean_lives

    def _watch(self, node: Node) -> None:
        if node.is_clean:
            self._clean_lives[node.node_id, node.lives] = None
        node.process.watch = partial(self._after_step, node)

    def _after_step(self, node: Node) -> None:
        self.invariants.check(node)
        self.turns.after_step(node)
        self.replays.after_step(node)
        for look in self.looking:
            look(node)

    @property
    def is_synced(self) -> bool:
        """Whether every batch is on the disk before it is acknowledged."""
        return self.shape.topic_configs.get("flush_messages") == "1"

    @property
    def client_hosts(self) -> list[str]:
        return ["admin", "changer", *(f"producer{n}" for n in range(self.shape.producers)),
                *(f"reader{n}" for n in range(self.shape.readers))]  # fmt: skip

    def may_lose_power(self, node: Node) -> bool:
        """Whether records that this node has not synced may be lost now."""
        if self.is_synced:
            return self.may_end(node) and not node.has_unwritten_logs
        return self.may_lose_records(node)

    def may_lose_records(self, node: Node) -> bool:
        """Whether any record of this node may be lost now: every partition has another leader (`eligible_replicas`).

        Not once the bound may be one: the ISR may be this node alone then, and others that have all are not eligible.
        """
        is_bound_enough = self.shape.min_isr > 1 and (self.is_synced or not self._is_bound_lowered)
        return is_bound_enough and self.invariants.image is not None and self.heirs.has_heirs_beside(node)

    def may_lose_directory(self, node: Node) -> bool:
        """Whether a directory of this node may be gone for good now, with its records and with its right to lead."""
        return self.may_lose_records(node) and self.heirs.has_entitled_beside(node)

    def may_end(self, node: Node) -> bool:
        """Whether this node may end uncleanly now.

        Not while the controller still counts on one that has lost power and nobody else is an heir: it would take both
        for lossy, and could not tell which of them has everything (KIP-966 is safe with min.insync.replicas - 1 unclean
        stops at a time). Nor where a bit of it has turned over: its recovery cuts the log there. Where all is synced a
        loss of power takes nothing, but damage does.
        """
        return not node.is_damaged and self.heirs.may_end(node, is_synced=self.is_synced)

    def may_all_end(self) -> bool:
        """As `may_end`, of all at once. Not while the controller has yet to hear where a node has its logs: if that is
        the last one in sync, it waits for the directory before.
        """
        return self._have_all_everything() and not any(node.is_damaged or node.has_moved_volume for node in self.nodes)

    def _have_all_everything(self) -> bool:
        """Whether no partition waits for a replica that has lost something."""
        return self.heirs.have_all_everything(is_synced=self.is_synced)

    def _may_remove_voter(self) -> bool:
        """Whether a vote may be taken away now: one that has forgotten does not vote, and may be needed then."""
        if any(map(has_forgotten, self.nodes)):
            return False
        self.voter_removed_at = self.loop.time()
        return True

    def _may_lower_bound(self) -> bool:
        """Whether min.insync.replicas may become 1 now; nothing may be lost then from here on."""
        self._is_bound_lowered |= self._have_all_everything()
        return self._is_bound_lowered

    def fail(self, why: str) -> None:
        """Fail the run for this reason; the first one counts."""
        if not self._ended.done():
            self.events.say("-", f"FAILED: {why}")
            self._ended.set_exception(Failed(why))

    def _told(self, place: Place, last_offset: int) -> None:
        self.invariants.acknowledged(place, last_offset)

    def _read(self, place: Place, batch: memoryview) -> None:
        self.invariants.was_read(place, batch)

    def say(self, what: str) -> None:
        self.events.say("-", what)

    # --- the run ------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        failure: str | None = None
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self._uncaught)
        has_collector = gc.isenabled()
        gc.disable()
        with (
            self.events.taking(),
            watching(self.loop),
            slices_of(self.shape.handovers_a_turn),
            rooms_from(1),
            large_by(self.seed),
            names_up_to(NAMES_BYTES),
            self.releases.speaking() if self.shape.has_releases else contextlib.nullcontext(),
        ):
            try:
                self.loop.create_task(self._play(), name="play").add_done_callback(self._played)
                self.loop.run_until_complete(self._ended)
            except (Failed, Exhausted) as problem:
                failure = str(problem)
            except (Deadlock, Escaped) as problem:
                failure = repr(problem)
            finally:
                outcome = self._outcome(failure)
                self.loop.bury()
                asyncio.set_event_loop(None)
                self.loop.close()
                if has_collector:
                    gc.enable()
        return outcome

    def _outcome(self, failure: str | None) -> Outcome:
        loop = self.loop
        return Outcome(
            self.seed, failure, loop.digest, loop.steps, loop.time(), self.history.acknowledged_count,
            self.faults, +self.refused, self.events.counts, tuple(self.events.lines),
        )  # fmt: skip

    def _played(self, task: asyncio.Task[None]) -> None:
        if self._ended.done() or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)

    def _uncaught(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, future = context.get("exception"), context.get("future")
        if isinstance(error, Ended | Failed):
            return
        if isinstance(future, SimFuture) and future.process is not None and not future.process.is_alive:
            return  # the client that would have asked for it died with its process
        self.fail(f"nobody caught: {context['message']}: {error!r}\n{traceback_of(error)}")

    async def _play(self) -> None:
        for node in self.nodes:
            node.format(self._first_voters(node))
        for node in self.nodes:
            node.start()
        clients = await self._within(STARTING_SECONDS_MAX, "starting", self._begin())
        plant(self)
        watching = self.loop.create_task(self.availability.watch(), name="availability")
        await self._inject(self)
        if self.shape.is_besieged:
            await besiege(self)
        watching.cancel()
        self.heal()
        await self._within(HEALING_SECONDS_MAX, "healing", self._settle(clients))
        await self._within(AFTERWARDS_SECONDS_MAX, "what comes at its moment", self._end_quietly())
        for workload in self.workloads:
            self.anomalies += await self._within(AFTERWARDS_SECONDS_MAX, "what comes last", workload.afterwards())
        found = self.history.anomalies() + self.anomalies + missing_foreign(self)
        if found:
            raise Failed("\n".join(found))

    def _first_voters(self, node: Node) -> Voters:
        if not self.shape.has_voters_in_log:
            return AS_CONFIGURED
        initial = self.nodes[: self.shape.voters_count]
        return Voters(initial=tuple(voter.as_voter for voter in initial)) if node in initial else Voters(none=True)

    async def _within(self, seconds: float, what: str, work: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise Failed(f"liveness: {what} is not done after {seconds:.0f} s: {self.where()}") from None

    async def _begin(self) -> list["Running"]:
        admin = Admin("admin", self.loop, self.addresses, self.history)
        creating = admin.create(
            TOPIC, self.shape.partitions, self.shape.replication_factor, min_insync_replicas=str(self.shape.min_isr),
            **self.shape.topic_configs,
        )  # fmt: skip
        await self.loop.create_task(creating, context=admin.process.context())
        producers = [
            Producer(f"producer{n}", self.loop, self.addresses, self.history, self.places)
            for n in range(self.shape.producers)
        ]
        readers = [
            Reader(f"reader{n}", self.loop, self.addresses, self.history, self.places)
            for n in range(self.shape.readers)
        ]
        for number, reader in enumerate(readers):
            reader.rack = f"rack{number}"
        changer = Changer("changer", self.loop, self.addresses, self.history)
        changer.kinds, changer.places = self.shape.changes, tuple(self.places)
        changer.directories = DIRECTORIES[: self.shape.directories]
        changer.controllers = tuple(node.as_voter for node in self.nodes)
        changer.node_ids = tuple(node.node_id for node in self.nodes)
        changer.gone, changer.may_lower = self._gone, self._may_lower_bound
        changer.may_remove_voter = self._may_remove_voter
        changer.replication_factor = self.shape.replication_factor
        running = [self.run_client(client) for client in [*producers, *readers, changer]]
        for workload in self.workloads:
            await self.loop.create_task(workload.begin(admin), context=admin.process.context())
            running += [self.run_client(client) for client in workload.clients()]
        return running

    def _gone(self) -> int | None:
        """A broker that is down and not needed: its records may be lost."""
        down = [node for node in self.nodes if not node.is_alive and self.may_lose_records(node)]
        for node in down[:1]:
            self.invariants.lost_power(node)  # a broker that is forgotten counts for nothing
            self.registrations.unregistered[node.node_id] = None
            self.events.counts["played.unregistered"] += 1
            return node.node_id
        return None

    def read_anew(self, node: Node) -> None:
        """A reader comes to this node first and begins at the start, which may not have been read for long."""
        self._readings += 1
        name = f"reader{self._readings % self.shape.readers}"
        reader = Reader(f"{name}.{self._readings}", self.loop, self.addresses, self.history, self.places)
        reader.process.host = name
        self.run_client(reader, reader.read_once((node.host, CLIENT_PORT)))

    def run_client(self, client: Any, work: Coroutine[Any, Any, None] | None = None) -> "Running":
        client.pace, client.given = self.shape.pace, self._given
        work = client.run() if work is None else work
        task = self.loop.create_task(work, name=client.name, context=client.process.context())
        task.add_done_callback(self._client_ended)
        return Running(client, task)

    def _client_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(f"{task.get_name()}: {traceback_of(error)}")

    def heal(self) -> None:
        """Everything works again, from now on."""
        self.say("healing")
        self.network.heal_all()
        self.network.weather = Weather()
        for node in self.nodes:
            if not self.may_lose_directory(node):
                node.volume = None  # mounted, it would hide what may be the last good copy; it is given up
            node.make_well()
            if node.is_alive and node.has_failed_logs:
                node.kill()
            if not node.is_alive:
                node.start()

    async def _settle(self, clients: list["Running"]) -> None:
        ending = [client for client in clients if hasattr(client.client, "is_stopping")]
        for running in ending:
            running.client.is_stopping = True
            # A broker with `max.connections` has room then for those that are not done, and for the last reader.
            running.task.add_done_callback(running.leave)
        for workload in self.workloads:
            workload.stop()
        self._waiting_for = ending
        await self._until(lambda: all(running.task.done() for running in ending))
        await self._until(lambda: all(node.is_serving for node in self.nodes))
        # A new leader's high watermark may lag behind what the former one has acknowledged, until it has heard of all.
        await self._until(lambda: not self.invariants.missing_at_the_end())
        reader = Reader("last", self.loop, self.addresses, self.history, self.places)
        for place in self.places:
            reading = self.loop.create_task(reader.read_all(place), context=reader.process.context())
            self.history.read_finally(place, await reading)
        await self._until(lambda: not any(workload.missing() for workload in self.workloads))
        for workload in self.workloads:
            self.anomalies += await workload.judge()
        await last_move(self)
        await last_reign(self)
        await self._until(lambda: not self.invariants.missing_at_the_end())
        self.invariants.compare_images()

    async def _end_quietly(self) -> None:
        await last_occasions(self)
        await self._until(lambda: not self.invariants.missing_at_the_end())
        self.invariants.compare_images()

    async def _until(self, is_done: Callable[[], bool]) -> None:
        starts: Counter[str] = Counter()
        while not is_done():
            for node in self.nodes:
                if not node.is_alive:
                    node.start()  # it had ended itself: its disk was not well
                    starts[node.host] += 1
                    if starts[node.host] > STARTS_MAX:
                        raise Failed(f"liveness: {node.host} ends at each start: {self.where()}")
            await asyncio.sleep(0.1)

    def where(self) -> str:
        """The state of the cluster, for a reader of a run that does not get on."""
        states = [f"{node.host} {'serves' if node.is_serving else 'does not serve'}" for node in self.nodes]
        states += [f"{running.client.name} is not done" for running in self._waiting_for if not running.task.done()]
        states += [what for workload in self.workloads for what in workload.missing()]
        return ", ".join([*states, *self.invariants.missing_at_the_end()])


@dataclass(frozen=True, slots=True)
class Running:
    """A client at work."""

    client: Any
    task: asyncio.Task[None]

    def leave(self, _: asyncio.Task[None]) -> None:
        """Close the connections of the client, which is done."""
        self.client.leave()


def listeners(host: str, controller: str, *, is_apart: bool) -> dict[str, str]:
    """Where a node listens; brokers talk to each other through the clients' listener, or through one of their own."""
    clients = f"PLAINTEXT://{host}:{CLIENT_PORT}"
    if not is_apart:
        return {"listeners": f"{clients}{controller}", "inter.broker.listener.name": "PLAINTEXT"}
    return {
        "listeners": f"{clients},{INTERNAL}://{host}:{INTERNAL_PORT}{controller}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{INTERNAL}:PLAINTEXT,{CONTROLLER}:PLAINTEXT",
        "inter.broker.listener.name": INTERNAL,
    }
