"""The frame format of lz4 over the blocks of cramjam, which has snappy as well.

A frame says how large its blocks may be, so that none unpacks to more, whatever it claims. What Kafka refuses is
refused: blocks that depend on each other, and a dictionary. The checksums inside of a frame are passed over; the
checksum of the batch covers the same bytes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from kavka_broker.protocol.errors import ProtocolViolation

#: Kafka writes blocks of this size.
BLOCK_BYTES: Final = 64 * 1024

_MAGIC: Final = b"\x04\x22\x4d\x18"
_LENGTH: Final = Struct("<I")
_STORED: Final = 0x80000000
_CHECKSUM_BYTES: Final = 4
_CONTENT_SIZE_BYTES: Final = 8

# The flags of a frame.
_VERSION: Final = 0b1100_0000
_VERSION_1: Final = 0b0100_0000
_INDEPENDENT: Final = 0b0010_0000
_BLOCK_CHECKSUMS: Final = 0b0001_0000
_CONTENT_SIZE: Final = 0b0000_1000
_CONTENT_CHECKSUM: Final = 0b0000_0100
_RESERVED_OR_DICTIONARY: Final = 0b0000_0011


def lz4_blocks(view: memoryview) -> Iterator[memoryview]:
    """Decompress the blocks of one or more frames, one by one. Raises only ProtocolViolation, whatever the bytes."""
    position = 0
    while position < len(view):
        flags, block_bytes_max, position = _head(view, position)
        unpacked = bytearray(block_bytes_max)
        checksum_bytes = _CHECKSUM_BYTES if flags & _BLOCK_CHECKSUMS else 0
        while True:
            (word,) = _LENGTH.unpack(_take(view, position, _LENGTH.size))
            position += _LENGTH.size
            if word == 0:
                break
            block = _take(view, position, word & ~_STORED)
            _take(view, position + len(block), checksum_bytes)
            position += len(block) + checksum_bytes
            yield _stored(block, block_bytes_max) if word & _STORED else _unpacked(block, unpacked)
        if flags & _CONTENT_CHECKSUM:
            position += len(_take(view, position, _CHECKSUM_BYTES))


def _head(view: memoryview, position: int) -> tuple[int, int, int]:
    """The flags of a frame, the most that a block unpacks to, and where the first block begins."""
    head = _take(view, position, len(_MAGIC) + 3)
    flags, sizes = head[4], head[5]
    if bytes(head[:4]) != _MAGIC:
        raise ProtocolViolation("lz4: no frame begins here")
    if flags & _VERSION != _VERSION_1 or flags & _RESERVED_OR_DICTIONARY:
        raise ProtocolViolation(f"lz4: a frame of flags {flags:#04x}, which Kafka does not read")
    if not flags & _INDEPENDENT:
        raise ProtocolViolation("lz4: the blocks depend on each other, which Kafka does not read")
    if sizes & 0b1000_1111 or not 4 <= sizes >> 4 <= 7:
        raise ProtocolViolation(f"lz4: a frame of block size {sizes:#04x}, which there is not")
    content_size_bytes = _CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0
    _take(view, position + len(head), content_size_bytes)
    return flags, 1 << (8 + 2 * (sizes >> 4)), position + len(head) + content_size_bytes


def _take(view: memoryview, position: int, size: int) -> memoryview:
    """The next bytes. Raises ProtocolViolation where there are fewer."""
    if len(view) - position < size:
        raise ProtocolViolation("lz4: the frame is cut")
    return view[position : position + size]


def _stored(block: memoryview, block_bytes_max: int) -> memoryview:
    """A block that was left as it was. Raises ProtocolViolation."""
    if len(block) > block_bytes_max:
        raise ProtocolViolation(f"lz4: a block of {len(block)} bytes in a frame of blocks of {block_bytes_max}")
    return block


def _unpacked(block: memoryview, room: bytearray) -> memoryview:
    """What a block unpacks to, at most as much as `room` takes. Raises ProtocolViolation."""
    import cramjam

    try:
        size_bytes = cramjam.lz4.decompress_block_into(block, room, output_len=len(room))
    except cramjam.DecompressionError as problem:
        raise ProtocolViolation(f"lz4: {problem}") from None
    return memoryview(bytes(memoryview(room)[:size_bytes]))


class Lz4Packer:
    """Packs one frame of independent blocks, each as soon as it is full."""

    def __init__(self, level: int = 0) -> None:
        import cramjam

        # Kafka reads frames of independent blocks only.
        self._compressor = cramjam.lz4.Compressor(level, content_checksum=False, block_linked=False)
        self._waiting = bytearray()

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        """Pack more bytes; returns the packed bytes that are ready."""
        self._waiting += data
        whole = len(self._waiting) - len(self._waiting) % BLOCK_BYTES
        packed = [self._block(start) for start in range(0, whole, BLOCK_BYTES)]
        del self._waiting[:whole]
        return b"".join(packed)

    def flush(self) -> bytes:
        """Finish; returns the remaining packed bytes."""
        self._compressor.compress(bytes(self._waiting))
        return bytes(self._compressor.finish())

    def _block(self, start: int) -> bytes:
        self._compressor.compress(bytes(self._waiting[start : start + BLOCK_BYTES]))
        return bytes(self._compressor.flush())
