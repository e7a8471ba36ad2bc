"""The pages in a real browser: `kavka console` over a broker and over a large cluster, and the operator's console.

A page tells of each error of its scripts, and of each thing that its policy has refused: there is none at the end.
"""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kavka_broker.core.quota.entity import Entity
from kavka_cli.target import Target
from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.kafka.broker_metrics import url_of
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.kafka.offsets_and_lag import Group, Members
from kavka_operator.live_views.model import Look
from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.process.console.access import DataDoor, Door
from kavka_operator.process.console.live import SUBRESOURCES, LaneSource, LiveBounds, LivePlaces
from kavka_operator.process.console.page import Console as OperatorConsole
from kavka_operator.process.http_server import console as console_of_operator
from kavka_operator.process.metrics import Figures
from kavka_pytest.in_process import KafkaInProcess
from kavka_top.console.server import Console
from tests.support.browser import Page, browser
from tests.support.programs import node_modules
from tests.support.servers import free_port
from tests.support.waiting import until_outside
from tests.support.web import served
from tests.unit.operator.person import run
from tests.unit.operator.test_console import document, node
from tests.unit.operator.test_console_access import Reviews
from tools.top_picture import Example, look

pytestmark = [pytest.mark.chromium]

TOPICS, GROUPS = 500, 200
QUOTA = """apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {name: backfill}
spec:
  clusterRef: {name: main}
  entity: {clientId: {name: backfill}}
  limits:
    producerByteRate: 1Mi
"""
MAIN = f"""apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {{name: main}}
spec:
  nodePools: [{{name: nodes, replicas: 1}}]
---
{QUOTA}"""
ITEMS = ("topics/orders", "groups/billing", "clients//web", "quotas/client-id%3Dweb")
ROWS = "document.querySelectorAll('#sheets tbody tr').length"


@pytest.fixture(scope="module")
def only_page() -> Iterator[Page]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(only_page: Page) -> Page:
    """A page that shows nothing yet, and has told of no error."""
    only_page.open("about:blank")
    only_page.size(1400)
    only_page.faults.clear()
    return only_page


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaInProcess]:
    """A broker with records, a group that has read half of them, and a client under a quota."""
    with KafkaInProcess(tmp_path_factory.mktemp("console")) as kafka:
        kafka.topic("orders", partitions=2)
        producer = Producer({"bootstrap.servers": str(kafka), "client.id": "web"})
        for number in range(120):
            value = json.dumps({"id": number, "item": "needle" if number == 7 else "hay"})
            headers: dict[str, str | bytes | None] = {"trace": f"t-{number}"}
            producer.produce("orders", value, f"k-{number}", partition=number % 2, headers=headers)
        producer.produce("orders", b"\xff\xfe", None, partition=0)
        producer.produce("orders", "<img src=x onerror=alert(1)>", "odd", partition=1)
        assert producer.flush(60) == 0
        reader = {"bootstrap.servers": str(kafka), "group.id": "billing", "auto.offset.reset": "earliest"}
        consumer = Consumer({**reader, "client.id": "billing-1"})
        consumer.subscribe(["orders"])
        read = consumer.consume(60, 60)
        assert len(read) == 60
        consumer.commit(asynchronous=False)
        admin = KafkaClient(str(kafka))
        admin.perform(AlterQuota(Entity(None, "web"), {"producer_byte_rate": 2.0**20}))
        admin.close()
        yield kafka
        consumer.close()


@pytest.fixture(scope="module")
def address(broker: KafkaInProcess) -> Iterator[str]:
    target = Target("local", str(broker), tuple(map(url_of, broker.metrics)))
    with served(Console({"local": target}, 0.2, key="").application()) as url:
        yield url


def visit(page: Page, place: str) -> None:
    """Open a place anew: without what was filtered and sorted there before."""
    page.open("about:blank")
    page.open(place)


def follow(page: Page, selector: str) -> None:
    """Click a link of a table, which stands still meanwhile: looks may change its order."""
    page.until(f"document.querySelector({json.dumps(selector)}) !== null")
    page.press("p")
    page.click(selector)


def sheet(name: str) -> str:
    return f"section[aria-labelledby='title-{name}']"


