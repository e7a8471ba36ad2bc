"""Reading a partition of `__transaction_state` as its new leader: the last record of each id counts."""

import asyncio
from typing import Final

from kavka_broker.coordinator.groups.group_loading import read
from kavka_broker.coordinator.led_partition import LoadablePartition
from kavka_broker.core.transaction.records import standing_of
from kavka_broker.core.transaction.state import Transaction
from kavka_broker.protocol.coordinator_records import Coordinator, record_number, unframe
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.messages.transaction.transaction_log_key import TransactionLogKey
from kavka_broker.protocol.messages.transaction.transaction_log_value import TransactionLogValue
from kavka_broker.protocol.records.record import Record

DECODED_PER_SLICE_MAX: Final = 500
"""Slices of this size take a few milliseconds."""
PARTITIONS_AS_ID: Final = 20
"""Partitions of a transaction that take as long as an id."""


async def load(partition: LoadablePartition) -> dict[str, Transaction]:
    """The ids that the log has. Raises BrokerError and ProtocolViolation."""
    latest = await read(partition)
    transactions: dict[str, Transaction] = {}
    decoded = 0
    for record in latest.by_key.values():
        transaction = decode(record)
        decoded += 1
        if transaction is not None:
            transactions[transaction.transactional_id] = transaction
            decoded += len(transaction.standing.partitions) // PARTITIONS_AS_ID
        if decoded >= DECODED_PER_SLICE_MAX:
            decoded = 0
            await asyncio.sleep(0)
    return transactions


def decode(record: Record) -> Transaction | None:
    """The id that a record tells of; None for a tombstone, and for an unknown kind. Raises ProtocolViolation."""
    key_bytes = record.key or b""
    if record.value is None or record_number(key_bytes) != TransactionLogKey.API_KEY:
        return None
    try:
        key, value = unframe(key_bytes, record.value, Coordinator.TRANSACTION)
        assert isinstance(key, TransactionLogKey), key
        assert isinstance(value, TransactionLogValue), value
        return Transaction(key.transactional_id, standing_of(value))
    except ProtocolViolation as problem:
        raise ProtocolViolation(f"offset {record.offset}: {problem}") from None
