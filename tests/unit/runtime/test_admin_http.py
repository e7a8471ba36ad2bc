"""The admin port: three pages, and what becomes of anything else."""

import asyncio
import json
from functools import partial
from http import HTTPStatus

import pytest

from kavka_broker.runtime.admin_http import (
    BOUNDS,
    HEAD_BYTES_MAX,
    AdminBounds,
    AdminHttp,
    HttpAnswer,
    parse_address,
    plain,
)
from kavka_broker.runtime.health import Health
from tests.support.waiting import until
from tests.unit.runtime.sources import sources


async def exchange(admin: AdminHttp, sent: bytes) -> tuple[int, bytes, bytes]:
    """Status, head and body of the answer to these bytes."""
    port = await admin.open("127.0.0.1:0")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        received = await reader.read()
    finally:
        writer.close()
        await admin.close()
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), head, body


def ask(admin: AdminHttp, target: str, method: str = "GET") -> tuple[int, bytes, bytes]:
    request = f"{method} {target} HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"
    return asyncio.run(exchange(admin, request.encode()))


def test_alive_says_who_it_is() -> None:
    status, head, body = ask(AdminHttp(sources()), "/healthz")

    assert status == 200
    assert b"Content-Type: application/json" in head
    assert json.loads(body) == {"status": "alive", "node_id": 1, "cluster_id": "abc", "up_seconds": 0.0}


def test_not_ready_says_what_is_missing() -> None:
    health = Health({"logs": "3 of 10 logs loaded"})

    status, _, body = ask(AdminHttp(sources(health=health)), "/readyz")

    assert status == 503
    assert json.loads(body)["because"] == {"logs": "3 of 10 logs loaded"}


def test_ready_when_nothing_is_missing() -> None:
    assert ask(AdminHttp(sources(health=Health())), "/readyz?verbose")[0] == 200


def test_metrics_are_prometheus_text() -> None:
    status, head, body = ask(AdminHttp(sources()), "/metrics")

    assert status == 200
    assert b"Content-Type: text/plain; version=0.0.4" in head
    assert b"\nkavka_broker_ready 0.0\n" in body
    assert f"Content-Length: {len(body)}".encode() in head


def test_head_gives_no_body() -> None:
    status, head, body = ask(AdminHttp(sources()), "/healthz", "HEAD")

    assert (status, body) == (200, b"")
    assert b"Content-Length: 0" not in head


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01 TLS\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nCookie: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n", 431),
    ],
)
def test_anything_else_is_refused_in_words(sent: bytes, status: int) -> None:
    refused, _, body = asyncio.run(exchange(AdminHttp(sources()), sent))

    assert refused == status
    assert body.endswith(b"\n")


def test_half_a_request_and_silence_does_not_hold_a_connection() -> None:
    async def half() -> bytes:
        admin = AdminHttp(sources(), AdminBounds(seconds_max=0.05))
        reader, writer = await asyncio.open_connection("127.0.0.1", await admin.open("127.0.0.1:0"))
        writer.write(b"GET /healthz")
        received = await reader.read()
        writer.close()
        await admin.close()
        return received

    assert asyncio.run(half()) == b""


async def connected(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    return [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]


PATIENT = AdminBounds(seconds_max=3600)
"""No connection is closed because the test takes long."""


def test_connections_that_say_nothing_make_room_for_a_probe() -> None:
    async def scenario() -> None:
        admin = AdminHttp(sources(), PATIENT)
        port = await admin.open("127.0.0.1:0")
        silent = await connected(port, BOUNDS.connections_max)
        silent[0][1].write(b"GET /healthz")  # half a request is none
        for round_ in range(2):
            ((reader, writer),) = await connected(port, 1)
            writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200"), round_
            writer.close()
        assert await silent[0][0].read() == b"", "the oldest one has made room"
        assert not silent[2][0].at_eof()
        for _, writer in silent:
            writer.close()
        await admin.close()

    asyncio.run(scenario())


def test_no_more_connections_than_the_bound_are_held() -> None:
    may_answer = asyncio.Event()

    async def slowly() -> HttpAnswer:
        await may_answer.wait()
        return plain(HTTPStatus.OK, "late")

    async def scenario() -> None:
        admin = AdminHttp(sources(), PATIENT)
        admin.pages["/slow"] = slowly
        port = await admin.open("127.0.0.1:0")
        asking = await connected(port, BOUNDS.connections_max)
        for _, writer in asking:
            writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
        while admin.silent or admin.connections < BOUNDS.connections_max:
            await asyncio.sleep(0)
        ((reader, writer),) = await connected(port, 1)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        may_answer.set()
        for reader, _ in asking:
            assert (await reader.read()).endswith(b"late\n")
        for _, one in [*asking, (reader, writer)]:
            one.close()
        await admin.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("address", "parsed"),
    [("127.0.0.1:9644", ("127.0.0.1", 9644)), ("[::1]:9644", ("::1", 9644)), (":9644", ("", 9644))],
)
def test_an_address_of_the_admin_listener_is_read(address: str, parsed: tuple[str, int]) -> None:
    assert parse_address(address) == parsed


@pytest.mark.parametrize("address", ["9644", "localhost", "localhost:http", "localhost:99999"])
def test_what_is_no_address_is_refused_with_the_fix(address: str) -> None:
    with pytest.raises(ValueError, match="write host:port"):
        parse_address(address)


def test_readers_that_do_not_read_make_room_for_probes_and_get_one_page() -> None:
    rendered = 0

    async def render(_: object) -> bytes:
        nonlocal rendered
        rendered += 1
        await asyncio.sleep(0)
        return bytes(12 * 1024 * 1024)  # more than the buffers of two sockets

    bounds = AdminBounds(connections_max=6, scrapes_max=4, seconds_max=3600, shared_seconds=3600)

    def is_settled(admin: AdminHttp, scrapes: int) -> bool:
        return len(admin.scrapes) == scrapes and len(admin.silent) <= 2

    async def scenario() -> None:
        admin = AdminHttp(sources(), bounds, render)
        port = await admin.open("127.0.0.1:0")
        readers = []
        for _ in range(2):
            ((_, writer),) = await connected(port, 1)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            readers.append(writer)
        for number in range(2 * bounds.connections_max):
            ((_, writer),) = await connected(port, 1)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            readers.append(writer)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            await until(partial(is_settled, admin, min(number + 1, bounds.scrapes_max)))
            if number % 3 == 2:
                ((probing, probe),) = await connected(port, 1)
                probe.write(b"GET /healthz HTTP/1.1\r\n\r\n")
                assert (await probing.read()).startswith(b"HTTP/1.1 200"), number
                probe.close()
        assert admin.connections <= bounds.connections_max
        for writer in readers:
            writer.transport.abort()
        await until(lambda: not admin.connections)
        assert admin.rendering is None, "the page is not kept"
        await admin.close()

    asyncio.run(scenario())
    assert rendered == 1


def test_scrapes_one_after_another_get_a_page_each() -> None:
    pages = iter((b"1", b"2"))

    async def render(_: object) -> bytes:
        return next(pages)

    async def scenario() -> list[bytes]:
        admin = AdminHttp(sources(), PATIENT, render)
        port, found = await admin.open("127.0.0.1:0"), []
        for _ in range(2):
            ((reader, writer),) = await connected(port, 1)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            found.append((await reader.read()).rpartition(b"\r\n")[2])
            writer.close()
            await until(lambda: not admin.connections)
        await admin.close()
        return found

    assert asyncio.run(scenario()) == [b"1", b"2"]