def test_from_the_clusters_to_a_record_and_its_headers(page: Page, address: str) -> None:
    page.open(address)
    page.until(f"{ROWS} === 1")
    follow(page, "#sheets tbody a")
    page.until("document.title.startsWith('Topics')")
    page.until("document.querySelector('#sheets tbody')?.innerText.includes('orders')")
    follow(page, "a[id='row-topics-orders']")
    page.until("document.querySelectorAll('#records-list li').length === 50")
    assert "as many as were asked for" in page.text("#records-said")
    assert page.text(sheet("partitions")).startswith("Partitions\n2\n")
    page.until(f"document.querySelector(\"{sheet('readers')}\")?.innerText.includes('billing')")
    page.write("#records-value", "needle")
    page.press("Enter")
    page.until("document.querySelectorAll('#records-list li').length === 1")
    page.click("#records-list summary")
    page.until("document.querySelector('#records-list pre') !== null")
    shown = page.text("#records-list")
    assert '"item": "needle"' in shown, "decoded, a field on a line of its own"
    assert "trace: t-7" in shown
    assert page.faults == []


def test_records_from_an_offset_of_one_partition_and_what_is_no_text(page: Page, address: str) -> None:
    visit(page, f"{address}#/local/topics/orders")
    page.until("document.querySelectorAll('#records-list li').length === 50")
    page.choose("#records-at", "offset")
    page.choose("#records-partition", "0")
    page.write("#records-where", "58")
    page.click(".query button")
    page.until("document.querySelectorAll('#records-list li').length === 3")
    shown = page.text("#records-list")
    assert "0 : 58" in shown
    assert "binary, 2 bytes: //4=" in shown
    page.choose("#records-at", "time")
    page.write("#records-where", "soon")
    page.click(".query button")
    page.until("document.querySelector('#records-said')?.innerText.includes('is not a time')")
    page.choose("#records-at", "newest")
    page.choose("#records-partition", "1")
    page.click(".query button")
    page.until("document.querySelector('#records-list')?.innerText.includes('onerror')")
    assert page.ask("document.querySelectorAll('img').length") == 0, "a value is a text"
    assert page.faults == [
        "Failed to load resource: the server responded with a status of 400 (Bad Request) " + url(page)
    ]


def url(page: Page) -> str:
    return page.faults[0].rsplit(" ", 1)[1]


def test_new_records_come_by_themselves_where_they_are_followed(
    page: Page, address: str, broker: KafkaInProcess
) -> None:
    broker.topic("followed")
    producer = Producer({"bootstrap.servers": str(broker), "client.id": "web"})
    producer.produce("followed", "before")
    assert producer.flush(60) == 0
    visit(page, f"{address}#/local/topics/followed")
    page.until("document.querySelectorAll('#records-list li').length === 1")
    page.click("#records-follow")
    producer.produce("followed", "just now")
    assert producer.flush(60) == 0
    page.until("document.querySelector('#records-list li')?.innerText.includes('just now')")
    assert page.faults == []


def test_groups_clients_and_users_of_a_broker(page: Page, address: str) -> None:
    visit(page, f"{address}#/local/groups/billing")
    page.until("document.querySelector('#facts')?.innerText.includes('Stable')")
    page.until(f"document.querySelector(\"{sheet('members')}\")?.innerText.includes('billing-1')")
    assert "orders" in page.text(sheet("offsets"))
    page.press("4")
    page.until("document.querySelector('#sheets tbody')?.innerText.includes('web')")
    follow(page, "a[id^='row-clients-'][href*='/web']")
    page.until("document.querySelector('#explanation')?.innerText.includes('level 7, client id')")
    assert "producer_byte_rate 1Mi" in page.text("#explanation")
    page.press("8")
    page.until(f"document.querySelector(\"{sheet('rules')}\")?.innerText.includes('no authorizer')")
    assert page.faults == []


class Large(Example):
    """A source of looks at a cluster with very many topics and groups."""

    def take(self) -> Look:
        self._taken += 1
        found = look(self._taken)
        names = [f"topic-{number:03}" for number in range(TOPICS)]
        partitions = tuple(SeenPartition(name, 0, 0, (0, 1, 2), (0, 1, 2)) for name in names)
        ends = {(name, 0): number * self._taken for number, name in enumerate(names)}
        groups = {
            f"group-{number:03}": Group("Stable", "classic", (("c", "h"),), {(names[number], 0): 0})
            for number in range(GROUPS)
        }
        members = Members("large", found.members.brokers, partitions)
        return Look(found.at_s, "large", members, 1, found.quotas, ends, (), groups, found.log_dirs, found.pages)


