"""A request whose client leaves is gone at once: the oldest generation of the collector never looks."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from struct import pack
from typing import Final

import pytest

from kavka_broker.dispatch.dispatcher import Exchange
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.runtime.watchdog import Watchdog
from tests.support.in_process import Client, InProcess, running
from tests.support.waiting import turns, until

LARGE: Final = 20_000
LIST_OFFSETS, FETCH = 7, 13


@contextmanager
def collecting() -> Iterator[Counter[str]]:
    """Counts what of ours only the collector would free, by type, at the end of the block."""
    found = Counter[str]()
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found.update(type(one).__name__ for one in gc.garbage if type(one).__module__.startswith("kavka_broker"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@asynccontextmanager
async def watched() -> AsyncIterator[None]:
    """Times callbacks, as a broker does."""
    watchdog = Watchdog()
    watchdog.watch(asyncio.get_running_loop())
    try:
        yield
    finally:
        watchdog.unwatch()


def partitions() -> ListOffsetsRequest:
    every = [ListOffsetsPartition(index, -1, -1) for index in range(LARGE)]
    return ListOffsetsRequest(-1, 0, [ListOffsetsTopic("not-there", every)])


def fetch(topic_id: bytes) -> FetchRequest:
    topic = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(0, partition_max_bytes=1_000_000)])
    return FetchRequest(max_wait_ms=60_000, min_bytes=1_000_000, max_bytes=1_000_000, topics=[topic])


def exchanges(inside: InProcess) -> list[Exchange]:
    """The requests that are being served."""
    connections = [one for listener in inside.server.addresses for one in listener.connections]
    return [exchange for connection in connections for exchange in connection._exchanges]


async def ended(inside: InProcess, client: Client, count: int) -> None:
    """Let the client leave, and wait until the broker has done all that follows."""
    client.writer.transport.abort()
    await until(lambda: sum(len(listener.connections) for listener in inside.server.addresses) == count)
    await turns(100)
    del client


@pytest.mark.parametrize("is_large", [True, False], ids=["a large request", "a long poll"])
def test_nothing_is_left_of_a_request_whose_client_leaves(tmp_path: Path, is_large: bool) -> None:
    async def scenario() -> None:
        async with watched(), running(tmp_path) as inside:
            await inside.connect()
            topic_id = await inside.create("t")
            with collecting() as found:
                client = await inside.connect()
                if is_large:
                    client.send(partitions(), LIST_OFFSETS)
                else:
                    client.send(fetch(topic_id), FETCH)
                await until(lambda: bool(exchanges(inside)))
                await ended(inside, client, 1)
                del client
            assert not found

    asyncio.run(scenario())


def test_nothing_is_left_of_a_large_request_that_does_not_decode(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with watched(), running(tmp_path) as inside:
            await inside.connect()
            with collecting() as found:
                client = await inside.connect()
                header = encode_request_header(RequestHeader(MetadataRequest.API_KEY, 9, 7, "c"))
                frame = header + bytes([255]) * LARGE
                client.writer.write(pack(">i", len(frame)) + frame)
                assert await client.is_closed()
                await ended(inside, client, 1)
                del client
            assert not found

    asyncio.run(scenario())
