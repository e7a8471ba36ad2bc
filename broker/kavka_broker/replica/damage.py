"""What becomes of a replica whose log the start has found damaged, another partition's, or gone.

Where others have all that is committed, in sync or as eligible leaders, it is told as lost before this broker may lead
anything, and begins anew once one of them leads. Where nobody has, what can be read of a damaged log is all there is:
it stays, and leads. A log that is not this partition's, or is not there, holds nothing of it: that replica is offline.
"""

from kavka_broker.core.metadata.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO, to_text
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.names import PARTITION_METADATA, PartitionName


def others(node_id: int, state: PartitionState) -> list[int]:
    """Who else has all that is committed."""
    return [one for one in (*state.isr, *state.elr) if one != node_id]


def closed_at(logs: LogManager, topic: str, index: int) -> int:
    """Where a log ended that was closed cleanly, and is not there any more; 0 where none is missed."""
    name = PartitionName(topic, index)
    return max((one.recovery_points.get(name, 0) for one in logs.online if one.is_clean), default=0)


def refuse_loss(name: str, end_offset: int) -> None:
    """Raises KAFKA_STORAGE_ERROR for a log that is gone."""
    if end_offset:
        raise BrokerError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{name}: its log is gone, and no other replica has all records; it ended at {end_offset}. Put it back, or "
            "remove its line from recovery-point-offset-checkpoint to begin with nothing",
        )


def refuse_other_topic(existing: Log, topic_id: bytes, logs: LogManager) -> None:
    """Raises KAFKA_STORAGE_ERROR where a log says that it is another topic's. This broker was the only one that had all
    records when it stopped cleanly, so it had this topic's log under the name.
    """
    home = logs.directory_of(existing.topic, existing.partition)
    if existing.topic_id not in (topic_id, ZERO) and home is not None and home.is_clean:
        raise BrokerError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{existing.directory}/{PARTITION_METADATA} names topic {to_text(existing.topic_id)} instead of "
            f"{to_text(topic_id)}, and no other replica has all records. If the records are this topic's, remove the file",
        )


def foreign(opened: Log) -> str:
    """Why a log of other records than this partition's is not used."""
    return (
        f"{opened.damage}; no other replica has all records. Put its own back, or remove the indexes beside it to take "
        "it for this partition's"
    )
