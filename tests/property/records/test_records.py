"""Records: there and back; any bytes raise nothing but ProtocolViolation."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, crc_is_valid, split_batches
from kavka_broker.protocol.records.compression import Compression, decompress
from kavka_broker.protocol.records.record import Record, build_batch, read_records

BYTES = st.none() | st.binary(max_size=60)
TIMES = st.integers(-1, 2**50)
HEADERS = st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3)
RECORDS = st.lists(st.builds(Record, st.just(-1), TIMES, BYTES, BYTES, HEADERS), min_size=1, max_size=8)
CODECS = st.sampled_from(Compression)


@given(RECORDS, CODECS, st.integers(0, 2**60))
def test_there_and_back(records: list[Record], codec: Compression, base_offset: int) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    assert crc_is_valid(batch)
    found = read_records(batch)
    assert [record.offset for record in found] == list(range(base_offset, base_offset + len(records)))
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in found] == [
        (r.timestamp, r.key, r.value, r.headers) for r in records
    ]


@given(RECORDS, CODECS, st.data())
@settings(max_examples=300)
def test_broken_bytes_raise_only_violations(records: list[Record], codec: Compression, data: st.DataObject) -> None:
    batch = build_batch(records, compression=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(HEADER_BYTES - 4, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_records(batch, size_bytes_max=1_000_000)
    except ProtocolViolation:
        return


@given(st.binary(max_size=300))
def test_any_bytes_split_or_raise_a_violation(data: bytes) -> None:
    try:
        for header, batch in split_batches(data):
            assert len(batch) == header.size_bytes
    except ProtocolViolation:
        return


@given(st.integers(1, 4), st.binary(max_size=200))
def test_any_bytes_unpack_or_raise_a_violation(codec: int, data: bytes) -> None:
    try:
        assert len(decompress(codec, data, 10_000)) <= 10_000
    except ProtocolViolation:
        return