@pytest.fixture(scope="module")
def large() -> Iterator[str]:
    targets = {name: Target(name, f"{name}.example:9092") for name in ("large", "other")}
    with served(Console(targets, 0.1, lambda _: Large(), "").application()) as found:
        yield found


def test_a_large_cluster_is_shown_fifty_rows_at_a_time_filtered_and_sorted(page: Page, large: str) -> None:
    visit(page, f"{large}#/large/topics")
    page.until(f"{ROWS} === 50")
    assert page.text("#sheets .count") == str(TOPICS)
    page.press("]")
    page.until("document.querySelector('.pager')?.innerText.includes('51 to 100 of 500')")
    page.press("/")
    page.call("Input.insertText", text="topic-49 !topic-491")
    page.until(f"{ROWS} === 9")
    assert page.text("#sheets .count") == "9 of 500"
    page.click("#head-topics-0")
    page.until("document.querySelector('#sheets tbody tr')?.innerText.startsWith('topic-490')")
    page.click("#head-topics-0")
    page.until("document.querySelector('#sheets tbody tr')?.innerText.startsWith('topic-499')")
    assert page.ask("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "descending"
    visit(page, f"{large}#/large/groups")
    page.until(f"{ROWS} === 50")
    assert page.text("#sheets .count") == str(GROUPS)
    assert page.faults == []


def test_a_look_keeps_the_row_that_has_the_focus_and_a_pause_keeps_all(page: Page, large: str) -> None:
    visit(page, f"{large}#/large/topics")
    page.until(f"{ROWS} === 50")
    page.click("#head-topics-0")
    page.until("document.querySelector('#row-topics-topic-007') !== null")
    page.ask("document.querySelector('#row-topics-topic-007').focus()")
    first = page.text("#sheets tbody")
    page.until(f"document.querySelector('#sheets tbody')?.innerText !== {json.dumps(first)}")
    assert page.ask("document.activeElement.id") == "row-topics-topic-007"
    page.press("p")
    page.until("document.querySelector('#state')?.innerText.startsWith('paused')")
    shown = page.text("#sheets tbody")
    page.until("pending !== null")
    assert page.text("#sheets tbody") == shown
    page.press("p")
    page.until("document.querySelector('#state')?.innerText === 'live'")
    assert page.faults == []


@pytest.fixture(scope="module")
def axe() -> str:
    """The script that judges how accessible a page is, by the rules of WCAG 2.2 AA and some of its own."""
    return (node_modules() / "axe-core/axe.min.js").read_text()


def accessibility_faults(page: Page, axe: str) -> list[str]:
    page.ask(f"{axe}; true")
    told = "found => found.violations.map(rule => rule.id + ': ' + rule.nodes[0].html)"
    return list(page.ask(f"axe.run(document).then({told})"))


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Layout, str]]:
    """A console that may write, over a cluster of this machine with a quota, which does not run."""
    directory = tmp_path_factory.mktemp("editing")
    file = directory / "main.yaml"
    file.write_text(MAIN)
    assert run("apply", "-f", str(file), "--state-dir", str(directory))[0] == 0
    layout = Layout.of(directory, "default", "main")
    console = Console(
        {"main": Target("main", "b")}, 0.1, lambda _: Example(), "", layouts={"main": layout}, writable=True
    )
    with served(console.application()) as found:
        yield found, layout, console.token


@pytest.fixture
def editing(page: Page, writing: tuple[str, Layout, str]) -> tuple[str, Layout]:
    """The same, and a tab that has been given the token."""
    address, layout, token = writing
    page.open(f"{address}#token={token}")
    page.until("location.hash === '#/'")
    return address, layout


def edit(page: Page, text: str) -> None:
    """Write the text of a resource in the place of what is there, by the keyboard."""
    page.until("document.querySelector('#quota-text')?.value.includes('backfill')")
    page.ask("document.querySelector('#quota-text').focus(); document.querySelector('#quota-text').select()")
    page.call("Input.insertText", text=text)


