"""What a broken or hostile peer sends, and what Apache Kafka 4.3 does about it.

A scenario plays on one connection and says in a word what came back: `closed`, or the names of the error codes that
were answered. `expected` is what Apache Kafka does; test_kafka_agrees.py plays all of them against the real one. Where
Kavka differs on purpose, `kavka` says what it does and `why`.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.batch import set_crc
from kavka_broker.protocol.records.record import build_batch
from tests.support.wire import API_VERSIONS, METADATA, Connection, header

PRODUCE = 0
FETCH = 1
PRODUCE_VERSION = 8  # the last with the old header
HUGE = 2**31 - 1
FRAME_BYTES_MAX = 104_857_600  # socket.request.max.bytes

Play = Callable[[Connection, str], str]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to misbehave."""

    name: str
    play: Play
    expected: str
    kavka: str = ""
    why: str = ""

    @property
    def expected_of_kavka(self) -> str:
        return self.kavka or self.expected


def played(scenario: Scenario, address: tuple[str, int], topic: str, seconds_max: float) -> str:
    """What came back: `closed`, `answered`, `silent`, or the error that was named."""
    with Connection(address, seconds_max) as connection:
        try:
            return scenario.play(connection, topic)
        except TimeoutError:
            return "silent"


def closes(connection: Connection) -> str:
    return "closed" if connection.is_closed() else "answered"


def bytes_as_they_are(data: bytes) -> Play:
    """Send only these bytes."""

    def play(connection: Connection, _: str) -> str:
        connection.send(data)
        return closes(connection)

    return play


def frame(body: bytes) -> Play:
    """Send a whole frame with this in it."""
    return bytes_as_they_are(struct.pack(">i", len(body)) + body)


def unknown_version_of_api_versions(connection: Connection, _: str) -> str:
    """KIP-511: answered in version 0, so that an unknown client can fall back."""
    answer = connection.request(API_VERSIONS, 99, b"", flexible=True)
    if answer is None:
        return "closed"
    response = decode(ApiVersionsResponse, 0, memoryview(answer)[4:])
    named = {key.api_key for key in response.api_keys}
    return f"{ErrorCode(response.error_code).name}, names itself: {API_VERSIONS in named}"


def produce(make: Callable[[], bytes | bytearray | None], version: int = PRODUCE_VERSION, acks: int = -1) -> Play:
    """Produce this to partition 0, and name the error of the partition."""

    def play(connection: Connection, topic: str) -> str:
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(0, make())])
        request = ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[data])
        answer = connection.request(PRODUCE, version, encode(request, version))
        if answer is None:
            return "closed"
        response = decode(ProduceResponse, version, memoryview(answer)[4:])
        return ErrorCode(response.responses[0].partition_responses[0].error_code).name

    return play


def batch() -> bytearray:
    """Three records as a good client sends them."""
    return build_batch([(b"k", b"one"), (b"k", b"two"), (b"k", b"three")], timestamp_ms=1_700_000_000_000)


def with_field(form: str, position: int, value: int, *, sealed: bool = True) -> Callable[[], bytearray]:
    """The good batch with one field of its header overwritten; sealed again with a right checksum, or not."""

    def make() -> bytearray:
        changed = batch()
        struct.pack_into(form, changed, position, value)
        if sealed:
            set_crc(changed)
        return changed

    return make


