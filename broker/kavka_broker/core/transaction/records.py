"""Records of `__transaction_state`: the last of each transactional id says where it stands."""

from kavka_broker.core.transaction.state import Place, Standing, TransactionState
from kavka_broker.protocol.coordinator_records import frame_key, frame_value
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.messages.transaction.transaction_log_key import TransactionLogKey
from kavka_broker.protocol.messages.transaction.transaction_log_value import PartitionsSchema, TransactionLogValue

__all__ = ["framed", "standing_of", "tombstone", "value_of"]

TAGGED_FROM = 1
"""The transaction version of the cluster from which on values are written with the tagged fields of version 1."""


def framed(transactional_id: str, standing: Standing, version: int) -> tuple[bytes, bytes]:
    """Key and value of the record, where the cluster's transaction version is `version`."""
    value, value_version = value_of(standing, version)
    return frame_key(TransactionLogKey(transactional_id)), frame_value(value, value_version)


def tombstone(transactional_id: str) -> tuple[bytes, None]:
    return frame_key(TransactionLogKey(transactional_id)), None


def value_of(standing: Standing, version: int) -> tuple[TransactionLogValue, int]:
    """The value and the version in which it is written."""
    is_empty = standing.state is TransactionState.EMPTY
    assert not (is_empty and standing.partitions), standing
    value = TransactionLogValue(
        producer_id=standing.producer_id,
        producer_epoch=standing.producer_epoch,
        transaction_timeout_ms=standing.timeout_ms,
        transaction_status=standing.state,
        transaction_partitions=None if is_empty else _by_topic(standing.partitions),
        transaction_last_update_timestamp_ms=standing.updated_ms,
        transaction_start_timestamp_ms=standing.started_ms,
    )
    if version < TAGGED_FROM:
        return value, 0
    value.previous_producer_id = standing.previous_producer_id
    value.next_producer_id = standing.next_producer_id
    value.client_transaction_version = standing.version
    return value, 1


def _by_topic(partitions: frozenset[Place]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic, sorted(topics[topic])) for topic in sorted(topics)]


def standing_of(value: TransactionLogValue) -> Standing:
    """What a record says. Raises ProtocolViolation."""
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise ProtocolViolation(f"a transaction is in state {value.transaction_status}") from None
    if state in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE):
        raise ProtocolViolation(f"a transaction is in state {state.title}, which no record has")
    listed = () if state is TransactionState.EMPTY else value.transaction_partitions or ()
    return Standing(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset((listing.topic, index) for listing in listed for index in listing.partition_ids),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        version=value.client_transaction_version,
    )
