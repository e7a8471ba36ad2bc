"""Packs the records of a batch piece by piece: what `unpacking` takes apart.

Nothing larger than what comes out is ever held, and no call takes long, whatever a batch unpacks to. The formats and
levels are those of `compression.compress`.
"""

import zlib
from collections.abc import Callable
from typing import Final, Protocol

from kavka_broker.protocol.records.compression import (
    SNAPPY_BLOCK_BYTES,
    SNAPPY_FRAME_BYTES,
    ZSTD_LEVEL,
    Buffer,
    Compression,
    compress,
)
from kavka_broker.protocol.records.lz4_frames import Lz4Packer


class Packer(Protocol):
    """A codec that packs one batch."""

    def compress(self, data: Buffer) -> Buffer:
        """Pack more bytes; returns the packed bytes that are ready."""
        ...

    def flush(self) -> bytes:
        """Finish; returns the remaining packed bytes."""
        ...


def packer(codec: Compression, level: int | None = None) -> Packer:
    """A new packer; `level` None is the codec's default level in Kafka."""
    return _PACKERS[codec](level)


class _Plain:
    def compress(self, data: Buffer) -> Buffer:
        return data

    def flush(self) -> bytes:
        return b""


class _Snappy:
    """Snappy in blocks of the framing's size, packed as soon as each is full."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._is_begun = False

    def compress(self, data: Buffer) -> Buffer:
        self._waiting += data
        whole = len(self._waiting) - len(self._waiting) % SNAPPY_BLOCK_BYTES
        return self._take(whole) if whole else b""

    def flush(self) -> bytes:
        return self._take(len(self._waiting))

    def _take(self, count: int) -> bytes:
        packed = compress(Compression.SNAPPY, self._waiting[:count])
        del self._waiting[:count]
        framing, self._is_begun = self._is_begun, True
        return packed[SNAPPY_FRAME_BYTES:] if framing else packed


def _zstd(level: int | None) -> Packer:
    from kavka_broker.protocol.records import zstd

    return zstd.ZstdCompressor(level=ZSTD_LEVEL if level is None else level)


_PACKERS: Final[dict[Compression, Callable[[int | None], Packer]]] = {
    Compression.NONE: lambda _: _Plain(),
    Compression.GZIP: lambda level: zlib.compressobj(-1 if level is None else level, wbits=31),
    Compression.SNAPPY: lambda _: _Snappy(),
    Compression.LZ4: lambda level: Lz4Packer(level or 0),
    Compression.ZSTD: _zstd,
}
