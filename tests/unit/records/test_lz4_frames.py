"""Frames of lz4: read whoever wrote them, as far as Kafka reads them, and written so that others read them."""

import random
from itertools import product

import lz4.frame
import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.compression import Compression, compress, decompress
from kavka_broker.protocol.records.lz4_frames import PIECE_BYTES_MAX, Lz4Packer, lz4_pieces
from kavka_broker.protocol.records.packing import packer

MIXED = random.Random(1).randbytes(200_000) + bytes(300_000) + b"the quick brown fox " * 20_000
BLOCK_SIZES = (
    lz4.frame.BLOCKSIZE_MAX64KB,
    lz4.frame.BLOCKSIZE_MAX256KB,
    lz4.frame.BLOCKSIZE_MAX1MB,
    lz4.frame.BLOCKSIZE_MAX4MB,
)


def unpacked(frames: bytes) -> bytes:
    return b"".join(lz4_pieces(memoryview(frames)))


@pytest.mark.parametrize(("stores_size", "checks_content", "checks_blocks"), list(product([False, True], repeat=3)))
def test_frames_of_any_options_are_read(*, stores_size: bool, checks_content: bool, checks_blocks: bool) -> None:
    frame = lz4.frame.compress(
        MIXED,
        block_linked=False,
        store_size=stores_size,
        content_checksum=checks_content,
        block_checksum=checks_blocks,
    )
    assert unpacked(frame) == MIXED
    assert unpacked(frame + frame) == MIXED * 2
    for cut in (1, 3, 5):
        with pytest.raises(ProtocolViolation, match="cut"):
            unpacked(frame[:-cut])


@pytest.mark.parametrize("size", BLOCK_SIZES)
def test_a_frame_of_any_block_size_comes_in_pieces(size: int) -> None:
    frame = lz4.frame.compress(MIXED, block_size=size, block_linked=False)
    pieces = list(lz4_pieces(memoryview(frame)))
    assert b"".join(pieces) == MIXED
    assert max(map(len, pieces)) <= PIECE_BYTES_MAX


def test_a_frame_that_unpacks_to_hundreds_of_times_its_size_is_read_as_far_as_is_asked() -> None:
    frame = lz4.frame.compress(bytes(1 << 28), block_linked=False)
    assert len(frame) < 1 << 21
    assert len(next(lz4_pieces(memoryview(frame)))) == PIECE_BYTES_MAX
    with pytest.raises(ProtocolViolation, match="more than 1000 bytes"):
        decompress(Compression.LZ4, frame, 1000)


def test_a_block_that_unpacks_to_more_than_its_frame_says_is_refused() -> None:
    for data in (bytes(1 << 20), MIXED[:100_000]):
        frame = bytearray(lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX1MB, block_linked=False))
        frame[5] = 0x40  # blocks of 64 KiB
        with pytest.raises(ProtocolViolation, match="lz4"):
            unpacked(bytes(frame))


@pytest.mark.parametrize("place", [6, -8])
def test_a_checksum_that_does_not_fit_is_refused(place: int) -> None:
    frame = bytearray(lz4.frame.compress(b"some records", block_linked=False, store_size=False, content_checksum=True))
    frame[place] ^= 1
    with pytest.raises(ProtocolViolation, match="lz4"):
        unpacked(bytes(frame))


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, 0x05, "no frame begins here"),
        (4, 0x20, "flags 0x20"),
        (4, 0x61, "flags 0x61"),
        (4, 0x62, "flags 0x62"),
        (4, 0x40, "depend on each other"),
        (5, 0x30, "block size 0x30"),
        (5, 0xC0, "block size 0xc0"),
        (5, 0x41, "block size 0x41"),
    ],
)
def test_what_kafka_does_not_read_is_refused(place: int, value: int, words: str) -> None:
    frame = bytearray(compress(Compression.LZ4, b"some records"))
    frame[place] = value
    with pytest.raises(ProtocolViolation, match=words):
        unpacked(bytes(frame))


@pytest.mark.parametrize("data", [b"", b"x", MIXED, MIXED[:PIECE_BYTES_MAX], MIXED[: 2 * PIECE_BYTES_MAX]], ids=len)
@pytest.mark.parametrize("level", [None, 1, 9, 17])
def test_others_read_what_is_written(data: bytes, level: int | None) -> None:
    frame = compress(Compression.LZ4, data, level)
    assert lz4.frame.decompress(frame) == data
    assert bytes(decompress(Compression.LZ4, frame)) == data
    assert not lz4.frame.get_frame_info(frame)["block_linked"]


def test_a_higher_level_packs_more_tightly() -> None:
    text = random.Random(2).choices([b"orders", b"flights", b"tickets", b"gates"], k=20_000)
    sizes = [len(compress(Compression.LZ4, b" ".join(text), level)) for level in (None, 9, 12)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2]


def test_what_is_packed_piece_by_piece_is_what_is_packed_at_once() -> None:
    pieces = packer(Compression.LZ4)
    assert isinstance(pieces, Lz4Packer)
    packed = [bytes(pieces.compress(MIXED[start : start + 10_000])) for start in range(0, len(MIXED), 10_000)]
    assert sum(map(len, packed)) > 200_000, "what is full is not held back"
    assert b"".join(packed) + pieces.flush() == compress(Compression.LZ4, MIXED)


def test_damage_is_a_violation_or_other_bytes_but_nothing_else() -> None:
    chance, frame = random.Random(5), compress(Compression.LZ4, MIXED[195_000:205_000])
    refused = 0
    for _ in range(3_000):
        damaged = bytearray(frame)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(min(len(damaged), chance.choice([16, 10_000])))] = chance.randrange(256)
        try:
            assert len(unpacked(bytes(damaged))) <= 1 << 22
        except ProtocolViolation:
            refused += 1
    assert refused > 1_000
