"""What is in a cluster, on the operator's page: shown to who may get that subresource of it, within bounds."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer

from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.cluster_view import View
from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.model import Look
from kavka_operator.live_views.sources import Source
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.process.console import live as module
from kavka_operator.process.console.access import REMEMBERED_SECONDS, DataDoor, Door, RefusedError, Visitors
from kavka_operator.process.console.events import StreamTiming
from kavka_operator.process.console.live import BOUNDS, SUBRESOURCES, LaneSource, LiveBounds, LivePlaces
from kavka_operator.process.console.page import Console
from kavka_operator.process.console.record_reader import ANSWER_BYTES_MAX
from kavka_operator.process.http_server import Address, console, opened
from kavka_operator.process.metrics import Figures
from tests.support.servers import free_port
from tests.support.waiting import until
from tests.unit.operator.test_console_access import ALL, DOCUMENTS, Reviews
from tools.top_picture import Example

MAIN = ("shop", "main")
KINDS = sorted(set(SUBRESOURCES.values()))
VIEW = View(bootstrap="kafka:9092", security=Security(username="operator", password="hunter2"))
FOUND = {"records": [{"offset": 7}], "scanned": 9, "ended": "end"}


class Away:
    """A cluster that does not answer."""

    def take(self) -> Look:
        raise AdminError("no broker answers")

    def close(self) -> None:
        pass


@dataclass
class Stage:
    """A page, its reviews, and what was asked of Kafka."""

    reviews: Reviews
    views: dict[ClusterKey, View | None]
    now: float = 0.0
    read: list[tuple[Any, ...]] = field(default_factory=list)
    looked: list[ClusterKey] = field(default_factory=list)
    source: Callable[[], Source] = Example
    held: asyncio.Event = field(default_factory=asyncio.Event)
    client: TestClient[Any, Any] = field(init=False)
    places: LivePlaces = field(init=False)

    async def records(self, bootstrap: str, security: Security, fields: Mapping[str, str]) -> bytes:
        self.read.append((bootstrap, security, dict(fields)))
        if fields["topic"] == "slow":
            await self.held.wait()
        if fields["topic"] == "none":
            raise AdminError('there is no topic "none"')
        return json.dumps(FOUND).encode()

    def access(self, bootstrap: str, security: Security) -> dict[str, Any]:
        self.read.append((bootstrap, security))
        return {"facts": [], "sheets": []}

    def look(self, cluster: ClusterKey) -> Source:
        self.looked.append(cluster)
        return self.source()

    async def get(self, path: str, token: str = "seer", **fields: str) -> ClientResponse:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self.client.get(path, headers=headers, params={"cluster": "/".join(MAIN), **fields})

    async def status(self, path: str, token: str = "seer", **fields: str) -> int:
        """The code of an answer, of which nothing is read."""
        async with await self.get(path, token, **fields) as answer:
            return answer.status

    @asynccontextmanager
    async def stream(self, view: str, token: str = "seer", **place: str) -> AsyncIterator[ClientResponse]:
        async with await self.get("/events", token, view=view, **place) as answer:
            yield answer


def play(
    scenario: Callable[[Stage], Awaitable[None]], *, is_of_pod: bool = True, bounds: LiveBounds = BOUNDS, **more: Any
) -> None:
    async def run() -> None:
        allowed = {(kind, "/".join(MAIN)) for kind in KINDS}
        reviews = Reviews({"admin": {*ALL}, "seer": allowed, "groups": {("groups", "/".join(MAIN))}})
        stage = Stage(reviews, {MAIN: VIEW}, **more)
        door = DataDoor(reviews, lambda: stage.now)
        stage.places = LivePlaces(
            door, stage.views.get, stage.records, stage.access, stage.look, LiveBounds(0.01, *bounds_of(bounds))
        )
        figures = Figures(is_active=True, listed_at=1.0, documents=lambda: DOCUMENTS)
        first = None if is_of_pod else Door(reviews, lambda: stage.now)
        shown = Console(figures, door=first, live=stage.places, timing=StreamTiming(look_seconds=0.01))
        async with TestClient(TestServer(console(shown), handler_cancellation=True)) as stage.client:
            await asyncio.wait_for(scenario(stage), 60)

    asyncio.run(run())


def bounds_of(bounds: LiveBounds) -> tuple[int, int]:
    return bounds.watches_max, bounds.waiting_max


async def shown(answer: ClientResponse) -> dict[str, Any]:
    """The next document that has tables."""
    while True:
        line = await answer.content.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: ") and "sheets" in (found := json.loads(line.removeprefix(b"data: "))):
            return dict(found)


PATHS = [("/events", {"view": view}) for view in SUBRESOURCES] + [("/records", {"topic": "orders"}), ("/access", {})]


@pytest.mark.parametrize("is_of_pod", [True, False], ids=["forwarded", "reached by others"])
@pytest.mark.parametrize(("path", "fields"), PATHS, ids=[" ".join((path, *of.values())) for path, of in PATHS])
def test_neither_a_port_forward_nor_a_right_to_list_is_one_to_look_into_a_cluster(
    path: str, fields: dict[str, str], is_of_pod: bool
) -> None:
    async def scenario(stage: Stage) -> None:
        for token, status in (("", 401), ("forged", 401), ("admin", 403)):
            answer = await stage.get(path, token, **fields)
            assert answer.status == status
            text = await answer.text()
            assert ("may not get kafkaclusters/" in text) == (status == 403)
            assert "kafka:9092" not in text
        assert (stage.read, stage.looked) == ([], [])

    play(scenario, is_of_pod=is_of_pod)


def test_one_who_may_see_groups_sees_no_records() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.stream("groups", "groups") as answer:
            assert answer.status == 200
            found = await shown(answer)
            assert [sheet["name"] for sheet in found["sheets"]] == ["groups"]
        for view in ("records", "clients", "transactions", "access"):
            assert await stage.status("/events", "groups", view=view) == 403
        assert await stage.status("/records", "groups", topic="orders") == 403
        assert await stage.status("/access", "groups") == 403
        assert stage.read == []

    play(scenario)


def test_a_right_is_that_of_one_cluster_and_of_the_others_not_even_the_names_are_told() -> None:
    async def scenario(stage: Stage) -> None:
        stage.views["bank", "main"] = VIEW
        answers = [
            await stage.get("/records", cluster=cluster, topic="orders") for cluster in ("bank/main", "bank/absent")
        ]
        texts = [(await answer.text()).replace("absent", "main") for answer in answers]
        assert {answer.status for answer in answers} == {403}
        assert len(set(texts)) == 1
        assert stage.read == []

    play(scenario)


@pytest.mark.parametrize("name", ["", "main", "a/b/c", "A/b", "a\nb/c", "a/" + "x" * 254, "a/b\n"])
def test_a_text_that_is_no_name_of_a_cluster_reaches_no_api_server(name: str) -> None:
    async def scenario(stage: Stage) -> None:
        assert (await stage.get("/records", cluster=name, topic="t")).status == 404
        assert (await stage.get("/events", cluster=name, view="groups")).status == 404
        assert stage.reviews.asked == []

    play(scenario)


def test_records_are_read_with_the_credentials_that_the_operator_has_now() -> None:
    async def scenario(stage: Stage) -> None:
        answer = await stage.get("/records", topic="orders", at="oldest", other="x")
        assert (answer.status, await answer.json(), answer.headers["Cache-Control"]) == (200, FOUND, "no-store")
        assert stage.read == [(VIEW.bootstrap, VIEW.security, {"topic": "orders", "at": "oldest"})]
        stage.views[MAIN] = View(bootstrap="other:1", security=OPEN)
        await stage.get("/access")
        assert stage.read[1:] == [("other:1", OPEN)]

    play(scenario)


def test_what_goes_wrong_is_said_and_no_password() -> None:
    async def scenario(stage: Stage) -> None:
        for fields, status, words in (
            ({"topic": "none"}, 502, "there is no topic"),
            ({"topic": ""}, 400, "topic: name one"),
            ({"topic": "t", "count": "x"}, 400, "is not a number"),
        ):
            answer = await stage.get("/records", **fields)
            assert (answer.status, words in (text := await answer.text()), "hunter2" in text) == (status, True, False)
        for view, words in (
            (None, module.NOT_HERE),
            (View(), module.NO_BROKER),
            (View(bootstrap="x", lacking="the Secret is not there"), "the Secret is not there"),
        ):
            stage.views[MAIN] = view
            answer = await stage.get("/records", topic="orders")
            assert (answer.status, (await answer.text()).strip()) == (502, words)

    play(scenario)


def test_a_topic_shows_its_partitions_and_its_links_are_places_of_this_page() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.stream("records") as answer:
            (sheet,) = (await shown(answer))["sheets"]
            links = [row["link"] for row in sheet["rows"]]
            assert ["shop/main", "records", "orders"] in links
            assert {link[1] for link in links} == {"records"}
        async with stage.stream("records", item="orders") as answer:
            found = await shown(answer)
            assert [sheet["name"] for sheet in found["sheets"]] == ["partitions"], "its readers come with the groups"
            assert found["partitions"] == [*range(len(found["partitions"]))]
        async with stage.stream("groups", item="billing") as answer:
            offsets, _members = (await shown(answer))["sheets"]
            assert {tuple(row["link"][:2]) for row in offsets["rows"]} == {("shop/main", "records")}
        async with stage.stream("clients") as answer:
            (sheet,) = (await shown(answer))["sheets"]
            assert sheet["rows"]
            assert not any("link" in row for row in sheet["rows"])

    play(scenario)


def test_looks_are_sent_as_they_come_and_end_with_the_right() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.stream("groups", "groups") as answer:
            first, second = await shown(answer), await shown(answer)
            assert first["sheets"] != second["sheets"]
            del stage.reviews.allowed["groups"]
            stage.now += REMEMBERED_SECONDS
            await answer.read()
        assert await stage.status("/events", "groups", view="groups") == 401
        assert stage.looked == [MAIN], "one source, however many looks"

    play(scenario)


def test_a_cluster_that_does_not_answer_is_said_to() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.stream("groups") as answer:
            while b"no broker answers" not in (line := await answer.content.readline()):
                assert line

    play(scenario, source=Away)


def look_into(stage: Stage, *names: str) -> None:
    """Have clusters into which `seer` and `other` may look."""
    stage.reviews.allowed["other"] = stage.reviews.allowed["seer"]
    for name in names:
        stage.views["shop", name] = VIEW
        stage.reviews.allowed["seer"].add(("groups", f"shop/{name}"))


def test_a_few_clusters_are_looked_into_at_a_time() -> None:
    async def scenario(stage: Stage) -> None:
        look_into(stage, "second")
        async with stage.stream("groups") as first:
            await shown(first)
            answer = await stage.get("/events", "other", cluster="shop/second", view="groups")
            assert (answer.status, "1 clusters are looked into" in await answer.text()) == (503, True)
            assert await stage.status("/events", view="shares") == 200, "the same one is"
            assert await stage.status("/events", "other", view="shares") == 200, "for others too"

    play(scenario, bounds=LiveBounds(watches_max=1))


def test_one_visitor_has_half_of_the_clusters_that_are_looked_into() -> None:
    async def scenario(stage: Stage) -> None:
        look_into(stage, "second", "third")
        async with stage.stream("groups") as first, stage.stream("groups", cluster="shop/second") as second:
            await shown(first)
            await shown(second)
            for view in ("groups", "shares"):
                answer = await stage.get("/events", cluster="shop/third", view=view)
                assert (answer.status, "2 clusters are looked into already for this user" in await answer.text()) == (
                    503,
                    True,
                )
            async with stage.stream("groups", "other", cluster="shop/third") as third:
                await shown(third)
                assert await stage.status("/events", cluster="shop/third", view="groups") == 503, "nor one of others"

    play(scenario, bounds=LiveBounds(watches_max=4))


def test_a_cluster_that_the_operator_does_not_know_is_not_looked_into() -> None:
    async def scenario(stage: Stage) -> None:
        stage.reviews.allowed["seer"].add(("groups", "shop/absent"))
        answer = await stage.get("/events", cluster="shop/absent", view="groups")
        assert (answer.status, (await answer.text()).strip()) == (404, module.NOT_HERE)
        assert await stage.status("/events", cluster="shop/unseen", view="groups") == 403, "others do not learn that"
        assert stage.looked == []

    play(scenario)


def test_questions_wait_for_each_other_and_not_too_many_do() -> None:
    async def scenario(stage: Stage) -> None:
        look_into(stage)
        tokens = ["seer", "seer", "other", "other"]
        asked = [asyncio.create_task(stage.get("/records", token, topic="slow")) for token in tokens[:3]]
        await until(lambda: (len(stage.read), len(stage.places.questions)) == (module.QUESTIONS_AT_ONCE_MAX, 3))
        answer = await stage.get("/records", topic="orders")
        assert (answer.status, "too many questions" in await answer.text()) == (503, True), "one token has half"
        asked.append(asyncio.create_task(stage.get("/records", "other", topic="slow")))
        await until(lambda: len(stage.places.questions) == 4)
        stage.reviews.allowed["third"] = stage.reviews.allowed["seer"]
        assert await stage.status("/records", "third", topic="orders") == 503
        stage.held.set()
        assert [(await task).status for task in asked] == [200, 200, 200, 200]
        assert len(stage.read) == 4, "the refused ones have reached no broker"

    play(scenario, bounds=LiveBounds(waiting_max=4))


@pytest.mark.parametrize("path", ["/records?topic=orders&", "/access?"])
def test_an_answer_counts_until_it_is_taken_and_who_takes_nothing_is_let_go(path: str) -> None:
    large = {"rest": "x" * (ANSWER_BYTES_MAX - 100)}

    async def read(*_: Any) -> bytes:
        return json.dumps(large).encode()

    reviews = Reviews({"seer": {(kind, "/".join(MAIN)) for kind in KINDS}})
    places = LivePlaces(DataDoor(reviews), {MAIN: VIEW}.get, read, lambda *_: large)

    async def ask() -> None:
        port = free_port()
        served = Console(Figures(), live=places, timing=StreamTiming(send_seconds_max=0.2))
        async with opened(Address("127.0.0.1", port), console(served)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            question = f"GET {path}cluster=shop/main HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer seer\r\n\r\n"
            writer.write(question.encode())
            taken = len(await reader.readuntil(b"\r\n\r\n"))
            assert len(places.questions) == 1, "the answer is not taken yet"
            await until(lambda: len(places.questions) == 0)
            with suppress(ConnectionResetError):
                while part := await reader.read(2**16):
                    taken += len(part)
            assert taken < len(large["rest"]), "the connection has ended before all was sent"
            writer.close()

    asyncio.run(asyncio.wait_for(ask(), 50))


def test_questions_of_one_token_wait_for_each_other_and_those_of_others_do_not() -> None:
    async def scenario(stage: Stage) -> None:
        look_into(stage)
        asked = [asyncio.create_task(stage.get("/records", topic="slow")) for _ in range(2)]
        await until(lambda: len(stage.places.questions) == 2)
        assert await stage.status("/records", "other", topic="orders") == 200
        assert await stage.status("/access", "other") == 200
        assert [asked[1] for asked in stage.read] == [VIEW.security] * 3, "the second waits"
        stage.held.set()
        assert [(await task).status for task in asked] == [200, 200]
        assert len(stage.read) == 4

    play(scenario)


def test_a_right_that_is_taken_away_while_a_question_waits_is_missed() -> None:
    async def scenario(stage: Stage) -> None:
        slow, *waiting = [
            asyncio.create_task(stage.get(path, topic="slow")) for path in ("/records", "/records", "/access")
        ]
        await until(lambda: len(stage.places.questions) == 3)
        stage.reviews.allowed["seer"].clear()
        stage.now += REMEMBERED_SECONDS
        stage.held.set()
        assert (await slow).status == 200
        assert [(await task).status for task in waiting] == [403, 403]
        assert len(stage.read) == 1
        stage.reviews.allowed["seer"].add(("records", "/".join(MAIN)))
        stage.now += REMEMBERED_SECONDS
        assert await stage.status("/records", topic="orders") == 200, "their places are free again"

    play(scenario)


@pytest.mark.parametrize("lacking", ["groups", "clients", "users"])
@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__audit_events"])
def test_records_of_internal_topics_take_the_rights_to_what_they_tell_of(topic: str, lacking: str) -> None:
    async def scenario(stage: Stage) -> None:
        assert await stage.status("/records", topic=topic) == 200
        stage.reviews.allowed["seer"].discard((lacking, "/".join(MAIN)))
        stage.now += REMEMBERED_SECONDS
        answer = await stage.get("/records", topic=topic)
        text = await answer.text()
        assert (answer.status, module.INTERNAL in text, f"kafkaclusters/{lacking}" in text) == (403, True, True)
        assert await stage.status("/records", topic="orders") == 200
        assert len(stage.read) == 2

    play(scenario)


def test_a_visitor_is_a_user_whatever_the_tokens_are() -> None:
    async def scenario() -> None:
        tokens = ("seer", "again", "other", "old", "older")
        users: dict[str, str | None] = {"again": "seer", "old": None, "older": None}
        reviews = Reviews({token: set() for token in tokens}, users=users)
        visitors = Visitors(reviews, lambda: 0.0)
        found = {token: await visitors.find(f"Bearer {token}", "") for token in tokens}
        assert found["seer"] == found["again"] == await visitors.find("bearer   seer ", "")
        assert len({found[token] for token in tokens}) == 4, "where no user is named, a token is a visitor"
        assert reviews.named == [*tokens], "what was answered is remembered"
        reviews.fault = 500
        for token, status in (("new", 503), ("", 401)):
            with pytest.raises(RefusedError) as refused:
                await visitors.find(f"Bearer {token}", "")
            assert refused.value.status == status

    asyncio.run(scenario())


def test_tokens_of_one_user_have_half_of_the_questions_and_of_the_clusters_together() -> None:
    async def scenario(stage: Stage) -> None:
        look_into(stage, "second", "third")
        stage.reviews.allowed["again"] = stage.reviews.allowed["seer"]
        stage.reviews.users["again"] = "seer"
        asked = [
            asyncio.create_task(stage.get("/records", token, topic="slow")) for token in ("seer", "again", "other")
        ]
        await until(lambda: (len(stage.read), len(stage.places.questions)) == (module.QUESTIONS_AT_ONCE_MAX, 3))
        for token in ("seer", "again"):
            assert await stage.status("/records", token, topic="orders") == 503
        stage.held.set()
        assert [(await task).status for task in asked] == [200, 200, 200]
        async with stage.stream("groups") as first, stage.stream("groups", "again", cluster="shop/second") as second:
            await shown(first)
            await shown(second)
            for token, status in (("seer", 503), ("again", 503), ("other", 200)):
                assert await stage.status("/events", token, cluster="shop/third", view="groups") == status

    play(scenario, bounds=LiveBounds(watches_max=4, waiting_max=4))


def test_users_and_rules_that_are_too_many_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_BYTES_MAX", 10)

    async def scenario(stage: Stage) -> None:
        answer = await stage.get("/access")
        assert (answer.status, (await answer.text()).strip()) == (502, module.TOO_MANY_RULES)

    play(scenario)


def test_an_answer_of_the_api_server_is_remembered_by_token_cluster_and_subresource() -> None:
    async def scenario(stage: Stage) -> None:
        for _times in range(3):
            assert await stage.status("/records", topic="orders") == 200
            assert await stage.status("/access") == 200
        assert stage.reviews.asked == [("seer", "records", "shop/main"), ("seer", "users", "shop/main")]
        stage.reviews.fault = 500
        stage.now += REMEMBERED_SECONDS
        assert await stage.status("/records", topic="orders") == 503
        assert len(stage.read) == 6

    play(scenario)


def test_requests_that_name_another_host_are_refused_at_an_address_of_the_pod() -> None:
    async def scenario(stage: Stage) -> None:
        headers = {"Authorization": "Bearer seer", "Host": "kavka.example:8081"}
        for path, fields in PATHS:
            params = {"cluster": "shop/main", **fields}
            assert (await stage.client.get(path, headers=headers, params=params)).status == 403
        assert stage.reviews.asked == []

    play(scenario)


def test_a_source_follows_the_addresses_and_credentials_of_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[tuple[Any, ...]]()
    closed = list[str]()

    class Recorded:
        def __init__(self, name: str, bootstrap: str, urls: tuple[str, ...], connect: Any) -> None:
            made.append((name, bootstrap, urls, connect.args[0]))
            self.bootstrap = bootstrap

        def take(self) -> str:
            return self.bootstrap

        def close(self) -> None:
            closed.append(self.bootstrap)

    monkeypatch.setattr(module, "ClusterSource", Recorded)
    views: dict[ClusterKey, View | None] = {MAIN: VIEW}
    source = LaneSource(MAIN, views.get)
    assert [str(source.take()), str(source.take())] == ["kafka:9092", "kafka:9092"]
    views[MAIN] = View(bootstrap="kafka:9093", security=VIEW.security, metrics={0: "10.0.0.1:9644"})
    source.take()
    assert made == [
        ("shop/main", "kafka:9092", (), VIEW.security),
        ("shop/main", "kafka:9093", ("http://10.0.0.1:9644/metrics",), VIEW.security),
    ]
    assert closed == ["kafka:9092"]
    views[MAIN] = None
    with pytest.raises(AdminError, match=module.NOT_HERE):
        source.take()
    source.close()
    assert closed == ["kafka:9092", "kafka:9093"]
