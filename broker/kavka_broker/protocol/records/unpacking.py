"""What a batch's records unpack to, piece by piece.

A small batch can unpack to gigabytes. Who only looks for something takes a piece of at most `PIECE_BYTES` at a time,
and may stop, or let others work in between; no more than a few pieces are ever in memory. Only snappy gives a whole
block at once: at most some twenty times as large as what was sent (the format allows no more).
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Buffer,
    Compression,
    TooLarge,
    snappy_blocks,
)
from kavka_broker.protocol.records.lz4_frames import lz4_pieces

PIECE_BYTES: Final = 16 * 1024
#: The bytes handed at a time to a decompressor that copies its unused input.
FED_BYTES: Final = 16 * 1024


def unpack(codec: int, data: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[bytes]:
    """Unpack in pieces. Raises only ProtocolViolation, whatever the bytes, at the latest at `size_bytes_max`."""
    reader = _READERS.get(codec)
    if reader is None:
        raise ProtocolViolation(f"compression codec {codec} is not one of 0 to 4")
    size_bytes = 0
    for piece in reader(memoryview(data), size_bytes_max):
        size_bytes += len(piece)
        if size_bytes > size_bytes_max:
            raise TooLarge(f"the batch unpacks to more than {size_bytes_max} bytes")
        yield piece


def _plain(data: memoryview, _: int) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE_BYTES):
        yield bytes(data[start : start + PIECE_BYTES])


def _gzip(data: memoryview, _: int) -> Iterator[bytes]:
    position, size = 0, len(data)
    while position < size:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            while not unpacker.eof:
                fed = unpacker.unconsumed_tail
                if not fed:
                    fed = bytes(data[position : position + FED_BYTES])
                    position += len(fed)
                piece = unpacker.decompress(fed, PIECE_BYTES)
                if piece:
                    yield piece
                elif not fed:
                    raise ProtocolViolation("gzip: the stream is cut")
        except zlib.error as problem:
            raise ProtocolViolation(f"gzip: {problem}") from None
        position -= len(unpacker.unused_data)


def _snappy(data: memoryview, size_bytes_max: int) -> Iterator[bytes]:
    for block in snappy_blocks(data, size_bytes_max):
        for start in range(0, len(block), PIECE_BYTES):
            yield bytes(block[start : start + PIECE_BYTES])


def _lz4(data: memoryview, _: int) -> Iterator[bytes]:
    for piece in lz4_pieces(data):
        for start in range(0, len(piece), PIECE_BYTES):
            yield piece[start : start + PIECE_BYTES]


def _zstd(data: memoryview, _: int) -> Iterator[bytes]:
    """Unpack one or more frames in pieces. Raises ProtocolViolation."""
    from kavka_broker.protocol.records import zstd

    position, size = 0, len(data)
    while position < size:
        unpacker = zstd.ZstdDecompressor()
        try:
            while not unpacker.eof:
                fed = b""
                if unpacker.needs_input:
                    fed = bytes(data[position : position + FED_BYTES])
                    position += len(fed)
                    if not fed:
                        raise ProtocolViolation("zstd: the frame is cut")
                piece = unpacker.decompress(fed, max_length=PIECE_BYTES)
                if piece:
                    yield piece
        except zstd.ZstdError as problem:
            raise ProtocolViolation(f"zstd: {problem}") from None
        position -= len(unpacker.unused_data or b"")


_READERS: Final[dict[int, Callable[[memoryview, int], Iterator[bytes]]]] = {
    Compression.NONE: _plain,
    Compression.GZIP: _gzip,
    Compression.SNAPPY: _snappy,
    Compression.LZ4: _lz4,
    Compression.ZSTD: _zstd,
}
