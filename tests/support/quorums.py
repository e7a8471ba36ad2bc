"""Several quorums in one simulated loop: each with a disk of its own, asking each other without a network in between.

    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        ...
    Quorums.play(scenario, voters=3)

Requests and answers are encoded and decoded in their newest versions, as on a wire. A node can be killed, cut off,
stopped and started; its disk keeps what was synced.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from kavka_broker.controller.controller import REPLAYED_MAX, Controller
from kavka_broker.controller.format import FormatOptions, Voters, format_directory, parse_voters
from kavka_broker.controller.metadata_log_opener import open_metadata_log
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.quorum import Quorum
from kavka_broker.controller.snapshot_generator import HISTORY_BYTES_MAX
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.decision import Decision
from kavka_broker.loop.timers import Timers
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.uuids import to_text
from tests.sim.loop import Process, SimLoop
from tests.sim.node import EPOCH_MS, SimClock
from tests.support.cluster import CLUSTER_ID, uuid
from tests.support.sim_disk import SimDisk

R = TypeVar("R", bound=Message)
T = TypeVar("T")
Scenario = Callable[["Quorums"], Coroutine[None, None, None]]

GREETING = ApiVersionsResponse(supported_features=[SupportedFeatureKey("kraft.version", 0, 1)])
TRAVEL_SECONDS = 0.0005
WITHIN_SECONDS = 60.0


class Watched(SimDisk):
    """A disk that says in which order things reached it."""

    def __init__(self, told: Callable[[str], None]) -> None:
        super().__init__(now_ms=EPOCH_MS)
        self._told = told

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        super().write_file(path, data, durable=durable)
        if path.endswith("quorum-state"):
            self._told(data.decode())


class Node:
    """One machine: its disk, and the process on it while there is one."""

    def __init__(self, cluster: "Quorums", node_id: int, roles: str, **settings: str) -> None:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        listener = f"CONTROLLER://node-{node_id}:9093"
        self.node_id = node_id
        self.config = BrokerConfig.parse(
            {
                "process.roles": roles,
                "node.id": str(node_id),
                "listeners": listener if roles == "controller" else f"PLAINTEXT://node-{node_id}:9092",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": "/data",
                **dotted,
            }
        )
        self.events: list[str] = []
        self.disk = Watched(self.events.append)
        self.process: Process | None = None
        self.is_cut_off = False
        self.quorum: Quorum
        self.controller: Controller | None = None
        self.crashes: list[BaseException] = []
        self.told: list[Message] = []
        self._cluster = cluster
        self._drawn = Random(node_id)
        self._starting: asyncio.Task[None] | None = None

    @property
    def directory_id(self) -> bytes:
        return uuid(700 + self.node_id)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive

    def format(self, voters: Voters, cluster_id: str = CLUSTER_ID) -> None:
        draw = self._drawn.randbytes
        format_directory(self.disk, self.config, cluster_id, FormatOptions(voters), now_ms=EPOCH_MS, random_bytes=draw)

    def start(self) -> None:
        """Open and start in a process of its own; does not wait."""
        self.process = Process(f"node-{self.node_id}", f"node-{self.node_id}")
        self.told = []
        self.process.context().run(self._open)
        loop = asyncio.get_running_loop()
        self._starting = loop.create_task(self.quorum.start(), context=self.process.context())

    def _open(self) -> None:
        clock = self._cluster.clock
        log = open_metadata_log(self.disk, self.config, now_ms=clock.now_ms())
        self.quorum = Quorum.open(
            self.config,
            log,
            Ports(
                clock,
                Timers(clock, asyncio.get_running_loop()),
                NearPeers(self._cluster, self),
                random_bytes=self._drawn.randbytes,
                crash=self._crashed,
            ),
        )
        self.quorum.subscribers.append(self.told.extend)
        self.quorum.loader.snapshotter.history_bytes_max = self._cluster.history_bytes_max
        is_controller = "controller" in self.config.roles
        self.controller = Controller(self.quorum, self._cluster.replayed_max) if is_controller else None

    def _crashed(self, error: BaseException) -> None:
        """The process ends, once what it does at the moment is done."""
        self.crashes.append(error)
        asyncio.get_running_loop().call_soon(self.kill, context=Context())

    def kill(self, *, loses_power: bool = False) -> None:
        assert self.process is not None
        self.process.die()
        if loses_power:
            self.disk.crash(self._drawn)
        else:
            self.disk.kill()

    def pause(self) -> None:
        assert self.process is not None
        self.process.is_paused = True

    def resume(self) -> None:
        assert self.process is not None
        self._cluster.loop.resume(self.process)

    @property
    def leads(self) -> bool:
        """Whether its controller is the active one."""
        return self.controller is not None and self.controller.is_active

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something within the node's process."""
        assert self.process is not None
        return await asyncio.get_running_loop().create_task(work, context=self.process.context())

    async def stop(self) -> None:
        assert self.process is not None
        if self.controller is not None:
            await self.run(self.controller.finish())
        await self.run(self.quorum.stop())
        self.process.die()
        self.disk.kill()

    async def write(self, name: str) -> None:
        """Decide on a topic, and wait until it is committed."""
        assert self.controller is not None
        topic_id = self.controller.new_uuid()
        work = self.controller.submit(lambda *_: Decision([TopicRecord(name, topic_id)], None))
        await self.run(work)

    @property
    def topics(self) -> list[str]:
        return [*self.quorum.metadata.topics.names()]