def limit_of(layout: Layout) -> object:
    document = Store(layout).document(("ClientQuota", "default", "backfill"))
    assert document is not None
    return document["spec"]["limits"]["producerByteRate"]


def test_a_quota_is_edited_with_its_difference_shown_before(page: Page, editing: tuple[str, Layout]) -> None:
    address, layout = editing
    visit(page, f"{address}#/main/quotas")
    follow(page, "a[id^='row-quotas-client-id=backfill']")
    page.until("document.querySelector('#quota-text')?.value.includes('producerByteRate: 1Mi')")
    page.until("document.querySelector('#charts path.used')?.getAttribute('d').includes('L')")
    assert "of the limit" in page.ask("document.querySelector('#charts svg').getAttribute('aria-label')")
    assert page.ask("document.querySelector('#quota-apply').disabled"), "nothing was shown yet"
    edit(page, QUOTA.replace("1Mi", "10 MiB"))
    page.press("Tab")
    page.press("Enter")
    page.until("document.querySelector('#quota-result')?.innerText.includes('spec.limits.producerByteRate')")
    assert page.ask("document.querySelector('#quota-apply').disabled")
    edit(page, QUOTA.replace("1Mi", "3Mi"))
    page.press("Tab")
    page.press("Enter")
    page.until("document.querySelector('#quota-diff')?.innerText.includes('+    producerByteRate: 3Mi')")
    assert limit_of(layout) == "1Mi"
    page.press("Tab")
    page.press("Enter")
    page.until("document.querySelector('#quota-said')?.innerText.includes('is stopped')")
    assert limit_of(layout) == "3Mi"
    page.click("#quota-look")
    page.until("document.querySelector('#quota-said')?.innerText.includes('is so already')")
    assert [fault for fault in page.faults if "422" not in fault] == []


def test_a_text_that_was_changed_after_its_difference_cannot_be_applied(
    page: Page, editing: tuple[str, Layout]
) -> None:
    address, layout = editing
    before = limit_of(layout)
    visit(page, f"{address}#/main/quotas/client-id%3Dbackfill")
    edit(page, QUOTA.replace("1Mi", "7Mi"))
    page.click("#quota-look")
    page.until("!document.querySelector('#quota-apply').disabled")
    page.call("Input.insertText", text=" ")
    page.ask("document.querySelector('#quota-text').focus()")
    page.call("Input.insertText", text=" ")
    page.until("document.querySelector('#quota-apply').disabled")
    assert page.ask("document.querySelector('#quota-diff')") is None
    assert limit_of(layout) == before
    assert page.faults == []


def test_a_quota_is_deleted_with_its_difference_shown_before(page: Page, editing: tuple[str, Layout]) -> None:
    address, layout = editing
    visit(page, f"{address}#/main/quotas/client-id%3Dbackfill")
    edit(page, QUOTA)
    page.click("#quota-delete")
    page.until("document.querySelector('#quota-diff')?.innerText.includes('-    producerByteRate: ')")
    assert page.text("#quota-apply") == "Delete it"
    document = Store(layout).document(("ClientQuota", "default", "backfill"))
    assert document is not None
    assert "deletionTimestamp" not in document["metadata"]
    page.click("#quota-apply")
    page.until("document.querySelector('#quota-said')?.innerText.includes('is stopped')")
    document = Store(layout).document(("ClientQuota", "default", "backfill"))
    assert document is not None
    assert "deletionTimestamp" in document["metadata"]
    assert page.ask("document.querySelector('#quota-delete').hidden")
    page.click("#quota-look")  # applied again, it stays
    page.until("document.querySelector('#quota-diff')?.innerText.includes('deletionTimestamp')")
    assert page.text("#quota-apply") == "Apply this difference"
    page.click("#quota-apply")
    page.until("document.querySelector('#quota-delete').hidden === false")
    assert page.faults == []


def test_a_tab_that_has_not_shown_the_key_cannot_edit(page: Page, writing: tuple[str, Layout, str]) -> None:
    page.open(writing[0])
    page.ask("sessionStorage.clear()")
    visit(page, f"{writing[0]}#/main/quotas/client-id%3Dbackfill")
    page.until("document.querySelector('#quota-said')?.innerText.includes('This tab only reads')")
    assert page.ask("document.querySelector('#quota-text').readOnly")
    assert page.ask("document.querySelector('#quota-look').checkVisibility()") is False
    assert page.faults == []


