"""How a follower's log is cut, in steps between which a thread waits for the disk.

    plan ──> the checkpoint goes back ──> cut ──> files and names are synced, ──> the partition is fetched again
                                                  the producers worked out

What is planned is forgotten where the partition comes to lead, or to follow somebody else, before anything was cut.
"""

from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.leading.partition import Partition

log = get("replica")


def cut(partition: Partition, offset: int) -> None:
    """Cut off the records that the leader does not have. Raises KAFKA_STORAGE_ERROR and CORRUPT_MESSAGE."""
    assert not partition.is_leader, f"{partition}: a leader does not truncate"
    partition.log.truncation.plan_cut(offset)
    go_on(partition)


def restart_at(partition: Partition, offset: int) -> None:
    """Empty the log, since the leader's log begins behind its end. Raises KAFKA_STORAGE_ERROR and CORRUPT_MESSAGE."""
    assert not partition.is_leader, f"{partition}: a leader does not start over"
    partition.log.truncation.plan_start(offset)
    go_on(partition)


def go_on(partition: Partition) -> None:
    """Do the cut's next step, or have a thread do it and call `partition.synced`. Raises KAFKA_STORAGE_ERROR and
    CORRUPT_MESSAGE.
    """
    partition.sync_soon()
    if partition.log.durability.may_be_cut:
        _carry_out(partition)
        partition.sync_soon()


def _carry_out(partition: Partition) -> None:
    log_, before = partition.log, partition.high_watermark
    try:
        log_.truncation.carry_out()
    except BrokerError as error:
        if error.code == ErrorCode.CORRUPT_MESSAGE:
            partition.found_damaged()  # what is to stay has changed on the disk: the replica begins again
        raise
    end_offset = log_.log_end_offset
    if end_offset < before:
        log.warning(
            "committed_records.truncated", partition=str(partition), to_offset=end_offset, high_watermark=before
        )
    log_.producer_files.doubt_transactions(before)
    partition.high_watermark = max(log_.log_start_offset, min(before, end_offset))
