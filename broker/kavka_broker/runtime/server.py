"""One broker, put together: storage, controller, replicas, groups, quotas, listeners.

The order of the start is the order of trust: the log directories are ours (lock, meta.properties), then the metadata
log says what the cluster is, then the logs of partitions are recovered, then the broker registers, and only when all
of that stands do the listeners serve. The stop is the same backwards.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from kavka_broker.api.broker import Broker
from kavka_broker.api.dispatch import Dispatcher
from kavka_broker.api.registry import APIS, load
from kavka_broker.controller.controller import Controller
from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.recovery import CannotStart
from kavka_broker.controller.registration import leave_cluster, register_broker
from kavka_broker.coordinator.group_coordinator import GroupCoordinator
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.listeners import Listener as Address
from kavka_broker.core.metadata.effective import EffectiveConfig
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.logs import get
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.membership.topics import TopicMaker
from kavka_broker.net.listener import Limits, Listener
from kavka_broker.net.outbound import Outbound
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.replica.fetch_sessions import FetchSessions
from kavka_broker.replica.replica_manager import ReplicaManager
from kavka_broker.runtime.admin_http import AdminHttp
from kavka_broker.runtime.health import STARTING, Health
from kavka_broker.runtime.housekeeping import Housekeeping
from kavka_broker.runtime.metrics import Sources
from kavka_broker.runtime.world import REAL, World
from kavka_broker.storage.log_manager import LogManager, UnusableDirectory
from kavka_broker.timers import Timers

log = get("runtime")

SERVED_PROTOCOLS = ("PLAINTEXT",)
STOP_MS_MAX = 30_000


class Alone:
    """A quorum of one: nobody else ever leads."""

    def __init__(self) -> None:
        self.leader_listeners: list[Callable[[], None]] = []

    def leader_endpoint(self) -> tuple[str, int] | None:
        return None


class StartError(Exception):
    """The broker cannot start as it is configured or as its directories are; the message says what to do."""


class Server:
    """A broker in this process. `crash` ends the process when an invariant is violated; chance, time and files are
    those of `world`.
    """

    broker: Broker
    dispatcher: Dispatcher

    def __init__(self, config: BrokerConfig, crash: Callable[[BaseException], None], world: World = REAL) -> None:
        self.config = config
        self.world = world
        self.health = Health(STARTING)
        self.listeners: list[Listener] = []
        self._crash = crash
        self._clock = world.clock
        self._timers = Timers(self._clock, asyncio.get_running_loop())
        # What has to be undone, the last first.
        self._stops: list[tuple[str, Callable[[], Awaitable[None]]]] = []

    async def start(self) -> None:
        """Start everything in order. Raises StartError; what was started until then is stopped by `stop`."""
        check(self.config)
        started_ms = self._clock.monotonic_ms()
        try:
            await self._start()
        except (CannotStart, UnusableDirectory) as error:
            raise StartError(str(error)) from error
        log.info(
            "broker.ready",
            node=self.broker.node_id,
            cluster=self.broker.cluster_id,
            listeners=",".join(str(one) for one in self.advertised),
            took_ms=round(self._clock.monotonic_ms() - started_ms),
        )

    async def stop(self, reason: str) -> None:
        """Controlled shutdown: no more requests, let decisions finish, close the logs, mark them clean."""
        log.info("broker.stopping", reason=reason)
        for name, stop in reversed(self._stops):
            try:
                async with asyncio.timeout(STOP_MS_MAX / 1000):
                    await stop()
            except (OSError, TimeoutError) as problem:
                log.error("broker.stop_failed", part=name, reason=str(problem))
        self._timers.close()
        log.info("broker.stopped")

    async def _start(self) -> None:
        config, clock = self.config, self._clock
        world = self.world
        logs = LogManager.open(
            world.disk,
            config.log_dirs,
            node_id=config.node_id,
            random_bytes=world.random_bytes,
            threads_max=world.threads_max,
        )
        self._stops.append(("logs", lambda: self._close_logs(logs)))
        controller = Controller.open(
            config,
            MetadataLog.open(world.disk, config, now_ms=clock.now_ms()),
            clock,
            crash=self._crash,
            random_bytes=world.random_bytes,
        )
        self._stops.append(("controller", controller.stop))
        await controller.start()
        await self._load(logs, controller)
        self.broker = self._wire(logs, controller)
        apis = load()
        self.dispatcher = Dispatcher(self.broker, apis, self._crash)
        self.controller_dispatcher = Dispatcher(self.broker, apis, self._crash, "controller")
        self.broker.serve_enveloped = self.controller_dispatcher.serve_enveloped
        await self._open_admin()
        await self._open(controller, logs)

    async def _load(self, logs: LogManager, controller: Controller) -> None:
        effective = EffectiveConfig(self.config, controller.metadata.configs)

        def progress(count: int, total: int, name: str) -> None:
            if count % max(1, total // 10) == 0:
                log.info("logs.loading", done=count, total=total, last=name)

        await asyncio.to_thread(logs.load, effective.topic, self._clock.now_ms(), progress=progress)
        self.health.cleared("logs")

    def _wire(self, logs: LogManager, controller: Controller) -> Broker:
        config, clock, metadata = self.config, self._clock, controller.metadata
        replicas = ReplicaManager(config.node_id, config, metadata, logs, clock)
        quotas = ClientQuotas(SampleWindow(config["quota.window.num"], config["quota.window.size.seconds"] * 1000))
        quotas.update(metadata.quotas.limits)

        def limit(records: Sequence[Message]) -> None:
            if any(isinstance(record, ClientQuotaRecord) for record in records):
                quotas.update(metadata.quotas.limits)

        controller.subscribers += [replicas.apply, limit]
        sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"], self.world.session_id)
        peers = Outbound()
        channel = ControllerChannel(
            config.node_id,
            Alone(),
            peers,
            leads=lambda: True,
            local=self._ask_here,
        )
        topics = TopicMaker(config, channel, controller)
        groups = GroupCoordinator(config, metadata, topics, replicas, clock, self._timers, self.world.suffix)
        controller.subscribers.append(groups.apply)
        self.housekeeping = Housekeeping(config, logs, replicas, quotas, clock, self._crash)
        return Broker(
            node_id=config.node_id,
            cluster_id=logs.cluster_id,
            config=config,
            clock=clock,
            timers=self._timers,
            metadata=metadata,
            controller=controller,
            replicas=replicas,
            fetch_sessions=sessions,
            groups=groups,
            quotas=quotas,
            producer_ids=controller.producer_ids,
            topics=topics,
            channel=channel,
            peers=peers,
        )

    async def _ask_here(self, request: Message) -> Message:
        return await self.controller_dispatcher.ask(request)

    async def _open(self, controller: Controller, logs: LogManager) -> None:
        """Bind, register, serve."""
        self.advertised = [await self._bind(address) for address in self.config.listeners]
        self._stops.append(("listeners", self._close_listeners))
        self.broker.replicas.load()
        directories = [directory.directory_id for directory in logs.online]
        await register_broker(controller, self.config, directories=directories, listeners=self.advertised)
        self._stops.append(("registration", lambda: leave_cluster(controller)))
        self.health.cleared("registration")
        self.broker.groups.start()
        self.housekeeping.start()
        self._stops.append(("housekeeping", self.housekeeping.stop))
        for listener in self.listeners:
            await listener.serve()
        self.health.cleared("listeners")

    async def _open_admin(self) -> None:
        """Health and metrics first, so that a probe sees what a start is waiting for."""
        address = self.config["kavka.admin.listener"]
        if not address:
            return
        admin = AdminHttp(self._sources())
        try:
            await admin.open(address)
        except (OSError, ValueError) as problem:
            raise StartError(f"kavka.admin.listener: {address}: {problem}") from problem
        self._stops.append(("admin", admin.close))

    def _sources(self) -> Sources:
        broker, stats = self.broker, self.dispatcher.stats
        return Sources(
            node_id=broker.node_id,
            cluster_id=broker.cluster_id,
            clock=self._clock,
            health=self.health,
            metadata=broker.metadata,
            quotas=broker.quotas,
            requests={APIS[key].name: one for key, one in stats.items()},
            listeners=self.listeners,
            partitions=broker.replicas,
            is_active_controller=lambda: True,
        )

    async def _bind(self, address: Address) -> Address:
        listener = Listener(address.name, self.dispatcher, limits_of(self.config), self._clock, self._timers)
        try:
            port = await listener.bind(address.host, address.port)
        except OSError as problem:
            raise StartError(f"listeners: {address}: {problem.strerror}") from problem
        self.listeners.append(listener)
        advertised = next(one for one in self.config.advertised_listeners if one.name == address.name)
        return replace(advertised, port=advertised.port or port)

    async def _close_listeners(self) -> None:
        for listener in self.listeners:
            await listener.close()

    async def _close_logs(self, logs: LogManager) -> None:
        if not self.health.is_ready:
            await asyncio.to_thread(logs.close)
            return
        self.broker.groups.close()
        self.broker.replicas.close()
        # Kafka takes a stop for an unclean one, and empties the ISR, unless this names the epoch that it ended.
        registration = self.broker.metadata.brokers.get(self.broker.node_id)
        await asyncio.to_thread(
            logs.close,
            broker_epoch=-1 if registration is None else registration.epoch,
            high_watermark_of=self.housekeeping.high_watermark_of,
        )


def check(config: BrokerConfig) -> None:
    """What this version cannot be. Raises StartError."""
    if set(config.roles) != {"broker", "controller"}:
        raise StartError(
            "process.roles: this version runs broker and controller in one process; write broker,controller"
        )
    for address in config.listeners:
        if address.security_protocol not in SERVED_PROTOCOLS:
            raise StartError(f"listeners: {address.name} is {address.security_protocol}; this version serves PLAINTEXT")
    for name in config.unknown:
        log.warning("config.unknown", key=name)


def limits_of(config: BrokerConfig) -> Limits:
    overrides = config["max.connections.per.ip.overrides"]
    pairs = (
        item.rpartition(":") for item in (overrides.split(",") if isinstance(overrides, str) else overrides) if item
    )
    return Limits(
        request_bytes_max=config["socket.request.max.bytes"],
        connections_max=config["max.connections"],
        connections_per_ip_max=config["max.connections.per.ip"],
        per_ip_overrides={address.strip(): int(count) for address, _, count in pairs},
        idle_ms_max=config["connections.max.idle.ms"],
    )
