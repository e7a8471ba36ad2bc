"""KIP-98, KIP-360: a producer's batches go in once, in order, and only from its newest epoch."""

import pytest

from kavka_broker.core.partition.producer_state import (
    BATCHES_KEPT_MAX,
    NO_SEQUENCE,
    SEQUENCE_MAX,
    Producer,
    ProducerStates,
    WrittenBatch,
)
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.storage import producer_snapshot
from kavka_broker.storage.log import Appended, Log, Origin
from kavka_broker.storage.segment_fingerprint import Fingerprint
from tests.unit.storage.support import NOW_MS, append, headers, new_disk, open_log, values


def send(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 7) -> Appended:
    payload = [b"%d" % ((sequence + index) & SEQUENCE_MAX) for index in range(count)]
    return append(log, *payload, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def refused(log: Log, sequence: int, count: int = 1, *, epoch: int = 0) -> ErrorCode:
    end = log.log_end_offset
    with pytest.raises(BrokerError) as caught:
        send(log, sequence, count, epoch=epoch)
    assert log.log_end_offset == end
    return caught.value.code


def test_a_repeated_batch_is_answered_with_its_first_offsets() -> None:
    log = open_log()
    first = send(log, 0, 3)
    send(log, 3)
    again = send(log, 0, 3)
    assert again == first._replace(duplicate=True)
    assert log.log_end_offset == 4


def test_the_last_five_batches_are_remembered() -> None:
    log = open_log()
    for sequence in range(BATCHES_KEPT_MAX + 1):
        send(log, sequence)
    for sequence in range(1, BATCHES_KEPT_MAX + 1):
        assert send(log, sequence).duplicate
        assert send(log, sequence).base_offset == sequence
    assert refused(log, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused() -> None:
    log = open_log()
    send(log, 0, 2)
    assert refused(log, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 0) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # begins like a repetition, but is shorter
    send(log, 2)
    assert values(log) == [b"0", b"1", b"2"]


def test_an_unknown_producer_may_begin_anywhere() -> None:
    log = open_log()
    send(log, 42)
    send(log, 43)
    assert refused(log, 45) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    log = open_log()
    send(log, 0, epoch=1)
    assert refused(log, 5, epoch=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, epoch=2)
    assert refused(log, 1, epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(log, 0, epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_goes_on_at_sequence_0_after_the_largest() -> None:
    log = open_log()
    send(log, SEQUENCE_MAX - 1, 2)
    send(log, 0)
    log = open_log()
    send(log, SEQUENCE_MAX, 3)
    assert headers(log)[0].last_sequence == 1
    assert send(log, SEQUENCE_MAX, 3).duplicate
    send(log, 2)


def test_producers_do_not_meet() -> None:
    log = open_log()
    send(log, 0, producer=1)
    send(log, 0, producer=2)
    assert send(log, 0, producer=1).base_offset == 0
    assert send(log, 0, producer=2).base_offset == 1


def test_a_batch_that_was_not_written_is_not_remembered() -> None:
    disk = new_disk()
    log = open_log(disk)
    send(log, 0)
    disk.space_bytes = 0
    assert refused(log, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    disk.space_bytes = None
    assert not send(log, 1).duplicate


@pytest.mark.parametrize("recover", [True, False])
def test_a_start_knows_the_last_batch_of_each_producer(recover: bool) -> None:
    disk = new_disk()
    log = open_log(disk)
    for sequence in range(8):
        send(log, sequence)
        send(log, sequence, producer=8)
    log.close()
    log = open_log(disk, recover=recover)
    assert send(log, 7).base_offset == 14
    assert refused(log, 9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 8)


def test_a_broken_snapshot_is_thrown_away_and_the_batches_are_read() -> None:
    disk = new_disk()
    log = open_log(disk)
    for sequence in range(12):
        send(log, sequence)
    log.close()
    for name in disk.names(log.directory):
        if name.endswith(".snapshot"):
            disk.flip_bit(f"{log.directory}/{name}", 9)
    log = open_log(disk, recover=False)
    assert send(log, 10).duplicate
    assert refused(log, 13) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_silent_producers_expire_but_not_inside_a_transaction() -> None:
    log = open_log()
    send(log, 0)
    append(log, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    assert log.producers.expire(NOW_MS + 99, 100) == 0
    assert log.producers.expire(NOW_MS + 100, 100) == 1
    assert [producer for producer, _ in log.producers] == [9]
    send(log, 77)


def test_there_are_never_more_producers_than_the_bound() -> None:
    states = ProducerStates(producers_max=20)
    for producer in range(100):
        states.append(producer, 0, WrittenBatch(0, 0, producer, producer, producer), is_transactional=False)
        assert len(states) <= 20
    assert states.get(99) is not None
    assert states.get(0) is None


def test_a_marker_ends_the_open_transaction() -> None:
    log = open_log()
    append(log)
    append(log, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    assert log.producers.transactions.first_open_offset == 1
    marker = build_marker(ControlType.COMMIT, producer_id=9, producer_epoch=0, coordinator_epoch=4, timestamp_ms=NOW_MS)
    log.append_as_leader(memoryview(marker), 0, NOW_MS, Origin.COORDINATOR)
    assert log.producers.transactions.first_open_offset == -1
    producer = log.producers.get(9)
    assert producer is not None
    assert (producer.coordinator_epoch, producer.last_sequence) == (4, 0)
    append(log, producer_id=9, producer_epoch=0, base_sequence=1, transactional=True)


def test_snapshots_come_back() -> None:
    producers = [
        (5, Producer(1, 99, [WrittenBatch(3, 6, 10, 13, 99)], 2, 8)),
        (6, Producer(0, 50)),
        (7, Producer(0, 70, [WrittenBatch(SEQUENCE_MAX, 1, 20, 22, 70)])),
        # Offsets that a transaction has committed to a group have no sequence.
        (8, Producer(3, 80, [WrittenBatch(NO_SEQUENCE, NO_SEQUENCE, 23, 25, 80)], 0, 23)),
    ]
    mark = producer_snapshot.Mark(bytes(range(16)), 3, 30, Fingerprint(10, 2**32 - 1, -1))
    data = producer_snapshot.encode(producers, mark)
    assert (producer_snapshot.decode(data), producer_snapshot.mark_of(data)) == (producers, mark)


@pytest.mark.parametrize("damage", [b"", b"\0\1", b"\0\2" + bytes(10), b"\0\1" + bytes(10)])
def test_a_damaged_snapshot_is_a_violation(damage: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        producer_snapshot.decode(damage)
