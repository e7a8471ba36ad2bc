import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import set_crc
from kavka_broker.protocol.records.compression import Compression, TooLarge
from kavka_broker.protocol.records.record import Record, build_batch, read_records

RECORDS = [
    Record(10, 1000, b"key", b"value", [("name", b"x"), ("name", None), ("é", b"")]),
    Record(11, 900, None, None),
    Record(15, 1100, b"", b""),
]


def test_records_come_back_with_offsets_times_and_headers() -> None:
    assert read_records(build_batch(RECORDS, base_offset=10)) == RECORDS


def test_pairs_take_the_next_offset_and_the_given_time() -> None:
    batch = build_batch([(b"a", b"1"), (None, b"2")], timestamp_ms=5, base_offset=3)
    assert read_records(batch) == [Record(3, 5, b"a", b"1"), Record(4, 5, None, b"2")]


def test_a_batch_has_records() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


def with_count(batch: bytearray, count: int) -> bytearray:
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    set_crc(batch)
    return batch


@pytest.mark.parametrize("count", [-1, 2, 4, 2**31 - 1])
def test_a_wrong_count_is_a_violation(count: int) -> None:
    with pytest.raises(ProtocolViolation):
        read_records(with_count(build_batch(RECORDS, base_offset=10), count))


def test_an_absurd_length_is_a_violation() -> None:
    batch = build_batch([(None, b"x" * 20)])
    batch[61:66] = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(ProtocolViolation):
        read_records(batch)


def test_a_bomb_is_not_unpacked() -> None:
    batch = build_batch([(None, bytes(1_000_000))], compression=Compression.GZIP)
    assert len(batch) < 2000
    with pytest.raises(TooLarge):
        read_records(batch, size_bytes_max=100_000)
