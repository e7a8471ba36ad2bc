"""Replicas whose log is not to be found: may a new one be made, or is it offline?

The image names the directory in which a broker keeps its replica. Where that is none of the directories that work, the
log is not gone: the volume may come back, or it was taken away by mistake. A new and empty log would take its place,
and lead, where nobody else has the records. So it is made only where

- no directory was chosen yet, or the one that was is there (the log was never made, or the directory was emptied);
- this process has tried to make the log and found none, or an earlier one has and told the controller so
  (`UNMADE_DIRECTORY`): there is nothing to be lost;
- another replica leads, and this one is not in sync. Eligible leaders that are down are not enough: they may lose their
  claim, and the controller would elect the last that led, which might be this one, with nothing.

In that last case the controller is told first that the former log is lost. It may not know yet that the directory is
not there, and this replica may be an eligible leader: the controller would elect it, for a log that is not there.

Apache Kafka makes the new log unless it knows of a directory that has failed.
"""

from collections.abc import Collection

from kavka_broker.core.metadata.image.brokers import GIVEN_UP, LOST_DIRECTORY, NOT_CHOSEN, UNMADE_DIRECTORY
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState, Topic
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import to_text
from kavka_broker.storage.log_manager import LogManager

Place = tuple[bytes, int]  # topic id, index
#: The most partitions remembered; beyond that the oldest wait for the volume or for an in-sync replica.
UNMADE_MAX = 100_000


def is_log_missing(logs: LogManager, topic: Topic, index: int, home: bytes) -> bool:
    """Whether the partition's log is missing from directory `home`. An unusable log fails when it is opened, and may be
    usable again by then.
    """
    existing = logs.get(topic.name, index)
    if existing is not None and existing.topic_id == topic.topic_id:
        # A log in another directory than the image names may be old: the volume was away, and is back.
        return home not in GIVEN_UP
    unusable = logs.unusable(topic.name, index)
    return unusable is None or not unusable.may_be_of(topic.topic_id)


class MissingLogs:
    """Partitions whose log broker `node_id` may begin again."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._unmade: dict[Place, None] = {}

    def note_unmade(self, place: Place) -> None:
        """Note that there was no log, and that making it failed."""
        if len(self._unmade) >= UNMADE_MAX:
            del self._unmade[next(iter(self._unmade))]
        self._unmade[place] = None

    def forget(self, place: Place) -> None:
        """Forget the partition: it has a log now."""
        self._unmade.pop(place, None)

    def check(self, place: Place, state: PartitionState, online: Collection[bytes]) -> bool:
        """Whether the former log is to be reported lost before a new one is made; `online` are the directories that
        work. Raises KAFKA_STORAGE_ERROR where no new log may be made.
        """
        home = state.directory_of(self._node_id)
        if home in NOT_CHOSEN or home == UNMADE_DIRECTORY or home in online or place in self._unmade:
            return False
        if state.leader not in (NO_LEADER, self._node_id) and self._node_id not in state.isr:
            return home != LOST_DIRECTORY
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{_where(home)}; no other replica has all records")


def _where(home: bytes) -> str:
    """Describe where a missing log was, and what to do."""
    if home == LOST_DIRECTORY:
        return "its log could not be used once, was given for lost, and is not here now; bring it back"
    return f"its log is in directory {to_text(home)}, which is not there; bring that directory back"
