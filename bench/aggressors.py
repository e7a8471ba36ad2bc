"""Aggressors: clients that take all they can get, each in its own way.

python -m bench.aggressors NAME PORT      until it is ended

Each is a function of the port that never returns. The topics that they need are made by `prepare`.
"""

import gzip
import itertools
import os
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import confluent_kafka as ck
import crc32c
from confluent_kafka import admin as kafka_admin

from bench import topics, wire
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest

CLIENT_ID: Final = "aggressor"
SMALL, FLUSHED, COLD, SQUEEZED, WIDE = (
    "aggressor-small",
    "aggressor-flushed",
    "aggressor-cold",
    "aggressor-gzip",
    "wide",
)
CONNECTIONS: Final = 8
WIDE_PARTITIONS: Final = 10_000
WIDE_AT_ONCE: Final = 1_000
COLD_BYTES: Final = 256 << 20
COLD_RECORD_BYTES: Final = 64 << 10
BOMB_BYTES: Final = 64 << 20
SLOW_BYTES: Final = 50 << 20
SLOW_PIECE_BYTES: Final = 64 << 10
ANSWER_BYTES_MAX: Final = 64 << 20
ANSWER_SECONDS_MAX: Final = 60.0
GZIP: Final = 1
LATEST: Final = -1
LIST_OFFSETS_VERSION: Final = 5
OPEN_SECONDS_MAX: Final = 300.0
OPEN_PAUSE_SECONDS: Final = 0.5

Aggressor = Callable[[int], None]


def request(message: Message, version: int) -> bytes:
    """A whole request, with its size and header."""
    assert message.API_KEY is not None
    body = encode_request_header(RequestHeader(message.API_KEY, version, 1, CLIENT_ID)) + encode(message, version)
    return len(body).to_bytes(4, "big") + body


