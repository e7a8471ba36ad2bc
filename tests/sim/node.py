"""One simulated machine with a Kavka node on it: start, kill, power off, pause, stop.

The machine stays when its process dies, and so does its disk; a process gets its memory, its clock's view and its share
of chance anew. Chance has a stream of its own for each node, so that a new draw in one place moves no other.
"""

import asyncio
import contextlib
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from kavka_broker.controller.format import Voters, format_directory
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.raft.voters import Voter
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, BatchHeader, crc_is_valid, split_batches
from kavka_broker.runtime.server import Server, StartError
from kavka_broker.runtime.world import World
from kavka_broker.storage.log_directory import CLEAN_SHUTDOWN, read_meta_properties
from kavka_broker.storage.names import LOG, parse_partition
from kavka_broker.storage.sim_disk import SimDisk
from tests.sim.events import Events
from tests.sim.history import Place
from tests.sim.loop import Ended, Process, SimLoop
from tests.sim.network import Network

CLUSTER_ID = "a2F2a2Etc2ltdWxhdGVkMQ"
EPOCH_MS = 1_800_000_000_000
CLIENT_PORT, CONTROLLER_PORT = 9092, 9093
CONTROLLER = "CONTROLLER"
DIRECTORIES = ("/data", "/more")  # of logs; the metadata is in the first
DISK_DELAY_MS = (0.05, 2.0)


def traceback_of(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error))


class SimClock:
    """Virtual time, and a wall clock that somebody may set."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.step_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1000) + self.step_ms

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000


class NodeDisk(SimDisk):
    """A disk that knows what time it is."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        super().__init__()

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        del value


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
        self.disk = NodeDisk(self.clock)
        self.config = BrokerConfig.parse({"node.id": str(node_id), "log.dirs": DIRECTORIES[0], **settings})
        self.disk_delay = DISK_DELAY_MS
        self.has_flipped = False  # see `is_damaged`
        self.lives = 0
        self.image_offset = -1  # of the metadata that was looked at last
        self.state: list[Any] = []  # of all that was looked at last
        self.process: Process | None = None
        self.server: Server | None = None
        # Told of every new process, before anything of it runs.
        self.on_start: list[Callable[[Node], None]] = []
        self.on_power_loss: list[Callable[[Node], None]] = []
        self._failed = failed
        self._is_stopping = False

    def format(self, voters: Voters) -> None:
        now_ms, random_bytes = self.clock.now_ms(), self.random.randbytes
        format_directory(self.disk, self.config, CLUSTER_ID, now_ms=now_ms, random_bytes=random_bytes, voters=voters)

    @property
    def as_voter(self) -> Voter:
        """As the quorum would know it."""
        meta = read_meta_properties(self.disk, DIRECTORIES[0])
        directory_id = self.host.encode().ljust(16) if meta is None else meta.directory_id
        return Voter(self.node_id, directory_id, ((CONTROLLER, self.host, CONTROLLER_PORT),))

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive

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
        return (
            self.disk.fail_syncs or self.disk.fail_writes or self.disk.space_bytes is not None or self.has_failed_logs
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

    # --- bits that turn over --------------------------------------------------------------------------------------

    def flip_bit(self, chance: random.Random, committed_end: Mapping[Place, int]) -> str | None:
        """Of a batch that is committed, behind its header; says where. None where there is none.

        What is in the header, offsets and lengths, is read without a look at the CRC. The process is dead.
        """
        found = [
            (path, position, header)
            for place, path, position, header, _ in self.batches()
            if header.next_offset <= committed_end.get(place, 0)
        ]
        if not found:
            return None
        path, position, header = chance.choice(found)
        at = chance.randrange(position + HEADER_BYTES, position + header.size_bytes)
        self.disk.flip_bit(path, at, chance.randrange(8))
        self.has_flipped = True
        return f"{self.host}:{path}: the batch at {header.base_offset}"

    @property
    def is_damaged(self) -> bool:
        """Whether a bit of its logs has turned over and nobody has found it yet."""
        if self.has_flipped:
            self.has_flipped = not all(crc_is_valid(batch) for *_, batch in self.batches())
        return self.has_flipped

    def batches(self) -> Iterator[tuple[Place, str, int, BatchHeader, memoryview]]:
        """Of all its logs, with path and position, whether it runs or not."""
        for directory in self.config.log_dirs:
            for entry in self.disk.names(directory):
                name = parse_partition(entry)
                for file in self.disk.names(f"{directory}/{entry}") if name is not None else ():
                    if file.endswith(LOG):
                        path = f"{directory}/{entry}/{file}"
                        yield from ((tuple(name), path, *one) for one in whole_batches(self.disk.read_file(path)))

    # --- life and death -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """A new process on this machine."""
        assert not self.is_alive, f"{self.host} runs"
        self.network.power_on(self.host)
        self.lives += 1
        self._is_stopping = False
        self.process = process = Process(f"{self.host}.{self.lives}", self.host)
        process.disk_delay = self.disk_delay
        self.server = None
        for tell in self.on_start:
            tell(self)
        running = self.loop.create_task(self._run(process), name=f"run {process}", context=process.context())
        running.add_done_callback(self._ran)

    async def _run(self, process: Process) -> None:
        world = World(self.disk, self.clock, self.random.randbytes, threads_max=1)
        server = Server(self.config, self._crash, world)
        self.server = server
        try:
            await server.start()
        except (StartError, OSError, BrokerError) as problem:
            self.events.say(process.name, f"did not start: {problem}", "ERROR")
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
            self.process.die()
            self.disk.kill()

    def power_off(self) -> None:
        """The machine goes dark: no more packets, and what was not synced may be lost or torn."""
        self.network.power_off(self.host)
        if self.is_alive:
            self.events.say(self.process.name, "without power")
            self.process.die()
        self.disk.crash(self.random)
        for tell in self.on_power_loss:
            tell(self)

    async def stop(self, reason: str) -> None:
        """A controlled shutdown, in the node's own process."""
        process, server = self.process, self.server
        if not self.is_serving or process is None or server is None:
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
        if self.process is not None:
            self.process.disk_delay = self.disk_delay

    def pause(self) -> None:
        if self.is_alive:
            self.process.is_paused = True
            self.events.say(self.process.name, "paused")

    def resume(self) -> None:
        if self.is_alive and self.process.is_paused:
            self.events.say(self.process.name, "resumed")
            self.loop.resume(self.process)
