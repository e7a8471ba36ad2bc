"""The five codecs of a record batch, and a bound on what they may unpack to.

The broker decompresses only when it must look at records: a compacted topic, a topic with a codec of its own, a
search by time, its own internal topics. A small batch can unpack to gigabytes, so every reader stops at a bound.

- gzip: one or more members one after the other.
- snappy: the framing of the Java library (a header of 16 bytes, then blocks with a length each), or, as librdkafka
  writes it, one plain snappy block without any framing. Both are read; framing is written.
- lz4: frames of independent blocks (`lz4_frames`). zstd: frames.
"""

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.lz4_frames import Lz4Packer, lz4_pieces

Buffer = bytes | bytearray | memoryview

DECOMPRESSED_BYTES_MAX: Final = 256 * 1024 * 1024

_XERIAL_HEADER: Final = b"\x82SNAPPY\x00" + Struct(">ii").pack(1, 1)
_XERIAL_MAGIC: Final = _XERIAL_HEADER[:8]
SNAPPY_FRAME_BYTES: Final = len(_XERIAL_HEADER)
SNAPPY_BLOCK_BYTES: Final = 32 * 1024
ZSTD_LEVEL: Final = 3
_LENGTH: Final = Struct(">i")


class Compression(IntEnum):
    """The codec of a batch, by the low three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def named(cls, name: str) -> "Compression":
        """The codec that Kafka's `compression.type` calls by this name (`uncompressed` is NONE)."""
        return cls.NONE if name == "uncompressed" else cls[name.upper()]


class TooLarge(ProtocolViolation):
    """The records unpack to more than the bound."""


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data` in the codec's format; `level` None is the codec's default level in Kafka."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return _compress_gzip(data, level)
        case Compression.SNAPPY:
            return _compress_snappy(data)
        case Compression.LZ4:
            return _compress_lz4(data, level)
        case Compression.ZSTD:
            return _compress_zstd(data, level)


def decompress(codec: int, data: Buffer, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Decompress `data`. Raises only ProtocolViolation, whatever the bytes, at the latest at `size_bytes_max`."""
    if codec == Compression.NONE:
        return data
    reader = _READERS.get(codec)
    if reader is None:
        raise ProtocolViolation(f"compression codec {codec} is not one of 0 to 4")
    return reader(data, size_bytes_max)


def _too_large(size_bytes_max: int) -> TooLarge:
    return TooLarge(f"the batch unpacks to more than {size_bytes_max} bytes")


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    packer = zlib.compressobj(-1 if level is None else level, wbits=31)
    return packer.compress(data) + packer.flush()


def _decompress_gzip(data: Buffer, size_bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    room, rest = size_bytes_max, bytes(data)
    while rest:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            piece = unpacker.decompress(rest, room + 1)
        except zlib.error as problem:
            raise ProtocolViolation(f"gzip: {problem}") from None
        if len(piece) > room:
            raise _too_large(size_bytes_max)
        if not unpacker.eof:
            raise ProtocolViolation("gzip: the stream is cut")
        pieces.append(piece)
        room, rest = room - len(piece), unpacker.unused_data
    return b"".join(pieces)


def _compress_snappy(data: Buffer) -> bytes:
    import cramjam

    view = memoryview(data)
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(view), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + SNAPPY_BLOCK_BYTES]))
        pieces += (_LENGTH.pack(len(block)), block)
    return b"".join(pieces)


def _decompress_snappy(data: Buffer, size_bytes_max: int) -> bytes:
    return b"".join(snappy_blocks(memoryview(data), size_bytes_max))


def snappy_blocks(view: memoryview, size_bytes_max: int) -> Iterator[memoryview]:
    """Decompress the blocks one by one. Raises only ProtocolViolation, whatever the bytes."""
    if view[:8] != _XERIAL_MAGIC:
        yield _unpack_snappy_block(view, size_bytes_max)
        return
    room, position = size_bytes_max, len(_XERIAL_HEADER)
    while position < len(view):
        # A Snappy stream may start again in the middle: the first byte of the magic reads as a negative length.
        if view[position : position + 8] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        if len(view) - position < _LENGTH.size:
            raise ProtocolViolation("snappy: the length of a block is cut")
        (length,) = _LENGTH.unpack_from(view, position)
        position += _LENGTH.size
        if not 0 <= length <= len(view) - position:
            raise ProtocolViolation(f"snappy: a block of {length} bytes, {len(view) - position} are left")
        piece = _unpack_snappy_block(view[position : position + length], room)
        yield piece
        room, position = room - len(piece), position + length


def _unpack_snappy_block(block: memoryview, room: int) -> memoryview:
    import cramjam

    try:
        # The block has its size at its head, which is checked before anything is unpacked.
        if cramjam.snappy.decompress_raw_len(block) > room:
            raise _too_large(room)
        return memoryview(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as problem:
        raise ProtocolViolation(f"snappy: {problem}") from None


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    packer = Lz4Packer(level or 0)
    return packer.compress(data) + packer.flush()


def _decompress_lz4(data: Buffer, size_bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    room = size_bytes_max
    for piece in lz4_pieces(memoryview(data)):
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            raise _too_large(size_bytes_max)
    return b"".join(pieces)


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    from kavka_broker.protocol.records import zstd

    return zstd.compress(data, level=ZSTD_LEVEL if level is None else level)


def _decompress_zstd(data: Buffer, size_bytes_max: int) -> bytes:
    """Decompress one or more frames. Raises ProtocolViolation, also where the last frame is cut."""
    from kavka_broker.protocol.records import zstd

    pieces: list[bytes] = []
    room, rest = size_bytes_max, bytes(data)
    while rest:
        unpacker = zstd.ZstdDecompressor()
        try:
            piece = unpacker.decompress(rest, max_length=room + 1)
        except zstd.ZstdError as problem:
            raise ProtocolViolation(f"zstd: {problem}") from None
        if len(piece) > room:
            raise _too_large(size_bytes_max)
        if not unpacker.eof:
            raise ProtocolViolation("zstd: the frame is cut")
        pieces.append(piece)
        room, rest = room - len(piece), unpacker.unused_data or b""
    return b"".join(pieces)


_READERS: Final[dict[int, Callable[[Buffer, int], Buffer]]] = {
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
