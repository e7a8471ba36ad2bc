"""Reading a partition of `__share_group_state` as its new leader: snapshots and updates, in the order of the log."""

import asyncio
from collections.abc import Iterator
from typing import Final

from kavka_broker.coordinator.led_partition import LoadablePartition
from kavka_broker.core.share.share_records import BATCHES_CHECKED_MAX, ShareUpdateValue, read_parts
from kavka_broker.core.share.share_states import ShareStates
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import Record, read_records

SLICE_BYTES_MAX: Final = 64 * 1024
REPLAY_COST: Final = 20_000
"""The cost of a record beside the bytes of the state that it changes, which are copied."""
BATCH_COST: Final = 10_000
"""The cost of a batch that is merged into a state."""
CHECK_COST: Final = BATCHES_CHECKED_MAX * 250
"""The cost of looking at batches that are taken over as they are."""
COST_PER_SLICE_MAX: Final = 200 * REPLAY_COST
"""Slices of this size take a few milliseconds."""


async def load(partition: LoadablePartition, states: ShareStates) -> int:
    """Replay the log from its start to its present end; returns the number of records.

    Raises BrokerError and ProtocolViolation.
    """
    log, count, work = partition.log, 0, 0
    offset, end_offset = log.log_start_offset, log.log_end_offset
    while offset < end_offset:
        chunk = partition.read(offset, SLICE_BYTES_MAX, end_offset, at_least_one=True)
        before = offset
        for part in chunk.parts:
            for header, batch in split_batches(part):
                for record in () if header.is_control else read_records(batch):
                    count += 1
                    for cost in replay(record, states):
                        work += cost
                        if work >= COST_PER_SLICE_MAX:
                            work = 0
                            await asyncio.sleep(0)
                offset = header.next_offset
        if offset == before:
            break
        await asyncio.sleep(0)
    return count


def replay(record: Record, states: ShareStates) -> Iterator[int]:
    """Take over a record of the log, a part a step, each with its cost; one of an unknown kind is passed over.
    Raises ProtocolViolation.
    """
    goes_on = False
    try:
        for part in read_parts(record.key or b"", record.value):
            if part is None:
                yield CHECK_COST
                continue
            batches = len(part[1].state_batches) if isinstance(part[1], ShareUpdateValue) else 0
            copied = states.replay(*part, record.offset, record.timestamp, goes_on=goes_on)
            goes_on = True
            yield REPLAY_COST + BATCH_COST * batches + copied
    except ProtocolViolation as problem:
        raise ProtocolViolation(f"offset {record.offset}: {problem}") from None
