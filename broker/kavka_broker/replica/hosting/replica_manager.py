"""The partitions of this broker, kept equal to what the controller has committed.

`apply` is told of every committed metadata record, after the image has it. It opens the logs of partitions that are
placed here (a few at a time: `log_opener`), closes those that are gone, and hands over leadership and configuration: a
partition that this broker leads waits for its followers, one that it does not gets a fetcher. The listeners of
leadership (the group coordinator) hear of each change.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.topics import PartitionState, Topic
from kavka_broker.core.partition.isr_proposal import AlterIsr
from kavka_broker.logs import get
from kavka_broker.loop.backlog import Backlog
from kavka_broker.peers import Peers
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.replica.following.fetchers import Fetchers, fetch_settings
from kavka_broker.replica.hosting.directory_reports import AssignDirectories, DirectoryReports, call_on
from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions
from kavka_broker.replica.hosting.hosting_context import HostingContext
from kavka_broker.replica.hosting.moves import Moves
from kavka_broker.replica.hosting.partition_deletions import Departures
from kavka_broker.replica.hosting.replica_changes import Place, changes_of
from kavka_broker.replica.hosting.replica_opener import ReplicaOpener
from kavka_broker.replica.hosting.replica_reports import ReplicaReports
from kavka_broker.replica.leading.isr_proposals import InSyncKeeper
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.throttles import Throttles, throttle, throttle_of_moves
from kavka_broker.storage.log_directory import LogDirectory

log = get("replica")

LeadershipListener = Callable[[Partition, bool], None]


@dataclass(frozen=True, slots=True)
class ClusterLinks:
    """A broker's ways to the others: `alter_isr` and `assign_directories` take proposals and reports to the controller,
    `peers` are for the fetchers, and `broker_epoch` is that of the registration.
    """

    alter_isr: AlterIsr | None = None
    assign_directories: AssignDirectories | None = None
    peers: Peers | None = None
    broker_epoch: Callable[[], int] = lambda: -1


class ReplicaManager:
    """Keeps `partitions` equal to what the controller places on this broker. `directory_listeners` are called with the
    id of each failed log directory, `refusal_listeners` where this broker should not take part for a while.
    """

    def __init__(self, context: HostingContext, links: ClusterLinks) -> None:
        node_id, config, metadata, effective = context.node_id, context.config, context.metadata, context.effective
        clock, crash = context.clock, context.crash
        self._context = context
        self._node_id = node_id
        self._effective = effective
        self._metadata = metadata
        self.logs = context.logs
        self.leadership_listeners: list[LeadershipListener] = []
        self.directory_listeners: list[Callable[[bytes], None]] = []
        self.refusal_listeners: list[Callable[[], None]] = []
        self.partitions = HostedPartitions(node_id, metadata, lambda place: place in self.openings)
        self.reports = ReplicaReports(node_id, context.logs, DirectoryReports(links.assign_directories, crash))
        self.in_sync = InSyncKeeper(
            metadata.brokers,
            lag_ms_max=config["replica.lag.time.max.ms"],
            hurries_high_watermark=bool(config["replica.selector.class"]),
            alter_isr=links.alter_isr,
            crash=crash,
        )
        self.in_sync.on_damaged = self.reports.damaged
        self.in_sync.on_refused = self._refused
        throttles = (throttle(side, config, effective, clock) for side in ("leader", "follower"))
        self.throttles = Throttles(node_id, *throttles)
        self.departures = Departures(self._end, crash)
        self._opener = ReplicaOpener(
            context, self.partitions, self.reports, self.departures, self.in_sync, self._take_up
        )
        self.openings = self._opener.openings
        self.handovers = Backlog[Place]("handing partitions over", self._hand_over_all, crash)
        self._rechecks = Backlog[Partition]("looking at followers", self._recheck, crash)
        self.fetchers: Fetchers | None = None
        if links.peers is not None and context.timers is not None:
            settings = fetch_settings(node_id, config, links.broker_epoch, self.throttles, self.openings.when_secured)
            listener = config.listeners.inter_broker_name
            self.fetchers = Fetchers(metadata.brokers, links.peers, settings, listener, clock, context.timers, crash)
        self.moves = Moves(
            context.logs,
            clock,
            throttle=throttle_of_moves(config, effective, clock),
            moved=self.reports.report_directory,
            crash=crash,
        )
        self._is_started = False

    # --- the life of the broker ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Host every partition that the image places on this broker, and nothing else. Called before the listeners
        open, and again where the image was replaced as a whole.
        """
        self.departures.end_all()  # otherwise their logs would be taken for strays
        for partition in list(self.partitions):
            self._drop_unless_placed(partition)
        for topic in self._metadata.topics:
            self._host(topic, topic.partitions)
        self.openings.open_all()
        # A log that could not be opened is no stray: it may be the partition's only copy.
        self.logs.remove_strays(
            (topic.name, index)
            for topic in self._metadata.topics
            for index, state in topic.partitions.items()
            if self._node_id in state.replicas
        )

    def start(self) -> None:
        """Start fetching and checking followers: the broker is registered."""
        self._is_started = True
        loop = asyncio.get_running_loop()
        self.logs.on_offline = lambda failed: call_on(loop, self._directory_failed, failed)
        for directory in self.log_directories:
            if not directory.is_online:
                self._directory_failed(directory)
        self.in_sync.start(lambda: self.partitions)
        self.reports.sending.start()
        self.moves.resume(self.partitions.get, self.partitions.is_placed)
        self._opener.start()
        for partition in self.partitions:
            self._follow(partition)

    async def stop(self) -> None:
        """End fetches and proposals; the partitions stay as they are."""
        self._is_started = False
        await self.handovers.stop()
        await self._rechecks.stop()
        await self._opener.stop()
        await self.departures.stop()
        if self.fetchers is not None:
            await self.fetchers.stop()
        await self.in_sync.stop()
        await self.reports.sending.stop()
        await self.moves.stop()  # last: the moves sync their copies, which may take long

    def close(self) -> None:
        """End all partitions' waits; the logs are closed by their manager."""
        for partition in self.partitions:
            partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def heard_from(self, broker_id: int) -> None:
        """Note a follower's fetch: its unnamed partitions are where they were. Unknown ids are not remembered."""
        if self._metadata.brokers.get(broker_id) is not None:
            self.in_sync.contact(broker_id).fetched_ms = self._context.clock.monotonic_ms()

    # --- what the controller decides ----------------------------------------------------------------------------

    def apply(self, records: Iterable[Message]) -> None:
        """Follow committed records that the image has replayed. Only the partitions that they name are looked at: a
        batch may be about few of very many.
        """
        changes = changes_of(records, self._metadata.topics)
        for topic_id in changes.removed:
            self._drop(topic_id)
        for config in changes.configs:
            self._reconfigure(config)
        self.departures.end_soon()
        self.handovers.add(changes.partitions)
        if changes.is_about_brokers:
            self._rechecks.add(self.partitions)

    def _hand_over_all(self, places: Sequence[Place]) -> None:
        for topic_id, group in groupby(places, key=itemgetter(0)):
            topic = self._metadata.topics.by_id(topic_id)
            if topic is not None:
                self._host(topic, [index for _, index in group])
        self.openings.open_soon()

    def _recheck(self, partitions: Iterable[Partition]) -> None:
        """Check ISR eligibility and leaders' addresses again: a broker's registration has changed."""
        for partition in partitions:
            if partition.is_leader:
                partition.followers_changed()
            elif self.partitions.get(partition.topic, partition.index) is partition:
                self._follow(partition)

    def _host(self, topic: Topic, indexes: Iterable[int]) -> None:
        states, hosted = topic.partitions, self.partitions.of_topic(topic.name)
        new = [index for index in indexes if index not in hosted and self._node_id in states[index].replicas]
        self.openings.add_all(topic.topic_id, new)
        for index in [index for index in indexes if index in hosted]:
            partition, state = hosted[index], states[index]
            if self._node_id not in state.replicas:
                self._drop_unless_placed(partition)
            elif partition.is_damaged and self.reports.is_given_up(state):
                self._begin_anew(partition)
                self.openings.add(topic.topic_id, index)
            elif partition.topic_id == topic.topic_id:
                self._hand_over(partition, state)
            else:
                self.openings.add(topic.topic_id, index)

    def _take_up(self, partition: Partition) -> None:
        """Follow or lead a partition whose log has been opened."""
        self._follow(partition)
        if partition.is_leader:
            self._tell(partition, True)

    def _hand_over(self, partition: Partition, state: PartitionState) -> None:
        was_leader, epoch = partition.is_leader, partition.leader_epoch
        if state.leader == self._node_id and not was_leader and self.fetchers is not None:
            self.fetchers.leave(partition)
        partition.apply(state)
        self._follow(partition)
        if partition.is_leader and (not was_leader or partition.leader_epoch != epoch):
            self._tell(partition, True)
        elif was_leader and not partition.is_leader:
            self._tell(partition, False)
        self.reports.note_directory(partition)

    def _follow(self, partition: Partition) -> None:
        # A damaged log would come into the in-sync set without its lost records; it begins again first.
        may_follow = not (partition.is_leader or partition.is_damaged)
        if self._is_started and self.fetchers is not None and may_follow:
            self.fetchers.follow(partition)

    def _drop(self, topic_id: bytes) -> None:
        """Take the partitions of a deleted topic out of service."""
        if (removed := self.partitions.remove_topic(topic_id)) is not None:
            self.departures.add(*removed)

    def _drop_unless_placed(self, partition: Partition) -> None:
        """Give the partition up where its topic is gone, or its replica was moved to other brokers."""
        topic = self._metadata.topics.by_id(partition.topic_id)
        if topic is None:
            self._give_up(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif self._node_id not in topic.partitions[partition.index].replicas:
            log.info("partition.moved", partition=str(partition))
            self._give_up(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _give_up(self, partition: Partition, code: ErrorCode) -> None:
        self.partitions.remove(partition)
        self._end(partition, code)

    def _end(self, partition: Partition, code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> None:
        if self.fetchers is not None:
            self.fetchers.leave(partition)
        if partition.is_leader:
            self._tell(partition, False)
        self.moves.cancel(partition)
        self.reports.forget(partition)
        partition.close(code)
        if code != ErrorCode.KAFKA_STORAGE_ERROR:
            self.logs.delete(partition.topic, partition.index)

    # --- directories --------------------------------------------------------------------------------------------

    @property
    def log_directories(self) -> Sequence[LogDirectory]:
        """Return all log directories of this broker, the offline ones too."""
        return self.logs.directories

    def _refused(self, partition: Partition) -> None:
        """Handle a log that takes no records. This broker holds up all clients that need the replica: as the leader it
        refuses records that others could take, as an in-sync replica it lets the leader wait. So this broker should not
        take part, unless a replicated partition that it leads would have no leader then.
        """
        is_awaited = len(partition.isr) > 1 and self._node_id in partition.isr
        led = (hosted for hosted in self.partitions if hosted.is_leader and len(hosted.state.replicas) > 1)
        if is_awaited and all(len(hosted.isr) > 1 for hosted in led):
            for listener in self.refusal_listeners:
                listener()

    def _begin_anew(self, partition: Partition) -> None:
        self._give_up(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        self._opener.set_aside(partition.topic, partition.index)

    def _directory_failed(self, directory: LogDirectory) -> None:
        """Take the directory's replicas offline until the broker starts again with a directory that works."""
        lost = [partition for partition in self.partitions if self.reports.directory_of(partition) is directory]
        log.error("directory.lost", directory=directory.path, partitions=len(lost))
        for partition in lost:
            self._give_up(partition, ErrorCode.KAFKA_STORAGE_ERROR)
            if partition.state.directory_of(self._node_id) != directory.directory_id:
                # The controller would not count the replica as lost: it does not know yet that the replica was here.
                self.reports.report_lost(partition)
        # A directory whose id could not be read was not registered: the controller would not know it.
        if directory.directory_id != ZERO:
            for listener in self.directory_listeners:
                listener(directory.directory_id)

    def _reconfigure(self, record: ConfigRecord) -> None:
        """Take over configs of one topic, or the defaults of this broker's topics."""
        is_of_all = record.resource_type == ResourceType.BROKER
        if not is_of_all and record.resource_type != ResourceType.TOPIC:
            return
        for name in self.partitions.topics() if is_of_all else [record.resource_name]:
            config = self._effective.topic(name)
            for partition in self.partitions.of_topic(name).values():
                partition.log.config = config
                partition.followers_changed()

    def _tell(self, partition: Partition, is_leader: bool) -> None:
        for listener in self.leadership_listeners:
            listener(partition, is_leader)
