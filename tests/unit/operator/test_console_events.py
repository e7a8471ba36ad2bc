"""The operator's page while it is open: events for those who are let in, when something changes, and within bounds."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from kavka_operator.process.console.access import REMEMBERED_SECONDS, Door, RefusedError, Rights
from kavka_operator.process.console.events import PART_BYTES, Shown, Streams, StreamTiming, send_whole
from kavka_operator.process.console.page import WHOLE, Console, Place
from kavka_operator.process.http_server import Address, console, opened
from kavka_operator.process.metrics import Figures
from tests.support.servers import free_port
from tests.support.waiting import until
from tests.unit.operator.test_console_access import ALL, KINDS, Reviews, in_namespace

SHOP = {(kind, "shop") for kind in KINDS}
ADMIN = {"Authorization": "Bearer admin"}


QUICK = StreamTiming(look_seconds=0.01)


@dataclass
class Stage:
    """A page at an address that others reach, the resources behind it, and who may list what."""

    documents: list[dict[str, Any]]
    reviews: Reviews
    now: float = 0.0
    client: TestClient[Any, Any] = field(init=False)

    @asynccontextmanager
    async def stream(self, token: str = "admin", **place: str) -> AsyncIterator[ClientResponse]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.client.get("/events", headers=headers, params=place) as answer:
            yield answer


def play(
    scenario: Callable[[Stage], Awaitable[None]], timing: StreamTiming = QUICK, streams: Streams | None = None
) -> None:
    async def run() -> None:
        stage = Stage([in_namespace("Topic", "first", "shop")], Reviews({"admin": {*ALL}, "seller": {*SHOP}}))
        figures = Figures(is_active=True, listed_at=1.0, documents=lambda: list(stage.documents))
        door = Door(stage.reviews, lambda: stage.now)
        shown = Console(
            figures,
            door=door,
            streams=Streams() if streams is None else streams,
            timing=timing,
            fresh_seconds=0.0,
            made_apart=0.0,
        )
        async with TestClient(TestServer(console(shown), handler_cancellation=True)) as stage.client:
            await asyncio.wait_for(scenario(stage), 60)

    asyncio.run(run())


async def heard(answer: ClientResponse) -> set[str]:
    """The names in the first table of the next event, of topics or clusters."""
    while not (line := await answer.content.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    (sheet,) = json.loads(line.removeprefix(b"data: "))["sheets"]
    return {row["key"] for row in sheet["rows"]}


def test_what_changes_is_sent_and_what_is_the_same_is_not() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.stream(cluster="shop/main", view="topics") as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
            assert await heard(answer) == {"shop/first"}
            assert [await answer.content.readline() for _ in range(3)] == [b"\n", b": the same\n", b"\n"]
            stage.documents.append(in_namespace("Topic", "second", "shop"))
            assert await heard(answer) == {"shop/first", "shop/second"}

    play(scenario, replace(QUICK, heartbeat_seconds=0.02))


def test_each_is_sent_what_it_may_list_and_others_nothing() -> None:
    async def scenario(stage: Stage) -> None:
        stage.documents.append(in_namespace("Topic", "vault", "bank"))
        async with stage.stream("seller") as answer:
            assert await heard(answer) == {"shop/main"}
        async with stage.stream("seller", cluster="bank/main", view="topics") as answer:
            assert b"isGone" in await answer.content.readline()
        for token in ("", "forged"):
            async with stage.stream(token) as answer:
                assert (answer.status, b"vault" in await answer.read()) == (401, False)

    play(scenario)


def test_a_right_that_is_taken_away_ends_the_stream() -> None:
    async def scenario(stage: Stage) -> None:
        stage.documents.append(in_namespace("Topic", "vault", "bank"))
        async with stage.stream() as answer:
            assert await heard(answer) == {"shop/main", "bank/main"}
            stage.reviews.allowed["admin"] = {*SHOP}
            stage.now += REMEMBERED_SECONDS
            assert await heard(answer) == {"shop/main"}
            del stage.reviews.allowed["admin"]
            stage.now += REMEMBERED_SECONDS
            stage.documents.append(in_namespace("Topic", "later", "shop"))
            assert b"later" not in await answer.read()
        async with stage.stream() as answer:
            assert answer.status == 401

    play(scenario)


def test_of_one_token_a_few_streams_are_open_and_the_place_of_one_that_left_is_free() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.stream() as first, stage.stream() as second, stage.stream("seller") as other:
            assert [answer.status for answer in (first, second, other)] == [200, 503, 200]
            assert b"close some" in await second.read()

        async def is_free() -> bool:
            async with stage.stream() as answer:
                return answer.status == 200

        while not await is_free():
            await asyncio.sleep(0)

    play(scenario, streams=Streams(of_one_max=1))


def test_all_streams_have_a_bound() -> None:
    streams = Streams(streams_max=2)
    with streams.place(b"a", is_of_all=False), streams.place(b"b", is_of_all=False):
        with pytest.raises(RefusedError), streams.place(b"c", is_of_all=False):
            pass
        assert len(streams) == 2
    assert len(streams) == 0


def test_a_page_that_reads_nothing_is_let_go() -> None:
    count = 0

    class Growing(Console):
        """Has something else to show at each look."""

        async def overview(self, rights: Rights | None, place: Place = WHOLE) -> Shown:
            nonlocal count
            count += 1
            return Shown("now", b'{"count": %d, "rest": "%s"}' % (count, b"x" * 2**20))

    async def ask() -> None:
        port = free_port()
        served = Growing(Figures(), timing=replace(QUICK, send_seconds_max=0.05))
        application = web.Application()
        application.add_routes(served.routes())
        async with opened(Address("127.0.0.1", port), application):
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await until(lambda: len(served.streams) == 1)
            await until(lambda: len(served.streams) == 0)
            writer.close()

    asyncio.run(ask())


def test_a_document_is_sent_whole_and_copied_in_parts() -> None:
    body, waiting = json.dumps({"rest": "x" * 2**25}).encode(), list[int]()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        is_over = asyncio.create_task(send_whole(request, body))
        while not is_over.done():
            waiting.append(request.transport.get_write_buffer_size())
            await asyncio.sleep(0)
        return await is_over

    async def ask() -> None:
        application = web.Application()
        application.router.add_get("/", answer)
        async with TestClient(TestServer(application)) as client:
            found = await client.get("/")
            await until(lambda: waiting[-1] > 0)  # what the sockets hold is not read yet
            assert (await found.read(), found.headers["Content-Length"]) == (body, str(len(body)))
            assert found.headers["Content-Type"] == "application/json; charset=utf-8"
        assert max(waiting) <= 2 * PART_BYTES < len(body)

    asyncio.run(asyncio.wait_for(ask(), 50))


def test_a_port_with_an_open_page_is_closed_at_once() -> None:
    async def ask() -> None:
        port = free_port()
        async with opened(Address("127.0.0.1", port), console(Console(Figures(is_active=True)))):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            await reader.readuntil(b"data: ")
        writer.close()

    asyncio.run(asyncio.wait_for(ask(), 50))
