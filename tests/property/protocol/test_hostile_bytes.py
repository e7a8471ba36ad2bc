"""Whatever the peer sends, decoding gives a message or a ProtocolViolation, and takes no memory it was not sent."""

import contextlib
import struct
import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.protocol import coordinator_records, framing, metadata_records
from kavka_broker.protocol.codec import decode, decode_prefix, encode
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.protocol.wire import uvarint
from tests.property.protocol.building import Seeded, build, every_message, versions

MESSAGES = every_message()
NEWEST = [(kind, kind.VERSIONS[1]) for kind in MESSAGES]
OLDEST = [(kind, kind.VERSIONS[0]) for kind in MESSAGES if kind.VERSIONS[0] != kind.VERSIONS[1]]
FLEXIBLE = [kind for kind in MESSAGES if kind.FLEXIBLE_FROM is not None]


def attempt(kind: type[Message], version: int, data: bytes) -> None:
    with contextlib.suppress(ProtocolViolation):
        decode(kind, version, data)


@given(st.sampled_from(NEWEST + OLDEST), st.binary(max_size=200))
def test_garbage_raises_only_protocol_violations(which: tuple[type[Message], int], data: bytes) -> None:
    attempt(*which, data)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_bytes_set_to_extremes_raise_only_protocol_violations(kind: type[Message]) -> None:
    chance = Random(1)
    for version in {*kind.VERSIONS}:
        encoded = bytearray(encode(build(kind, version, Seeded(7)), version))
        for _ in range(min(60, 3 * len(encoded))):
            spoilt = encoded.copy()
            spoilt[chance.randrange(len(spoilt))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
            attempt(kind, version, bytes(spoilt))


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_cut_anywhere_is_a_violation(kind: type[Message]) -> None:
    for version in versions(kind):
        encoded = encode(build(kind, version, Seeded(2)), version)
        for end in range(min(len(encoded), 150)):
            with pytest.raises(ProtocolViolation):
                decode(kind, version, encoded[:end])


@pytest.mark.parametrize("length", [2**31 - 1, 2**24, 1000])
@pytest.mark.parametrize("version", [8, 12])
def test_an_absurd_array_length_allocates_nothing(version: int, length: int) -> None:
    prefix = struct.pack(">i", length) if version < 9 else uvarint(length)
    tracemalloc.start()
    with pytest.raises(ProtocolViolation, match="topics claims"):
        decode(MetadataRequest, version, prefix + bytes(60))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000


def test_an_absurd_length_of_records_allocates_nothing() -> None:
    message = (
        b"\xff\xff\xff\xff\x00\x00\x75\x30" + struct.pack(">i", 1) + b"\0\1t" + struct.pack(">iii", 1, 0, 2**31 - 1)
    )
    with pytest.raises(ProtocolViolation):
        decode(ProduceRequest, 8, message + bytes(100))


def test_null_where_the_version_has_none_is_a_violation() -> None:
    no_topics = b"\xff\xff\xff\xff\x00\x00\x75\x30" + struct.pack(">i", -1)
    with pytest.raises(ProtocolViolation, match="topic_data is null"):
        decode(ProduceRequest, 8, no_topics)


def test_strings_that_are_not_utf_8_are_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        decode(ProduceRequest, 8, b"\0\2\xff\xfe" + bytes(20))


@given(st.binary(max_size=60))
def test_frames_raise_only_protocol_violations(data: bytes) -> None:
    readers: list[Any] = [
        lambda: framing.read_request_header(memoryview(data)),
        lambda: framing.read_response_header(1, 12, memoryview(data)),
        lambda: metadata_records.unframe(data),
        *(lambda each=each: coordinator_records.unframe(data, data, each) for each in coordinator_records.Coordinator),
    ]
    for read in readers:
        with contextlib.suppress(ProtocolViolation):
            read()


@pytest.mark.parametrize("kind", FLEXIBLE, ids=lambda kind: kind.__name__)
def test_unknown_tagged_fields_are_skipped(kind: type[Message]) -> None:
    version = kind.VERSIONS[1]
    message = kind()
    encoded = encode(message, version)
    tagged = encoded[:-1] + b"\1" + b"\xd0\x0f" + b"\3abc"
    assert encoded[-1] == 0
    assert decode_prefix(kind, version, tagged) == (message, len(tagged))
