"""One node in this process, started and stopped in order.

The order of the start is the order of trust: the log directories are ours (lock, meta.properties), then the quorum says
what the cluster is, then the broker registers, so that nobody counts on what it may have lost, then the logs of
partitions are recovered and take their roles, then it serves, and only when all of that stands does it ask to be
unfenced. A controller's listener serves from the first moment, since without the votes of others there is no quorum to
wait for.

The stop is the same backwards: what this broker leads is moved to others while it still serves, and the controller is
the last to go, so that a cluster of one can decide to let its broker stop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from kavka_broker.controller.metadata_log_opener import open_metadata_log
from kavka_broker.controller.ports import Ports
from kavka_broker.controller.quorum import Quorum
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.controller.voter_amnesia import check_memory
from kavka_broker.coordinator.groups.group_lag import GroupLag
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.listeners import Listener as Address
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.metadata.image.features import SUPPORTED_LEVELS
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timers
from kavka_broker.loop.turns import Turns
from kavka_broker.membership.controller_registration import register_controller
from kavka_broker.membership.lifecycle import CannotJoin
from kavka_broker.net.outbound import Outbound
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.quotas.callback import ClientQuotaCallback
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.throttles import Throttle
from kavka_broker.request.broker import Broker
from kavka_broker.request.registry import APIS
from kavka_broker.runtime.addresses import Addresses, StartError, check, introduction_of, links_of
from kavka_broker.runtime.admin_http import AdminHttp
from kavka_broker.runtime.auditing import Auditing, key_of
from kavka_broker.runtime.certificate_reload import Renewal
from kavka_broker.runtime.environment import REAL, World
from kavka_broker.runtime.health import Contact, Health, starting, watch_fence
from kavka_broker.runtime.metric_sources import Sources
from kavka_broker.runtime.quota_callback import KEY, load
from kavka_broker.runtime.token_signers import TokenSigners
from kavka_broker.runtime.watchdog import Watchdog
from kavka_broker.runtime.wiring import Node, Outbounds, Wiring
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log_manager import LogManager, UnusableDirectory

__all__ = ["Server", "StartError"]

log = get("runtime")

#: The time to stop each part.
STOP_MS_MAX = 30_000
#: The time to move the partitions that this broker leads to others.
LEAVE_MS_MAX = 25_000


class Server:
    """A node in this process. `crash` ends the process when an invariant is violated, as it has done
    `failed_assertions_total` times before; chance, time and files are those of `world`.
    """

    broker: Broker
    contact: Contact
    admin_port: int
    """The port of health and metrics, where `kavka.admin.listener` names one."""
    _logs: LogManager

    def __init__(
        self,
        config: BrokerConfig,
        crash: Callable[[BaseException], None],
        world: World = REAL,
        *,
        failed_assertions_total: int = 0,
    ) -> None:
        self.config = config
        self._failed_assertions_total = failed_assertions_total
        self.world = world
        self.health = Health(starting(config.roles))
        self.watchdog = Watchdog()
        self._crash = crash
        self._clock = world.clock
        self._timers = Timers(self._clock, asyncio.get_running_loop())
        self.addresses = Addresses(config, self._clock, self._timers, world.acceptor, Turns(world.work_ns))
        self._logs_are_loaded = False
        self._auditing: Auditing | None = None
        self.lag: GroupLag | None = None  # measured for metrics alone: where none are served, it is not
        self._broker_epoch: Callable[[], int] = lambda: -1  # of the newest registration
        # Parts to be stopped, the last first.
        self.stops: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._signers: list[TokenSigners] = []

    @property
    def advertised(self) -> tuple[Address, ...]:
        """The addresses for clients, with the ports that were bound."""
        return self.addresses.advertised

    @property
    def controllers(self) -> tuple[Address, ...]:
        """The addresses on which the controller of this node listens."""
        return self.addresses.controllers

    async def start(self) -> None:
        """Start everything in order. Raises StartError; the parts started until then are stopped by `stop`."""
        check(self.config)
        started_ms = self._clock.monotonic_ms()
        try:
            await self._start()
        except (CannotStart, CannotJoin, UnusableDirectory, ConfigError) as error:
            raise StartError(str(error)) from error
        log.info(
            "broker.started",
            node=self.broker.node_id,
            roles=",".join(self.config.roles),
            cluster=self.broker.cluster_id,
            listeners=",".join(str(address) for address in (*self.advertised, *self.controllers)),
            took_ms=round(self._clock.monotonic_ms() - started_ms),
        )

    async def stop(self, reason: str) -> None:
        """Controlled shutdown: hand over, no more requests, let decisions finish, close the logs, mark them clean."""
        log.info("shutdown.begun", reason=reason)
        self.health.blocked("stopping", f"told to stop: {reason}")
        for name, stop in reversed(self.stops):
            try:
                async with asyncio.timeout(STOP_MS_MAX / 1000):
                    await stop()
            except (OSError, TimeoutError, BrokerError) as problem:
                log.error("part.not_stopped", part=name, reason=str(problem))
            except AssertionError:
                raise
            except Exception as error:  # a defect of ours; the rest is still to be stopped, the logs above all
                log.exception("part.not_stopped", error, part=name)  # noqa: TRY401
        self._timers.close()
        log.info("broker.stopped")

    # --- start --------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        config, world = self.config, self.world
        peers = Outbounds(*(Outbound(introduction_of(link)) for link in links_of(config)))
        logs = LogManager.open(
            world.disk,
            config.log_dirs,
            node_id=config.node_id,
            random_bytes=world.random_bytes,
            threads_max=world.threads_max,
        )
        self._logs = logs
        self.stops.append(("logs", lambda: self._close_logs(logs)))
        if any(directory.path == config.metadata_log_dir and not directory.is_online for directory in logs.directories):
            raise StartError(f"{config.metadata_log_dir} holds the metadata log and cannot be used; repair it")
        self.stops.append(("addresses", self.addresses.close))
        await self.addresses.bind()
        quorum = self._open_quorum(peers.controllers)
        self.contact = Contact(quorum, self._clock, config["broker.session.timeout.ms"])
        callback = await self._quota_callback()
        wiring = Wiring(config, world, self._timers, peers, logs, quorum, self.addresses, self._crash, callback)
        self.node = node = wiring.node()
        self.broker = node.broker
        renewal = Renewal(config, self.addresses, peers)
        renewal.start()
        self.stops.append(("renewal", renewal.stop))
        for judge in self.addresses.judges:
            signers = TokenSigners(judge, self._clock)
            self.stops.append(("keys of tokens", signers.stop))
            self._signers.append(signers)
            await signers.start()
        key = key_of(config)
        if key is not None:
            self._auditing = Auditing(node.broker, key, world.disk)
        if self.config["kavka.admin.listener"] and node.broker.serving is not None:
            self.lag = wiring.group_lag(node.broker)
        if node.broker.quotas.calls is not None:
            self.stops.append(("quota callback", node.broker.quotas.calls.stop))
        await self._open_admin()
        acls_caught_up = wiring.follow_acls()
        await self._join_quorum(node, quorum)
        acls_caught_up()
        wiring.follow_quotas(node.broker)
        if "broker" in config.roles:
            await self._register(node)
            await self._load(logs, quorum)
            node.broker.replicas.load()
            wiring.follow_metadata(node.broker)
            for signers in self._signers:
                await signers.first_read()
            await self._join_cluster(node)

    async def _quota_callback(self) -> ClientQuotaCallback | None:
        """Load the callback in a thread: its module may take long, or ask others. Raises ConfigError."""
        if not self.config[KEY]:
            return None
        return await asyncio.to_thread(load, self.config)

    def _open_quorum(self, peers: Outbound) -> Quorum:
        world, clock = self.world, self._clock
        check_memory(world.disk, self.config)
        return Quorum.open(
            self.config,
            open_metadata_log(world.disk, self.config, now_ms=clock.now_ms()),
            Ports(clock, self._timers, peers, random_bytes=world.random_bytes, crash=self._crash),
            endpoints=[(address.name, address.host, address.port) for address in self.controllers],
        )

    async def _join_quorum(self, node: Node, quorum: Quorum) -> None:
        """Serve the quorum, take part in it, and wait until the image is that of the cluster."""
        broker = node.broker
        self.stops.append(("quorum", lambda: self._leave_quorum(node, quorum)))
        if broker.serving is None and self._auditing is not None:
            self._auditing.begin()
        await self.addresses.serve_controllers(node.of_controllers)
        if node.balancing is not None:
            broker.sessions.start()
            node.balancing.start()
        await quorum.start()
        if broker.controller is not None:
            self._register_controller(broker)
        await quorum.caught_up()
        # Records from here on are news. Ahead of the replicas, which are to stand where they stood.
        partitions = None if broker.serving is None else broker.serving.replicas.partitions
        quorum.subscribers.append(lambda records: node.counts.count(records, partitions))
        if broker.serving is None:
            self._start_auditing()
        self.health.cleared("quorum")
        self.health.watch("leader", self.contact.no_leader)

    def _register_controller(self, broker: Broker) -> None:
        assert broker.controller is not None
        incarnation_id = broker.controller.incarnation_id
        work = register_controller(
            broker.node_id, incarnation_id, self.controllers, SUPPORTED_LEVELS, broker.channel, broker.metadata
        )
        task = asyncio.create_task(work, name="register controller")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.stops.append(("controller registration", stop))

    async def _load(self, logs: LogManager, quorum: Quorum) -> None:
        effective = EffectiveConfig(self.config, quorum.metadata.configs)

        def progress(count: int, total: int, name: str) -> None:
            if count % max(1, total // 10) == 0:
                log.info("logs.loaded", done=count, total=total, last=name)

        def known_id(name: PartitionName) -> bytes:
            topic = quorum.metadata.topics.get(name.topic)
            state = None if topic is None else topic.partitions.get(name.partition)
            return topic.topic_id if topic and state and self.config.node_id in state.replicas else ZERO

        now_ms = self._clock.now_ms()
        await asyncio.to_thread(logs.load, effective.topic, now_ms, known_id=known_id, progress=progress)
        self._logs_are_loaded = True
        self.health.cleared("logs")

    async def _register(self, node: Node) -> None:
        """Register before any replica takes its role: until then the image may say that this broker leads, although it
        may have lost records in a loss of power. The answer comes after what the controller makes of that.
        """
        self.stops.append(("registration", lambda: self._stop_membership(node)))
        lifecycle = node.broker.lifecycle
        await lifecycle.register()
        self._broker_epoch = lambda: lifecycle.broker_epoch
        self.health.cleared("registration")

    async def _join_cluster(self, node: Node) -> None:
        """Follow and serve, and be unfenced."""
        broker = node.broker
        broker.replicas.start()
        self.stops.append(("replicas", broker.replicas.stop))
        broker.groups.start()
        broker.transactions.start()
        broker.as_broker.sharing.start()
        if self.lag is not None:
            self.lag.start(self._crash)
            self.stops.append(("group lag", self.lag.stop))
        assert node.housekeeping is not None
        assert node.cleaner is not None
        node.housekeeping.start()
        self.stops.append(("housekeeping", node.housekeeping.stop))
        node.cleaner.start()
        self.stops.append(("log cleaner", node.cleaner.stop))
        self.stops.append(("client metrics", broker.client_metrics.stop))
        if self._auditing is not None:
            self._auditing.begin()
        await self.addresses.serve_brokers(node.of_brokers)
        self.stops.append(("listeners", self.addresses.close_brokers))
        self.health.cleared("listeners")
        self.stops.append(("leadership", lambda: self._leave(broker)))
        await broker.replicas.reports.sending.told()
        await broker.lifecycle.unfence()
        self._start_auditing()
        watch_fence(self.health, broker.lifecycle, broker.quorum)
        self._watch_image(broker)
        self.health.watch("heartbeats", lambda: self.contact.no_answer(broker.lifecycle))

    def _watch_image(self, broker: Broker) -> None:
        """Serve clients for as long as this broker's image is not known to be outdated."""
        outdated = broker.lifecycle.outdated
        outdated.on_known = lambda: broker.slices.run_aside(self.addresses.sending_away(outdated.obstacle))
        self.health.watch("outdated", outdated.obstacle)

    def _start_auditing(self) -> None:
        if self._auditing is not None:
            self._auditing.start()
            self.stops.append(("audit", self._auditing.stop))

    async def _open_admin(self) -> None:
        """Open health and metrics first, so that a probe sees what a start is waiting for."""
        address = self.config["kavka.admin.listener"]
        if not address:
            return
        admin = AdminHttp(self._sources())
        try:
            self.admin_port = await admin.open(address)
        except (OSError, ValueError) as problem:
            raise StartError(f"kavka.admin.listener: {address}: {problem}") from problem
        self.stops.append(("admin", admin.close))

    def _sources(self) -> Sources:
        broker = self.broker
        counted = (*self.node.of_brokers.stats.items(), *self.node.of_controllers.stats.items())
        return Sources(
            node_id=broker.node_id,
            cluster_id=broker.cluster_id,
            clock=self._clock,
            health=self.health,
            metadata=broker.metadata,
            quotas=broker.quotas,
            requests=[(APIS[key].name, stats) for key, stats in counted],
            listeners=self.addresses,
            partitions=() if broker.serving is None else broker.serving.replicas.partitions,
            is_active_controller=lambda: broker.leads,
            quorum=broker.quorum,
            counts=self.node.counts,
            logs=self._logs,
            watchdog=self.watchdog,
            turns=self.addresses.turns,
            cleaner=self.node.cleaner,
            transactions=None if broker.serving is None else broker.serving.transactions,
            sharing=None if broker.serving is None else broker.serving.sharing,
            groups=None if broker.serving is None else broker.serving.groups,
            client_metrics=None if broker.serving is None else broker.serving.client_metrics,
            throttles={} if broker.serving is None else throttles_of(broker.replicas),
            failed_assertions_total=self._failed_assertions_total,
            auditing=self._auditing,
            lag=self.lag,
            dashboards=self.config["kavka.metrics.names"],
        )

    def facts(self) -> Mapping[str, object]:
        """Return what a crash report should say of this node. Raises AttributeError before there is a node."""
        broker, quorum = self.broker, self.broker.quorum
        return {
            "roles": ",".join(self.config.roles),
            "cluster": broker.cluster_id,
            "broker_epoch": self._broker_epoch(),
            "leader": quorum.leader_id,
            "epoch": quorum.epoch,
            "high_watermark": quorum.high_watermark,
            "log_end_offset": quorum.log_end_offset,
            "metadata_offset": broker.metadata.offset,
        }

    # --- stop ---------------------------------------------------------------------------------------------------

    async def _leave(self, broker: Broker) -> None:
        await broker.lifecycle.leave(LEAVE_MS_MAX)

    async def _stop_membership(self, node: Node) -> None:
        node.broker.lifecycle.stop()
        node.alter_partition.close()

    async def _leave_quorum(self, node: Node, quorum: Quorum) -> None:
        broker = node.broker
        broker.channel.close()
        if broker.controller is not None:
            await broker.controller.finish()
        if node.balancing is not None:
            node.balancing.stop()
            broker.sessions.stop()
        await quorum.stop()

    async def _close_logs(self, logs: LogManager) -> None:
        if not self._logs_are_loaded:
            await asyncio.to_thread(logs.close, broker_epoch=self._broker_epoch())
            return
        self.broker.groups.close()
        self.broker.leader_offsets.close()
        self.broker.transactions.close()
        self.broker.as_broker.sharing.close()
        self.broker.replicas.close()
        assert self.node.housekeeping is not None
        # Kafka takes a stop for an unclean one, and empties the ISR, unless this names the epoch that it ended.
        await asyncio.to_thread(
            logs.close,
            broker_epoch=self._broker_epoch(),
            high_watermark_of=self.node.housekeeping.high_watermark_of,
        )


def throttles_of(replicas: ReplicaManager) -> dict[str, Throttle]:
    """Return the throttles of replication, by their kind."""
    return {**replicas.throttles.by_side, "alterlogdirs": replicas.moves.throttle}