@pytest.mark.node
@pytest.mark.parametrize("width", [1400, 390])
def test_the_editor_fits_its_width_and_is_accessible(
    page: Page, editing: tuple[str, Layout], axe: str, width: int
) -> None:
    page.size(width, is_dark=width < 600)
    visit(page, f"{editing[0]}#/main/quotas/client-id%3Dbackfill")
    edit(page, QUOTA.replace("1Mi", "11Mi"))
    page.click("#quota-look")
    page.until("document.querySelector('#quota-diff') !== null")
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert accessibility_faults(page, axe) == []
    visit(page, f"{editing[0]}#/main/roll")
    page.until("document.querySelector('#sheets .note, #sheets .empty') !== null")
    assert accessibility_faults(page, axe) == []
    assert page.faults == []


@pytest.mark.node
@pytest.mark.parametrize("width", [1400, 390])
def test_every_place_fits_its_width_and_is_accessible(
    page: Page, large: str, address: str, axe: str, width: int
) -> None:
    page.size(width, is_dark=width < 600)
    views = ("topics", "groups", "clients", "quotas", "nodes", "transactions", "roll", "audit")
    places = [large, *(f"{large}#/large/{view}" for view in views)]
    places += [f"{address}#/local/{rest}" for rest in (*ITEMS, "access")]
    for place in places:
        visit(page, place)
        page.until("document.querySelector('#sheets tbody tr, #sheets .note') !== null")
        assert page.ask("document.documentElement.scrollWidth") <= width, place
        spoken = page.spoken()
        nameless = [role for role, name in spoken if role in {"button", "link", "searchbox", "combobox"} and not name]
        assert nameless == [], place
        roles = {role for role, _ in spoken}
        assert roles >= {"banner", "main", "navigation", "heading", "status"}, place
        assert accessibility_faults(page, axe) == [], place
        if page.ask(ROWS):
            assert roles >= {"table", "columnheader", "cell"}, place
    assert page.faults == []


def test_a_topic_that_was_deleted_and_made_again_is_shown_again(page: Page) -> None:
    is_there = threading.Event()
    is_there.set()

    class Made(Example):
        def take(self) -> Look:
            found = super().take()
            kept = tuple(one for one in found.members.partitions if is_there.is_set() or one.topic != "orders")
            return replace(found, members=replace(found.members, partitions=kept))

    with served(Console({"m": Target("m", "b")}, 0.05, lambda _: Made(), "").application()) as found:
        visit(page, f"{found}#/m/topics/orders")
        page.until(f"{ROWS} > 12")
        is_there.clear()
        page.until("document.querySelector('#sheets')?.innerText.includes('none of this name')")
        is_there.set()
        page.until(f"{ROWS} > 12")


def test_a_place_that_names_nothing_leads_to_the_clusters(page: Page, large: str) -> None:
    visit(page, f"{large}#/%")
    page.until(f"{ROWS} === 2")
    assert page.faults == []


def test_the_page_says_that_its_console_has_ended(page: Page) -> None:
    console = Console({"m": Target("m", "b")}, 0.1, lambda _: Example())
    with served(console.application()) as found:
        visit(page, f"{found}?key={console.key}#/m/topics")
        page.until("document.querySelector('#state')?.innerText === 'live'")
    page.until("document.querySelector('#state')?.innerText.includes('does not answer')")
    assert page.text("#sheets tbody").startswith("clicks"), "what was there stays"


