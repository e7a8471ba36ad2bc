"""What is unpacked piece by piece: no call to a codec takes or copies much, however large a batch is.

A call to a codec, and a copy of bytes, may keep the interpreter from everybody else, the loop included.
"""

import random
import tracemalloc
import zlib
from typing import Any, Final

import cramjam
import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records import zstd
from kavka_broker.protocol.records.compression import Compression, compress
from kavka_broker.protocol.records.unpacking import FED_BYTES, PIECE_BYTES, unpack

SIZE_BYTES: Final = 1 << 20
#: Packs to hardly less, and to next to nothing.
CONTENTS: Final = {"random": random.Random(1).randbytes(SIZE_BYTES), "alike": bytes(SIZE_BYTES)}


class Counting:
    """A decompressor that notes what it is given, and what it copies because it has not used it yet."""

    given: list[int]

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._kept_bytes = 0

    def decompress(self, data: bytes, *how: int, **by_name: int) -> bytes:
        self.given.append(self._kept_bytes + len(data))
        piece: bytes = self._inner.decompress(data, *how, **by_name)
        self._kept_bytes = len(self._inner.unconsumed_tail) if hasattr(self._inner, "unconsumed_tail") else 0
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of what each call was given."""
    zipped, framed = zlib.decompressobj, zstd.ZstdDecompressor
    monkeypatch.setattr(zlib, "decompressobj", lambda **how: Counting(zipped(**how)))
    monkeypatch.setattr(zstd, "ZstdDecompressor", lambda: Counting(framed()))
    Counting.given = []
    return Counting.given


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD], ids=lambda codec: codec.name)
@pytest.mark.parametrize("content", CONTENTS)
def test_a_decompressor_is_given_little_at_a_time(content: str, codec: Compression, given: list[int]) -> None:
    packed = compress(codec, CONTENTS[content])
    assert b"".join(unpack(codec, packed * 2)) == CONTENTS[content] * 2
    assert 0 < max(given) <= 2 * FED_BYTES
    assert len(given) <= 2 * (len(packed) // FED_BYTES + SIZE_BYTES // PIECE_BYTES + 10)


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name)
@pytest.mark.parametrize("content", CONTENTS)
def test_no_piece_is_large(content: str, codec: Compression) -> None:
    pieces = list(unpack(codec, compress(codec, CONTENTS[content])))
    assert b"".join(pieces) == CONTENTS[content]
    assert max(map(len, pieces)) <= PIECE_BYTES


def test_a_block_of_snappy_is_not_copied_as_a_whole() -> None:
    """As librdkafka writes it: all of the batch is one block."""
    packed = memoryview(bytes(cramjam.snappy.compress_raw(CONTENTS["random"])))
    tracemalloc.start()
    try:
        size_bytes = sum(len(piece) for piece in unpack(Compression.SNAPPY, packed))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size_bytes == SIZE_BYTES
    assert peak_bytes < 4 * PIECE_BYTES


@pytest.mark.parametrize("cut", [1, 100, FED_BYTES, FED_BYTES + 1])
@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD], ids=lambda codec: codec.name)
def test_what_is_cut_between_two_pieces_is_refused(codec: Compression, cut: int) -> None:
    packed = compress(codec, CONTENTS["random"])
    with pytest.raises(ProtocolViolation):
        list(unpack(codec, packed[:-cut]))
