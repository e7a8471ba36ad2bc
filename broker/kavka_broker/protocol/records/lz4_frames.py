"""Frames of lz4, by the package `lz4`, as Kafka writes and reads them.

What Kafka refuses is refused: blocks that depend on each other, a dictionary, and checksums that do not fit. However
much a frame unpacks to, it comes in pieces of at most `PIECE_BYTES_MAX`, so that who reads it can stop.
"""

from collections.abc import Iterator
from typing import Final

from kavka_broker.protocol.errors import ProtocolViolation

PIECE_BYTES_MAX: Final = 64 * 1024
"""Kafka writes blocks of this size."""

_MAGIC: Final = b"\x04\x22\x4d\x18"
_HEAD_BYTES: Final = 6

# The flags of a frame.
_VERSION: Final = 0b1100_0000
_VERSION_1: Final = 0b0100_0000
_INDEPENDENT: Final = 0b0010_0000
_RESERVED_OR_DICTIONARY: Final = 0b0000_0011


def lz4_pieces(view: memoryview) -> Iterator[bytes]:
    """Decompress one or more frames piece by piece. Raises only ProtocolViolation, whatever the bytes."""
    from lz4.frame import create_decompression_context, decompress_chunk

    position = 0
    while position < len(view):
        _check_head(bytes(view[position : position + _HEAD_BYTES]))
        frame, is_over = create_decompression_context(), False
        while not is_over:
            try:
                piece, taken_bytes, is_over = decompress_chunk(frame, view[position:], max_length=PIECE_BYTES_MAX)
            except RuntimeError as problem:
                raise ProtocolViolation(f"lz4: {problem}") from None
            if not (piece or taken_bytes or is_over):
                raise ProtocolViolation("lz4: the frame is cut")
            position += taken_bytes
            if piece:
                yield piece


def _check_head(head: bytes) -> None:
    """Raises ProtocolViolation where Kafka would not read the frame."""
    if not _MAGIC.startswith(head[:4]):
        raise ProtocolViolation("lz4: no frame begins here")
    if len(head) < _HEAD_BYTES:
        raise ProtocolViolation("lz4: the frame is cut")
    flags, sizes = head[4], head[5]
    if flags & _VERSION != _VERSION_1 or flags & _RESERVED_OR_DICTIONARY:
        raise ProtocolViolation(f"lz4: a frame of flags {flags:#04x}, which Kafka does not read")
    if not flags & _INDEPENDENT:
        raise ProtocolViolation("lz4: the blocks depend on each other, which Kafka does not read")
    if sizes & 0b1000_1111 or not 4 <= sizes >> 4 <= 7:
        raise ProtocolViolation(f"lz4: a frame of block size {sizes:#04x}, which there is not")


class Lz4Packer:
    """Packs one frame of independent blocks, each as soon as it is full."""

    def __init__(self, level: int = 0) -> None:
        from lz4.frame import BLOCKSIZE_MAX64KB, LZ4FrameCompressor

        # Kafka reads frames of independent blocks only.
        self._frame = LZ4FrameCompressor(block_size=BLOCKSIZE_MAX64KB, block_linked=False, compression_level=level)
        self._begun = self._frame.begin()

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        """Pack more bytes; returns the packed bytes that are ready."""
        head, self._begun = self._begun, b""
        return b"".join((head, self._frame.compress(data)))

    def flush(self) -> bytes:
        """Finish; returns the remaining packed bytes."""
        head, self._begun = self._begun, b""
        return b"".join((head, self._frame.flush()))
