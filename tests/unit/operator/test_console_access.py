"""Who sees what on the operator's page: what the API server lets a visitor's token list, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from kavka_operator.platform.kubernetes.live.api import ApiError
from kavka_operator.process.console import access as module
from kavka_operator.process.console.access import BOUNDS, TOKEN_LENGTH_MAX, Door, DoorBounds, RefusedError
from kavka_operator.process.console.page import Console, foreign_host
from kavka_operator.process.http_server import Address, console
from kavka_operator.process.metrics import Figures
from tests.support.waiting import until
from tests.unit.operator.test_console import document

KINDS = ("KafkaCluster", "Topic", "ClientQuota")
Client = TestClient[Any, Any]


@dataclass
class Reviews:
    """Reviews of an API server that knows these tokens: what each may list where, an empty namespace is all; and which
    subresources it may get of which KafkaCluster, as NAMESPACE/NAME.
    """

    allowed: dict[str, set[tuple[str, str]]]
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    fault: int | None = None
    users: dict[str, str | None] = field(default_factory=dict)
    """Of tokens that are not of a user of the same name; None where that is not told."""
    named: list[str] = field(default_factory=list)
    """The tokens whose user was asked for."""

    async def user_name(self, token: str) -> str | None:
        self.named.append(token)
        if self.fault is not None:
            raise ApiError("words", self.fault)
        if token not in self.allowed:
            raise ApiError("Unauthorized", 401)
        return self.users.get(token, token)

    async def may_list(self, token: str, kind: str, namespace: str) -> bool:
        self.asked.append((token, kind, namespace))
        if self.fault is not None:
            raise ApiError("words", self.fault)
        if token not in self.allowed:
            raise ApiError("Unauthorized", 401)
        return (kind, namespace) in self.allowed[token]

    async def may_get(self, token: str, subresource: str, namespace: str, name: str) -> bool:
        return await self.may_list(token, subresource, f"{namespace}/{name}")


def in_namespace(kind: str, name: str, namespace: str) -> dict[str, Any]:
    found = document(kind, name, {})
    found["metadata"]["namespace"] = namespace
    return found


DOCUMENTS = [in_namespace(kind, f"{kind}-{place}".lower(), place) for kind in KINDS for place in ("bank", "shop")]
ALL = {(kind, "") for kind in KINDS}


def play(
    reviews: Reviews,
    scenario: Callable[[Client, Door], Awaitable[None]],
    clock: Any = lambda: 0.0,
    bounds: DoorBounds = BOUNDS,
) -> None:
    async def run() -> None:
        door = Door(reviews, clock, bounds)
        figures = Figures(is_active=True, listed_at=1.0, documents=lambda: DOCUMENTS)
        async with TestClient(TestServer(console(Console(figures, door=door)))) as client:
            await scenario(client, door)

    asyncio.run(run())


async def names(client: Client, token: str) -> set[str]:
    """The names of the resources that a visitor is shown."""
    answer = await client.get("/console.json", headers={"Authorization": f"Bearer {token}"})
    assert answer.status == 200, await answer.text()
    shown = await answer.json()
    return {row["name"] for kind in ("clusters", "topics", "quotas") for row in shown[kind]}


def test_without_a_token_there_is_the_empty_page_and_nothing_else() -> None:
    async def scenario(client: Client, _: Door) -> None:
        assert (await client.get("/")).status == 200
        for headers in ({}, {"Authorization": ""}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer "}):
            answer = await client.get("/console.json", headers=headers)
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert "bank" not in await answer.text()

    reviews = Reviews({})
    play(reviews, scenario)
    assert reviews.asked == []


@pytest.mark.parametrize(
    "token", ["a b", "x" * (TOKEN_LENGTH_MAX + 1), "a;b", "a\u00e9", "a,b", "=", 'a"b'], ids=range(7)
)
def test_what_is_no_token_does_not_reach_the_api_server(token: str) -> None:
    async def scenario(client: Client, _: Door) -> None:
        answer = await client.get("/console.json", headers={"Authorization": f"Bearer {token}"})
        assert answer.status in {400, 401}

    reviews = Reviews({})
    play(reviews, scenario)
    assert reviews.asked == []


def test_each_sees_what_it_may_list_and_no_more() -> None:
    allowed = {
        "admin": ALL,
        "seller": {(kind, "shop") for kind in KINDS},
        "topics": {("Topic", "")},
        "guest": set[tuple[str, str]](),
    }

    async def scenario(client: Client, _: Door) -> None:
        assert await names(client, "admin") == {item["metadata"]["name"] for item in DOCUMENTS}
        assert await names(client, "seller") == {"kafkacluster-shop", "topic-shop", "clientquota-shop"}
        assert await names(client, "topics") == {"topic-bank", "topic-shop"}
        answer = await client.get("/console.json", headers={"Authorization": "Bearer guest"})
        assert (answer.status, "may list no" in await answer.text()) == (403, True)
        answer = await client.get("/console.json", headers={"Authorization": "Bearer forged"})
        assert (answer.status, "does not know this token" in await answer.text()) == (401, True)

    play(Reviews(allowed), scenario)


@pytest.mark.parametrize("fault", [0, 403, 500])
def test_nothing_is_shown_where_the_api_server_does_not_say(fault: int) -> None:
    reviews = Reviews({"admin": ALL}, fault=fault)

    async def scenario(client: Client, _: Door) -> None:
        answer = await client.get("/console.json", headers={"Authorization": "Bearer admin"})
        assert (answer.status, "bank" in await answer.text()) == (503, False)
        reviews.fault = None
        assert await names(client, "admin")

    play(reviews, scenario)


def test_an_answer_is_remembered_for_seconds_and_a_right_that_is_taken_away_ends_then() -> None:
    now = [0.0]
    reviews = Reviews({"admin": ALL})

    async def scenario(client: Client, _: Door) -> None:
        for _times in range(3):
            await names(client, "admin")
        assert len(reviews.asked) == len(KINDS)
        reviews.allowed["admin"] = set()
        now[0] = module.REMEMBERED_SECONDS - 0.1
        assert await names(client, "admin")
        now[0] = module.REMEMBERED_SECONDS
        assert (await client.get("/console.json", headers={"Authorization": "Bearer admin"})).status == 403
        reviews.allowed["admin"] = ALL
        now[0] += module.REFUSED_SECONDS
        assert await names(client, "admin")

    play(reviews, scenario, lambda: now[0])


def test_what_strangers_make_it_keep_is_bounded() -> None:
    async def scenario(client: Client, door: Door) -> None:
        for number in range(9):
            answer = await client.get("/console.json", headers={"Authorization": f"Bearer forged-{number}"})
            assert answer.status == 401
        assert (len(door.gate.refusals), len(door.gate.remembered)) == (3, 0)

    play(Reviews({}), scenario, bounds=DoorBounds(remembered_max=3))


class Slow(Reviews):
    """Reviews of which those of made-up tokens never end."""

    async def may_list(self, token: str, kind: str, namespace: str) -> bool:
        self.asked.append((token, kind, namespace))
        if token.startswith("forged"):
            await asyncio.Event().wait()
        return (kind, namespace) in self.allowed[token]


def test_strangers_keep_nobody_out_who_was_let_in_before() -> None:
    now = [0.0]
    reviews = Slow({"admin": ALL, "other": ALL})

    async def scenario(client: Client, _: Door) -> None:
        await names(client, "admin")
        asked = [
            client.get("/console.json", headers={"Authorization": f"Bearer forged-{number}"}) for number in range(3)
        ]
        flood = [asyncio.create_task(each) for each in asked]
        await until(lambda: len({token for token, *_ in reviews.asked}) == 1 + module.REVIEWS_AT_ONCE_MAX)
        answer = await client.get("/console.json", headers={"Authorization": "Bearer other"})
        assert answer.status == 503, "of one address not more wait"
        now[0] = module.REMEMBERED_SECONDS
        assert await names(client, "admin"), "asked about again in a place of its own"
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)

    play(reviews, scenario, lambda: now[0], DoorBounds(waiting_of_one_max=3))


def test_refusals_push_no_rights_out() -> None:
    reviews = Reviews({"admin": ALL})

    async def scenario(client: Client, _: Door) -> None:
        await names(client, "admin")
        for number in range(9):
            await client.get("/console.json", headers={"Authorization": f"Bearer forged-{number}"})
        await names(client, "admin")
        assert sum(token == "admin" for token, *_ in reviews.asked) == len(KINDS)

    play(reviews, scenario, bounds=DoorBounds(remembered_max=3))


def test_one_who_may_list_in_a_late_namespace_alone_is_told_of_the_bound() -> None:
    async def scenario(client: Client, _: Door) -> None:
        answer = await client.get("/console.json", headers={"Authorization": "Bearer seller"})
        assert (answer.status, "in the first 1 namespaces" in await answer.text()) == (403, True)

    play(Reviews({"seller": {("Topic", "shop")}}), scenario, bounds=DoorBounds(namespaces_max=1))


def test_without_a_token_that_is_to_be_asked_about_no_resource_is_looked_at() -> None:
    looked = list[int]()

    def namespaces() -> list[str]:
        looked.append(1)
        return ["shop"]

    async def ask() -> None:
        door = Door(Reviews({"admin": ALL}), lambda: 0.0)
        for authorization in ("", "Basic x", "Bearer a b"):
            with pytest.raises(RefusedError):
                await door.rights(authorization, "10.0.0.1", namespaces)
        assert looked == []
        for _times in range(3):
            await door.rights("Bearer admin", "10.0.0.1", namespaces)
        assert looked == [1]

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("host", "is_foreign"),
    [
        ("127.0.0.1:8081", False),
        ("127.0.0.1", False),
        ("localhost:1", False),
        ("[::1]:8081", False),
        ("[::1]", False),
        ("kavka.example:8081", True),
        ("127.0.0.1.example:8081", True),
        ("10.0.0.1:8081", True),
        ("", True),
    ],
)
def test_at_an_address_of_the_pod_only_requests_that_name_it_are_answered(host: str, is_foreign: bool) -> None:
    assert bool(foreign_host(host)) == is_foreign

    async def ask() -> None:
        figures = Figures(is_active=True, documents=lambda: DOCUMENTS)
        async with TestClient(TestServer(console(Console(figures)))) as client:
            for path in ("/", "/console.json"):
                answer = await client.get(path, headers={"Host": host or "x"})
                assert answer.status == (403 if is_foreign else 200)
                assert not is_foreign or "bank" not in await answer.text()

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("text", "is_of_the_pod"),
    [
        ("127.0.0.1:1", True),
        ("127.8.0.1:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        (":1", False),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
    ],
)
def test_every_address_but_those_of_the_pod_itself_asks_for_a_token(text: str, is_of_the_pod: bool) -> None:
    assert Address.of(text).is_of_the_pod == is_of_the_pod
