"""Large requests are decoded while there is room for what they become."""

import asyncio
from pathlib import Path
from typing import Final

from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.request.decoded_requests import ELEMENT_BYTES, DecodedRequests
from tests.support.in_process import running
from tests.support.waiting import until

COUNT: Final = 3_000
LIST_OFFSETS, FETCH = 7, 12


def listing() -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(index, -1, -1) for index in range(COUNT)]
    return ListOffsetsRequest(-1, 0, [ListOffsetsTopic("not-there", partitions)])


def test_a_large_request_waits_as_the_bytes_that_came(tmp_path: Path) -> None:
    """A hundred of 1.2 MB took more than a gigabyte, without any right."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client, requests = await inside.connect(), inside.broker.decoded_requests
            requests.bytes_max = 1
            taken = await requests.room(("another", ""), 100)
            client.send(listing(), LIST_OFFSETS)
            await until(lambda: requests.waiting_count == 1)
            taken.end()
            answer = await client.receive(ListOffsetsResponse, LIST_OFFSETS)
            assert len(answer.topics[0].partitions) == COUNT
            assert (requests.used_bytes, requests.waiting_count) == (0, 0)

    asyncio.run(scenario())


def test_a_client_that_leaves_while_it_waits_or_is_served_leaves_no_room_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            requests = inside.broker.decoded_requests
            served = await inside.connect()
            served.send(listing(), LIST_OFFSETS)
            await until(lambda: requests.used_bytes > 0)
            served.writer.transport.abort()
            await until(lambda: requests.used_bytes == 0)
            requests.bytes_max = 1
            taken = await requests.room(("another", ""), 100)
            waiting = await inside.connect()
            waiting.send(listing(), LIST_OFFSETS)
            await until(lambda: requests.waiting_count == 1)
            waiting.writer.transport.abort()
            await until(lambda: requests.waiting_count == 0)
            taken.end()
            assert requests.used_bytes == 0

    asyncio.run(scenario())


def test_a_fetch_that_waits_takes_no_room(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", partitions=500)
            await until(lambda: len(list(inside.broker.partitions)) >= 500)
            client, requests = await inside.connect(), inside.broker.decoded_requests
            partitions = [FetchPartition(index, partition_max_bytes=1_000) for index in range(500)]
            request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic("t", partitions=partitions)])
            client.send(request, FETCH)
            waiters = inside.broker.partitions.leader("t", 499).waiters
            await until(lambda: bool(waiters.fetches) and requests.used_bytes == 0)
            waiters.interrupt()
            assert len((await client.receive(FetchResponse, FETCH)).responses[0].partitions) == 500

    asyncio.run(scenario())


def test_what_a_request_takes_is_known_once_it_is_decoded() -> None:
    async def scenario() -> None:
        requests = DecodedRequests(bytes_max=1_000_000)
        first = await requests.room(("a", ""), 10_000)
        assert requests.used_bytes > 10_000 + 1_000 * ELEMENT_BYTES, "as many elements as there may be"
        first.settle(10_000)
        assert requests.used_bytes == 10_000
        first.end()
        first.end()
        assert requests.used_bytes == 0

    asyncio.run(scenario())


def test_principals_have_room_in_turn() -> None:
    """Who has had more waits behind who has had less, however many of its requests wait."""

    async def scenario() -> None:
        requests, order = DecodedRequests(bytes_max=1), list[str]()

        async def ask(user: str) -> None:
            room = await requests.room((user, ""), 10_000)
            room.settle(10_000)
            order.append(user)
            room.end()

        held = await requests.room(("greedy", ""), 10_000)
        held.settle(50_000_000)
        tasks = [asyncio.ensure_future(ask("greedy")) for _ in range(4)]
        await asyncio.sleep(0)
        tasks.append(asyncio.ensure_future(ask("modest")))
        await asyncio.sleep(0)
        held.end()
        await asyncio.gather(*tasks)
        assert order[0] == "modest"
        assert (requests.used_bytes, requests.waiting_count) == (0, 0)

    asyncio.run(scenario())
