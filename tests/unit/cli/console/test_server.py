"""The console's port: who is let in, what it answers, and that it looks only while a page is open."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from kavka_cli.target import Target
from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.model import Look
from kavka_operator.live_views.records import Query
from kavka_operator.live_views.watch import Watch
from kavka_top.console.server import Console, page
from tests.support.waiting import until
from tools.top_picture import Example

NAME = "main"
TARGETS = {NAME: Target(NAME, "127.0.0.1:1")}


class Away:
    """A cluster that does not answer."""

    def take(self) -> Look:
        raise AdminError("no broker answers")

    def close(self) -> None:
        pass


@asynccontextmanager
async def served(
    make: Callable[[Target], Any] = lambda _: Example(), key: str = "", **more: Any
) -> AsyncIterator[TestClient[Any, Any]]:
    console = Console(TARGETS, 0.01, make, key, **more)
    async with TestClient(TestServer(console.application(), host="127.0.0.1")) as client:
        yield client


def play(
    scenario: Callable[[TestClient[Any, Any]], Awaitable[None]], make: Any = lambda _: Example(), **more: Any
) -> None:
    async def run() -> None:
        async with served(make, **more) as client:
            await scenario(client)

    asyncio.run(run())


async def shown(answer: ClientResponse) -> Any:
    """The document of the next event."""
    while True:
        line = await answer.content.readline()
        assert line, "the events have ended"
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))


def test_the_page_is_one_file_with_a_policy_and_builds_nothing_of_text() -> None:
    text, policy = page().text.replace("http://www.w3.org/2000/svg", ""), page().policy  # the name of SVG
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        " src=",
        "http://",
        "https://",
    ):
        assert word not in text
    assert " style=" not in text, "the policy would not let it in"
    assert text.count("<script") == text.count("<script>") == text.count("<style>") == 1
    assert "/* page.js */" not in text
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_the_page_is_sent_with_its_policy_and_nothing_can_be_written() -> None:
    async def scenario(client: TestClient[Any, Any]) -> None:
        answer = await client.get("/")
        assert (answer.status, await answer.text()) == (200, page().text)
        assert answer.headers["Content-Security-Policy"] == page().policy
        for path in ("/", "/events", "/records", "/access", "/explain"):
            for method in ("post", "put", "delete", "patch"):
                assert (await getattr(client, method)(path)).status == 405

    play(scenario)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "kavka.example:{port}"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "127.0.0.1.example:{port}"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
    ],
)
def test_only_what_names_this_address_and_comes_from_this_page_is_answered(
    headers: dict[str, str], status: int
) -> None:
    async def scenario(client: TestClient[Any, Any]) -> None:
        sent = {name: value.format(port=client.port) for name, value in headers.items()}
        assert (await client.get("/", headers=sent)).status == status

    play(scenario)


def test_a_browser_shows_the_key_once_and_a_cookie_afterwards() -> None:
    async def scenario() -> None:
        async with served(key="secret") as client:
            for path in ("/", "/?key=other", "/?key=", "/events", "/records?cluster=main&topic=t&key=secret"):
                answer = await client.get(path)
                assert (answer.status, "it has the key" in await answer.text()) == (403, True), path
            answer = await client.get("/?key=secret", allow_redirects=False)
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            cookie = answer.cookies[f"kavka-console-{client.port}"]
            assert (cookie["httponly"], cookie["samesite"], cookie["domain"]) == (True, "Strict", "")
            client.session.cookie_jar.clear()
            assert (await client.get("/")).status == 403
            headers = {"Cookie": f"{cookie.key}={cookie.value}"}
            assert (await client.get("/", headers=headers)).status == 200
            assert (await client.get("/", headers={**headers, "Host": "kavka.example"})).status == 403
        assert len(Console({}).key) > 20
        assert Console({}).key != Console({}).key

    asyncio.run(scenario())


def test_another_site_may_lead_to_the_page_and_to_nothing_else() -> None:
    async def scenario(client: TestClient[Any, Any]) -> None:
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        for path in ("/records?cluster=main&topic=t", "/events", "/access?cluster=main", "/explain?cluster=main"):
            assert (await client.get(path, headers=headers)).status == 403

    play(scenario)


def test_events_show_a_place_again_after_each_look() -> None:
    async def scenario(client: TestClient[Any, Any]) -> None:
        async with client.get("/events", params={"cluster": NAME, "view": "topics"}) as answer:
            assert answer.content_type == "text/event-stream"
            assert (await shown(answer)).get("isAwaited")
            first = await shown(answer)
            assert first["sheets"][0]["rows"][0]["key"] == "__consumer_offsets"
            assert await shown(answer) != first
        async with client.get("/events") as answer:
            assert (await shown(answer))["sheets"][0]["rows"][0]["key"] == NAME
        async with client.get("/events", params={"cluster": NAME, "view": "topics", "item": "none"}) as answer:
            found = await shown(answer)
            assert found.get("isGone") or found.get("isAwaited")
        assert (await client.get("/events", params={"cluster": "other", "view": "topics"})).status == 404

    play(scenario)


def test_a_cluster_that_does_not_answer_is_told_so() -> None:
    async def scenario(client: TestClient[Any, Any]) -> None:
        async with client.get("/events", params={"cluster": NAME, "view": "topics"}) as answer:
            while not (found := await shown(answer))["trouble"]:
                pass
            assert (found["trouble"], found.get("isAwaited")) == ("no broker answers", True)

    play(scenario, lambda _: Away())


def test_pages_that_are_open_are_bounded() -> None:
    async def scenario(client: TestClient[Any, Any]) -> None:
        async with client.get("/events") as answer:
            await shown(answer)
            assert (await client.get("/events")).status == 503

    play(scenario, subscribers_max=1)


def test_a_question_that_says_nothing_or_is_not_answered_is_told_in_words() -> None:
    def refuse(*_: Any) -> Any:
        raise AdminError("not allowed")

    async def scenario(client: TestClient[Any, Any]) -> None:
        answer = await client.get("/records", params={"cluster": NAME, "topic": "t", "count": "many"})
        assert (answer.status, "not a number" in await answer.text()) == (400, True)
        answer = await client.get("/records", params={"cluster": NAME, "topic": "t"})
        assert (answer.status, await answer.text()) == (502, "not allowed\n")
        assert (await client.get("/records", params={"topic": "t"})).status == 404

    play(scenario, read=refuse)


def test_it_looks_only_while_a_page_is_open() -> None:
    made: list[Example] = []
    closed: list[Example] = []

    class Counted(Example):
        def close(self) -> None:
            closed.append(self)

    def make() -> Example:
        made.append(Counted())
        return made[-1]

    async def scenario() -> None:
        watch = Watch(make, 0.001, linger_seconds=0.0)
        assert (watch.history, made) == (None, [])
        for times in (1, 2):
            async with watch.watched(), watch.watched():
                version = await watch.changed_since(await watch.changed_since(watch.version, 60), 60)
                assert version == watch.version
                assert watch.history is not None
            await until(lambda times=times: len(closed) == times)  # type: ignore[misc]
            assert watch.history is None, "an old look is not shown as new"
        assert len(made) == 2
        await watch.close()

    asyncio.run(scenario())


def test_a_look_that_fails_unexpectedly_is_told_and_the_next_one_begins_anew() -> None:
    made: list[Example] = []

    class Odd(Example):
        def take(self) -> Look:
            if len(made) == 1:
                raise RuntimeError("the library has a defect")
            return super().take()

    def make() -> Example:
        made.append(Odd())
        return made[-1]

    async def scenario() -> None:
        watch = Watch(make, 0.001)
        async with watch.watched():
            await watch.changed_since(0, 60)
            assert watch.trouble == "unexpected error: RuntimeError('the library has a defect')"
            await until(lambda: watch.history is not None)
            assert (watch.trouble, len(made)) == ("", 2)
        await watch.close()

    asyncio.run(scenario())


def test_a_cluster_that_hangs_is_told_so() -> None:
    may_go_on = threading.Event()

    class Hanging(Example):
        def take(self) -> Look:
            found = super().take()
            if self._taken > 2:
                may_go_on.wait(60)
            return found

    async def scenario(client: TestClient[Any, Any]) -> None:
        async with client.get("/events", params={"cluster": NAME, "view": "topics"}) as answer:
            while not (found := await shown(answer))["trouble"].startswith("no answer since ") or "sheets" not in found:
                pass
            assert found["sheets"][0]["rows"], "what was there stays"
        async with client.get("/events") as answer:
            while (state := (await shown(answer))["sheets"][0]["rows"][0]["cells"][1])["text"] != "does not answer":
                pass
            assert state["tone"] == "bad"
        may_go_on.set()

    play(scenario, lambda _: Hanging(), late_seconds=0.0, heartbeat_seconds=0.01)


def test_a_question_keeps_its_place_until_its_thread_has_ended() -> None:
    asked: list[str] = []
    left: list[bool] = []
    may_end = threading.Event()

    def read(_: str, __: Any, query: Query, is_left: Callable[[], bool], ___: object) -> dict[str, object]:
        asked.append(query.topic)
        may_end.wait(60)
        left.append(is_left())
        return {}

    async def scenario(client: TestClient[Any, Any]) -> None:
        first = asyncio.create_task(client.get("/records", params={"cluster": NAME, "topic": "gone"}))
        await until(lambda: asked == ["gone"])
        first.cancel()
        second = asyncio.create_task(client.get("/records", params={"cluster": NAME, "topic": "next"}))
        assert (await client.get("/")).status == 200
        assert asked == ["gone"], "the thread of the first has the only place"
        may_end.set()
        assert (await second).status == 200
        assert (asked, left) == (["gone", "next"], [True, False])

    play(scenario, read=read, questions_at_once_max=1)


def test_an_error_of_ours_is_told_and_every_answer_has_the_headers() -> None:
    def fail(*_: Any) -> Any:
        raise KeyError("defect")

    async def scenario(client: TestClient[Any, Any]) -> None:
        answer = await client.get("/records", params={"cluster": NAME, "topic": "t"})
        assert (answer.status, await answer.text()) == (502, "unexpected error: KeyError('defect')\n")
        for path in ("/records?cluster=none", "/records?cluster=main", "/none", "/"):
            assert (await client.get(path)).headers["X-Content-Type-Options"] == "nosniff", path

    play(scenario, read=fail)
