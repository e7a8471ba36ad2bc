"""Makes the batch of a decision, which the leader then appends and publishes."""

from collections.abc import Sequence
from typing import NamedTuple

from kavka_broker.controller.metadata_batches import metadata_batch
from kavka_broker.controller.metadata_log import BATCH_BYTES_MAX
from kavka_broker.core.metadata.image.features import level_in
from kavka_broker.core.metadata.image.replay_steps import Step, steps_of
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message


class DecidedBatch(NamedTuple):
    """A batch that a leader appends: its bytes, its records, and the steps of replaying them."""

    batch: bytearray
    records: Sequence[Message]
    steps: Sequence[Step]


def decided_batch(records: Sequence[Message], epoch: int, metadata_version: int, now_ms: int) -> DecidedBatch:
    """The batch that the leader of `epoch` appends for these records. A thread may call it. Raises BrokerError where
    the batch is too large.
    """
    level = level_in(records, metadata_version)
    batch = metadata_batch(records, base_offset=0, leader_epoch=epoch, now_ms=now_ms, metadata_version=level)
    if len(batch) > BATCH_BYTES_MAX:
        problem = f"the decision has {len(batch)} bytes, {BATCH_BYTES_MAX} fit in a batch; ask in smaller parts"
        raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
    return DecidedBatch(batch, records, steps_of(records))
