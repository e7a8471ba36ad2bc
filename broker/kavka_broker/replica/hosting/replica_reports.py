"""What the controller is told of the replicas of this broker: in which directory each is, and which are lost."""

from kavka_broker.core.metadata.image.brokers import GIVEN_UP, LOST_DIRECTORY
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState
from kavka_broker.logs import get
from kavka_broker.replica.hosting.damaged_replicas import others
from kavka_broker.replica.hosting.directory_reports import DirectoryReports
from kavka_broker.replica.hosting.replica_changes import Place
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_manager import LogManager

log = get("replica")


class ReplicaReports:
    """The replicas of broker `node_id`, whose logs are in `logs`. `sending` takes the reports to the controller."""

    def __init__(self, node_id: int, logs: LogManager, sending: DirectoryReports) -> None:
        self._node_id = node_id
        self._logs = logs
        self.sending = sending

    def directory_of(self, partition: Partition) -> LogDirectory | None:
        return self._logs.directory_of(partition.topic, partition.index)

    def report_directory(self, partition: Partition) -> None:
        """Tell the controller where a replica is, unless it knows."""
        directory = self.directory_of(partition)
        if directory is not None and partition.state.directory_of(self._node_id) != directory.directory_id:
            self.sending.report(place_of(partition), directory.directory_id)

    def report_lost(self, partition: Partition) -> None:
        self.sending.report(place_of(partition), LOST_DIRECTORY)

    def forget(self, partition: Partition) -> None:
        """Drop what was to be reported of a replica."""
        self.sending.forget(place_of(partition))

    # --- damage -------------------------------------------------------------------------------------------------

    def is_given_up(self, state: PartitionState) -> bool:
        """Whether the controller took the report of a damaged replica, and another leads what was damaged here."""
        return state.directory_of(self._node_id) in GIVEN_UP and state.leader not in (NO_LEADER, self._node_id)

    def is_replaceable(self, partition: Partition, damage: str) -> bool:
        """Whether other replicas have the records that a start found damaged here. The damage is reported before this
        broker leads a partition: the controller would take the replica for one that has all its records.
        """
        good = others(self._node_id, partition.state)
        log.error("replica.damaged", partition=str(partition), others=good, reason=damage)
        if not good:
            return False
        if partition.state.directory_of(self._node_id) not in GIVEN_UP:
            self.report_lost(partition)
        return True

    def damaged(self, partition: Partition) -> None:
        """Handle a batch of a log that has changed on the disk. Where others have the records this replica leaves the
        in-sync set, as a lost one does, and then begins again as their follower.
        """
        log.error("replica.damaged", partition=str(partition), in_sync=list(partition.isr))
        self.give_up_damaged(partition)

    def give_up_damaged(self, partition: Partition) -> None:
        """Give the damaged log up when other replicas are in sync; until then no replica has more than this log."""
        if partition.state.directory_of(self._node_id) in GIVEN_UP:
            self.report_directory(partition)  # the replica counts again: none other led, or its log could be opened
        elif any(broker_id != self._node_id for broker_id in partition.isr):
            self.report_lost(partition)

    def note_directory(self, partition: Partition) -> None:
        """Report what the controller's newest decision on a replica does not know yet."""
        if partition.is_damaged or partition.state.directory_of(self._node_id) in GIVEN_UP:
            self.give_up_damaged(partition)
        else:
            self.report_directory(partition)  # an old report that was delivered late may have replaced a newer one


def place_of(partition: Partition) -> Place:
    return partition.topic_id, partition.index
