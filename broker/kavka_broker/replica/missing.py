"""Replicas whose log is not to be found: may a new one be made, or is it offline?

The image names the directory in which a broker keeps its replica. Where that is none of the directories that work, the
log is not gone: the volume may come back, or it was taken away by mistake. A new and empty log would take its place,
and lead, where nobody else has the records. So it is made only where

- no directory was chosen yet, or the one that was is there (the log was never made, or the directory was emptied);
- this process has tried to make the log and found none: there is nothing to be lost;
- another replica leads, and this one is not in sync. Eligible leaders that are down are not enough: they may lose their
  claim, and the controller would elect the last that led, which might be this one, with nothing.

Apache Kafka makes the new log unless it knows of a directory that has failed.
"""

from collections.abc import Collection

from kavka_broker.core.metadata.brokers import NOT_CHOSEN
from kavka_broker.core.metadata.topics import NO_LEADER, PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import to_text

Place = tuple[bytes, int]  # topic id, index
#: More are forgotten, the first of them first; their replicas then wait for the volume or for an in-sync replica.
UNMADE_MAX = 100_000


class MissingLogs:
    """What broker `node_id` may begin anew."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._unmade: dict[Place, None] = {}

    def note_unmade(self, place: Place) -> None:
        """There was no log, and making one failed."""
        if len(self._unmade) >= UNMADE_MAX:
            del self._unmade[next(iter(self._unmade))]
        self._unmade[place] = None

    def forget(self, place: Place) -> None:
        """It has a log now."""
        self._unmade.pop(place, None)

    def check(self, place: Place, state: PartitionState, online: Collection[bytes]) -> None:
        """Raises KAFKA_STORAGE_ERROR where no new log may be made; `online` are the directories that work."""
        home = state.directory_of(self._node_id)
        if home in NOT_CHOSEN or home in online or place in self._unmade:
            return
        if state.leader not in (NO_LEADER, self._node_id) and self._node_id not in state.isr:
            return
        problem = (
            f"its log is in directory {to_text(home)}, which is not there, and no other replica has all records; "
            "bring that directory back"
        )
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, problem)
