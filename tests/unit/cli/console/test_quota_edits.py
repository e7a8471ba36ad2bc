"""Quotas edited on the page: who may, what is refused, and that exactly the diff that was shown is applied."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from kavka_cli.target import Target
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_top.console.guard import TOKEN_HEADER
from kavka_top.console.quota_edits import BODY_BYTES_MAX
from kavka_top.console.quota_resources import TEXT_BYTES_MAX
from kavka_top.console.server import Console
from tests.unit.operator.person import run
from tools.top_picture import Example

NAME = "main"
KEY = ("ClientQuota", "default", "backfill")
FILE = """
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main}
spec:
  nodePools: [{name: nodes, replicas: 1}]
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {name: backfill}
spec:
  clusterRef: {name: main}
  entity: {clientId: {name: backfill}}
  limits: {producerByteRate: 1Mi}
"""


CHANGES = ("/quota/difference", "/quota/apply", "/quota/deletion", "/quota/delete")


class Client(TestClient[Any, Any]):
    """A browser without a key, as none is needed here, and the token that one with the key would be given."""

    token = ""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A cluster of this machine that does not run, with a quota."""
    file, state = tmp_path / "cluster.yaml", tmp_path / "state"
    file.write_text(FILE)
    assert run("apply", "-f", str(file), "--state-dir", str(state))[0] == 0
    return Layout.of(state, "default", NAME)


@asynccontextmanager
async def served(layout: Layout | None, *, writable: bool) -> AsyncIterator[Client]:
    layouts = {} if layout is None else {NAME: layout}
    console = Console(
        {NAME: Target(NAME, "127.0.0.1:1")}, 0.01, lambda _: Example(), "", layouts=layouts, writable=writable
    )
    async with Client(TestServer(console.application(), host="127.0.0.1")) as client:
        client.token = console.token
        yield client


def play(layout: Layout | None, scenario: Callable[[Client], Awaitable[None]], *, writable: bool = True) -> None:
    async def start() -> None:
        async with served(layout, writable=writable) as client:
            await scenario(client)

    asyncio.run(start())


async def resource(client: Client, entity: str = "new") -> dict[str, Any]:
    answer = await client.get("/quota", params={"cluster": NAME, "entity": entity})
    assert answer.status == 200, await answer.text()
    found: dict[str, Any] = await answer.json()
    return found


async def post(client: Client, path: str, body: Any, **headers: str) -> tuple[int, str]:
    """The status and the text of an answer to a change as the page asks for it, but for these headers."""
    own = {
        "Origin": f"http://127.0.0.1:{client.port}",
        TOKEN_HEADER: client.token or "x",
        "Content-Type": "application/json",
    }
    sent = {name: value for name, value in {**own, **headers}.items() if value}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await client.post(path, params={"cluster": NAME}, data=data, headers=sent)
    return answer.status, await answer.text()


def stored(layout: Layout) -> Any:
    document = Store(layout).document(KEY)
    assert document is not None
    return document["spec"]["limits"]


def is_marked(layout: Layout) -> bool:
    """Whether the quota is to be deleted."""
    document = Store(layout).document(KEY)
    assert document is not None
    return "deletionTimestamp" in document["metadata"]


def text_with(limit: str, name: str = "backfill", cluster: str = NAME) -> str:
    return json.dumps(
        {
            "apiVersion": "kavka.dev/v1alpha1",
            "kind": "ClientQuota",
            "metadata": {"name": name},
            "spec": {
                "clusterRef": {"name": cluster},
                "entity": {"clientId": {"name": "backfill"}},
                "limits": {"producerByteRate": limit},
            },
        }
    )


def test_a_console_that_only_reads_has_no_request_that_writes(layout: Layout) -> None:
    async def scenario(client: Client) -> None:
        found = await resource(client)
        assert (found["isWritable"], client.token) == (False, "")
        assert "--write" in found["why"]
        for path in CHANGES:
            assert (await post(client, path, {"text": text_with("2Mi"), "sum": "x"}))[0] == 404
        assert (await client.post("/quota", data=b"x" * 2000)).status in {405, 413}

    play(layout, scenario, writable=False)
    assert stored(layout) == {"producerByteRate": "1Mi"}


