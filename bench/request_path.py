"""Where the microseconds of a produce and of a fetch go inside the broker.

    .venv/bin/python -m bench.request_path [--rounds N] [--directory DIR]

Each step of the path is called by itself, on the objects the broker uses and on real files, with the bytes that a
client sends; the socket and the loop are left out (`python -m bench --section latency` has them). The last line of a
table is the whole path in one call, so what the steps do not explain shows as a difference.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, Final, cast

from crc32c import crc32c

from bench import memory
from bench.wire import CLIENT_ID
from kavka_broker.api.a00_produce import produce
from kavka_broker.api.a01_fetch import fetch
from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.dispatch.dispatcher import Dispatcher
from kavka_broker.loop.slices import LoopTime, Slices
from kavka_broker.membership.outdated_image import OutdatedImage
from kavka_broker.net.inbox import Inbox
from kavka_broker.net.request_memory import SHARED_BYTES, RequestMemory
from kavka_broker.protocol.codec import decoder, encode
from kavka_broker.protocol.framing import (
    RequestHeader,
    encode_request_header,
    encode_response_parts,
    read_request_header,
)
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.serving.fetch_sessions import FetchSessions
from kavka_broker.replica.serving.fetches import Fetches
from kavka_broker.replica.writing.produce_context import Writes
from kavka_broker.request.broker import Broker, Client, Connected
from kavka_broker.request.registry import APIS
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.recovery import open_log

NODE_ID: Final = 1
TOPIC: Final = "bench"
PRODUCE_VERSION: Final = 12
FETCH_VERSION: Final = 12
BATCHES: Final = {"1 record of 100 B": (1, 100), "16 KB of records": (150, 100), "1 MB of records": (1_000, 1_000)}
"""How many records, and of how many bytes each; so few that no thread has to look into them."""
BYTES_A_ROUND: Final = 32 * 1024 * 1024
CALLS_A_ROUND_MAX: Final = 2_000


class WallClock:
    """The broker's clock, as it runs."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the path. `prepare` undoes what the call before it did, and is not timed."""

    name: str
    call: Callable[[], object]
    prepare: Callable[[], object] | None = None


class RequestPath:
    """A partition on real files, and the few parts of a broker that its requests touch."""

    def __init__(self, directory: Path) -> None:
        self.clock = WallClock()
        now_ms = self.clock.now_ms()
        self.log = open_log(RealDisk(), str(directory / f"{TOPIC}-0"), LogConfig(), now_ms=now_ms)
        state = PartitionState((NODE_ID,), (NODE_ID,), NODE_ID)
        host: Any = SimpleNamespace(lag_ms_max=0.0, contact=None, eligible=None, hurries_high_watermark=False)
        self.partition = Partition(TOPIC, 0, self.log, state, NODE_ID, self.clock, host)
        partitions: Any = SimpleNamespace(
            leader=lambda *_: self.partition,
            replica=lambda *_: self.partition,
            get=lambda *_: self.partition,
        )
        replicas: Any = SimpleNamespace(
            partitions=partitions,
            throttles=None,
            openings=SimpleNamespace(is_securing=False),
        )
        absent: Any = None  # no topic ids, and nothing that waits
        parts = SimpleNamespace(
            clock=self.clock,
            config={"fetch.max.bytes": 55 * 1024 * 1024, "replica.selector.class": ""},
            quotas=ClientQuotas(),
            replicas=replicas,
            partitions=partitions,
            fetches=Fetches(NODE_ID, FetchSessions(1000, lambda: 1), replicas, absent, self.clock, absent),
            timers=None,
            authorizer=None,
            serving=SimpleNamespace(lifecycle=SimpleNamespace(outdated=OutdatedImage())),
            use=None,
            is_refusing=False,
            writes=Writes(replicas, absent, absent, Slices(), self.clock, absent),
        )
        self.broker = cast(Broker, parts)
        self.dispatcher = Dispatcher(self.broker, APIS, _raise, LoopTime(time.perf_counter_ns))
        self.peer = Connected("127.0.0.1", "PLAINTEXT")

    def client(self, version: int, size_bytes: int) -> Client:
        return Client(version, CLIENT_ID.decode(), 1, "127.0.0.1", "PLAINTEXT", size_bytes)


def _raise(error: BaseException) -> None:
    raise error


def kept(frame: memoryview) -> memoryview:
    """The frame, which stays."""
    return frame


def frame_of(request: ProduceRequest | FetchRequest, version: int) -> bytearray:
    """The bytes of a request as they come from the socket, without their size."""
    assert request.API_KEY is not None
    header = RequestHeader(request.API_KEY, version, 1, CLIENT_ID.decode())
    return bytearray(encode_request_header(header) + encode(request, version))


