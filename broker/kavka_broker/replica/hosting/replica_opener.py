"""Opens the logs of partitions that are placed here, and makes replicas of them (`log_opener` says when).

A log that is missing, damaged or another topic's is used, begun again or refused by the rules of `missing_logs` and
`damaged_replicas`; one that cannot be opened for want of a disk that works is tried again.
"""

from collections.abc import Callable
from typing import Final

from kavka_broker.core.metadata.image.brokers import GIVEN_UP, LOST_DIRECTORY, UNMADE_DIRECTORY
from kavka_broker.core.metadata.image.topics import PartitionState, Topic
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.replica.hosting.damaged_replicas import Refusals
from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions
from kavka_broker.replica.hosting.hosting_context import HostingContext
from kavka_broker.replica.hosting.log_opener import Openings
from kavka_broker.replica.hosting.missing_logs import MissingLogs, is_log_missing
from kavka_broker.replica.hosting.partition_deletions import Departures
from kavka_broker.replica.hosting.replica_reports import ReplicaReports
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.partition_host import PartitionHost
from kavka_broker.storage.log import Log

log = get("replica")

#: The pause before a log that could not be opened is tried again.
REOPEN_MS: Final = 5_000


class ReplicaOpener:
    """Adds a partition to `hosted` and calls `on_opened` with it when its log is open."""

    def __init__(
        self,
        context: HostingContext,
        hosted: HostedPartitions,
        reports: ReplicaReports,
        departures: Departures,
        host: PartitionHost[Partition],
        on_opened: Callable[[Partition], None],
    ) -> None:
        self._context = context
        self._logs = context.logs
        self._hosted = hosted
        self._reports = reports
        self._departures = departures
        self._host = host
        self._on_opened = on_opened
        self.openings = Openings(
            self._open_placed,
            context.logs,
            context.crash,
            config_of=context.effective.topic,
            now_ms=context.clock.now_ms,
        )
        self._missing = MissingLogs(context.node_id)
        self._refusals = Refusals(context.node_id, context.logs)
        self._is_started = False

    def start(self) -> None:
        """Let threads prepare logs: the loop runs from now on."""
        self._is_started = True
        self.openings.start()

    async def stop(self) -> None:
        self._is_started = False
        await self.openings.stop()

    def set_aside(self, topic: str, index: int) -> None:
        """Put a log out of the way, to begin again with none."""
        log.warning("replica.restarted", partition=f"{topic}-{index}")
        self._logs.set_aside(topic, index)

    def _open_placed(self, topic_id: bytes, index: int, is_prepared: bool) -> None:
        """Open the partition in its turn, if it is still placed here and no former log of its name is left."""
        topic = self._context.metadata.topics.by_id(topic_id)
        if topic is None or not self._hosted.is_placed(topic.name, index):
            return
        if self.openings.wait_for_thread(topic.name, topic_id, index):
            return
        state = topic.partitions[index]
        self._departures.end_now(topic.name, index)
        self._logs.make_way(topic.name, index, topic_id)
        if self._reports.is_given_up(state) and self._logs.unusable(topic.name, index) is not None:
            self.set_aside(topic.name, index)  # before the partition is opened: a thread has to forget this log, too
        self._refusals.lift(topic, index)
        if is_prepared or not self.openings.prepare_first(topic.name, topic_id, index):
            self._open(topic, index, state)

    def _open_again(self, topic_id: bytes, index: int) -> None:
        """Try again to open logs: the disk was full or failed, and may work by now."""
        topic = self._context.metadata.topics.by_id(topic_id)
        hosted = None if topic is None else self._hosted.get(topic.name, index)
        if self._is_started and (hosted is None or hosted.topic_id != topic_id):
            self.openings.add(topic_id, index)
            self.openings.open_soon()

    def _open(self, topic: Topic, index: int, state: PartitionState) -> None:
        opened = self._opened(topic, index, state)
        if opened is None:
            return
        if opened.damage and self._reports.is_given_up(state):
            self.set_aside(topic.name, index)
            self._open_placed(topic.topic_id, index, is_prepared=False)
            return
        context, high_watermark = self._context, self._logs.high_watermark(topic.name, index)
        partition = Partition(
            topic.name, index, opened, state, context.node_id, context.clock, self._host, high_watermark
        )
        self._hosted.add(partition)
        self._reports.forget(partition)
        self._missing.forget((topic.topic_id, index))
        if not (partition.is_damaged and self._reports.is_replaceable(partition, opened.damage)):
            self._reports.report_directory(partition)
        self._on_opened(partition)

    def _opened(self, topic: Topic, index: int, state: PartitionState) -> Log | None:
        """Return the partition's log, made where there may be a new one; None where the replica is offline."""
        place, home = (topic.topic_id, index), state.directory_of(self._context.node_id)
        try:
            online = [directory.directory_id for directory in self._logs.online]
            is_missing = is_log_missing(self._logs, topic, index, home)
            if is_missing and self._missing.check(place, state, online):
                self._reports.sending.report(place, LOST_DIRECTORY)
                return None  # until the controller has taken the report
            gone_at = self._refusals.check(topic, index, is_starting=not self._is_started)
            return self._refusals.judge(self._made(topic, index, home, is_missing=is_missing), state, gone_at)
        except BrokerError as error:
            log.error("partition.not_opened", topic=topic.name, partition=index, reason=str(error))
            return None

    def _made(self, topic: Topic, index: int, home: bytes, *, is_missing: bool) -> Log:
        """Make the log; a directory that fails is reported, and tried again later. Raises BrokerError."""
        place, context = (topic.topic_id, index), self._context
        try:
            config = context.effective.topic(topic.name)
            return self._logs.create(topic.name, index, topic.topic_id, config, context.clock.now_ms(), home)
        except BrokerError as error:
            if is_missing and isinstance(error.__cause__, OSError):
                self._missing.note_unmade(place)
            if home not in GIVEN_UP:
                self._reports.sending.report(place, UNMADE_DIRECTORY if is_missing else LOST_DIRECTORY)
            if isinstance(error.__cause__, OSError) and context.timers is not None:
                context.timers.after(REOPEN_MS, self._open_again, topic.topic_id, index)
            raise
