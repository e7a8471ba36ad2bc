"""The partitions of this broker, kept equal to what the controller has committed.

`apply` is told of every committed metadata record, after the image has it. It opens the logs of partitions that are
placed here (a few at a time: `log_opener`), closes those that are gone, and hands over leadership and configuration: a
partition that this broker leads waits for its followers, one that it does not gets a fetcher. The listeners of
leadership (the group coordinator) hear of each change.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NoReturn

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.brokers import GIVEN_UP, LOST_DIRECTORY, UNMADE_DIRECTORY
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.effective import EffectiveConfig
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState, Topic
from kavka_broker.core.partition.isr_proposal import AlterIsr
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.backlog import Backlog
from kavka_broker.loop.timers import Timers
from kavka_broker.peers import Peers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.replica.following.fetchers import Fetchers, fetch_settings
from kavka_broker.replica.hosting.damaged_replicas import Refusals, others
from kavka_broker.replica.hosting.directory_reports import AssignDirectories, DirectoryReports, call_on
from kavka_broker.replica.hosting.log_opener import Openings
from kavka_broker.replica.hosting.moves import Moves
from kavka_broker.replica.hosting.offline_replicas import MissingLogs, is_log_missing
from kavka_broker.replica.hosting.partition_deletions import Departures
from kavka_broker.replica.hosting.replica_changes import Place, changes_of
from kavka_broker.replica.leading.isr_proposals import InSyncKeeper
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.throttles import Throttles, throttle, throttle_of_moves
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_manager import LogManager

log = get("replica")

#: The pause before a log that could not be opened is tried again.
REOPEN_MS: Final = 5_000

LeadershipListener = Callable[[Partition, bool], None]


def _raise(error: BaseException) -> NoReturn:
    raise error


class ReplicaManager:
    """All partitions of this broker by topic and index.

    A broker in a cluster needs besides: `alter_isr` and `assign_directories` take proposals and reports to the
    controller, `peers` and `timers` are for the fetchers, `broker_epoch` is this registration's, and `crash`
    is called with a broken invariant. `directory_listeners` are called with the id of each failed log directory.
    """

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        metadata: Metadata,
        logs: LogManager,
        clock: Clock,
        *,
        alter_isr: AlterIsr | None = None,
        assign_directories: AssignDirectories | None = None,
        peers: Peers | None = None,
        timers: Timers | None = None,
        broker_epoch: Callable[[], int] = lambda: -1,
        crash: Callable[[BaseException], None] = _raise,
    ) -> None:
        self._node_id = node_id
        self._effective = EffectiveConfig(config, metadata.configs)
        self._metadata = metadata
        self._logs = logs
        self._clock = clock
        self._topics: dict[str, dict[int, Partition]] = {}
        self._names: dict[bytes, str] = {}  # the hosted topics' names, by topic id
        self.leadership_listeners: list[LeadershipListener] = []
        self.in_sync = InSyncKeeper(
            metadata.brokers,
            lag_ms_max=config["replica.lag.time.max.ms"],
            hurries_high_watermark=bool(config["replica.selector.class"]),
            alter_isr=alter_isr,
            crash=crash,
        )
        self.in_sync.on_damaged = self._damaged
        self.in_sync.on_refused = self._refused
        throttles = (throttle(side, config, self._effective, clock) for side in ("leader", "follower"))
        self.throttles = Throttles(node_id, *throttles)
        self._timers = timers
        self.openings = Openings(self._open_placed, logs, crash, config_of=self._effective.topic, now_ms=clock.now_ms)
        self.departures = Departures(self._end, crash)
        self.handovers = Backlog[Place]("handing partitions over", self._hand_over_all, crash)
        self._rechecks = Backlog[Partition]("looking at followers", self._recheck, crash)
        self.fetchers: Fetchers | None = None
        if peers is not None and timers is not None:
            settings = fetch_settings(node_id, config, broker_epoch, self.throttles, self.openings.when_secured)
            listener = config.inter_broker_listener_name
            self.fetchers = Fetchers(metadata.brokers, peers, settings, listener, clock, timers, crash)
        self.directory_listeners: list[Callable[[bytes], None]] = []
        self.refusal_listeners: list[Callable[[], None]] = []
        self._reports = DirectoryReports(assign_directories, crash)
        self._missing, self._refusals = MissingLogs(node_id), Refusals(node_id, logs)
        self.moves = Moves(
            logs,
            clock,
            throttle=throttle_of_moves(config, self._effective, clock),
            moved=self._report_directory,
            crash=crash,
        )
        self._is_started = False

    # --- the life of the broker ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Host every partition that the image places on this broker, and nothing else. Called before the listeners
        open, and again where the image was replaced as a whole.
        """
        self.departures.end_all()  # otherwise their logs would be taken for strays
        for partition in list(self):
            self._drop_unless_placed(partition)
        for topic in self._metadata.topics:
            self._host(topic, topic.partitions)
        self.openings.open_all()
        # A log that could not be opened is no stray: it may be the partition's only copy.
        self._logs.remove_strays(
            (topic.name, index)
            for topic in self._metadata.topics
            for index, state in topic.partitions.items()
            if self._node_id in state.replicas
        )

    def start(self) -> None:
        """Start fetching and checking followers: the broker is registered."""
        self._is_started = True
        loop = asyncio.get_running_loop()
        self._logs.on_offline = lambda failed: call_on(loop, self._directory_failed, failed)
        for directory in self.log_directories:
            if not directory.is_online:
                self._directory_failed(directory)
        self.in_sync.start(lambda: self)
        self._reports.start()
        self.moves.resume(self.get, self._is_placed)
        self.openings.start()
        for partition in self:
            self._follow(partition)

    async def stop(self) -> None:
        """End fetches and proposals; the partitions stay as they are."""
        self._is_started = False
        await self.handovers.stop()
        await self._rechecks.stop()
        await self.openings.stop()
        await self.departures.stop()
        if self.fetchers is not None:
            await self.fetchers.stop()
        await self.in_sync.stop()
        await self._reports.stop()
        await self.moves.stop()  # last: the moves sync their copies, which may take long

    def close(self) -> None:
        """End all partitions' waits; the logs are closed by their manager."""
        for partition in self:
            partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- who is here --------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._topics.values():
            yield from partitions.values()

    def get(self, topic: str, index: int) -> Partition | None:
        return self._topics.get(topic, {}).get(index)

    def leader(self, topic: str, index: int, leader_epoch: int = -1) -> Partition:
        """Return the partition, led by this broker. Raises UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER; for a
        client's other leader epoch than a replica here knows, what `Partition.check_epoch` raises.
        """
        partitions = self._topics.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is not None and partition.is_leader:
            if leader_epoch != -1:
                partition.check_epoch(leader_epoch)
            return partition
        if partition is not None:
            partition.check_epoch(leader_epoch)
        raise self._not_leading(topic, index, partition)

    def replica(self, topic: str, index: int, leader_epoch: int = -1) -> Partition:
        """Return the partition, whichever broker leads it (KIP-392). Raises as `leader` where no replica is here."""
        partition = self._topics.get(topic, {}).get(index)
        if partition is None or (not partition.is_leader and partition.state.leader < 0):
            raise self._not_leading(topic, index, partition)
        if leader_epoch != -1:
            partition.check_epoch(leader_epoch)
        return partition

    def heard_from(self, broker_id: int) -> None:
        """Note a follower's fetch: its unnamed partitions are where they were. Unknown ids are not remembered."""
        if self._metadata.brokers.get(broker_id) is not None:
            self.in_sync.contact(broker_id).fetched_ms = self._clock.monotonic_ms()

    def _not_leading(self, topic: str, index: int, partition: Partition | None) -> BrokerError:
        known = self._metadata.topics.get(topic)
        if known is None or index not in known.partitions:
            return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        is_missing = partition is None and self._is_placed(topic, index)
        if is_missing and (known.topic_id, index) not in self.openings:
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)
        return BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _is_placed(self, topic: str, index: int) -> bool:
        known = self._metadata.topics.get(topic)
        return known is not None and index in known.partitions and self._node_id in known.partitions[index].replicas

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
            self._rechecks.add(self)

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
            elif self.get(partition.topic, partition.index) is partition:
                self._follow(partition)

    def _host(self, topic: Topic, indexes: Iterable[int]) -> None:
        states, hosted = topic.partitions, self._topics.get(topic.name, {})
        new = [index for index in indexes if index not in hosted and self._node_id in states[index].replicas]
        self.openings.add_all(topic.topic_id, new)
        for index in [index for index in indexes if index in hosted]:
            partition, state = hosted[index], states[index]
            if self._node_id not in state.replicas:
                self._drop_unless_placed(partition)
            elif partition.is_damaged and self._is_given_up(state):
                self._begin_anew(partition)
                self.openings.add(topic.topic_id, index)
            elif partition.topic_id == topic.topic_id:
                self._hand_over(partition, state)
            else:
                self.openings.add(topic.topic_id, index)

    def _open_placed(self, topic_id: bytes, index: int, is_prepared: bool) -> None:
        """Open the partition in its turn, if it is still placed here and no former log of its name is left."""
        topic = self._metadata.topics.by_id(topic_id)
        if topic is None or not self._is_placed(topic.name, index):
            return
        if self.openings.wait_for_thread(topic.name, topic_id, index):
            return
        self.departures.end_now(topic.name, index)
        self._logs.make_way(topic.name, index, topic_id)
        if self._is_given_up(topic.partitions[index]) and self._logs.unusable(topic.name, index) is not None:
            self._set_aside(topic.name, index)  # before the partition is opened: a thread has to forget this log, too
        self._refusals.lift(topic, index)
        if is_prepared or not self.openings.prepare_first(topic.name, topic_id, index):
            self._open(topic, index, topic.partitions[index])

    def _open_again(self, topic_id: bytes, index: int) -> None:
        """Try again to open logs: the disk was full or failed, and may work by now."""
        topic = self._metadata.topics.by_id(topic_id)
        hosted = None if topic is None else self.get(topic.name, index)
        if self._is_started and (hosted is None or hosted.topic_id != topic_id):
            self.openings.add(topic_id, index)
            self.openings.open_soon()

    def _open(self, topic: Topic, index: int, state: PartitionState) -> None:
        opened = self._opened(topic, index, state)
        if opened is None:
            return
        if opened.damage and self._is_given_up(state):
            self._set_aside(topic.name, index)
            self._open_placed(topic.topic_id, index, is_prepared=False)
            return
        high_watermark = self._logs.high_watermark(topic.name, index)
        partition = Partition(
            topic.name, index, opened, state, self._node_id, self._clock, self.in_sync, high_watermark
        )
        self._topics.setdefault(topic.name, {})[index] = partition
        self._names[topic.topic_id] = topic.name
        self._reports.forget((topic.topic_id, index))
        self._missing.forget((topic.topic_id, index))
        if not (partition.is_damaged and self._is_replaceable(partition, opened.damage)):
            self._report_directory(partition)
        self._follow(partition)
        if partition.is_leader:
            self._tell(partition, True)

    def _set_aside(self, topic: str, index: int) -> None:
        log.warning("replica.restarted", partition=f"{topic}-{index}")
        self._logs.set_aside(topic, index)

    def _opened(self, topic: Topic, index: int, state: PartitionState) -> Log | None:
        """Return the partition's log, made where there may be a new one; None where the replica is offline."""
        try:
            online = [directory.directory_id for directory in self._logs.online]
            is_missing = is_log_missing(self._logs, topic, index, state.directory_of(self._node_id))
            if is_missing and self._missing.check((topic.topic_id, index), state, online):
                self._reports.report((topic.topic_id, index), LOST_DIRECTORY)
                return None  # until the controller has taken the report
            gone_at = self._refusals.check(topic, index, is_starting=not self._is_started)
            return self._refusals.judge(self._made(topic, index, state, is_missing=is_missing), state, gone_at)
        except BrokerError as error:
            log.error("partition.not_opened", topic=topic.name, partition=index, reason=str(error))
            return None

    def _made(self, topic: Topic, index: int, state: PartitionState, *, is_missing: bool) -> Log:
        """Make the log; a directory that fails is reported, and tried again later. Raises BrokerError."""
        place, home = (topic.topic_id, index), state.directory_of(self._node_id)
        try:
            config = self._effective.topic(topic.name)
            return self._logs.create(topic.name, index, topic.topic_id, config, self._clock.now_ms(), home)
        except BrokerError as error:
            if is_missing and isinstance(error.__cause__, OSError):
                self._missing.note_unmade(place)
            if home not in GIVEN_UP:
                self._reports.report(place, UNMADE_DIRECTORY if is_missing else LOST_DIRECTORY)
            if isinstance(error.__cause__, OSError) and self._timers is not None:
                self._timers.after(REOPEN_MS, self._open_again, topic.topic_id, index)
            raise

    def _is_replaceable(self, partition: Partition, damage: str) -> bool:
        """Whether other replicas have the records that a start found damaged here. The damage is reported before this
        broker leads a partition: the controller would take the replica for one that has all its records.
        """
        good = others(self._node_id, partition.state)
        log.error("replica.damaged", partition=str(partition), others=good, reason=damage)
        if not good:
            return False
        if partition.state.directory_of(self._node_id) not in GIVEN_UP:
            self._reports.report((partition.topic_id, partition.index), LOST_DIRECTORY)
        return True

    async def damage_told(self) -> None:
        """Wait until the controller knows which replicas the start found damaged, and where the others are."""
        await self._reports.told()

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
        if partition.is_damaged or state.directory_of(self._node_id) in GIVEN_UP:
            self._give_up_damaged(partition)
        else:
            self._report_directory(partition)  # an old report that was delivered late may have replaced a newer one

    def _follow(self, partition: Partition) -> None:
        # A damaged log would come into the in-sync set without its lost records; it begins again first.
        may_follow = not (partition.is_leader or partition.is_damaged)
        if self._is_started and self.fetchers is not None and may_follow:
            self.fetchers.follow(partition)

    def _drop(self, topic_id: bytes) -> None:
        """Take the partitions of a deleted topic out of service."""
        if (name := self._names.pop(topic_id, None)) is not None:
            self.departures.add(name, self._topics.pop(name))

    def _drop_unless_placed(self, partition: Partition) -> None:
        """Give the partition up where its topic is gone, or its replica was moved to other brokers."""
        topic = self._metadata.topics.by_id(partition.topic_id)
        if topic is None:
            self._give_up(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif self._node_id not in topic.partitions[partition.index].replicas:
            log.info("partition.moved", partition=str(partition))
            self._give_up(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _give_up(self, partition: Partition, code: ErrorCode) -> None:
        partitions = self._topics[partition.topic]
        del partitions[partition.index]
        if not partitions:
            del self._topics[partition.topic]
            del self._names[partition.topic_id]
        self._end(partition, code)

    def _end(self, partition: Partition, code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> None:
        if self.fetchers is not None:
            self.fetchers.leave(partition)
        if partition.is_leader:
            self._tell(partition, False)
        self.moves.cancel(partition)
        self._reports.forget((partition.topic_id, partition.index))
        partition.close(code)
        if code != ErrorCode.KAFKA_STORAGE_ERROR:
            self._logs.delete(partition.topic, partition.index)

    # --- directories --------------------------------------------------------------------------------------------

    @property
    def log_directories(self) -> Sequence[LogDirectory]:
        """Return all log directories of this broker, the offline ones too."""
        return self._logs.directories

    def directory_of(self, partition: Partition) -> LogDirectory | None:
        return self._logs.directory_of(partition.topic, partition.index)

    def _report_directory(self, partition: Partition) -> None:
        """Tell the controller where a replica is, unless it knows."""
        directory = self.directory_of(partition)
        if directory is not None and partition.state.directory_of(self._node_id) != directory.directory_id:
            self._reports.report((partition.topic_id, partition.index), directory.directory_id)

    def _damaged(self, partition: Partition) -> None:
        """Handle a batch of a log that has changed on the disk. Where others have the records this replica leaves the
        in-sync set, as a lost one does, and then begins again as their follower.
        """
        log.error("replica.damaged", partition=str(partition), in_sync=list(partition.isr))
        self._give_up_damaged(partition)

    def _give_up_damaged(self, partition: Partition) -> None:
        """Give the damaged log up when other replicas are in sync; until then no replica has more than this log."""
        if partition.state.directory_of(self._node_id) in GIVEN_UP:
            self._report_directory(partition)  # the replica counts again: none other led, or its log could be opened
        elif any(broker_id != self._node_id for broker_id in partition.isr):
            self._reports.report((partition.topic_id, partition.index), LOST_DIRECTORY)

    def _is_given_up(self, state: PartitionState) -> bool:
        """Whether the controller took the report of a damaged replica, and another leads what was damaged here."""
        return state.directory_of(self._node_id) in GIVEN_UP and state.leader not in (NO_LEADER, self._node_id)

    def _refused(self, partition: Partition) -> None:
        """Handle a log that takes no records. This broker holds up all clients that need the replica: as the leader it
        refuses records that others could take, as an in-sync replica it lets the leader wait. So this broker should not
        take part, unless a replicated partition that it leads would have no leader then.
        """
        is_awaited = len(partition.isr) > 1 and self._node_id in partition.isr
        led = (hosted for hosted in self if hosted.is_leader and len(hosted.state.replicas) > 1)
        if is_awaited and all(len(hosted.isr) > 1 for hosted in led):
            for listener in self.refusal_listeners:
                listener()

    @property
    def is_needed(self) -> bool:
        """Whether a partition that is placed here has no leader."""
        return any(partition.state.leader < 0 for partition in self)

    def _begin_anew(self, partition: Partition) -> None:
        self._give_up(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        self._set_aside(partition.topic, partition.index)

    def _directory_failed(self, directory: LogDirectory) -> None:
        """Take the directory's replicas offline until the broker starts again with a directory that works."""
        lost = [partition for partition in self if self.directory_of(partition) is directory]
        log.error("directory.lost", directory=directory.path, partitions=len(lost))
        for partition in lost:
            self._give_up(partition, ErrorCode.KAFKA_STORAGE_ERROR)
            if partition.state.directory_of(self._node_id) != directory.directory_id:
                # The controller would not count the replica as lost: it does not know yet that the replica was here.
                self._reports.report((partition.topic_id, partition.index), LOST_DIRECTORY)
        # A directory whose id could not be read was not registered: the controller would not know it.
        if directory.directory_id != ZERO:
            for listener in self.directory_listeners:
                listener(directory.directory_id)

    def _reconfigure(self, record: ConfigRecord) -> None:
        """Take over configs of one topic, or the defaults of this broker's topics."""
        is_of_all = record.resource_type == ResourceType.BROKER
        if not is_of_all and record.resource_type != ResourceType.TOPIC:
            return
        for name in list(self._topics) if is_of_all else [record.resource_name]:
            config = self._effective.topic(name)
            for partition in self._topics.get(name, {}).values():
                partition.log.config = config
                partition.followers_changed()

    def _tell(self, partition: Partition, is_leader: bool) -> None:
        for listener in self.leadership_listeners:
            listener(partition, is_leader)
