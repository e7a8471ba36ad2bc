"""The operator's own figures: what is counted, what is read off resources and lanes, and what its port answers."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace as Bag
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from kavka_operator.domain.plan import CreateTopic, DeleteTopic
from kavka_operator.kafka.admin import AdminError
from kavka_operator.loop.observer import LookResult
from kavka_operator.process.action_counter import CountedAdmin
from kavka_operator.process.cluster_threads import ClusterThreads
from kavka_operator.process.http_server import TURN_SECONDS_MAX, Address, AddressError, application, healthy, ready
from kavka_operator.process.metric_table import OPERATOR_FAMILIES
from kavka_operator.process.metrics import Figures
from kavka_operator.process.operator import Options
from kavka_operator.process.resource_metrics import NotReady, Roll, standing

MAIN = ("default", "main")
AT = "2026-11-23T00:00:10Z"
AT_SECONDS = 1_795_392_010.0


def document(kind: str, name: str, ready: str | None = "True", **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "reason": "Because", "lastTransitionTime": AT}] if ready else []
    metadata = {"name": name, "namespace": "default", "creationTimestamp": "2026-11-23T00:00:00Z"}
    return {"kind": kind, "metadata": metadata, "status": {"conditions": conditions, **status}}


def samples(figures: Figures) -> dict[tuple[str, tuple[str, ...]], float]:
    """The page's values, by name and the values of labels, in the order of the labels' names."""
    families = text_string_to_metric_families(figures.page().decode())
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def figures_of(*documents: Mapping[str, Any], busy: Mapping[tuple[str, str], float] | None = None) -> Figures:
    figures = Figures(documents=lambda: documents)
    figures.lanes = cast("ClusterThreads", Bag(busy_seconds=lambda: dict(busy or {}), count=2, waiting=1))
    return figures


def test_resources_are_counted_by_their_ready_and_those_that_are_not_are_named_since_when() -> None:
    found = standing(
        [
            document("Topic", "a"),
            document("Topic", "b", "False"),
            document("Topic", "c", None),
            document("KafkaCluster", "main", rollout={"total": 3, "done": 1, "blockedSince": AT}),
            {"kind": "Topic", "metadata": {"name": "odd"}, "status": {"conditions": "none", "rollout": []}},
        ]
    )
    assert found.ready == {
        ("Topic", "True"): 1,
        ("Topic", "False"): 1,
        ("Topic", "Unknown"): 2,
        ("KafkaCluster", "True"): 1,
    }
    assert found.not_ready == (
        NotReady(0.0, "Topic", "default", "odd", "NotSeen"),
        NotReady(AT_SECONDS - 10, "Topic", "default", "c", "NotSeen"),
        NotReady(AT_SECONDS, "Topic", "default", "b", "Because"),
    )
    assert found.rolls == (Roll("default", "main", 1, 3, AT_SECONDS),)


def test_the_youngest_beyond_the_bound_are_counted_and_not_named() -> None:
    found = standing([document("Topic", "b", "False"), document("Topic", "a", None)], not_ready_max=1)
    assert ([item.name for item in found.not_ready], found.omitted) == (["a"], 1)


def test_the_page_has_every_family_of_the_table_and_no_other() -> None:
    figures = figures_of(document("KafkaCluster", "main", "False", rollout={"total": 3, "blockedSince": AT}))
    figures.looked(MAIN, 0.2, LookResult(error="nobody answers"))
    figures.acted(0.1)
    figures.wrote("kafka", "CreateTopic")
    figures.left_out()
    assert samples(figures)["kavka_operator_events_omitted_total", ()] == 1.0
    served = {name for name, _ in samples(figures) if name.startswith("kavka_") and not name.endswith("_created")}
    assert served == {name for family in OPERATOR_FAMILIES for name in family.samples}


def test_looks_that_failed_are_counted_until_their_cluster_goes() -> None:
    figures, series = figures_of(), ("kavka_operator_look_failures_total", ("main", "default"))
    figures.looked(MAIN, 0.2, LookResult())
    assert series not in samples(figures)
    figures.looked(MAIN, 0.2, LookResult(fault=ValueError()))
    figures.failed(MAIN)
    assert samples(figures)[series] == 2.0
    assert samples(figures)["kavka_operator_turn_seconds_count", ("look",)] == 2.0
    figures.ended(MAIN)
    figures.ended(MAIN)
    assert series not in samples(figures)


def test_what_kafka_accepts_is_counted_by_its_kind() -> None:
    topics = [CreateTopic(name, 1, 1, {}) for name in ("a", "b")]
    admin = Bag(perform=lambda _: None, perform_many=lambda _: [None, AdminError("no")])
    told = list[str]()
    counted = CountedAdmin(cast("Any", admin), told.append)
    counted.perform_many(topics)
    counted.perform(DeleteTopic("a", "id"))
    assert told == ["CreateTopic", "DeleteTopic"]


def test_a_turn_that_hangs_is_no_health_and_an_unlisted_process_is_not_ready() -> None:
    assert healthy(figures_of(busy={MAIN: TURN_SECONDS_MAX - 1})) == (200, "ok\n")
    code, words = healthy(figures_of(busy={MAIN: TURN_SECONDS_MAX + 1}))
    assert (code, "default/main" in words) == (500, True)
    figures = figures_of()
    assert ready(figures)[0] == 200, "it waits for the lease"
    figures.is_active = True
    assert ready(figures)[0] == 503
    figures.listed_at = 1.0
    assert ready(figures) == (200, "ok\n")


def test_the_port_answers() -> None:
    async def ask() -> list[tuple[int, str]]:
        async with TestClient(TestServer(application(figures_of()))) as client:
            answers = [await client.get(path) for path in ("/healthz", "/readyz", "/metrics", "/")]
            return [(answer.status, answer.headers["Content-Type"]) for answer in answers]

    codes = asyncio.run(ask())
    assert [code for code, _ in codes] == [200, 200, 200, 404]
    assert codes[2][1].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize(
    ("text", "address"),
    [("0.0.0.0:8080", Address("0.0.0.0", 8080)), (":1", Address("", 1)), ("[::]:80", Address("::", 80))],
)
def test_an_address_to_serve_on_is_read(text: str, address: Address) -> None:
    assert Address.of(text) == address


@pytest.mark.parametrize("text", ["8080", "a:", "a:0", "a:65536", "a:b"])
def test_an_address_that_is_none_says_what_to_write(text: str) -> None:
    with pytest.raises(AddressError, match=r"KAVKA_LISTEN.*0\.0\.0\.0:8080"):
        Address.of(text)


def test_the_page_for_people_is_at_an_address_of_its_own() -> None:
    listen = Address("", 8080)
    for text, expected in [
        ("", None),
        ("true", Address("127.0.0.1", 8081)),
        ("0.0.0.0:9", Address("0.0.0.0", 9)),
        ("::1:8081", Address("::1", 8081)),
    ]:
        options = Options.of({"KAVKA_LISTEN": ":8080", "KAVKA_CONSOLE": text})
        assert (options.listen, options.console) == (listen, expected)
    with pytest.raises(AddressError, match=r"KAVKA_CONSOLE.*127\.0\.0\.1:8081"):
        Options.of({"KAVKA_CONSOLE": "yes"})
