"""The few bytes of protocol of a transactional producer of version 2 (KIP-890), beside those of `bench.wire`.

Its partitions come into a transaction with their first records, and the answer to EndTxn brings the producer's next
epoch: two requests make a transaction.
"""

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import crc32c

from bench import wire
from bench.flexible_wire import NO_TAGS, Reader, counted, frame, sized, text

FIND_COORDINATOR: Final = 10
INIT_PRODUCER_ID: Final = 22
END_TXN: Final = 26
LIST_TRANSACTIONS: Final = 66
OF_TRANSACTIONS: Final = 1
INIT_PRODUCER_ID_VERSION: Final = 4
PRODUCE_VERSION: Final = 12
END_TXN_VERSION: Final = 5
TIMEOUT_MS: Final = 60_000
TRANSACTIONAL: Final = 0x10
NULL: Final = b"\0"
#: Errors that end by themselves: a transaction that is still being completed, a topic that has only been made now, or
#: whose leader is not known to itself yet.
RETRIABLE: Final = {
    3: "UNKNOWN_TOPIC_OR_PARTITION", 6: "NOT_LEADER_OR_FOLLOWER", 14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE", 16: "NOT_COORDINATOR", 51: "CONCURRENT_TRANSACTIONS",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity:
    """A producer as its coordinator knows it."""

    producer_id: int
    epoch: int


def init_producer_frame(transactional_id: str) -> bytes:
    """An InitProducerId request for a producer that has no id yet."""
    body = text(transactional_id) + struct.pack(">iqh", TIMEOUT_MS, -1, -1) + NO_TAGS
    return frame(INIT_PRODUCER_ID, INIT_PRODUCER_ID_VERSION, body)


def find_coordinator_frame(transactional_id: str) -> bytes:
    """A FindCoordinator request, version 2."""
    name = transactional_id.encode()
    return wire.frame(FIND_COORDINATOR, 2, struct.pack(">h", len(name)) + name + struct.pack(">b", OF_TRANSACTIONS))


def coordinator_in(body: memoryview) -> tuple[int, int]:
    """The error code and the coordinator's port in the answer to it."""
    _throttle_ms, error, length = struct.unpack_from(">ihh", body)
    at = 8 + max(0, length) + 4  # behind the message and the node's id
    (length,) = struct.unpack_from(">h", body, at)
    (port,) = struct.unpack_from(">i", body, at + 2 + length)
    return error, port


def list_frame() -> bytes:
    """A ListTransactions request, version 0, for all ids."""
    return frame(LIST_TRANSACTIONS, 0, counted(0) + counted(0) + NO_TAGS)


def listed_in(body: memoryview) -> int:
    """How many ids the answer to it has. Raises WireError."""
    reader = Reader(body)
    reader.skip_tags()
    _throttle_ms, error = reader.unpack(">ih")
    if error:
        raise wire.WireError(f"ListTransactions was answered with error {error}")
    for _ in range(reader.count()):
        reader.skip_text()
    return reader.count()


def end_frame(transactional_id: str, identity: Identity) -> bytes:
    """An EndTxn request that commits."""
    body = text(transactional_id) + struct.pack(">qh?", identity.producer_id, identity.epoch, True) + NO_TAGS
    return frame(END_TXN, END_TXN_VERSION, body)


def identity_in(body: memoryview) -> tuple[int, Identity]:
    """The error code and the producer in the answer to either of these."""
    _tags, _throttle_ms, error, producer_id, epoch = struct.unpack_from(">bihqh", body)
    return error, Identity(producer_id, epoch)


def produce_frame(transactional_id: str | None, topic: str, batches: Sequence[bytes]) -> bytes:
    """A Produce request with acks=all: a batch for each partition, from the first on."""
    parts = [struct.pack(">i", number) + sized(batch) + NO_TAGS for number, batch in enumerate(batches)]
    topics = counted(1) + text(topic) + counted(len(parts)) + b"".join(parts) + NO_TAGS
    producer = NULL if transactional_id is None else text(transactional_id)
    body = producer + struct.pack(">hi", -1, 30_000) + topics + NO_TAGS
    return frame(wire.PRODUCE, PRODUCE_VERSION, body)


def produce_error(body: memoryview) -> int:
    """The first error code in the answer to `produce_frame`, 0 where there is none."""
    reader = Reader(body)
    reader.skip_tags()
    for _ in range(reader.count()):
        reader.skip_text()
        for _ in range(reader.count()):
            _index, error, _offset, _time, _start = reader.unpack(">ihqqq")
            if error:
                return int(error)
            assert not reader.count(), "no record is refused without an error"
            reader.skip_text()
            reader.skip_tags()
        reader.skip_tags()
    return 0


def batch(identity: Identity, sequence: int, records: int, value: bytes, *, attributes: int = TRANSACTIONAL) -> bytes:
    """A batch (magic 2) of so many equal records, of a transaction if the attributes do not say otherwise."""
    now_ms = int(time.time() * 1000)
    parts = []
    for offset in range(records):
        record = b"\0\0" + wire.varint(offset) + b"\1" + wire.varint(len(value)) + value + b"\0"
        parts.append(wire.varint(len(record)) + record)
    head = attributes, records - 1, now_ms, now_ms, identity.producer_id, identity.epoch, sequence, records
    records_counted = struct.pack(">hiqqqhii", *head) + b"".join(parts)
    return struct.pack(">qiibI", 0, 9 + len(records_counted), -1, 2, crc32c.crc32c(records_counted)) + records_counted
