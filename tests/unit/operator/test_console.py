"""The console: what it shows of resources, within bounds, and what a browser may do with it."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from kavka_operator.process.console import overview as module
from kavka_operator.process.console import page as pages
from kavka_operator.process.console.overview import overview
from kavka_operator.process.http_server import application, console
from kavka_operator.process.metrics import Figures

SECRET = "hunter2"


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
    page = pages.source().text
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
            assert await answer.text() == pages.source().text
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