def test_what_is_applied_is_the_difference_that_was_shown(layout: Layout) -> None:
    async def scenario(client: Client) -> None:
        status, answer = await post(client, "/quota/difference", {"text": text_with("2Mi")})
        shown = json.loads(answer)
        assert (status, shown["change"], stored(layout)) == (200, "configured", {"producerByteRate": "1Mi"})
        assert "-    producerByteRate: 1Mi" in shown["lines"]
        assert "+    producerByteRate: 2Mi" in shown["lines"]
        assert "is not running" in shown["obstacles"][0]
        for other in ("", "0" * 64):
            assert (await post(client, "/quota/apply", {"text": text_with("2Mi"), "sum": other}))[0] == 409
        assert (await post(client, "/quota/apply", {"text": text_with("3Mi"), "sum": shown["sum"]}))[0] == 409
        assert stored(layout) == {"producerByteRate": "1Mi"}
        status, answer = await post(client, "/quota/apply", {"text": text_with("2Mi"), "sum": shown["sum"]})
        assert (status, json.loads(answer)["change"]) == (200, "configured"), answer
        assert stored(layout) == {"producerByteRate": "2Mi"}
        state = await client.get("/quota/state", params={"cluster": NAME, "name": "backfill"})
        assert (await state.json())["ready"] == "stopped"

    play(layout, scenario)


def test_a_quota_is_deleted_once_the_difference_was_shown(layout: Layout, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        status, answer = await post(client, "/quota/deletion", {"text": "backfill"})
        shown = json.loads(answer)
        assert (status, shown["change"], shown["name"]) == (200, "deleted", "backfill")
        assert "-    producerByteRate: 1Mi" in shown["lines"]
        assert not any(line.startswith("+ ") for line in shown["lines"])
        assert "is not running" in shown["obstacles"][0]
        for other in ("", "0" * 64):
            assert (await post(client, "/quota/delete", {"text": "backfill", "sum": other}))[0] == 409
        changed = tmp_path / "changed.yaml"
        changed.write_text(text_with("9Mi"))
        assert run("apply", "-f", str(changed), "--state-dir", str(layout.root.parent.parent))[0] == 0
        status, answer = await post(client, "/quota/delete", {"text": "backfill", "sum": shown["sum"]})
        assert (status, "changed meanwhile" in answer, is_marked(layout)) == (409, True, False)
        shown = json.loads((await post(client, "/quota/deletion", {"text": "backfill"}))[1])
        status, answer = await post(client, "/quota/delete", {"text": "backfill", "sum": shown["sum"]})
        assert (status, json.loads(answer)["change"], is_marked(layout)) == (200, "deleted", True)

    play(layout, scenario)


@pytest.mark.parametrize("name", ["", "other", "../backfill", "backfill@default"])
def test_what_is_no_quota_of_the_cluster_is_not_deleted(layout: Layout, name: str) -> None:
    async def scenario(client: Client) -> None:
        for path in ("/quota/deletion", "/quota/delete"):
            status, answer = await post(client, path, {"text": name, "sum": "x"})
            assert (status, "there is no ClientQuota" in answer) == (422, True), answer

    play(layout, scenario)
    assert len(Store(layout).documents()) == 2


def test_a_resource_that_was_changed_meanwhile_is_not_written_over(layout: Layout, tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        shown = json.loads((await post(client, "/quota/difference", {"text": text_with("2Mi")}))[1])
        other = tmp_path / "other.yaml"
        other.write_text(text_with("9Mi"))
        assert run("apply", "-f", str(other), "--state-dir", str(layout.root.parent.parent))[0] == 0
        status, answer = await post(client, "/quota/apply", {"text": text_with("2Mi"), "sum": shown["sum"]})
        assert (status, "changed meanwhile" in answer) == (409, True)

    play(layout, scenario)
    assert stored(layout) == {"producerByteRate": "9Mi"}


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Origin": "http://evil.example"}, "Origin"),
        ({"Origin": "null"}, "Origin"),
        ({"Origin": ""}, "Origin"),
        ({"Origin": "http://127.0.0.1:1"}, "Origin"),
        ({TOKEN_HEADER: ""}, "token"),
        ({TOKEN_HEADER: "other"}, "token"),
        ({"Content-Type": "text/plain"}, "application/json"),
        ({"Sec-Fetch-Site": "cross-site"}, "another site"),
        ({"Sec-Fetch-Site": "same-site"}, "another site"),
        ({"Host": "kavka.example"}, "alone"),
    ],
)
def test_a_change_that_the_page_has_not_asked_for_is_refused(
    layout: Layout, headers: dict[str, str], said: str
) -> None:
    async def scenario(client: Client) -> None:
        shown = json.loads((await post(client, "/quota/difference", {"text": text_with("2Mi")}))[1])
        for path in CHANGES:
            status, answer = await post(client, path, {"text": text_with("2Mi"), "sum": shown["sum"]}, **headers)
            assert (status, said in answer) == (403, True), answer

    play(layout, scenario)
    assert stored(layout) == {"producerByteRate": "1Mi"}