def old_message(magic: int) -> bytes:
    """A message set of the formats 0 and 1, which Apache Kafka 4 no longer takes."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1_700_000_000_000) if magic else b"")
    body += struct.pack(">i1si3s", 1, b"k", 3, b"old")
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def null_topics_of_produce() -> bytes:
    return header(PRODUCE, PRODUCE_VERSION) + struct.pack(">hhii", -1, -1, 1_000, HUGE)


CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(192)

SCENARIOS = (
    # Frames
    Scenario("an unknown API key", frame(header(999, 0)), "closed"),
    Scenario("a negative API key", frame(header(-1, 0)), "closed"),
    Scenario("an unknown version of Metadata", frame(header(METADATA, 99)), "closed"),
    Scenario("a negative version", frame(header(METADATA, -1)), "closed"),
    Scenario("a version that Kafka 4 removed", frame(header(FETCH, 0)), "closed"),
    Scenario(
        "an unknown version of ApiVersions", unknown_version_of_api_versions, "UNSUPPORTED_VERSION, names itself: True"
    ),
    Scenario("an oversize frame", bytes_as_they_are(struct.pack(">i", FRAME_BYTES_MAX + 1)), "closed"),
    Scenario("the largest size there is", bytes_as_they_are(struct.pack(">i", HUGE)), "closed"),
    Scenario("a negative size", bytes_as_they_are(struct.pack(">i", -1)), "closed"),
    Scenario("an empty frame", frame(b""), "closed"),
    Scenario("a frame of half a header", frame(header(METADATA, 1)[:5]), "closed"),
    Scenario("a client id longer than the frame", frame(struct.pack(">hhih", METADATA, 1, 7, 32_000)), "closed"),
    Scenario(
        "a client id that is not UTF-8",
        frame(struct.pack(">hhih2si", METADATA, 1, 7, 2, b"\xff\xfe", 0)),
        "answered",
        kavka="closed",
        why="strings of the protocol are UTF-8; a client id that was mended would be limited and logged as another",
    ),
    Scenario("TLS on a plain port", bytes_as_they_are(CLIENT_HELLO), "closed"),
    Scenario("HTTP on a Kafka port", bytes_as_they_are(b"GET / HTTP/1.1\r\nHost: kavka\r\n\r\n"), "closed"),
    # Bodies
    Scenario("an array of two thousand million topics", frame(header(METADATA, 1) + struct.pack(">i", HUGE)), "closed"),
    Scenario("an array of a negative size", frame(header(METADATA, 1) + struct.pack(">i", -2)), "answered"),
    Scenario(
        "a topic name longer than the frame", frame(header(METADATA, 1) + struct.pack(">ih", 1, 30_000)), "closed"
    ),
    Scenario("a produce of absurd length", frame(null_topics_of_produce()), "closed"),
    Scenario(
        "a flexible body with an endless varint", frame(header(METADATA, 9, flexible=True) + b"\xff" * 16), "closed"
    ),
    Scenario("garbage", frame(header(PRODUCE, PRODUCE_VERSION) + bytes(range(256))), "closed"),
    Scenario(
        "bytes behind the end of a request", frame(header(METADATA, 1) + struct.pack(">i", 0) + b"more"), "answered"
    ),
    # Records
    Scenario("a good batch", produce(batch), "NONE"),
    Scenario("a broken checksum", produce(with_field(">I", 17, 1, sealed=False)), "CORRUPT_MESSAGE"),
    Scenario("a flipped bit in a record", produce(with_field(">b", 70, 1, sealed=False)), "CORRUPT_MESSAGE"),
    Scenario("magic 0", produce(lambda: old_message(0)), "INVALID_RECORD"),
    Scenario("magic 1", produce(lambda: old_message(1)), "INVALID_RECORD"),
    Scenario("magic 3", produce(with_field(">b", 16, 3)), "CORRUPT_MESSAGE"),
    Scenario("magic -1", produce(with_field(">b", 16, -1)), "CORRUPT_MESSAGE"),
    Scenario(
        "no records",
        produce(lambda: None),
        "silent",
        kavka="INVALID_RECORD",
        why="Apache Kafka never answers, and the client waits until it gives up",
    ),
    Scenario("empty records", produce(lambda: b""), "INVALID_RECORD"),
    Scenario("half a batch", produce(lambda: batch()[:40]), "INVALID_RECORD"),
    Scenario("a batch without its last byte", produce(lambda: batch()[:-1]), "INVALID_RECORD"),
    Scenario(
        "a batch and a byte",
        produce(lambda: batch() + b"x"),
        "NONE",
        kavka="INVALID_RECORD",
        why="Apache Kafka drops what follows the batch without a word",
    ),
    Scenario("two batches", produce(lambda: batch() + batch()), "INVALID_RECORD"),
    Scenario(
        "a batch length of two thousand million",
        produce(with_field(">i", 8, HUGE, sealed=False)),
        "UNKNOWN_SERVER_ERROR",
        kavka="INVALID_RECORD",
        why="the client is at fault, not the server",
    ),
    Scenario("a batch length below a header's", produce(with_field(">i", 8, 3, sealed=False)), "CORRUPT_MESSAGE"),
    Scenario("a negative batch length", produce(with_field(">i", 8, -1, sealed=False)), "CORRUPT_MESSAGE"),
    Scenario("a count of two thousand million records", produce(with_field(">i", 57, HUGE)), "INVALID_RECORD"),
    Scenario("a negative count", produce(with_field(">i", 57, -1)), "INVALID_RECORD"),
    Scenario("a count of one too few", produce(with_field(">i", 57, 2)), "INVALID_RECORD"),
    Scenario(
        "an unknown codec",
        produce(with_field(">h", 21, 5)),
        "UNKNOWN_SERVER_ERROR",
        kavka="UNSUPPORTED_COMPRESSION_TYPE",
        why="the client is at fault, not the server",
    ),
    Scenario(
        "gzip that is none",
        produce(with_field(">h", 21, 1)),
        "UNKNOWN_SERVER_ERROR",
        kavka="INVALID_RECORD",
        why="the client is at fault, not the server",
    ),
    Scenario("a control batch from a client", produce(with_field(">h", 21, 0x20)), "INVALID_RECORD"),
    Scenario("a sequence without a producer id", produce(with_field(">i", 53, 5)), "NONE"),
    Scenario("a producer id with a negative sequence", produce(with_field(">q", 43, 4_711)), "INVALID_RECORD"),
    Scenario("acknowledgements of seven", produce(batch, acks=7), "INVALID_REQUIRED_ACKS"),
)
