"""What a follower does with what its leader has answered for one partition.

    records          append them (synced, where `flush.messages` wants that), move the high watermark and the start
                     of the log as far as the leader's
    diverging epoch  cut the log where it parts from the leader's, and ask again (KIP-595)
    out of range     the log's end lies outside the leader's: cut, or start over at the leader's start
    an error         ask again a little later; most of them mean that one of the two has not heard of an election yet

A batch with a wrong CRC is never written: it is named in the log and asked for again, by then perhaps of another
leader.
"""

from enum import Enum, auto

from kavka_broker.core.authorization.acl_types import NODE_ADVICE
from kavka_broker.core.partition.follower import Resume, first_fetch_offset, resume, truncation_offset
from kavka_broker.core.partition.leader_epochs import NO_OFFSET, EpochEnd
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.protocol.records.batch import EXTENT_BYTES, read_extent
from kavka_broker.replica.following.truncation import cut, restart_at
from kavka_broker.replica.leading.partition import Partition

log = get("replica")


class Next(Enum):
    """The next step of the fetcher with a partition."""

    FETCH = auto()  # from the log's end, which may be the same
    LOOK_UP = auto()  # ask the leader where its log begins and ends
    LATER = auto()  # after a pause
    NEVER = auto()  # not from this leader at this epoch: a newer decision is on its way


def begin(partition: Partition) -> None:
    """Give the partition a leader to follow. Records without epochs cannot be compared, so they go."""
    partition.give_up_cut()
    end_offset = partition.log.log_end_offset
    offset = first_fetch_offset(partition.log.epochs, end_offset, partition.high_watermark)
    if offset < end_offset:
        cut(partition, offset)


def take(partition: Partition, data: PartitionData, now_ms: int) -> Next:
    """Do what the answer asks for; `data` answers a fetch from the log's end."""
    match data.error_code:
        case ErrorCode.NONE:
            pass
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            return Next.LOOK_UP
        case ErrorCode.FENCED_LEADER_EPOCH:
            return Next.NEVER
        case ErrorCode.TOPIC_AUTHORIZATION_FAILED | ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            error = ErrorCode(data.error_code).name
            log.warning("fetch.not_allowed", partition=str(partition), error=error, fix=NODE_ADVICE)
            return Next.LATER
        case _:
            log.debug("fetch.refused", partition=str(partition), error=ErrorCode(data.error_code).name)
            return Next.LATER
    try:
        if _has_diverged(data):
            cut_diverging(partition, EpochEnd(data.diverging_epoch.epoch, data.diverging_epoch.end_offset))
        else:
            append(partition, data, now_ms)
    except BrokerError as error:
        log.error(
            "fetch.damaged" if error.code == ErrorCode.CORRUPT_MESSAGE else "fetch.not_taken",
            partition=str(partition),
            leader=partition.state.leader,
            reason=str(error),
        )
        partition.refused(error)
        if has_parted(partition, data):
            # The logs' epochs agree, so cutting could not make the logs equal: the disk has changed a batch.
            partition.found_damaged()
        return Next.LATER
    return Next.FETCH


def has_parted(partition: Partition, data: PartitionData) -> bool:
    """Whether this log ends inside a batch of its leader's, which no log does that has only followed."""
    records, end_offset = data.records, partition.log.log_end_offset
    if not records:
        return False
    assert isinstance(records, memoryview | bytes | bytearray)
    if len(records) < EXTENT_BYTES or partition.log.log_start_offset == end_offset:
        return False
    try:
        first = read_extent(records)
    except ProtocolViolation:
        return False
    return first.base_offset < end_offset <= first.last_offset


def append(partition: Partition, data: PartitionData, now_ms: int) -> None:
    log_ = partition.log
    records = data.records
    if records:
        assert isinstance(records, memoryview | bytes | bytearray)
        try:
            log_.append_as_follower(memoryview(records), now_ms, leader_epoch=partition.leader_epoch)
        finally:
            # An empty log may have begun again in front of its start, where the disk had no room.
            partition.high_watermark = min(partition.high_watermark, log_.log_end_offset)
            partition.sync_soon()  # the log's first batches may have come, and the next fetch waits for their sync
        partition.traffic.bytes_copied += len(records)
    _follow(partition, data)


def take_overtaken(partition: Partition, data: PartitionData) -> None:
    """Take the answer to a fetch from before the present end: another answer has brought the same records. Only the
    high watermark and the log's start are news, and a leader reports each value once.
    """
    if data.error_code == ErrorCode.NONE and not (_has_diverged(data) or partition.log.durability.is_being_cut):
        _follow(partition, data)


def _has_diverged(data: PartitionData) -> bool:
    return data.diverging_epoch.end_offset >= 0 or data.diverging_epoch.epoch >= 0


def _follow(partition: Partition, data: PartitionData) -> None:
    log_ = partition.log
    partition.follow_high_watermark(data.high_watermark)
    if log_.log_start_offset < data.log_start_offset <= partition.high_watermark:
        log_.advance_start(data.log_start_offset)


def cut_diverging(partition: Partition, diverging: EpochEnd) -> None:
    """Cut where the leader's log parts from this one. Raises BrokerError, also for an impossible offset."""
    if diverging.end_offset < NO_OFFSET:
        raise _impossible(partition, diverging.end_offset)
    end_offset = partition.log.log_end_offset
    offset = truncation_offset(diverging, partition.log.epochs, end_offset, partition.high_watermark)
    log.info(
        "log.diverged",
        partition=str(partition),
        leader=partition.state.leader,
        leader_epoch=partition.leader_epoch,
        diverging_epoch=diverging.epoch,
        from_offset=end_offset,
        to_offset=offset,
    )
    cut(partition, offset)


def resume_between(partition: Partition, leader_start: int, leader_end: int) -> Resume:
    """Resume where the leader's log spans these offsets and ours did not end between them; returns what was done.

    Raises BrokerError, also for impossible offsets.
    """
    if min(leader_start, leader_end) < 0:
        raise _impossible(partition, min(leader_start, leader_end))
    how, offset = resume(leader_start, leader_end, partition.log.log_end_offset)
    log.warning(
        "fetch.repositioned",
        partition=str(partition),
        leader=partition.state.leader,
        leader_start=leader_start,
        leader_end=leader_end,
        log_end_offset=partition.log.log_end_offset,
        what=how.name,
    )
    match how:
        case Resume.CUT:
            cut(partition, offset)
        case Resume.RESTART:
            restart_at(partition, offset)
        case Resume.GO_ON:
            pass  # the log's epochs are in doubt: the caller checks them, which takes a while
    return how


def _impossible(partition: Partition, offset: int) -> BrokerError:
    problem = f"{partition}: the leader, {partition.state.leader}, names the offset {offset}"
    return BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