def prepare(bootstrap: str, *, is_wide: bool) -> None:
    """Make the topics; the wide one apart, since it weighs on a broker by itself."""
    admin = kafka_admin.AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    if is_wide:
        topics.create(admin, WIDE, WIDE_AT_ONCE)
        for count in range(2 * WIDE_AT_ONCE, WIDE_PARTITIONS + 1, WIDE_AT_ONCE):
            grown = admin.create_partitions([kafka_admin.NewPartitions(WIDE, count)], operation_timeout=60)
            grown[WIDE].result(ANSWER_SECONDS_MAX)
        wait_until_open(int(bootstrap.rpartition(":")[2]))
        return
    topics.create(admin, SMALL, CONNECTIONS)
    topics.create(admin, FLUSHED, CONNECTIONS, config={"flush.messages": "1"})
    topics.create(admin, SQUEEZED, CONNECTIONS, config={"compression.type": "zstd"})
    topics.create(admin, COLD, 1)
    producer = ck.Producer({"bootstrap.servers": bootstrap, "log_level": 0, "queue.buffering.max.kbytes": 65_536})
    for _ in range(COLD_BYTES // COLD_RECORD_BYTES):
        while True:
            try:
                producer.produce(COLD, os.urandom(COLD_RECORD_BYTES), partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(ANSWER_SECONDS_MAX)


def wait_until_open(port: int) -> None:
    """Wait until the broker tells the end of each partition of the wide topic: it goes on making their logs for a while
    after it has said that they are made, which is no client's doing. Raises TimeoutError.
    """
    partitions = [ListOffsetsPartition(number, timestamp=LATEST) for number in range(WIDE_PARTITIONS)]
    frame = request(ListOffsetsRequest(-1, 0, [ListOffsetsTopic(WIDE, partitions)]), LIST_OFFSETS_VERSION)
    deadline = time.monotonic() + OPEN_SECONDS_MAX
    with wire.Connection(port, ANSWER_SECONDS_MAX, ANSWER_BYTES_MAX) as connection:
        while (count := unopened(connection.ask(frame))) > 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{count} partitions of {WIDE} are not open after {OPEN_SECONDS_MAX:g} s")
            time.sleep(OPEN_PAUSE_SECONDS)


def unopened(answer: memoryview) -> int:
    """The partitions whose end an answer to ListOffsets does not tell."""
    topics = decode(ListOffsetsResponse, LIST_OFFSETS_VERSION, answer).topics
    return sum(partition.error_code != 0 for topic in topics for partition in topic.partitions)


# --- how they ask -----------------------------------------------------------------------------------------------------


def drain(connection: socket.socket, piece: memoryview) -> None:
    """Take one answer, and do not look at it."""
    left = 4
    head = bytearray()
    while left:
        part = connection.recv(left)
        if not part:
            raise ConnectionError("the broker closed the connection")
        head += part
        left -= len(part)
    left = int.from_bytes(head, "big")
    while left:
        taken = connection.recv_into(piece[: min(left, len(piece))])
        if not taken:
            raise ConnectionError("the broker closed the connection")
        left -= taken


def connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS_MAX)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask_on(port: int, frames: Iterator[bytes], in_flight: int) -> None:
    """Keep so many requests under way on one connection."""
    piece = memoryview(bytearray(1 << 20))
    with connected(port) as connection:
        for _ in range(in_flight):
            connection.sendall(next(frames))
        while True:
            drain(connection, piece)
            connection.sendall(next(frames))


def side_by_side(plays: Sequence[Callable[[], None]]) -> None:
    """Run all of them in threads; one that is cut off begins again."""

    def forever(play: Callable[[], None]) -> None:
        while True:
            try:
                play()
            except (OSError, wire.WireError):
                time.sleep(0.05)

    threads = [threading.Thread(target=forever, args=(play,), daemon=True) for play in plays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def flood(port: int, frames: Sequence[bytes], in_flight: int) -> None:
    """One connection a frame, each asking the same forever."""
    side_by_side([partial(ask_on, port, itertools.repeat(frame), in_flight) for frame in frames])


def produced(topic: str, size_bytes: int) -> list[bytes]:
    value = b"x" * size_bytes
    return [wire.produce_frame(topic, number, value, 1, CLIENT_ID.encode()) for number in range(CONNECTIONS)]


# --- what they ask ----------------------------------------------------------------------------------------------------


def produce_small(port: int) -> None:
    flood(port, produced(SMALL, 1000), 5)


def produce_large(port: int) -> None:
    flood(port, produced(SMALL, 900_000), 5)


def produce_flushed(port: int) -> None:
    flood(port, produced(FLUSHED, 1000), 5)


def tiny_requests(port: int) -> None:
    flood(port, [wire.frame(wire.API_VERSIONS, wire.API_VERSIONS_VERSION, b"", CLIENT_ID.encode())] * CONNECTIONS, 64)


def fetch_cold(port: int) -> None:
    """All of a log again and again; its pages are thrown out of the cache by `thrown_out` meanwhile."""
    records = COLD_BYTES // COLD_RECORD_BYTES
    step = (1 << 20) // COLD_RECORD_BYTES
    frames = [fetch_frame(COLD, offset, 1 << 20) for offset in range(0, records - step, step)]

    def play(first: int) -> None:
        ask_on(port, itertools.cycle(frames[first:] + frames[:first]), 1)

    side_by_side([partial(play, number * len(frames) // CONNECTIONS) for number in range(CONNECTIONS)])


def throw_out(directory: Path) -> None:
    """Throw the segments of the cold log out of the page cache."""
    for path in directory.rglob(f"{COLD}-0/*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def fetch_frame(topic: str, offset: int, bytes_max: int) -> bytes:
    head = struct.pack(">iiiib", -1, 500, 1, bytes_max, 0)
    wanted = struct.pack(f">ih{len(topic)}siiqi", 1, len(topic), topic.encode(), 1, 0, offset, bytes_max)
    return wire.frame(wire.FETCH, wire.FETCH_VERSION, head + wanted, CLIENT_ID.encode())


def fetch_wide(port: int) -> None:
    partitions = [FetchPartition(number, partition_max_bytes=1024) for number in range(WIDE_PARTITIONS)]
    message = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(WIDE, partitions=partitions)])
    flood(port, [request(message, 11)] * 2, 2)


def metadata(port: int) -> None:
    flood(port, [request(MetadataRequest(None), 9)] * CONNECTIONS, 2)


def connect(port: int) -> None:
    frame = wire.frame(wire.API_VERSIONS, wire.API_VERSIONS_VERSION, b"", CLIENT_ID.encode())
    piece = memoryview(bytearray(1 << 16))

    def play() -> None:
        while True:
            with connected(port) as connection:
                connection.sendall(frame)
                drain(connection, piece)

    side_by_side([play] * CONNECTIONS)


def rebalance(port: int) -> None:
    """Members of one group that join, and leave as soon as they are in."""

    def play() -> None:
        protocols = [JoinGroupRequestProtocol("range", bytes(100))]
        with wire.Connection(port, ANSWER_SECONDS_MAX, ANSWER_BYTES_MAX) as connection:
            while True:
                join = JoinGroupRequest("storm", 10_000, 500, "", protocol_type="consumer", protocols=protocols)
                joined = decode(JoinGroupResponse, 3, connection.ask(request(join, 3)))
                generation, member = joined.generation_id, joined.member_id
                connection.ask(request(SyncGroupRequest("storm", generation, member), 2))
                connection.ask(request(LeaveGroupRequest("storm", member), 2))

    side_by_side([play] * 4 * CONNECTIONS)


def create_and_delete(port: int) -> None:
    def play(number: int) -> None:
        name = f"storm-{number}"
        create = request(CreateTopicsRequest([CreatableTopic(name, 10, 1)]), 5)
        delete = request(DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), 4)
        ask_on(port, itertools.cycle([create, delete]), 1)

    side_by_side([partial(play, number) for number in range(CONNECTIONS)])


def slow_reader(port: int) -> None:
    """50 MB a request, of which a piece is taken ten times a second."""

    def play() -> None:
        piece = bytearray(SLOW_PIECE_BYTES)
        with connected(port) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_PIECE_BYTES)
            connection.sendall(fetch_frame(COLD, 0, SLOW_BYTES) * 5)
            while True:
                connection.recv_into(piece)
                time.sleep(0.1)

    side_by_side([play] * CONNECTIONS)


def bomb(port: int) -> None:
    """Batches of some KB that hold 64 MB, into a topic of another codec: the broker has to open them."""
    frames = []
    for number in range(2):
        records = squeezed_batch(bytes(BOMB_BYTES), int(time.time() * 1000))
        head = struct.pack(
            f">hhiih{len(SQUEEZED)}siii", -1, 1, 30_000, 1, len(SQUEEZED), SQUEEZED.encode(), 1, number, len(records)
        )
        frames.append(wire.frame(wire.PRODUCE, wire.PRODUCE_VERSION, head + records, CLIENT_ID.encode()))
    flood(port, frames, 1)


def squeezed_batch(value: bytes, timestamp_ms: int) -> bytes:
    """One record, in gzip."""
    plain = wire.one_record_batch(value, timestamp_ms)
    head, records = plain[:61], gzip.compress(plain[61:], 1)
    counted = GZIP.to_bytes(2, "big") + head[23:] + records
    return struct.pack(">qiibI", 0, 9 + len(counted), -1, 2, crc32c.crc32c(counted)) + counted


def offsets_by_time(port: int) -> None:
    chance, now_ms = random.Random(1), int(time.time() * 1000)

    def frame() -> bytes:
        partition = ListOffsetsPartition(0, timestamp=now_ms - chance.randrange(60_000))
        return request(ListOffsetsRequest(-1, topics=[ListOffsetsTopic(COLD, [partition])]), 4)

    flood(port, [frame() for _ in range(CONNECTIONS)], 5)


#: In the order in which they come: a topic of 10,000 partitions is made for the last two.
AGGRESSORS: Final[dict[str, Aggressor]] = {
    "produce of 1 KB": produce_small,
    "produce of 900 KB": produce_large,
    "flush.messages=1": produce_flushed,
    "tiny requests": tiny_requests,
    "fetch from cold": fetch_cold,
    "connect storm": connect,
    "rebalance storm": rebalance,
    "create and delete": create_and_delete,
    "slow reader of 50 MB": slow_reader,
    "decompression bomb": bomb,
    "ListOffsets by time": offsets_by_time,
    "fetch of 10,000 partitions": fetch_wide,
    "metadata of 10,000 partitions": metadata,
}
OF_WIDE: Final = ("fetch of 10,000 partitions", "metadata of 10,000 partitions")

if __name__ == "__main__":
    AGGRESSORS[sys.argv[1]](int(sys.argv[2]))
