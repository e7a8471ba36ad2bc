"""What becomes of a replica whose log the start has found damaged, another partition's, or gone.

Where others have all that is committed, in sync or as eligible leaders, it is told as lost before this broker may lead
anything, and begins again once one of them leads. Where nobody has, what can be read of a damaged log is all there is:
it stays, and leads. A log that is not this partition's, or is not there, holds nothing of it: that replica is offline.
"""

from typing import Final

from kavka_broker.core.metadata.image.topics import PartitionState, Topic
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage.file_names import PARTITION_METADATA, PartitionName
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager

GONE: Final = "its log is gone, and no other replica has all records"
PUT_BACK: Final = "Put it back, or remove its line from recovery-point-offset-checkpoint to begin with nothing"
OTHER_TOPIC: Final = (
    "names another topic, and no other replica has all records. If the records are this topic's, put its own back"
)
TAKE_IT: Final = "Put its own back, or remove the indexes beside it to take it for this partition's"


def others(node_id: int, state: PartitionState) -> list[int]:
    """Return the other brokers that have every committed record."""
    return [broker_id for broker_id in (*state.isr, *state.elr) if broker_id != node_id]


class Refusals:
    """Logs that the start refused to use. They stay refused until the next start, or until other replicas have all."""

    def __init__(self, node_id: int, logs: LogManager) -> None:
        self._node_id = node_id
        self._logs = logs
        self._refused: dict[PartitionName, tuple[bytes, str]] = {}  # the topic's id, and the reason

    def lift(self, topic: Topic, index: int) -> None:
        """Have the checkpoints forget a lost log that is no longer missed: a new log is made."""
        name = PartitionName(topic.name, index)
        refused_id, _ = self._refused.get(name, (topic.topic_id, ""))
        if refused_id != topic.topic_id:
            del self._refused[name]
        if name not in self._refused or others(self._node_id, topic.partitions[index]):
            self._logs.missed.pop(name, None)

    def check(self, topic: Topic, index: int, *, is_starting: bool) -> int:
        """Return where a log ended that was closed cleanly and is gone; 0 where no log is missed. Raises
        KAFKA_STORAGE_ERROR for a lost log, or another topic's, where no other replica has all records.
        """
        name, state = PartitionName(topic.name, index), topic.partitions[index]
        existing, is_alone = self._logs.get(topic.name, index), not others(self._node_id, state)
        gone_at = self._closed_at(name) if existing is None and is_starting else 0
        if is_alone and name in self._refused:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, self._refused[name][1])
        if is_alone and gone_at and self._logs.unusable(topic.name, index) is None:
            self._logs.missed[name] = None
            self._refuse(name, topic.topic_id, f"{name}: {GONE}; it ended at {gone_at}. {PUT_BACK}")
        if is_starting and existing is not None and existing.topic_id not in (topic.topic_id, ZERO):
            home, is_counted = self._logs.directory_of(topic.name, index), self._node_id in (*state.isr, *state.elr)
            if home is not None and home.is_clean and is_counted:
                gone_at = existing.log_end_offset
                if is_alone:
                    self._refuse(name, topic.topic_id, f"{existing.directory}/{PARTITION_METADATA} {OTHER_TOPIC}")
        return gone_at

    def judge(self, opened: Log, state: PartitionState, gone_at: int) -> Log:
        """Return the log. Raises KAFKA_STORAGE_ERROR where its records are not this partition's, as `check` does."""
        if gone_at:
            opened.damage = f"its log is gone, which ended at {gone_at}"
        if opened.is_foreign and not others(self._node_id, state):
            self._refuse(opened.name, opened.topic_id, f"{opened.damage}; no other replica has all records. {TAKE_IT}")
        return opened

    def _refuse(self, name: PartitionName, topic_id: bytes, reason: str) -> None:
        self._refused[name] = topic_id, reason
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    def _closed_at(self, name: PartitionName) -> int:
        return max((home.recovery_points.get(name, 0) for home in self._logs.online if home.is_clean), default=0)