def produce_steps(path: RequestPath, batch: bytearray, directory: Path) -> Iterator[Step]:
    data = PartitionProduceData(0, memoryview(batch))
    frame = frame_of(
        ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, partition_data=[data])]), PRODUCE_VERSION
    )
    view = memoryview(frame)
    header, body = read_request_header(view)
    decode = decoder(ProduceRequest, PRODUCE_VERSION)
    request, _ = decode(view, body)
    records_view = request.topic_data[0].partition_data[0].records
    assert isinstance(records_view, memoryview)
    client = path.client(PRODUCE_VERSION, len(frame))

    def clear() -> None:
        records_view[0:8] = bytes(8)

    yield from (
        Step("take the frame from the buffer", inbox_call(frame)),
        Step("read the header", lambda: read_request_header(view)),
    )
    yield Step("decode the request", lambda: decode(view, body))
    yield Step("  CRC of the batch (floor)", lambda: crc32c(records_view[21:]))
    yield Step("  pwrite of the batch (floor)", pwrite_call(directory, records_view))
    yield Step("append to the log", lambda: path.log.append_as_leader(records_view, 0, path.clock.now_ms()), clear)
    yield Step("append to the partition", lambda: path.partition.append(records_view), clear)
    yield Step("handler", lambda: produce(request, path.broker, client), clear)
    clear()
    answer = produce(request, path.broker, client)
    assert isinstance(answer, ProduceResponse)
    yield Step("encode the answer", lambda: encode_response_parts(answer, header.api_version, 1))
    yield Step("all of it (Dispatcher.begin)", lambda: path.dispatcher.begin(view, path.peer, kept), clear)


def fetch_steps(path: RequestPath, batch: bytearray, _directory: Path) -> Iterator[Step]:
    first_offset = path.log.log_end_offset
    for _ in range(2):
        batch[0:8] = bytes(8)
        path.partition.append(memoryview(batch))
    wanted = FetchPartition(0, fetch_offset=first_offset, partition_max_bytes=len(batch))
    request_made = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(TOPIC, partitions=[wanted])])
    frame = frame_of(request_made, FETCH_VERSION)
    view = memoryview(frame)
    _header, body = read_request_header(view)
    decode = decoder(FetchRequest, FETCH_VERSION)
    request, _ = decode(view, body)
    client = path.client(FETCH_VERSION, len(frame))
    upper = path.partition.high_watermark
    yield from (
        Step("take the frame from the buffer", inbox_call(frame)),
        Step("read the header", lambda: read_request_header(view)),
    )
    yield Step("decode the request", lambda: decode(view, body))
    yield Step("read from the log", lambda: path.log.read(first_offset, len(batch), upper_offset=upper))
    yield Step("handler", lambda: fetch(request, path.broker, client))
    answer = fetch(request, path.broker, client)
    assert isinstance(answer, FetchResponse)
    yield Step("encode the answer", lambda: encode_response_parts(answer, FETCH_VERSION, 1))
    yield Step("all of it (Dispatcher.begin)", lambda: path.dispatcher.begin(view, path.peer, kept))


def inbox_call(frame: bytearray) -> Callable[[], object]:
    """What a connection does with bytes that have just been received."""
    inbox = Inbox(100 * 1024 * 1024, RequestMemory())
    whole = memoryview(len(frame).to_bytes(4, "big") + frame)
    # As it comes from a socket: piece by piece into the room that there is, which grows to the size promised.
    given = 0
    while given < len(whole):
        room = inbox.room()
        size = min(len(room), len(whole) - given)
        room[:size] = whole[given : given + size]
        inbox.received(size)
        inbox.next_frame()
        inbox.give_back()
        given += size

    def take() -> object:
        inbox.room()
        inbox.received(min(len(whole), SHARED_BYTES))
        taken = inbox.next_frame()
        if taken is None:  # too long for the buffer of all connections
            inbox.received(len(whole) - SHARED_BYTES)
            taken = inbox.next_frame()
        inbox.next_frame()
        inbox.give_back()
        return taken

    return take


def pwrite_call(directory: Path, piece: memoryview) -> Callable[[], object]:
    descriptor = os.open(directory / "floor", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    position = 0

    def write() -> None:
        nonlocal position
        position += os.pwrite(descriptor, piece, position)

    return write


def microseconds(step: Step, calls: int) -> float:
    """The mean of one call; a `prepare` is taken out by timing each call alone."""
    spent = 0
    for _ in range(calls):
        if step.prepare is not None:
            step.prepare()
        started = time.perf_counter_ns()
        step.call()
        spent += time.perf_counter_ns() - started
    return spent / calls / 1000


def measure(name: str, steps: list[Step], calls: int, rounds: int) -> None:
    print(f"\n{name}")
    for step in steps:
        microseconds(step, min(calls, 100))
        taken = sorted(microseconds(step, calls) for _ in range(rounds))
        print(f"  {step.name:34} {median(taken):9.2f} us  ({taken[0]:.2f} to {taken[-1]:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--directory", type=Path, help="where the log is written; a temporary one by default")
    chosen = parser.parse_args()
    with memory.Pool(memory.pool_bytes()):
        asyncio.run(measure_all(chosen.rounds, chosen.directory))


async def measure_all(rounds: int, where: Path | None, calls_max: int = CALLS_A_ROUND_MAX) -> None:
    for kind, steps in (("produce", produce_steps), ("fetch", fetch_steps)):
        for size, (records, record_bytes) in BATCHES.items():
            calls = min(calls_max, BYTES_A_ROUND // (records * record_bytes))
            with tempfile.TemporaryDirectory(dir=where) as directory:
                path = RequestPath(Path(directory))
                batch = build_batch([(None, bytes(record_bytes))] * records, timestamp_ms=path.clock.now_ms())
                measure(f"{kind}, {size}", list(steps(path, batch, Path(directory))), calls, rounds)
                path.log.abandon()


if __name__ == "__main__":
    main()
