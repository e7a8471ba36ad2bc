"""The parts of a node, made and tied to each other; nothing of it runs yet.

Every node has the quorum, its image and a channel to the active controller. A controller adds the `Controller` with
what it watches, a broker replicas, groups and quotas. The parts know each other by narrow seams; this is the one place
that knows them all.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kavka_broker.controller.balancing import Balancing
from kavka_broker.controller.controller import Controller
from kavka_broker.controller.format import random_uuid
from kavka_broker.controller.quorum import Quorum
from kavka_broker.controller.sessions import Sessions
from kavka_broker.coordinator.broker_connections import Connections
from kavka_broker.coordinator.groups.group_coordinator import GroupCoordinator
from kavka_broker.coordinator.groups.group_lag import GroupLag
from kavka_broker.coordinator.groups.leader_offsets import LeaderOffsets
from kavka_broker.coordinator.internal_topic import InternalTopic
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.share.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from kavka_broker.coordinator.share.share_fetches import ShareFetches
from kavka_broker.coordinator.share.share_service import Sharing
from kavka_broker.coordinator.share.share_state_client import ShareStateClient
from kavka_broker.coordinator.transactions.marker_sender import MarkerSender
from kavka_broker.coordinator.transactions.marker_writes import MarkerWrites
from kavka_broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kavka_broker.coordinator.transactions.transaction_coordinator_client import Patience, TransactionCoordinators
from kavka_broker.core.authentication.delegation import TokenSecrets
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.metadata.image.features import SUPPORTED_LEVELS
from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.core.transaction.settings import TransactionSettings
from kavka_broker.dispatch.access.table import guard
from kavka_broker.dispatch.audit_changes import audited
from kavka_broker.dispatch.automatic_topics import begin_creating
from kavka_broker.dispatch.dispatcher import Dispatcher
from kavka_broker.dispatch.handlers import load
from kavka_broker.dispatch.streams_topics import begin_creating_internal
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.loop.slices import LoopTime, Slices
from kavka_broker.loop.timers import Timers
from kavka_broker.membership.alter_partition import AlterPartitionSender
from kavka_broker.membership.assign_directories import DirectoryAssigner
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.membership.delayed_fencing import Lingering
from kavka_broker.membership.lifecycle import Introduction, Lifecycle, Times
from kavka_broker.membership.producer_ids import ProducerIds
from kavka_broker.membership.topic_creation import TopicMaker
from kavka_broker.membership.unreachable_brokers import Suspects
from kavka_broker.net.outbound import Outbound
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord
from kavka_broker.quotas.callback import ClientQuotaCallback
from kavka_broker.quotas.callback_runner import QuotaCalls
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.quotas.updates import QuotaTerms, TopicTerms
from kavka_broker.replica.hosting.hosting_context import HostingContext
from kavka_broker.replica.hosting.log_cleaner import LogCleaner
from kavka_broker.replica.hosting.replica_manager import ClusterLinks, ReplicaManager
from kavka_broker.replica.serving import fetch_sessions
from kavka_broker.replica.serving.fetch_sessions import FetchSessions
from kavka_broker.replica.serving.fetches import Fetches
from kavka_broker.replica.writing.produce_context import Writes
from kavka_broker.request.broker import Broker, Leading, Serving
from kavka_broker.runtime.addresses import Addresses
from kavka_broker.runtime.authorization import AclFollower, authorizer_of
from kavka_broker.runtime.cluster_counts import ClusterCounts
from kavka_broker.runtime.cordoning import Cordoning
from kavka_broker.runtime.environment import World
from kavka_broker.runtime.housekeeping import Housekeeping
from kavka_broker.runtime.otlp_export import post_to
from kavka_broker.runtime.quota_callback import ClusterNews
from kavka_broker.runtime.unserved_config_log import tell, tell_altered
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.telemetry.client_metrics import ClientMetrics
from kavka_broker.telemetry.forward import Forward

Crash = Callable[[BaseException], None]


@dataclass(slots=True)
class Node:
    """Parts that are started and stopped."""

    broker: Broker
    of_brokers: Dispatcher
    of_controllers: Dispatcher
    alter_partition: AlterPartitionSender
    balancing: Balancing | None
    housekeeping: Housekeeping | None  # of a broker, as the next
    cleaner: LogCleaner | None
    counts: ClusterCounts


class Outbounds(NamedTuple):
    """Connections that a node opens, by what the other side is to it."""

    controllers: Outbound
    brokers: Outbound


class Wiring:
    """Makes the parts of one node."""

    def __init__(
        self,
        config: BrokerConfig,
        world: World,
        timers: Timers,
        peers: Outbounds,
        logs: LogManager,
        quorum: Quorum,
        addresses: Addresses,
        crash: Crash,
        callback: ClientQuotaCallback | None = None,
    ) -> None:
        self._callback = callback
        self._config = config
        self._world = world
        self._timers = timers
        self._peers = peers
        self._logs = logs
        self._quorum = quorum
        self._addresses = addresses
        self._crash = crash
        self.authorizer = authorizer_of(config)

    def follow_acls(self) -> Callable[[], None]:
        """Follow the access rules from now on; returns what to call once this node has caught up with its cluster."""
        if self.authorizer is None:
            return lambda: None
        follower = AclFollower(self.authorizer, self._quorum.metadata.acls)
        self._quorum.subscribers.append(follower.apply)
        return follower.caught_up

    def node(self) -> Node:
        """Make all parts."""
        config, clock, quorum = self._config, self._world.clock, self._quorum
        broker = Broker(
            node_id=config.node_id,
            cluster_id=self._logs.cluster_id,
            config=config,
            clock=clock,
            timers=self._timers,
            metadata=quorum.metadata,
            quorum=quorum,
            peers=self._peers.brokers,
            quotas=self._quotas(),
            authorizer=self.authorizer,
            token_secrets=token_secrets_of(config),
            random_bytes=self._world.random_bytes,
            leading=self._leading() if "controller" in config.roles else None,
        )
        apis = guard(load(), self.authorizer)
        if config["unstable.api.versions.enable"]:
            apis = {key: api.with_unstable() for key, api in apis.items()}
        time = broker.slices.time = LoopTime(self._world.work_ns, self._addresses.turns, self._world.thread_ns)
        of_brokers = Dispatcher(broker, audited(apis, "broker"), self._crash, time)
        of_controllers = Dispatcher(broker, audited(apis, "controller"), self._crash, time, "controller")
        broker.serve_enveloped = of_controllers.serve_enveloped
        broker.create_topics = partial(begin_creating, broker)
        broker.create_internal_topics = partial(begin_creating_internal, broker)
        broker.channel = ControllerChannel(
            config.node_id,
            quorum,
            self._peers.controllers,
            leads=lambda: broker.leads,
            local=of_controllers.ask,
            others=lambda: other_controllers(quorum, config.node_id),
        )
        balancing = None if broker.controller is None else Balancing(broker.controller, config, self._timers)
        alter_partition = AlterPartitionSender(broker.channel, config.node_id, lambda: broker.lifecycle.broker_epoch)
        housekeeping = cleaner = None
        if "broker" in config.roles:
            broker.serve(self._serving(broker.channel, alter_partition, broker.slices))
            effective = EffectiveConfig(config, quorum.metadata.configs)
            housekeeping = Housekeeping(
                config, self._logs, broker.partitions, broker.quotas, clock, self._crash, effective
            )
            cleaner = self._cleaner(broker)
        counts = ClusterCounts(broker.metadata)
        return Node(broker, of_brokers, of_controllers, alter_partition, balancing, housekeeping, cleaner, counts)

    def group_lag(self, broker: Broker) -> GroupLag:
        """Make what measures the lag of groups, for whom metrics are served."""
        connections = self._connections("lag")
        leaders = LeaderOffsets(self._config.node_id, broker.partitions, broker.metadata, connections, broker.slices)
        interval_ms = self._config["kavka.group.lag.interval.ms"]
        return GroupLag(broker.groups, leaders, self._world.clock, broker.slices, interval_ms)

    def _cleaner(self, broker: Broker) -> LogCleaner:
        effective = EffectiveConfig(self._config, broker.metadata.configs)

        def stable_offset_of(log: Log) -> int | None:
            """Return up to where a log may be cleaned; None while it is not in service, damaged, or being copied."""
            partition = broker.partitions.get(*log.name)
            if partition is None or partition.log is not log or log.damage or broker.replicas.moves.get(*log.name):
                return None
            return partition.last_stable_offset

        return LogCleaner(
            self._logs,
            self._world.clock,
            config=lambda: effective.broker,
            stable_offset_of=stable_offset_of,
            crash=self._crash,
        )

    def follow_quotas(self, broker: Broker) -> None:
        """Hold clients to their quotas from now on: controllers count what they decide, brokers the rest."""
        broker.quotas.limit_addresses = self._addresses.limit_addresses
        terms = QuotaTerms(broker.quotas, broker.metadata, broker.clock, self._timers, broker.node_id)

        def limit(records: Sequence[Message]) -> None:
            if ClientQuotaRecord in {type(record) for record in records}:
                terms.apply()

        terms.apply()
        self._quorum.subscribers.append(limit)
        if broker.quotas.calls is not None:
            self._follow_for_callback(broker.quotas.calls, broker)

    def follow_metadata(self, broker: Broker) -> None:
        """Act on committed records from now on. The replicas that the image has already must be loaded."""
        metadata = broker.metadata
        effective = EffectiveConfig(self._config, metadata.configs)
        cordoning = Cordoning(self._logs, broker.lifecycle, metadata)

        def reconfigure(records: Sequence[Message]) -> None:
            tell(records, broker.node_id)
            self._addresses.limit_brokers(effective.broker)
            cordoning.follow(effective.broker)

        of_topics = TopicTerms(broker.quotas, metadata, broker.clock)
        of_topics.begin()
        broker.client_metrics.follow()
        tell_altered(metadata.configs, broker.node_id)
        self._addresses.limit_brokers(effective.broker)
        cordoning.follow(effective.broker)
        broker.groups.removals.follow()
        self._quorum.subscribers.extend((broker.groups.apply, broker.replicas.apply, reconfigure))
        self._quorum.subscribers.extend((broker.client_metrics.apply, of_topics.apply))

    def _follow_for_callback(self, calls: QuotaCalls, broker: Broker) -> None:
        news = ClusterNews(broker.node_id, broker.metadata, calls, self._timers, broker.slices)
        calls.start()
        news.tell()
        self._quorum.subscribers.append(news.apply)

    # --- of a controller ----------------------------------------------------------------------------------------

    def _leading(self) -> Leading:
        controller = Controller(self._quorum)
        return Leading(
            controller, Sessions(controller, self._config, self._world.clock, self._timers, self._peers.brokers)
        )

    # --- of a broker --------------------------------------------------------------------------------------------

    def _serving(self, channel: ControllerChannel, alter_partition: AlterPartitionSender, slices: Slices) -> Serving:
        config, clock, metadata = self._config, self._world.clock, self._quorum.metadata
        lifecycle = Lifecycle(self._introduction(), times_of(config), channel, self._quorum, clock)

        def broker_epoch() -> int:
            return lifecycle.broker_epoch

        topics = TopicMaker(config, channel, self._quorum)
        lingering = Lingering(self._quorum, self._timers)
        suspects = Suspects(config.node_id, self._quorum, self._timers)
        for peers in self._peers:
            peers.on_broken, peers.on_opened = suspects.lost, suspects.alive
        replicas = ReplicaManager(
            HostingContext(config.node_id, config, metadata, self._logs, clock, self._timers, self._crash),
            ClusterLinks(
                alter_isr=alter_partition,
                assign_directories=DirectoryAssigner(channel, config.node_id, broker_epoch),
                peers=self._peers.brokers,
                broker_epoch=broker_epoch,
            ),
        )
        replicas.directory_listeners.append(self._directory_lost(lifecycle))
        replicas.refusal_listeners.append(lambda: lifecycle.step_aside("a log directory takes no records"))
        lifecycle.may_come_back = lambda: self._logs.has_room or replicas.partitions.has_leaderless
        lifecycle.outdated.has_room = lambda: not self._quorum.runner.retries.waits_for_room
        sessions = FetchSessions(
            config["max.incremental.fetch.session.cache.slots"],
            self._world.session_id,
            names_bytes_max=fetch_sessions.NAMES_BYTES_MAX,
        )
        pacing = Pacing(clock, self._timers, slices, RequestThreads(slices, threads_max=1))
        groups = GroupCoordinator(config, metadata, topics, replicas, pacing, self._world.suffix)
        producer_ids = ProducerIds(channel, config.node_id, broker_epoch)
        markers = MarkerWrites(replicas.partitions, groups, clock, config["request.timeout.ms"])
        transactions = self._transactions(replicas, producer_ids, markers, pacing)
        coordinators = TransactionCoordinators(
            config.node_id,
            metadata,
            transactions,
            self._connections("transactions"),
            patience=Patience(
                timeout_ms=config["request.timeout.ms"],
                again_ms=config["add.partitions.to.txn.retry.backoff.ms"],
                attempts_max=attempts_of(config),
            ),
            effective=EffectiveConfig(config, metadata.configs),
        )
        sharing = self._sharing(replicas, topics, groups, pacing)
        groups.share_states = sharing.states
        return Serving(
            lifecycle=lifecycle,
            replicas=replicas,
            fetches=Fetches(config.node_id, sessions, replicas, metadata, clock, self._timers),
            writes=Writes(replicas, coordinators, metadata, slices, clock, self._timers),
            groups=groups,
            transactions=transactions,
            transactions_topic=InternalTopic(
                TRANSACTIONS_TOPIC, "transaction.state.log.replication.factor", config, topics, metadata
            ),
            sharing=sharing,
            markers=markers,
            producer_ids=producer_ids,
            topics=topics,
            suspects=suspects,
            lingering=lingering,
            client_metrics=self._client_metrics(),
            leader_offsets=LeaderOffsets(
                config.node_id, replicas.partitions, metadata, self._connections("ends"), slices
            ),
        )

    def _sharing(
        self, replicas: ReplicaManager, topics: TopicMaker, groups: GroupCoordinator, pacing: Pacing
    ) -> Sharing:
        config, metadata = self._config, self._quorum.metadata
        factor_key = "share.coordinator.state.topic.replication.factor"
        topic = InternalTopic(SHARE_STATE_TOPIC, factor_key, config, topics, metadata)
        settings = share_coordinator_settings_of(config)
        coordinator = ShareCoordinator(settings, metadata, replicas, pacing)
        connections = self._connections("share-states")
        states = ShareStateClient(config.node_id, metadata, coordinator, connections, topic, pacing)
        sessions_max = config["group.share.max.share.sessions"]
        fetches = ShareFetches(metadata, replicas, states, groups.settings.share, pacing, sessions_max)
        return Sharing(coordinator, states, topic, fetches)

    def _transactions(
        self, replicas: ReplicaManager, producer_ids: ProducerIds, markers: MarkerWrites, pacing: Pacing
    ) -> TransactionCoordinator:
        config, metadata = self._config, self._quorum.metadata
        sender = MarkerSender(
            config.node_id,
            metadata,
            self._connections("markers"),
            markers.write,
            self._timers,
            config["request.timeout.ms"],
        )
        return TransactionCoordinator(
            transaction_settings_of(config),
            metadata,
            replicas,
            producer_ids,
            sender,
            pacing,
        )

    def _connections(self, purpose: str) -> Connections:
        config = self._config
        client_id = f"broker-{config.node_id}-{purpose}"
        return Connections(self._quorum.metadata, self._peers.brokers, config.listeners.inter_broker_name, client_id)

    def _client_metrics(self) -> ClientMetrics:
        endpoint = self._config["kavka.telemetry.otlp.endpoint"]
        return ClientMetrics(
            self._config["telemetry.max.bytes"],
            self._quorum.metadata.configs,
            self._world.clock,
            lambda: random_uuid(self._world.random_bytes),
            Forward(endpoint, post_to) if endpoint else None,
        )

    def _directory_lost(self, lifecycle: Lifecycle) -> Callable[[bytes], None]:
        def lost(directory_id: bytes) -> None:
            """Let the controller choose other leaders. A broker without any directory ends, as Kafka's does."""
            if directory_id not in lifecycle.offline_directories:
                lifecycle.offline_directories.append(directory_id)
                lifecycle.tell()
            if not self._logs.online:
                self._crash(OSError("every log directory has failed"))

        return lost

    def _introduction(self) -> Introduction:
        # Where a checkpoint cannot be read nothing tells how far its logs were closed: they may lack records.
        epochs = {directory.broker_epoch if directory.is_clean else None for directory in self._logs.online}
        previous = epochs.pop() if len(epochs) == 1 else None
        return Introduction(
            node_id=self._config.node_id,
            cluster_id=self._logs.cluster_id,
            incarnation_id=self._world.random_bytes(16),
            listeners=self._addresses.advertised,
            directories=tuple(directory.directory_id for directory in self._logs.online),
            features=SUPPORTED_LEVELS,
            rack=self._config["broker.rack"],
            previous_epoch=-1 if previous is None else previous,
        )

    def _quotas(self) -> ClientQuotas:
        config = self._config
        calls = None
        if self._callback is not None:
            calls = QuotaCalls(self._callback, asyncio.get_running_loop(), self._world.clock)
        window = SampleWindow(
            config["quota.window.num"],
            config["quota.window.size.seconds"] * 1000,
            config["kavka.quota.first.burst.ms"],
        )
        of_controllers = SampleWindow(
            config["controller.quota.window.num"], config["controller.quota.window.size.seconds"] * 1000
        )
        return ClientQuotas(window, calls=calls, controller_window=of_controllers)


