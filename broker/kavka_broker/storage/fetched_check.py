"""What a follower demands of the batches that its leader has sent, before it appends the first of them.

The leader has judged the records. A follower looks at what may have been damaged on the way (length, magic, CRC), and
at what would make its log another one than the leader's: offsets and leader epochs that go back.
"""

from typing import NamedTuple

from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import MAGIC, BatchHeader, crc_is_valid, split_batches
from kavka_broker.storage.batch_check import corrupt
from kavka_broker.storage.epoch_file import EpochFile
from kavka_broker.storage.log_state import LogState


class Fetched(NamedTuple):
    """Whole batches. The first `begins_within` an empty log: it holds the offset at which the log begins."""

    batches: list[tuple[BatchHeader, memoryview]]
    begins_within: bool


def judge_fetched(batches: memoryview, state: LogState, epoch_file: EpochFile, leader_epoch: int) -> Fetched:
    """Return the batches, each of them fit to be appended. Raises BrokerError as `Log.append_as_follower` does."""
    end_offset, latest_epoch = state.end_offset, epoch_file.epochs.latest
    whole = _whole(batches, state)
    begins_within = bool(whole) and 0 <= whole[0][0].base_offset < end_offset <= whole[0][0].last_offset
    if begins_within and state.start_offset == end_offset:
        end_offset = whole[0][0].base_offset
    for header, batch in whole:
        if header.magic != MAGIC or not crc_is_valid(batch):
            raise corrupt(f"{state.name}: a fetched batch at offset {header.base_offset} has a wrong CRC")
        if header.base_offset < end_offset or header.last_offset_delta < 0:
            raise _unexpected(state, header, f"the log ends at {end_offset}")
        if not latest_epoch <= header.leader_epoch <= leader_epoch:
            if header.leader_epoch < epoch_file.epochs.latest:
                epoch_file.were_wrong()  # the leader knows of no divergence; the next fetch names the true epoch
            raise _unexpected(state, header, f"the log is at epoch {latest_epoch}, the leader at {leader_epoch}")
        end_offset, latest_epoch = header.next_offset, header.leader_epoch
    assert end_offset >= state.start_offset
    return Fetched(whole, begins_within)


def _whole(batches: memoryview, state: LogState) -> list[tuple[BatchHeader, memoryview]]:
    try:
        whole = list(split_batches(batches))
    except ProtocolViolation as problem:
        raise corrupt(f"{state.name}: what was fetched at offset {state.end_offset}: {problem}") from None
    if len(batches) and not whole:
        raise corrupt(f"{state.name}: not one whole batch in what was fetched at offset {state.end_offset}")
    return whole


def _unexpected(state: LogState, header: BatchHeader, why: str) -> BrokerError:
    return BrokerError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"{state.name}: a fetched batch of epoch {header.leader_epoch} spans {header.base_offset} to "
        f"{header.last_offset}; {why}",
    )