@pytest.mark.node
def test_the_operators_page_runs_under_its_own_policy_and_is_accessible(page: Page, axe: str) -> None:
    status: dict[str, Any] = {"brokers": 3, "readyBrokers": 2}
    status |= {"nodes": [node(number, rack="ab"[number % 2]) for number in range(3)]}
    status["rollout"] = RolloutStatus(total=3, done=1, current=(2,), blocked_by=("orders-0 waits",)).signed().to_dict()
    spec: dict[str, Any] = {"nodePools": [{"name": "nodes", "replicas": 3}]}
    documents = [document("KafkaCluster", "main", status, **spec), document("Topic", "orders", {"partitions": 3})]
    failed = {"analytics": {"state": "Failed", "startTime": "2026-11-30T02:00:00Z", "message": "it has no room"}}
    documents += [document("KafkaCluster", f"other-{number}", failed) for number in range(5)]
    weights = (("What is missing?", "wrong"), ("Who is new?", "look"), ("Who paid?", "told"), ("Who lags?", "no data"))
    answers = [{"question": question, "weight": weight, "rows": 1} for question, weight in weights]
    summary = {"time": "2026-11-30T02:00:07Z", "answers": answers, "chains": "3 chains verified."}
    documents.append(document("KafkaCluster", "queried", {"analytics": {"state": "Succeeded", "summary": summary}}))
    documents.append(document("ClientQuota", "etl", {"applied": {"producer_byte_rate": 2.0**20}, "used": "93%"}))
    pages = console_of_operator(OperatorConsole(Figures(is_active=True, listed_at=1.0, documents=lambda: documents)))
    with served(pages) as found:
        for width in (1400, 390):
            page.size(width)
            page.open(found)
            page.until("document.querySelector('#state')?.innerText === 'live'")
            for view, words in (
                ("", "shop/main Ready 2 of 3"),
                ("main/topics", "orders Ready 3"),
                ("main/quotas", "producer_byte_rate=1Mi"),
                ("main/nodes", "0 Running a broker"),
                ("main/roll", "1 of 3"),
                ("other-4/audit", "it has no room"),
                ("queried/audit", "What is missing? wrong 1"),
                ("queried/audit", "3 chains verified."),
            ):
                visit(page, f"{found}#/{view and 'shop%2F'}{view}")
                plain = json.dumps(re.sub(r"[^0-9A-Za-z_]+", " ", words).strip())
                page.until(f"document.querySelector('main').innerText.replace(/\\W+/g, ' ').includes({plain})")
                assert accessibility_faults(page, axe) == []
                assert page.ask("document.documentElement.scrollWidth") <= width
            tabs = "[...document.querySelectorAll('#tabs a')].map(link => link.innerText)"
            assert page.ask(tabs) == ["Topics", "Quotas", "Nodes", "Roll", "Audit"]
    assert page.faults == []


@pytest.mark.node
def test_the_operators_page_asks_for_a_token_where_others_reach_it(page: Page, axe: str) -> None:
    documents = [document("KafkaCluster", "main", {}), document("Topic", "orders", {"partitions": 3})]
    door = Door(Reviews({"sesame": {("KafkaCluster", ""), ("Topic", "")}}))
    pages = console_of_operator(
        OperatorConsole(Figures(is_active=True, listed_at=1.0, documents=lambda: documents), door=door)
    )
    with served(pages) as found:
        for width in (1400, 390):
            page.size(width, is_dark=width < 600)
            page.open("about:blank")
            page.open(found)
            page.until("document.activeElement?.id === 'token'")
            assert page.text("#sheets") == "", "nothing but the question"
            assert accessibility_faults(page, axe) == []
            assert page.ask("document.documentElement.scrollWidth") <= width
            page.call("Input.insertText", text="forged")
            page.press("Enter")
            page.until("document.querySelector('#login-said')?.innerText.includes('does not know this token')")
            page.call("Input.insertText", text="sesame")
            page.press("Enter")
            page.until("document.querySelector('#state')?.innerText === 'live'")
            page.until("document.querySelector('#sheets')?.innerText.includes('shop/main')")
            follow(page, "#sheets tbody a")
            page.until("document.querySelector('#sheets')?.innerText.includes('orders')")
            assert page.ask("document.querySelector('#token').value") == ""
            assert accessibility_faults(page, axe) == []
    assert [fault for fault in page.faults if "401" not in fault] == []


