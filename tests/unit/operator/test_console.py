"""The console: what it shows of resources, within bounds, and what a browser may do with it."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.process.console import overview as module
from kavka_operator.process.console import page as pages
from kavka_operator.process.console import views as module_of_views
from kavka_operator.process.console.overview import overview
from kavka_operator.process.console.views import view_document
from kavka_operator.process.http_server import application, console
from kavka_operator.process.metrics import Figures

SECRET = "hunter2"
SPEC: dict[str, Any] = {"nodePools": [{"name": "nodes", "replicas": 2}]}


def document(kind: str, name: str, status: Any = None, ready: str = "True", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "reason": "Because", "message": "words"}]
    said = {"conditions": conditions, **status} if isinstance(status, dict) else status
    of = {} if kind == "KafkaCluster" else {"clusterRef": {"name": "main"}}
    return {"kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": {**of, **spec}, "status": said}


def node(number: int, **others: Any) -> dict[str, Any]:
    return {"id": number, "roles": ["broker"], "state": "Running", "leaders": 4, "underReplicated": 1, **others}


def test_a_cluster_has_its_nodes_by_rack_its_roll_and_what_belongs_to_it() -> None:
    nodes = [node(2, rack="b"), node(0, rack="a"), node(1), node(3, rack="a", restarts=2)]
    roll = {"total": 3, "done": 1, "current": [2], "blockedBy": ["t-0 waits"], "atRisk": ["u: 0"], "plan": "p"}
    main = document("KafkaCluster", "main", {"brokers": 4, "readyBrokers": 3, "nodes": nodes, "rollout": roll})
    shown = overview([main, document("Topic", "t", {}), document("ClientQuota", "q", {}), {"kind": "Odd"}])
    (found,) = shown["clusters"]
    assert [(rack["rack"], [line["id"] for line in rack["nodes"]]) for rack in found["racks"]] == [
        ("a", [0, 3]),
        ("b", [2]),
        ("", [1]),
    ]
    assert (found["brokers"], found["readyBrokers"], found["partitions"], found["underReplicated"]) == (4, 3, 16, 4)
    assert (found["topics"], found["quotas"], found["ready"]["status"]) == (1, 1, "True")
    assert found["roll"] | {"blockedSince": ""} == roll | {"blockedSince": ""}
    assert found["audit"] is None


def test_the_newest_run_over_the_audit_trail_is_told() -> None:
    told = {"state": "Failed", "startTime": "2026-11-30T02:00:00Z", "message": "it has no room"}
    (found,) = overview([document("KafkaCluster", "main", {"analytics": told})])["clusters"]
    assert found["audit"] == {**told, "successTime": "", "answers": [], "chains": "", "summaryTime": ""}


def test_the_weights_of_answers_are_told() -> None:
    answers = [{"question": "What is missing?", "weight": "wrong", "rows": 2}]
    summary = {"time": "2026-11-30T02:00:07Z", "answers": answers, "chains": "3 chains verified"}
    told = {"state": "Succeeded", "summary": summary}
    (found,) = overview([document("KafkaCluster", "main", {"analytics": told})])["clusters"]
    assert found["audit"]["answers"] == answers
    assert (found["audit"]["chains"], found["audit"]["summaryTime"]) == ("3 chains verified", "2026-11-30T02:00:07Z")


def test_topics_that_need_a_look_and_quotas_near_their_limit_come_first() -> None:
    topics = [
        document("Topic", "well", {}),
        document("Topic", "waits", {}, ready="False"),
        document("Topic", "behind", {"underReplicated": 2}),
        document("Topic", "offline", {"offline": 1}),
    ]
    assert [row["name"] for row in overview(topics)["topics"]] == ["offline", "behind", "waits", "well"]
    usage = [{"broker": 0, "producerByteRate": 5, "throttledSeconds": 3}, {"broker": 1, "producerByteRate": 7}]
    quotas = [
        document("ClientQuota", "unseen", {}),
        document("ClientQuota", "near", {"used": "93%", "usage": usage, "applied": {"producer_byte_rate": 9.5}}),
        document("ClientQuota", "over", {"used": "104%"}),
        document("ClientQuota", "idle", {"used": "0%"}),
    ]
    rows = overview(quotas)["quotas"]
    assert [row["name"] for row in rows] == ["over", "near", "idle", "unseen"]
    assert (rows[1]["produced"], rows[1]["throttledSeconds"], rows[1]["isSeen"]) == (12, 3, True)
    assert (rows[1]["limits"], rows[3]["isSeen"]) == ({"producer_byte_rate": 9.5}, False)


def test_what_is_too_much_is_counted() -> None:
    nodes = [node(number) for number in range(module.NODES_MAX + 3)]
    status = {"nodes": nodes, "rollout": {"total": 1, "blockedBy": ["x" * 9999] * 99}}
    bounds = {"KafkaCluster": module.CLUSTERS_MAX, "Topic": module.TOPICS_MAX, "ClientQuota": module.QUOTAS_MAX}
    shown = overview(document(kind, str(number), status) for kind in bounds for number in range(bounds[kind] + 3))
    for name, bound in zip(("clusters", "topics", "quotas"), bounds.values(), strict=True):
        assert (len(shown[name]), shown[f"{name}Omitted"]) == (bound, 3)
    first = shown["clusters"][0]
    assert (first["nodesOmitted"], sum(len(rack["nodes"]) for rack in first["racks"])) == (3, module.NODES_MAX)
    assert first["partitions"] == 4 * len(nodes), "all are counted"
    assert len(first["roll"]["blockedBy"]) == module.LINES_MAX
    assert len(first["roll"]["blockedBy"][0]) == module.WORDS_LENGTH_MAX


@pytest.mark.parametrize(
    "status",
    [
        None,
        "text",
        {"nodes": "none", "rollout": [], "conditions": {}, "usage": 3, "move": 1, "used": 5, "applied": []},
        {"nodes": [1, {"id": "x", "rack": {}, "roles": 7}], "rollout": {"total": 2, "current": ["a"], "atRisk": 1}},
        {"brokers": -1, "readyBrokers": True, "used": "many%", "usage": [{"producerByteRate": "x"}]},
    ],
)
def test_a_status_that_was_written_by_hand_is_shown_as_far_as_it_goes(status: Any) -> None:
    kinds = ("KafkaCluster", "Topic", "ClientQuota")
    shown = json.loads(json.dumps(overview(document(kind, "x", status) for kind in kinds)))
    assert [len(shown[name]) for name in ("clusters", "topics", "quotas")] == [1, 1, 1]


def test_no_setting_is_told() -> None:
    held: dict[str, Any] = {"config": {"sasl.jaas.config": SECRET}, "external": {"sasl": {"password": SECRET}}}
    status = {"unmanagedConfig": [f"secret={SECRET}"], "managedConfig": [SECRET]}
    kinds = ("KafkaCluster", "Topic", "ClientQuota")
    assert SECRET not in json.dumps(overview(document(kind, "x", status, **held) for kind in kinds))


def test_the_page_is_one_file_and_builds_nothing_of_text() -> None:
    page = pages.source(asks_for_token=True).text.replace('"http://www.w3.org/2000/svg"', "")
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
        assert word not in page
    assert " style=" not in page, "the policy would not let it in"
    assert page.count("<script") == page.count("<script>") == page.count("<style>") == 1


def test_it_is_served_with_a_policy_and_not_at_the_port_of_prometheus() -> None:
    figures = Figures(is_active=True, documents=lambda: [document("KafkaCluster", "main", {})])

    async def ask() -> None:
        async with TestClient(TestServer(console(pages.Console(figures)))) as client:
            answer = await client.get("/")
            assert (answer.status, answer.content_type) == (200, "text/html")
            assert await answer.text() == pages.source(asks_for_token=False).text
            policy = answer.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'sha256-")
            assert "unsafe" not in policy
            told = await client.get("/console.json")
            assert (told.content_type, told.headers["Cache-Control"]) == ("application/json", "no-store")
            shown = await told.json()
            assert (shown["isActive"], shown["isListed"], len(shown["clusters"])) == (True, False, 1)
            assert (await client.post("/console.json")).status == 405
            assert (await client.get("/metrics")).status == 404
        async with TestClient(TestServer(application(figures))) as client:
            assert [(await client.get(path)).status for path in ("/", "/console.json")] == [404, 404]

    asyncio.run(ask())


def test_many_who_look_cost_one_overview_a_second() -> None:
    asked, seconds = list[int](), [100.0]

    def documents() -> list[dict[str, Any]]:
        asked.append(1)
        return []

    async def ask(times: int) -> None:
        console = pages.Console(Figures(documents=documents), lambda: seconds[0])
        for _ in range(2):
            await asyncio.gather(*(console.overview(None) for _ in range(times)))
            seconds[0] += pages.FRESH_SECONDS

    asyncio.run(ask(20))
    assert len(asked) == 2


def rows_of(shown: dict[str, Any], sheet: str) -> dict[str, list[str]]:
    """The texts of the cells of a sheet, by the keys of its rows."""
    (found,) = [each for each in shown["sheets"] if each["name"] == sheet]
    return {row["key"]: [cell["text"] for cell in row["cells"]] for row in found["rows"]}


def test_the_clusters_are_rows_and_lead_to_their_topics() -> None:
    roll = {"total": 3, "done": 1}
    told = {"brokers": 3, "readyBrokers": 2, "nodes": [node(0)], "rollout": roll, "analytics": {"state": "Failed"}}
    documents = [document("KafkaCluster", "main", told), document("Topic", "t", {}), document("ClientQuota", "q", {})]
    elsewhere = document("Topic", "alone", {})
    elsewhere["metadata"]["namespace"] = "bank"
    shown = view_document([*documents, elsewhere], None, "")
    assert rows_of(shown, "clusters") == {
        "shop/main": ["shop/main", "Ready", "2 of 3", "4", "1", "1", "1", "1 of 3", "Failed", "words"],
        "bank/main": ["bank/main", *["unknown"] * 8, module_of_views.NO_STATUS],
    }
    assert shown["sheets"][0]["rows"][0]["link"] == [shown["sheets"][0]["rows"][0]["key"], "topics"]


def test_topics_of_a_cluster_come_with_those_first_that_need_a_look() -> None:
    topics = [
        document("Topic", "well", {"partitions": 3, "replicationFactor": 2}),
        document("Topic", "waits", {}, ready="False"),
        document("Topic", "behind", {"underReplicated": 2}, ready="False"),
        document("Topic", "offline", {"offline": 1, "topicName": "named.otherwise", "move": {"x": 1}}, ready="False"),
    ]
    other = document("Topic", "foreign", {})
    other["spec"]["clusterRef"]["name"] = "other"
    found = rows_of(view_document([*topics, other], "shop/main", "topics"), "resources-of-topics")
    assert list(found) == ["shop/offline", "shop/behind", "shop/waits", "shop/well"]
    assert found["shop/offline"] == ["named.otherwise", "Because", "0", "0", "0", "1", "replicas move; words"]
    assert found["shop/well"] == ["well", "Ready", "3", "2", "0", "0", "words"]


def test_quotas_of_a_cluster_come_with_those_first_that_are_near_their_limit() -> None:
    usage = [{"broker": 0, "producerByteRate": 5, "throttledSeconds": 3}, {"broker": 1, "producerByteRate": 7}]
    applied = {"producer_byte_rate": 2.0**20}
    quotas = [
        document("ClientQuota", "unseen", {}),
        document("ClientQuota", "near", {"used": "93%", "usage": usage, "applied": applied, "entity": "client-id=a"}),
        document("ClientQuota", "over", {"used": "104%"}),
    ]
    found = rows_of(view_document(quotas, "shop/main", "quotas"), "resources-of-quotas")
    assert list(found) == ["shop/over", "shop/near", "shop/unseen"]
    limit = "producer_byte_rate=1Mi"
    assert found["shop/near"] == ["near", "client-id=a", "Ready", limit, "93 %", "12 B/s", "0 B/s", "3 s", "words"]
    assert found["shop/unseen"][4:8] == ["unknown"] * 4


def test_a_roll_and_the_nodes_are_shown_as_by_the_command() -> None:
    roll = RolloutStatus(total=3, done=1, current=(2,), blocked_by=("t-0 waits",), at_risk=("u: 0",), plan="p").signed()
    status = {
        "brokers": 2,
        "readyBrokers": 2,
        "nodes": [node(0, rack="a"), node(2, restarts=1)],
        "rollout": roll.to_dict(),
    }
    main = document("KafkaCluster", "main", status, **SPEC)
    shown = view_document([main], "shop/main", "roll")
    assert shown["roll"] == {"done": 1, "total": 3}
    assert [*rows_of(shown, "waits").values()] == [["t-0 waits"]]
    assert [*rows_of(shown, "risks").values()] == [["u: 0"]]
    nodes = rows_of(view_document([main], "shop/main", "nodes"), "nodes-of-roll")
    assert [*nodes.values()] == [
        ["0", "Running", "a", "broker", "4", "1", "0"],
        ["2", "Running", "", "broker", "4", "1", "1"],
    ]
    for view, sheet in (("roll", "waits"), ("nodes", "nodes-of-roll")):
        for documents in ([document("Topic", "t", {})], [document("KafkaCluster", "main", status)]):
            (found,) = view_document(documents, "shop/main", view)["sheets"]
            assert (found["name"], found["note"], found["rows"]) == (sheet, module_of_views.NO_STATUS, [])


def test_the_answers_of_the_audit_come_with_what_is_wrong_first() -> None:
    weights = (("Who paid?", "told"), ("What is missing?", "wrong"), ("Who lags?", "no data"), ("Who is new?", "look"))
    answers = [{"question": question, "weight": weight, "rows": 1} for question, weight in weights]
    summary = {"time": "2026-11-30T02:00:07Z", "answers": answers, "chains": "3 chains verified."}
    told = {"state": "Failed", "startTime": "2026-11-30T03:00:00Z", "message": "it has no room", "summary": summary}
    shown = view_document([document("KafkaCluster", "main", {"analytics": told})], "shop/main", "audit")
    questions = [words[0] for words in rows_of(shown, "weights").values()]
    assert questions == ["What is missing?", "Who is new?", "Who lags?", "Who paid?"]
    assert shown["sheets"][0]["note"].startswith("it has no room 3 chains verified. ")
    assert [fact["text"] for fact in shown["facts"]] == ["Failed", "2026-11-30T03:00:00Z", "2026-11-30T02:00:07Z"]
    (sheet,) = view_document([document("KafkaCluster", "main", {})], "shop/main", "audit")["sheets"]
    assert "No run" in sheet["note"]


@pytest.mark.parametrize(("cluster", "view"), [("shop/main", "groups"), ("shop/none", "topics"), ("", "topics")])
def test_what_is_no_place_on_the_page_is_told(cluster: str, view: str) -> None:
    with pytest.raises(LookupError):
        view_document([document("Topic", "t", {})], cluster, view)


@pytest.mark.parametrize("view", [None, *module_of_views.VIEWS])
def test_no_place_tells_a_setting_or_ends_by_a_status_that_was_written_by_hand(view: str | None) -> None:
    held: dict[str, Any] = {"config": {"sasl.jaas.config": SECRET}, "external": {"sasl": {"password": SECRET}}}
    odd = (
        {"unmanagedConfig": [f"secret={SECRET}"], "managedConfig": [SECRET]},
        {"nodes": [1, {"id": "x", "rack": {}, "roles": 7}], "rollout": {"total": 2, "current": ["a"], "atRisk": 1}},
        {"brokers": -1, "readyBrokers": True, "used": "many%", "analytics": {"state": 3, "summary": []}},
        "text",
        None,
    )
    for status in odd:
        kinds = ("KafkaCluster", "Topic", "ClientQuota")
        documents = [document(kind, "main", status, **held) for kind in kinds]
        shown = view_document(documents, None if view is None else "shop/main", view or "")
        assert SECRET not in json.dumps(shown)


def test_the_page_that_has_no_place_and_one_that_waits_say_so() -> None:
    async def ask(figures: Figures, **query: str) -> dict[str, Any]:
        async with (
            TestClient(TestServer(console(pages.Console(figures)), handler_cancellation=True)) as client,
            client.get("/events", params=query) as answer,
        ):
            line = await answer.content.readline()
            shown: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
            return shown

    documents = [document("Topic", "t", {})]
    active = Figures(is_active=True, listed_at=1.0, documents=lambda: documents)
    assert asyncio.run(ask(active, cluster="shop/none", view="topics"))["isGone"]
    assert asyncio.run(ask(active))["notice"] == ""
    assert "Another process acts" in asyncio.run(ask(Figures(documents=lambda: documents)))["notice"]
    assert "not listed yet" in asyncio.run(ask(Figures(is_active=True)))["notice"]


def test_places_that_are_none_are_made_once_and_kept_as_one() -> None:
    looked = list[int]()

    def documents() -> list[dict[str, Any]]:
        looked.append(1)
        return [document("Topic", "t", {})]

    async def ask() -> None:
        shown = pages.Console(Figures(is_active=True, listed_at=1.0, documents=documents), lambda: 100.0)
        for number in range(200):
            made = await shown.overview(None, (f"shop/none-{number}", "topics"))
            assert b'"isGone": true' in made.rest
        assert len(looked) == 2, "for the names of clusters, and for no place"
        assert b'"isGone"' not in (await shown.overview(None, ("shop/main", "topics"))).rest

    asyncio.run(ask())


def test_a_view_that_is_none_and_a_long_name_lead_nowhere() -> None:
    async def ask() -> None:
        figures = Figures(is_active=True, listed_at=1.0, documents=lambda: [document("Topic", "t", {})])
        async with TestClient(TestServer(console(pages.Console(figures)), handler_cancellation=True)) as client:
            for query in ({"cluster": "shop/main", "view": "x" * 5000}, {"cluster": "y" * 5000, "view": "topics"}):
                async with client.get("/events", params=query) as answer:
                    assert b'"isGone": true' in await answer.content.readline()

    asyncio.run(ask())