class Quorums:
    """All the nodes."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.clock = SimClock(loop)
        self.nodes: dict[int, Node] = {}
        self.serving: dict[asyncio.Task[None], None] = {}
        self.traffic: list[tuple[int, int, Message, Message]] = []
        self.replayed_max, self.history_bytes_max = REPLAYED_MAX, HISTORY_BYTES_MAX

    @classmethod
    def play(
        cls,
        scenario: Scenario,
        *,
        voters: int = 3,
        seed: int = 1,
        starts: bool = True,
        set_up: Callable[["Quorums"], None] = lambda _: None,
        **settings: str,
    ) -> None:
        """Run a scenario on that many voters. `set_up` may alter the bounds of the cluster before."""
        loop = SimLoop(seed)
        asyncio.set_event_loop(loop)
        cluster = cls(loop)
        set_up(cluster)

        async def play() -> None:
            for node_id in range(1, voters + 1):
                cluster.add(node_id, **settings)
            cluster.format_all()
            if starts:
                for node in cluster.nodes.values():
                    node.start()
            async with asyncio.timeout(WITHIN_SECONDS):
                await scenario(cluster)
            for node in cluster.nodes.values():
                assert node.crashes == []

        try:
            loop.run_until_complete(play())
        finally:
            loop.bury()
            loop.close()
            asyncio.set_event_loop(None)

    def add(self, node_id: int, roles: str = "controller", **settings: str) -> Node:
        servers = {"controller_quorum_bootstrap_servers": "node-1:9093,node-2:9093,node-3:9093"}
        if "controller_quorum_voters" in settings:
            servers = {}
        self.nodes[node_id] = Node(self, node_id, roles, **{**servers, **settings})
        return self.nodes[node_id]

    def format_all(self) -> None:
        """All of them begin as voters, named in the log unless their configuration names them."""
        for node in self.nodes.values():
            node.format(Voters() if node.config["controller.quorum.voters"] else self.initial())

    def initial(self) -> Voters:
        named = ",".join(
            f"{node.node_id}@node-{node.node_id}:9093:{to_text(node.directory_id)}"
            for node in self.nodes.values()
            if "controller" in node.config.roles
        )
        return Voters(initial=parse_voters(named, "CONTROLLER"))

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            await asyncio.sleep(0.001)

    def active(self) -> list[Node]:
        return [
            node
            for node in self.nodes.values()
            if node.is_alive and node.controller is not None and node.controller.is_active
        ]

    async def leader(self, *, other_than: Sequence[Node] = ()) -> Node:
        """The active controller, once there is one."""
        await self.until(lambda: [node for node in self.active() if node not in other_than])
        return next(node for node in self.active() if node not in other_than)

    def followers(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_alive and node not in self.active()]

    async def agreed(self) -> None:
        """Wait until all that live have the same image."""
        alive = [node for node in self.nodes.values() if node.is_alive]
        await self.until(lambda: len({node.quorum.metadata.offset for node in alive}) == 1)
        images = [list(node.quorum.metadata.records()) for node in alive]
        assert all(image == images[0] for image in images)


class NearPeers:
    """The other nodes, as one of them reaches them."""

    def __init__(self, cluster: Quorums, asker: Node) -> None:
        self._cluster = cluster
        self._asker = asker

    def to(self, host: str, port: int, *, client_id: str) -> "NearPeer":
        return NearPeer(self._cluster, self._asker, int(host.removeprefix("node-")))

    async def probe(self, host: str, port: int, timeout_ms: float) -> bool | None:
        return self._cluster.nodes[int(host.removeprefix("node-"))].is_alive


class NearPeer:
    """Whoever listens at its address."""

    versions = None

    def __init__(self, cluster: Quorums, asker: Node, asked_id: int) -> None:
        self._cluster = cluster
        self._asker = asker
        self._asked_id = asked_id

    @property
    def _asked(self) -> Node:
        return self._cluster.nodes[self._asked_id]

    async def ask(self, request: Message, response: type[R], *, timeout_ms: float) -> R:
        request = carried(request)
        process = self._asked.process
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.sleep(TRAVEL_SECONDS)
                if self._asker.is_cut_off or self._asked.is_cut_off:
                    await asyncio.Event().wait()
                if process is None or not process.is_alive:
                    raise Unreachable(f"node {self._asked.node_id} is not there", refused=True)
                answer = await self._served(process, request)
                if self._asker.is_cut_off or self._asked.is_cut_off:
                    await asyncio.Event().wait()
                self._cluster.traffic.append((self._asker.node_id, self._asked.node_id, request, answer))
                await asyncio.sleep(TRAVEL_SECONDS)
        except TimeoutError:
            raise Unreachable(f"node {self._asked.node_id} is silent") from None
        carried_back = carried(answer)
        assert isinstance(carried_back, response)
        return carried_back

    async def _served(self, process: Process, request: Message) -> Message:
        """Answered in the process that was asked. If that dies, the connection breaks."""
        lost = asyncio.get_running_loop().create_future()

        def die() -> None:
            if not lost.done():
                lost.set_exception(Unreachable(f"node {self._asked.node_id} has died"))
                lost.exception()  # the caller that waits for it may be dead as well

        async def serve() -> None:
            is_greeting = isinstance(request, ApiVersionsRequest)
            try:
                answer = GREETING if is_greeting else self._asked.quorum.serve(request)
                outcome = answer if isinstance(answer, Message) else await answer
            except BrokerError:
                die()  # it shuts down, and its connections with it
            else:
                if not lost.done():
                    lost.set_result(outcome)

        process.on_death[die] = None
        try:
            serving = asyncio.get_running_loop().create_task(serve(), context=process.context())
            self._cluster.serving[serving] = None
            serving.add_done_callback(self._cluster.serving.pop)
            return await lost  # type: ignore[no-any-return]
        finally:
            process.on_death.pop(die, None)

    def close(self) -> None:
        """There is nothing to close."""


def carried(message: R) -> R:
    """As it arrives."""
    version = type(message).VERSIONS[1]
    return decode(type(message), version, bytes(encode(message, version)))