def test_the_operators_page_follows_what_happens_and_comes_back_after_its_operator(page: Page) -> None:
    documents = [document("KafkaCluster", "main", {})]
    port = free_port()
    figures = Figures(is_active=True, listed_at=1.0, documents=lambda: list(documents))
    with served(console_of_operator(OperatorConsole(figures)), port) as found:
        visit(page, f"{found}#/shop%2Fmain/topics")
        page.until("document.querySelector('#state')?.innerText === 'live'")
        documents.append(document("Topic", "orders", {"partitions": 3}))
        page.until("document.querySelector('#sheets')?.innerText.includes('orders')")
    page.until("document.querySelector('#state')?.innerText.includes('does not answer')")
    assert "orders" in page.text("#sheets"), "what was there stays"
    documents.append(document("Topic", "later", {"partitions": 3}))
    with served(console_of_operator(OperatorConsole(figures)), port):
        page.until("document.querySelector('#state')?.innerText === 'live'")
        page.until("document.querySelector('#sheets')?.innerText.includes('later')")


@pytest.mark.node
def test_the_operators_page_shows_records_to_a_token_that_may_get_them(
    page: Page, axe: str, broker: KafkaInProcess
) -> None:
    documents = [document("KafkaCluster", "main", {})]
    held = {(kind, "shop/main") for kind in SUBRESOURCES.values()}
    reviews = Reviews({"sesame": held, "lag": {("groups", "shop/main")}})
    view = View(bootstrap=str(broker), metrics=dict(enumerate(broker.metrics)))
    sources = list[LaneSource]()

    def source(cluster: ClusterKey) -> LaneSource:
        sources.append(LaneSource(cluster, {("shop", "main"): view}.get))
        return sources[-1]

    places = LivePlaces(
        DataDoor(reviews), {("shop", "main"): view}.get, make_source=source, bounds=LiveBounds(every_seconds=0.2)
    )
    figures = Figures(is_active=True, listed_at=1.0, documents=lambda: documents)
    main = "document.querySelector('main').innerText"
    with served(console_of_operator(OperatorConsole(figures, live=places))) as found:
        for width in (1400, 390):
            page.size(width, is_dark=width < 600)
            visit(page, f"{found}#/shop%2Fmain/topics")
            page.until("document.querySelector('#state')?.innerText === 'live'")
            assert page.ask("document.querySelector('#login').hidden"), "what resources say takes no token here"
            page.ask("location.hash = '#/shop%2Fmain/records'")
            page.until("document.activeElement?.id === 'token'")
            assert accessibility_faults(page, axe) == []
            page.ask("location.hash = '#/shop%2Fmain/roll'")
            page.until("document.querySelector('#state')?.innerText === 'live'")
            assert page.ask("document.querySelector('#login').hidden"), "other places are left as they are"
            page.ask("location.hash = '#/shop%2Fmain/records'")
            page.until("document.activeElement?.id === 'token'")
            page.call("Input.insertText", text="lag")
            page.press("Enter")
            page.until(f"{main}.includes('may not get kafkaclusters/records')")
            assert accessibility_faults(page, axe) == []
            page.ask("location.hash = '#/shop%2Fmain/groups'")
            page.until(f"{main}.includes('billing')")
            page.ask("location.hash = '#/shop%2Fmain/access'")
            page.until(f"{main}.includes('may not get kafkaclusters/users')")
            page.click("#other-token")
            page.until("document.activeElement?.id === 'token'")
            page.call("Input.insertText", text="sesame")
            page.press("Enter")
            page.until(f"{main}.includes('Access rules')")
            page.ask("location.hash = '#/shop%2Fmain/records'")
            follow(page, "a[id='row-topics-orders']")
            page.until("document.querySelectorAll('#records-list li').length === 50")
            page.write("#records-value", "needle")
            page.press("Enter")
            page.until("document.querySelectorAll('#records-list li').length === 1")
            page.click("#records-list summary")
            page.until("document.querySelector('#records-list pre') !== null")
            assert "trace: t-7" in page.text("#records-list")
            assert accessibility_faults(page, axe) == []
            assert page.ask("document.documentElement.scrollWidth") <= width
            page.ask("location.hash = '#/shop%2Fmain/groups/billing'")
            page.until(f"{main}.includes('Committed offsets')")
            follow(page, "section[aria-labelledby='title-offsets'] tbody a")
            page.until("document.title.startsWith('orders')")
            page.until("document.querySelectorAll('#records-list li').length === 50")
            page.ask("location.hash = '#/shop%2Fmain/clients'")
            page.until(f"{main}.includes('web')")
    assert [fault for fault in page.faults if "401" not in fault and "403" not in fault] == []
    until_outside(lambda: not any(source.is_connected for source in sources), 60, "the last look is over")
