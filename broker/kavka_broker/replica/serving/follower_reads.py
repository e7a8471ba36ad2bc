"""A fetch from a follower: it reads to the end of the log, and by asking acknowledges what it has.

The follower says who it is and in which incarnation (version 15 and later). What it asks for, it has everything below:
that is noted once the read has shown that its position makes sense, and not again when it has waited. Rules of Kafka's,
in the order of the checks:

- another leader epoch than ours: FENCED_LEADER_EPOCH, or UNKNOWN_LEADER_EPOCH where we are the ones who lag;
- its last epoch is unknown here or its position lies before our log: OFFSET_OUT_OF_RANGE;
- its log and ours have parted: where, and no records; nothing is noted;
- a broker that is no replica as far as we have heard: UNKNOWN_LEADER_EPOCH; one that has restarted since it
  registered with that epoch: NOT_LEADER_OR_FOLLOWER.
"""

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.serving.pending_fetch import Follower


def read_as_follower(
    partition: Partition,
    asked: SessionPartition,
    follower: Follower,
    bytes_max: int,
    at_least_one: bool,
    *,
    has_waited: bool = False,
) -> PartitionData:
    """Return what `follower` gets of one partition. Raises BrokerError, as the rules above say."""
    position, log = asked.position, partition.log
    offset = position.fetch_offset
    data = PartitionData(asked.index, 0, log_start_offset=log.log_start_offset, aborted_transactions=None)
    data.records = b""
    diverging = diverging_epoch(partition, position.last_fetched_epoch, offset)
    if diverging is not None:
        data.high_watermark, data.last_stable_offset = partition.high_watermark, partition.last_stable_offset
        data.diverging_epoch = diverging
        return data
    end_offset = log.log_end_offset
    if offset != end_offset:
        size = max(0, min(position.partition_max_bytes, bytes_max))
        # Batches written by this process are not checked until a follower asks for them again; a long poll asks once.
        is_doubted = (size > 0 or at_least_one) and partition.asks_again(follower.broker_id, offset)
        data.records = partition.read(offset, size, end_offset, at_least_one, is_doubted=is_doubted).parts
    if has_waited:
        partition.follower(follower.broker_id)  # Raises where the broker is no replica any more.
    else:
        partition.follower_fetched(follower.broker_id, follower.broker_epoch, offset, position.log_start_offset)
    data.high_watermark, data.last_stable_offset = partition.high_watermark, partition.last_stable_offset
    return data


def diverging_epoch(partition: Partition, last_fetched_epoch: int, fetch_offset: int) -> EpochEndOffset | None:
    """Return where the follower's log and ours part, if they do. Raises OFFSET_OUT_OF_RANGE where it is unknown."""
    if last_fetched_epoch < 0:
        return None
    log = partition.log
    epoch, end_offset = log.epoch_end_offset(last_fetched_epoch)
    if end_offset < 0 or epoch < 0:
        raise BrokerError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition}: the end of leader epoch {last_fetched_epoch} is not known"
        )
    if fetch_offset < log.log_start_offset:
        raise BrokerError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition}: {fetch_offset} is below the start, {log.log_start_offset}"
        )
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return EpochEndOffset(epoch, end_offset)
    return None
