"""One simulated machine with a Kavka node on it: start, kill, power off, pause, stop.

The machine stays when its process dies, and so does its disk; a process gets its memory, its clock's view and its share
of chance once more. Chance has a stream of its own for each node, so that a new draw in one place moves no other.
"""

import asyncio
import contextlib
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, NoReturn

from kavka_broker.controller.format import FormatOptions, Voters, format_directory
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.raft.voters import Voter
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation
from kavka_broker.protocol.records.batch import BatchHeader, crc_is_valid, split_batches
from kavka_broker.request.broker import Broker
from kavka_broker.runtime.environment import World
from kavka_broker.runtime.server import Server, StartError
from kavka_broker.storage.file_names import CLUSTER_METADATA, LOG, parse_partition
from kavka_broker.storage.log_directory import CLEAN_SHUTDOWN, UnusableDirectory, read_meta_properties
from tests.sim.accepting import LoopAcceptor
from tests.sim.events import Events
from tests.sim.history import Place
from tests.sim.loop import PROCESS, TIME_DIGITS, Ended, Process, SimLoop
from tests.sim.network import Network
from tests.support.sim_disk import Operation, SimDisk
from tests.support.sim_inode import SimDirectory, SimInode

CLUSTER_ID = "a2F2a2Etc2ltdWxhdGVkMQ"
EPOCH_MS = 1_800_000_000_000
CLIENT_PORT, CONTROLLER_PORT, INTERNAL_PORT = 9092, 9093, 9094
CONTROLLER = "CONTROLLER"
INTERNAL = "INTERNAL"  # through which brokers talk to each other, where clients have another
DIRECTORIES = ("/data", "/more")  # of logs; the metadata is in the first
#: Keys that a run may set lower than a file may: it has little to clean, and in several rounds.
TINY = ("log.cleaner.dedupe.buffer.size", "kavka.audit.buffer.events")
SMALLEST = ("kavka.audit.buffer.events",)  # lower than any value that is valid
DISK_DELAY_MS = (0.05, 2.0)


def traceback_of(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error))


#: Each reading of the clock that measures work is so much later than the one before it: work takes no virtual time.
WORK_STEP_NS = 20_000


class SimClock:
    """Virtual time as a machine counts it, somewhat too fast or too slow, and a wall clock that somebody may set."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.step_ms = 0
        self._rate = 1.0
        self._since = (0.0, 0.0)  # of the loop's time, and what was counted until then
        self._told = (-1.0, 0.0)  # the loop's time when it was asked last, and what it said

    def run_at(self, rate: float) -> None:
        """Count so many milliseconds for each that goes by, from now on."""
        self._since = (self._loop.time() * 1000, self.monotonic_ms())
        self._rate = rate
        self._told = (-1.0, 0.0)

    def now_ms(self) -> int:
        return EPOCH_MS + int(self.monotonic_ms()) + self.step_ms

    def monotonic_ms(self) -> float:
        now, told_ms = self._told
        if now == self._loop.now:  # most of those who ask do so within one step
            return told_ms
        began_ms, counted_ms = self._since
        elapsed_ms = (self._loop.now * 1000 - began_ms) * self._rate
        told_ms = round(counted_ms + elapsed_ms, TIME_DIGITS - 3)
        self._told = (self._loop.now, told_ms)
        return told_ms


class NodeDisk(SimDisk):
    """A disk that knows what time it is, and whose calls may take their time or be a process' last."""

    def __init__(self, loop: SimLoop, clock: SimClock) -> None:
        self._loop = loop
        self._clock = clock
        self.call_seconds = 0.0  # that each call holds the loop, where no thread makes it
        self.calls_left: int | None = None  # of this process
        self.on_last_call: Callable[[], None] = lambda: None
        # Told of a sync that no thread makes.
        self.on_loop_sync: Callable[[Process, str], None] = lambda process, path: None
        super().__init__()

    def meet(self, operation: Operation, *paths: str) -> None:
        if self.calls_left is not None:
            self._count(PROCESS.get())
        if self.call_seconds:
            self._spend(PROCESS.get())
        if operation == "sync" and not self._loop.is_in_thread and (process := PROCESS.get()) is not None:
            self.on_loop_sync(process, paths[0])
        if self.errors:
            super().meet(operation, *paths)

    def _spend(self, process: Process | None) -> None:
        if process is not None and not self._loop.is_in_thread:
            self._loop.occupy(process, self.call_seconds)

    def _count(self, process: Process | None) -> None:
        """Raises Ended where the process is dead: at the call that was its last, and at each that its end makes."""
        if process is None or self.calls_left is None:
            return
        self.calls_left -= 1
        if self.calls_left == 0:
            self.on_last_call()
        if not process.is_alive:
            raise Ended("in the midst of a call")

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        del value


