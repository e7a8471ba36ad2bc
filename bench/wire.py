"""Just enough of the Kafka protocol to ask a broker one question at a time, and to time the answer.

A client library measures itself as well: its queues, threads and timers are a good part of a tenth of a millisecond.
Here a request is some packed bytes, sent with one call and awaited with another, the same for both brokers, so what is
left is the broker and the loopback. Old versions of the requests are used, because they are short; both brokers serve
them. Written apart from the broker's own codec on purpose: a bench should not share the code it measures.
"""

import socket
import struct
import time
from typing import Final, Self

import crc32c

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3
API_VERSIONS: Final = 18
PRODUCE_VERSION: Final = 7
FETCH_VERSION: Final = 4
METADATA_VERSION: Final = 1
API_VERSIONS_VERSION: Final = 0
ALTER_CLIENT_QUOTAS: Final = 49
ALTER_CLIENT_QUOTAS_VERSION: Final = 0
ANSWER_SECONDS_MAX: Final = 10.0
CLIENT_ID: Final = b"bench"
HEADER: Final = struct.Struct(">hhih")
FETCH_BYTES_MAX: Final = 1 << 20
BATCH_CRC_AT: Final = 17
BATCH_CRC_FROM: Final = 21


class WireError(RuntimeError):
    """The broker answered with an error, or not at all."""


class Connection:
    """One connection that takes one request at a time."""

    def __init__(
        self, port: int, timeout_seconds: float = ANSWER_SECONDS_MAX, bytes_max: int = FETCH_BYTES_MAX
    ) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(bytes_max)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> memoryview:
        """The body of the next response, behind size and correlation id. Valid until the next call."""
        view = memoryview(self._buffer)
        filled = 0
        size = 4
        while filled < size:
            received = self._socket.recv_into(view[filled:])
            if received == 0:
                raise WireError("the broker closed the connection")
            filled += received
            if size == 4 and filled >= 4:
                size = 4 + int.from_bytes(view[:4], "big")
        assert filled == size, "one request at a time has one answer at a time"
        return view[8:size]

    def receive_next(self) -> memoryview:
        """The body of the next response where more may follow it."""
        view = memoryview(self._buffer)
        self._receive_exactly(view[:4])
        size = int.from_bytes(view[:4], "big")
        self._receive_exactly(view[:size])
        return view[4:size]

    def _receive_exactly(self, room: memoryview) -> None:
        filled = 0
        while filled < len(room):
            received = self._socket.recv_into(room[filled:])
            if received == 0:
                raise WireError("the broker closed the connection")
            filled += received

    def ask(self, frame: bytes) -> memoryview:
        self.send(frame)
        return self.receive()


def frame(api_key: int, version: int, body: bytes, client_id: bytes = CLIENT_ID) -> bytes:
    """A request with its size and header (version 1)."""
    header = HEADER.pack(api_key, version, 1, len(client_id)) + client_id
    return struct.pack(">i", len(header) + len(body)) + header + body


def answers(port: int) -> bool:
    """Whether a broker answers ApiVersions there, now."""
    try:
        with Connection(port, timeout_seconds=1.0) as connection:
            connection.ask(frame(API_VERSIONS, API_VERSIONS_VERSION, b""))
    except (OSError, WireError):
        return False
    return True


def produce_frame(topic: str, partition: int, value: bytes, acks: int, client_id: bytes = CLIENT_ID) -> bytes:
    """A Produce request with one batch of one record."""
    records = one_record_batch(value, int(time.time() * 1000))
    head = struct.pack(">hhi", -1, acks, 30_000)
    body = head + _one_topic(topic) + struct.pack(">ii", partition, len(records)) + records
    return frame(PRODUCE, PRODUCE_VERSION, body, client_id)


def produce_throttle_ms(body: memoryview) -> int:
    """What the answer to `produce_frame` tells its client to wait."""
    return int.from_bytes(body[-4:], "big")


def produced_offset(body: memoryview, topic: str) -> int:
    """The offset in the answer to `produce_frame`."""
    _partition, error, offset = struct.unpack_from(">ihq", body, 4 + 2 + len(topic) + 4)
    if error:
        raise WireError(f"Produce was answered with error {error}")
    return int(offset)


