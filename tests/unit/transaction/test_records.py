"""Records of `__transaction_state`, in Apache Kafka's bytes."""

import pytest

from kavka_broker.core.transaction.records import framed, standing_of, tombstone, value_of
from kavka_broker.core.transaction.state import Standing
from kavka_broker.core.transaction.state import TransactionState as State
from kavka_broker.protocol.coordinator_records import Coordinator, unframe
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.messages.transaction.transaction_log_value import TransactionLogValue

ONGOING = Standing(
    7, 5, 60_000, State.ONGOING, frozenset({("t", 1), ("t", 0), ("u", 3)}), 500, 600, previous_producer_id=7, version=2
)


def test_the_bytes_of_version_0() -> None:
    """As Apache Kafka wrote them before transaction.version was there."""
    key, value = framed("x", Standing(7, 5, 60_000, State.EMPTY, updated_ms=600), 0)
    assert key == b"\0\0" + b"\0\x01x"
    assert value == (
        b"\0\0" + (7).to_bytes(8, "big") + (5).to_bytes(2, "big") + (60_000).to_bytes(4, "big") + b"\0"
        + b"\xff\xff\xff\xff" + (600).to_bytes(8, "big") + b"\xff" * 8
    )  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_all_is_kept_with_tagged_fields(version: int) -> None:
    key, value = framed("x", ONGOING, version)
    assert value[:2] == b"\0\x01"
    _, decoded = unframe(key, value, Coordinator.TRANSACTION)
    assert isinstance(decoded, TransactionLogValue)
    assert standing_of(decoded) == ONGOING


def test_without_them_the_version_and_the_other_ids_are_lost() -> None:
    value, version = value_of(ONGOING, 0)
    assert version == 0
    assert [(topic.topic, topic.partition_ids) for topic in value.transaction_partitions or ()] == [
        ("t", [0, 1]),
        ("u", [3]),
    ]
    assert (standing_of(value).version, standing_of(value).previous_producer_id) == (0, -1)


def test_a_tombstone_has_no_value() -> None:
    assert tombstone("x") == (b"\0\0\0\x01x", None)


@pytest.mark.parametrize("status", [-1, State.DEAD, State.PREPARE_EPOCH_FENCE, 8])
def test_states_that_no_record_has(status: int) -> None:
    with pytest.raises(ProtocolViolation):
        standing_of(TransactionLogValue(transaction_status=status))
