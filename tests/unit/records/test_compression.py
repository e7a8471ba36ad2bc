import gzip
from struct import pack

import cramjam
import pytest

from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.compression import Compression, TooLarge, compress, decompress
from kavka_broker.protocol.records.zstd import ZstdCompressor

DATA = b"the quick brown fox " * 5000
CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", [b"", b"x", DATA], ids=["empty", "one", "many"])
def test_each_codec_gives_back_what_it_compressed(codec: Compression, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_unpacking_stops_at_the_bound(codec: Compression) -> None:
    packed = compress(codec, DATA)
    assert bytes(decompress(codec, packed, len(DATA))) == DATA
    with pytest.raises(TooLarge):
        decompress(codec, packed, len(DATA) - 1)


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_is_a_violation(codec: Compression) -> None:
    with pytest.raises(ProtocolViolation):
        decompress(codec, b"\xff\xfe\xfd garbage that no codec knows")


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_stream_is_a_violation(codec: Compression) -> None:
    with pytest.raises(ProtocolViolation):
        decompress(codec, compress(codec, DATA)[:-5])


def test_an_unknown_codec_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="codec 5"):
        decompress(5, b"")


def test_gzip_of_several_members_is_read_whole() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_zstd_of_several_frames_is_read_whole_also_without_a_size() -> None:
    def without_size(text: bytes) -> bytes:
        packer = ZstdCompressor()
        return packer.compress(text) + packer.flush()

    assert decompress(Compression.ZSTD, without_size(b"one ") + without_size(b"two")) == b"one two"


def test_snappy_without_framing_as_librdkafka_writes_it() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA))) == DATA


def test_snappy_is_written_in_the_java_librarys_frame() -> None:
    packed = compress(Compression.SNAPPY, DATA)
    assert packed[:16] == b"\x82SNAPPY\x00" + pack(">ii", 1, 1)
    assert decompress(Compression.SNAPPY, packed + packed) == DATA * 2


def test_snappy_with_an_absurd_block_length() -> None:
    for length in (-5, 2**31 - 1):
        with pytest.raises(ProtocolViolation):
            decompress(Compression.SNAPPY, b"\x82SNAPPY\x00" + pack(">iii", 1, 1, length) + b"xx")


def test_names_are_those_of_compression_type() -> None:
    assert Compression.named("uncompressed") is Compression.NONE
    assert [Compression.named(name) for name in ("gzip", "snappy", "lz4", "zstd")] == CODECS