def fetch_frame(topic: str, partition: int, offset: int, wait_ms: int = 5_000, client_id: bytes = CLIENT_ID) -> bytes:
    """A Fetch request that waits for the first byte at an offset."""
    head = struct.pack(">iiiib", -1, wait_ms, 1, FETCH_BYTES_MAX // 2, 0)
    wanted = struct.pack(">iqi", partition, offset, FETCH_BYTES_MAX // 2)
    return frame(FETCH, FETCH_VERSION, head + _one_topic(topic) + wanted, client_id)


def fetch_throttle_ms(body: memoryview) -> int:
    """What the answer to `fetch_frame` tells its client to wait."""
    return int.from_bytes(body[:4], "big")


def has_topics(body: memoryview) -> bool:
    """Whether the answer to `fetch_frame` brings anything: a throttled one is empty."""
    return int.from_bytes(body[4:8], "big") > 0


def client_quota_frame(client_id: str | None, key: str, limit: float) -> bytes:
    """An AlterClientQuotas request that limits a client id; None: the default one."""
    kind, name = b"client-id", b"" if client_id is None else client_id.encode()
    name_size = -1 if client_id is None else len(name)
    entity = struct.pack(f">ih{len(kind)}sh{len(name)}s", 1, len(kind), kind, name_size, name)
    change = struct.pack(f">ih{len(key)}sd?", 1, len(key), key.encode(), limit, False)
    body = struct.pack(">i", 1) + entity + change + struct.pack(">?", False)
    return frame(ALTER_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS_VERSION, body)


def client_quota_error(body: memoryview) -> int:
    """The error code in the answer to `client_quota_frame`."""
    return struct.unpack_from(">iih", body)[2]  # type: ignore[no-any-return]


def fetched_bytes(body: memoryview, topic: str) -> int:
    """How many bytes of records the answer to `fetch_frame` brought."""
    position = 4 + 4 + 2 + len(topic) + 4
    _partition, error, _high_watermark, _stable, aborted = struct.unpack_from(">ihqqi", body, position)
    if error:
        raise WireError(f"Fetch was answered with error {error}")
    position += 26 + max(0, aborted) * 16
    return int.from_bytes(body[position : position + 4], "big", signed=True)


def metadata_frame(topic: str) -> bytes:
    """A Metadata request for one topic."""
    return frame(METADATA, METADATA_VERSION, struct.pack(f">ih{len(topic)}s", 1, len(topic), topic.encode()))


def in_sync_counts(body: memoryview) -> list[int]:
    """In-sync replicas of each partition, from the answer to `metadata_frame`; 0 where it has no leader."""
    position = 0

    def integer(size: int) -> int:
        nonlocal position
        position += size
        return int.from_bytes(body[position - size : position], "big", signed=True)

    def skip_text() -> None:
        nonlocal position
        length = integer(2)
        position += max(0, length)

    def integers() -> int:
        nonlocal position
        count = integer(4)
        position += 4 * count
        return count

    for _ in range(integer(4)):
        integer(4)
        skip_text()
        integer(4)
        skip_text()
    integer(4)
    counts = []
    for _ in range(integer(4)):
        integer(2)
        skip_text()
        integer(1)
        for _ in range(integer(4)):
            integer(2)
            integer(4)
            leader = integer(4)
            integers()
            in_sync = integers()
            counts.append(in_sync if leader >= 0 else 0)
    return counts


def one_record_batch(value: bytes, timestamp_ms: int) -> bytes:
    """A record batch (magic 2) with one record: no key, no headers, no producer id."""
    record = b"\0\0\0\1" + varint(len(value)) + value + b"\0"
    record = varint(len(record)) + record
    counted = struct.pack(">hiqqqhii", 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1) + record
    head = struct.pack(">qiibI", 0, 9 + len(counted), -1, 2, crc32c.crc32c(counted))
    return head + counted


def _one_topic(name: str) -> bytes:
    """The head of a list of one topic with a list of one partition."""
    return struct.pack(f">ih{len(name)}si", 1, len(name), name.encode(), 1)


def varint(value: int) -> bytes:
    """A number of zero or more as zigzag varint."""
    return unsigned_varint(value << 1)


def unsigned_varint(value: int) -> bytes:
    """A number of zero or more, seven bits a byte."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