def test_who_has_the_cookie_alone_is_given_no_token(layout: Layout) -> None:
    """Browsers send the cookie to each port of the host, so that other programs of the machine may have it."""

    async def scenario() -> None:
        targets = {NAME: Target(NAME, "127.0.0.1:1")}
        console = Console(targets, 0.01, lambda _: Example(), "secret", layouts={NAME: layout}, writable=True)
        async with Client(TestServer(console.application(), host="127.0.0.1")) as client:
            # A second tab of a browser that has the cookie is given the token too.
            visits = [await client.get("/?key=secret", allow_redirects=False) for _ in range(2)]
            for visit in visits:
                assert (visit.status, visit.headers["Location"]) == (303, f"/#token={console.token}")
            (cookie,) = visits[-1].cookies.values()
            assert "secret" not in cookie.value
            client.session.cookie_jar.clear()
            stolen = {"Cookie": f"{cookie.key}={cookie.value}"}
            for path in ("/", f"/?key={cookie.value}", f"/quota?cluster={NAME}&entity=new", "/audit?cluster=main"):
                answer = await client.get(path, headers=stolen, allow_redirects=False)
                assert console.token not in f"{await answer.text()} {answer.headers}", path
            client.session.cookie_jar.clear()
            assert (await client.get(f"/?key={cookie.value}", allow_redirects=False)).status == 403
            for token in ("", cookie.value, "secret"):
                headers = {**stolen, TOKEN_HEADER: token}
                assert (await post(client, "/quota/apply", {"text": text_with("2Mi"), "sum": "x"}, **headers))[0] == 403

    asyncio.run(scenario())


def test_a_name_that_a_resource_of_another_cluster_has_is_refused_as_by_apply(layout: Layout, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(FILE.replace("main", "second").replace("name: backfill}\nspec", "name: web}\nspec"))
    state = layout.root.parent.parent
    assert run("apply", "-f", str(other), "--state-dir", str(state))[0] == 0

    async def scenario(client: Client) -> None:
        status, answer = await post(client, "/quota/difference", {"text": text_with("2Mi", name="web")})
        assert (status, "spec.clusterRef" in answer) == (422, True), answer

    play(layout, scenario)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (text_with("10 MiB"), 'the text:1: ClientQuota "backfill": spec.limits.producerByteRate: '),
        (text_with("2Mi", cluster="other"), 'there is no KafkaCluster "other" in namespace "default"'),
        ("a: [", "the text:1"),
        ("", "holds no resource"),
        ("a: \ud800", "the text:1: is not UTF-8 text"),
        (text_with("1Mi") + "\n---\n" + text_with("2Mi", name="other"), "keep one"),
        (FILE.partition("---")[0], "write one ClientQuota"),
        (text_with("2Mi").replace('"name": "backfill"}}', '"name": "other"}}'), "entity is immutable"),
        ("&a [" + ",".join(["*a"] * 3) + "]", "the text:1"),
    ],
)
def test_what_is_wrong_is_named_with_its_field_and_what_to_write(layout: Layout, text: str, said: str) -> None:
    async def scenario(client: Client) -> None:
        for path in ("/quota/difference", "/quota/apply"):
            status, answer = await post(client, path, {"text": text, "sum": "x"})
            assert (status, said in answer) == (422, True), answer

    play(layout, scenario)
    assert stored(layout) == {"producerByteRate": "1Mi"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * (BODY_BYTES_MAX + 1), 413),
        (json.dumps({"text": "x" * (TEXT_BYTES_MAX + 1)}).encode(), 413),
        (b"[" * 50_000, 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"text": 1}', 400),
        (b'{"text": "x", "sum": []}', 400),
        (b"\xff\xfe", 400),
    ],
)
def test_a_body_is_bounded_and_judged(layout: Layout, body: bytes, status: int) -> None:
    async def scenario(client: Client) -> None:
        assert (await post(client, "/quota/apply", body))[0] == status

    play(layout, scenario)


def test_the_resource_of_an_entity_is_shown_and_one_without_a_resource_is_proposed(layout: Layout) -> None:
    async def scenario(client: Client) -> None:
        async with client.get("/events", params={"cluster": NAME, "view": "quotas"}) as events:
            while b"sheets" not in await events.content.readline():
                pass
            found = await resource(client, "client-id=backfill")
            assert (found["name"], "producerByteRate: 1Mi" in found["text"]) == ("backfill", True)
            assert not {"uid", "generation", "status"} & {
                line.strip().partition(":")[0] for line in found["text"].split("\n")
            }
            undeclared = await resource(client, "user=bob")
            assert "No resource declares this quota" in undeclared["note"]
            shown = json.loads((await post(client, "/quota/difference", {"text": undeclared["text"]}))[1])
            assert shown["change"] == "created"
            answer = await client.get("/quota", params={"cluster": NAME, "entity": "client-id=none"})
            assert answer.status == 404

    play(layout, scenario)


def test_a_cluster_that_is_known_by_its_addresses_has_no_resources_here() -> None:
    async def scenario(client: Client) -> None:
        found = await resource(client)
        assert (found["isWritable"], found["text"]) == (False, "")
        assert "kavka export" in found["note"]
        assert (await client.get("/quota", params={"cluster": "other"})).status == 404

    play(None, scenario)