def as_written(inode: SimInode) -> bytes:
    """The bytes of a file, with those that the medium has forgotten."""
    data = bytearray(inode.data)
    for position, byte in inode.forgotten.items():
        data[position] = byte
    return bytes(data)


def is_sound(files: Mapping[str, SimInode]) -> bool:
    """Whether the segments of a log hold batches from their beginnings to their ends, and each ends where the next
    begins.
    """
    end_offset = None
    for name in sorted(name for name in files if name.endswith(LOG)):
        inode, base_offset = files[name], int(name.removesuffix(LOG))
        if inode.forgotten or inode.is_unreadable or (end_offset is not None and base_offset != end_offset):
            return False
        position, end_offset = 0, base_offset
        for at, header, batch in whole_batches(bytes(inode.data)):
            position, end_offset = at + len(batch), header.next_offset
            if not crc_is_valid(batch):
                return False
        if position != len(inode.data):
            return False
    return True


def whole_batches(data: bytes) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of each; what a loss of power has torn is the end."""
    position = 0
    with contextlib.suppress(ProtocolViolation):
        for header, batch in split_batches(data):
            yield position, header, batch
            position += len(batch)


class Node:
    """A machine. `process` and `server` are those of the present life, or of the last one."""

    def __init__(
        self, node_id: int, network: Network, events: Events, settings: Mapping[str, str], failed: Callable[[str], None]
    ) -> None:
        self.node_id = node_id
        self.host = f"node{node_id}"
        self.network = network
        self.loop = network.loop
        self.events = events
        self.random = random.Random(f"{self.loop.random.random()} {node_id}")
        self.clock = SimClock(self.loop)
        self.disk = NodeDisk(self.loop, self.clock)
        tiny = {key: value for key, value in settings.items() if key in TINY}
        plain = {key: value for key, value in settings.items() if key not in TINY}
        config = BrokerConfig.parse({"node.id": str(node_id), "log.dirs": DIRECTORIES[0], **plain}).altered(tiny)
        smallest = {key: int(text) for key, text in tiny.items() if key in SMALLEST}
        self.config = BrokerConfig(config.given, {**config._values, **smallest})
        for directory in self.config.log_dirs:  # where volumes are mounted: no process has made them
            self.disk.make_directory(directory)
        self.disk.sync_directory("/")
        self.disk_delay = DISK_DELAY_MS
        self.step_seconds = 0.0
        self.has_flipped = False  # see `is_damaged`
        self.spoiled_life: int | None = None  # before which its metadata was damaged, see `damaged_metadata`
        self.volume: SimDirectory | None = None  # of its last directory, where that is not mounted
        self.has_moved_volume = False  # since it registered: the metadata has its logs in the directory before
        self.lives = 0
        self.image_offset = -1  # of the metadata that was looked at last
        self.state: list[Any] = []  # of all that was looked at last
        self.process = Process(self.host, self.host)  # before the first there is one that has never lived
        self.process.is_alive = False
        self.server: Server | None = None
        # Told of every new process, before anything of it runs.
        self.on_start: list[Callable[[Node], None]] = []
        self.on_serving: list[Callable[[Node], None]] = []  # once it has started
        self.on_power_loss: list[Callable[[Node], None]] = []
        self.on_end: list[Callable[[Node], None]] = []  # killed, or without power: before anything of it is gone
        self._failed = failed
        self._is_stopping = False

    def format(self, voters: Voters) -> None:
        now_ms, random_bytes = self.clock.now_ms(), self.random.randbytes
        format_directory(
            self.disk, self.config, CLUSTER_ID, FormatOptions(voters), now_ms=now_ms, random_bytes=random_bytes
        )

    @property
    def as_voter(self) -> Voter:
        """As the quorum would know it."""
        meta = read_meta_properties(self.disk, DIRECTORIES[0])
        directory_id = self.host.encode().ljust(16) if meta is None else meta.directory_id
        return Voter(self.node_id, directory_id, ((CONTROLLER, self.host, CONTROLLER_PORT),))

    @property
    def broker(self) -> Broker:
        """What it serves with; there is one once it has started."""
        assert self.server is not None
        return self.server.broker

    @property
    def is_alive(self) -> bool:
        return self.process.is_alive

    @property
    def is_serving(self) -> bool:
        """Started, and not paused, stopping or gone."""
        return (
            self.is_alive
            and not self.process.is_paused
            and not self._is_stopping
            and self.server is not None
            and self.server.health.is_ready
        )

    @property
    def is_disk_faulty(self) -> bool:
        disk = self.disk
        return (
            disk.fail_syncs
            or disk.fail_writes
            or disk.space_bytes is not None
            or bool(disk.errors)
            or self.volume is not None
            or self.has_failed_logs
        )

    @property
    def has_one_bad_directory(self) -> bool:
        """Whether nothing is wrong with its disk but for the last of several directories."""
        disk, directories = self.disk, self.config.log_dirs
        is_else_well = not (disk.fail_syncs or disk.fail_writes or disk.space_bytes is not None or disk.calls_left)
        are_there = len(directories) > 1 and bool(disk.errors)
        return (
            is_else_well and are_there and all(error.under.startswith(f"{directories[-1]}/") for error in disk.errors)
        )

    @property
    def has_failed_logs(self) -> bool:
        """Whether its disk has failed it. Only a restart takes such a log into service again."""
        replicas = getattr(getattr(self.server, "broker", None), "replicas", None)
        return replicas is not None and not all(directory.is_online for directory in replicas.log_directories)

    @property
    def is_clean(self) -> bool:
        """Whether its last process has stopped, and not died."""
        return all(self.disk.exists(f"{directory}/{CLEAN_SHUTDOWN}") for directory in self.config.log_dirs)

    # --- what the medium forgets ----------------------------------------------------------------------------------

    @property
    def is_damaged(self) -> bool:
        """Whether its logs have lost data on the medium, and no check has found it yet."""
        if self.has_flipped:
            self.has_flipped = not all(is_sound(files) for _, _, files in self.logs())
        return self.has_flipped

    @property
    def has_unwritten_logs(self) -> bool:
        """Whether a loss of power would take what a sync has said to be safe."""
        return any(file.lost or file.is_lied_about for _, _, files in self.logs() for file in files.values())

    def logs(self) -> Iterator[tuple[Place, str, dict[str, SimInode]]]:
        """Of each partition its directory and its files, whether the node runs or not."""
        for directory in self.config.log_dirs:
            for entry in self.disk.directories(directory):
                name = parse_partition(entry)
                if name is not None and name != CLUSTER_METADATA:
                    yield (name.topic, name.partition), f"{directory}/{entry}", self.disk.peek(f"{directory}/{entry}")

    def batches(self) -> Iterator[tuple[Place, str, int, BatchHeader, memoryview]]:
        """Of all its logs, with path and position, as they were written."""
        for place, directory, files in self.logs():
            for name, inode in files.items():
                if name.endswith(LOG):
                    found = whole_batches(as_written(inode))
                    yield from ((place, f"{directory}/{name}", *batch) for batch in found)

    # --- life and death -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """A new process on this machine."""
        assert not self.is_alive, f"{self.host} runs"
        self.network.power_on(self.host)
        self.lives += 1
        self._is_stopping = False
        self.disk.calls_left = None
        self.process = process = Process(f"{self.host}.{self.lives}", self.host)
        process.disk_delay, process.step_seconds = self.disk_delay, self.step_seconds
        self.server = None
        for tell in self.on_start:
            tell(self)
        running = self.loop.create_task(self._run(process), name=f"run {process}", context=process.context())
        running.add_done_callback(self._ran)

    async def _run(self, process: Process) -> None:
        work_ns = count(step=WORK_STEP_NS).__next__
        world = World(
            self.disk,
            self.clock,
            self.random.randbytes,
            threads_max=1,
            acceptor=LoopAcceptor,
            work_ns=work_ns,
            thread_ns=work_ns,
        )
        server = Server(self.config, self._crash, world)
        self.server = server
        try:
            await server.start()
            for tell in self.on_serving:
                tell(self)
        except (StartError, OSError, BrokerError) as problem:
            self.events.say(process.name, f"did not start: {problem}", "ERROR")
            if self.has_one_bad_directory and isinstance(problem.__cause__ or problem, OSError | UnusableDirectory):
                self._failed(f"StartsWithOneBadDirectory: {process.name} did not start: {problem}")
            with contextlib.suppress(Exception):
                await server.stop("the start failed")
            self.kill()

    def _ran(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Ended):
            self._failed(f"{self.process} could not start:\n{traceback_of(error)}")

    def _crash(self, error: BaseException) -> NoReturn:
        """The process ends itself. That is right for a disk that fails, and wrong for anything else."""
        if not isinstance(error, OSError | BrokerError):
            self._failed(f"{self.process}: {error!r}")
        self.kill()
        raise Ended(str(error))

    def kill(self) -> None:
        """kill -9: the system stays, with what was written; connections are reset."""
        if self.is_alive:
            self.events.say(self.process.name, "killed")
            self._tell_end()
            self.process.die()
            self.disk.kill()

    def power_off(self) -> None:
        """The machine goes dark: no more packets, and what was not synced may be lost or torn."""
        self.network.power_off(self.host)
        if self.is_alive:
            self.events.say(self.process.name, "without power")
            self._tell_end()
            self.process.die()
        self.has_flipped |= self.has_unwritten_logs
        self.disk.crash(self.random)
        for tell in self.on_power_loss:
            tell(self)

    def _tell_end(self) -> None:
        for tell in self.on_end:
            tell(self)

    async def stop(self, reason: str) -> None:
        """A controlled shutdown, in the node's own process."""
        process, server = self.process, self.server
        if not self.is_serving or server is None:
            return
        self._is_stopping = True
        stopping = self.loop.create_task(server.stop(reason), name=f"stop {process}", context=process.context())
        ended = asyncio.Event()
        process.on_death[ended.set] = None
        stopping.add_done_callback(lambda _: self.kill() if self.process is process else None)
        await ended.wait()

    def set_disk_delay(self, delay_ms: tuple[float, float] | None) -> None:
        """How long blocking work takes, at least and at most; None: as long as usual."""
        self.disk_delay = delay_ms or DISK_DELAY_MS
        self.process.disk_delay = self.disk_delay

    def set_step_seconds(self, seconds: float) -> None:
        """What each step of this machine's process takes: it is slow, and all others go on meanwhile."""
        self.step_seconds = seconds
        self.process.step_seconds = seconds

    def make_well(self) -> None:
        """Nothing is wrong with this machine any more. What its process has made of it stays."""
        disk = self.disk
        self.set_disk_delay(None)
        disk.fail_syncs = disk.fail_writes = False
        disk.space_bytes, disk.fail_under, disk.errors = None, "", []
        disk.lies_about = disk.drops = lambda path: False
        disk.calls_left, disk.call_seconds = None, 0.0
        for _, inode in disk.files():
            inode.is_unreadable = False
        self.set_step_seconds(0.0)
        self.loop.relieve(self.process)  # calls take no time any more, those that a start has made at once neither
        self.clock.run_at(1.0)
        self.mount()
        self.resume()

    def unmount(self) -> None:
        """The volume of the last directory is away; its place is empty."""
        self.volume = self.disk.detach(self.config.log_dirs[-1])
        self.has_moved_volume = True

    def mount(self) -> None:
        """And is there again, as it was; a process that runs without it ends."""
        if self.volume is not None:
            self.kill()
            self.disk.attach(self.config.log_dirs[-1], self.volume)
            self.volume, self.has_moved_volume = None, True

    def pause(self) -> None:
        if self.is_alive:
            self.process.is_paused = True
            self.events.say(self.process.name, "paused")

    def resume(self) -> None:
        if self.is_alive and self.process.is_paused:
            self.events.say(self.process.name, "resumed")
            self.loop.resume(self.process)