def token_secrets_of(config: BrokerConfig) -> TokenSecrets | None:
    """The secrets of delegation tokens; None where the configuration has no key for them."""
    key = config["delegation.token.secret.key"]
    return TokenSecrets(key.value) if key is not None and key.value else None


def transaction_settings_of(config: BrokerConfig) -> TransactionSettings:
    return TransactionSettings(
        timeout_ms_max=config["transaction.max.timeout.ms"],
        expiration_ms=config["transactional.id.expiration.ms"],
        overdue_every_ms=config["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
        expire_every_ms=config["transaction.remove.expired.transaction.cleanup.interval.ms"],
        append_timeout_ms=config["request.timeout.ms"],
        refuses_late_requests=config["kavka.transaction.connection.verification.enable"],
        serves_two_phase_commit=config["transaction.two.phase.commit.enable"],
    )


def share_coordinator_settings_of(config: BrokerConfig) -> ShareCoordinatorSettings:
    return ShareCoordinatorSettings(
        updates_max=config["share.coordinator.snapshot.update.records.per.snapshot"],
        write_timeout_ms=config["share.coordinator.write.timeout.ms"],
        cold_interval_ms=config["share.coordinator.cold.partition.snapshot.interval.ms"],
        prune_interval_ms=config["share.coordinator.state.topic.prune.interval.ms"],
    )


def attempts_of(config: BrokerConfig) -> int:
    """How often a coordinator is asked that is busy with the end of the transaction before."""
    every_ms: int = config["add.partitions.to.txn.retry.backoff.ms"]
    for_ms: int = config["add.partitions.to.txn.retry.backoff.max.ms"]
    return 1 + for_ms // every_ms


def times_of(config: BrokerConfig) -> Times:
    return Times(
        heartbeat_ms=config["broker.heartbeat.interval.ms"],
        session_ms=config["broker.session.timeout.ms"],
        registration_ms=config["initial.broker.registration.timeout.ms"],
    )


def other_controllers(quorum: Quorum, node_id: int) -> list[tuple[str, int]]:
    """Return where the other voters listen."""
    return [
        (host, port) for voter in quorum.voters if voter.node_id != node_id for _, host, port in voter.endpoints[:1]
    ]
