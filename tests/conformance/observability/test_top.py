"""What `kavka top` and `kavka explain quota` see of Kavka and Apache Kafka side by side: the same, but for what only
a metrics page tells, which of Apache Kafka is "not told".
"""

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_operator.domain.plan import AlterQuota, AlterTopic
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.live_views.model import History
from kavka_operator.live_views.sources import ClusterSource
from kavka_operator.live_views.tables import VIEWS
from kavka_top.app import Top
from tests.support.both import Both, running_both
from tests.support.screens import seen
from tests.support.servers import Server, free_port
from tests.unit.operator.person import run

pytestmark = [pytest.mark.java]

ETL, ANY_USER = Entity(None, "etl"), Entity(DEFAULT, None)
#: What may differ between two moments, two products, or two places on the disk.
OWN = {"RATE", "TREND", "RECORDS/S", "IN", "OUT", "SIZE", "COMMITS/S", "LAG GROWS/S", "ADDRESS", "CONNECTIONS", "DISK"}
ONLY_ON_PAGES = {"MOST", "USED", "HELD", "HELD NOW", "CLIENTS"}


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """Wait for a page of metrics, however busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kavka_operator.kafka.broker_metrics.TIMEOUT_SECONDS", 60.0)
        yield


@pytest.fixture(scope="module")
def pages() -> str:
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, pages: str) -> Iterator[Both]:
    directory: Path = tmp_path_factory.mktemp("top")
    with running_both(directory, {"kavka.admin.listener": pages}) as pair:
        for server in pair:
            used(server)
        yield pair


def used(server: Server) -> None:
    """Quotas, records, and a group that has read half of them."""
    admin = KafkaClient(server.bootstrap)
    admin.perform(AlterQuota(ETL, {"producer_byte_rate": 40_000.0, "consumer_byte_rate": 2.0**20}))
    admin.perform(AlterQuota(ANY_USER, {"consumer_byte_rate": 2.0**30}))
    admin.close()
    produced(server, 100)
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    read = consumer.consume(50, 60)
    assert len(read) == 50
    consumer.commit(message=read[-1], asynchronous=False)
    consumer.close()


def produced(server: Server, count: int, topic: str = "orders") -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": "etl", "linger.ms": 100})
    for _ in range(count):
        producer.produce(topic, b"x" * 1000)
    assert producer.flush(60) == 0


def looked(server: Server, urls: tuple[str, ...] = ()) -> History:
    """Two looks, with records between them."""
    source = ClusterSource("here", server.bootstrap, urls)
    first = source.take()
    produced(server, 10)
    history = History((first, source.take()))
    source.close()
    assert history.now.untold == ()
    return history


@pytest.fixture(scope="module")
def histories(both: Both, pages: str) -> tuple[History, History]:
    """Of Kavka and of Apache Kafka, at the same moments."""
    return looked(both.kavka, (f"http://{pages}/metrics",)), looked(both.kafka)


def shown(history: History, view: str, *, without: set[str]) -> dict[str, dict[str, str]]:
    sheet = VIEWS[view](history)
    titles = [column.title for column in sheet.columns]
    return {
        row.key: {title: cell.text for title, cell in zip(titles, row.cells, strict=True) if title not in without}
        for row in sheet.rows
    }


def different(ours: dict[str, dict[str, str]], theirs: dict[str, dict[str, str]]) -> dict[tuple[str, str], object]:
    """The cells that differ, by row and title; of a row that one of them lacks, the row."""
    cells: dict[tuple[str, str], object] = {(key, ""): "only one has it" for key in ours.keys() ^ theirs.keys()}
    for key in ours.keys() & theirs.keys():
        both = ours[key], theirs[key]
        cells |= {
            (key, title): tuple(row.get(title) for row in both)
            for title in both[0].keys() | both[1].keys()
            if both[0].get(title) != both[1].get(title)
        }
    return cells


def test_both_are_seen_alike_and_only_metrics_pages_tell_usage(histories: tuple[History, History]) -> None:
    kavka, kafka = histories
    for view in ("topics", "groups", "quotas", "nodes"):
        ours, theirs = (shown(history, view, without=OWN | ONLY_ON_PAGES) for history in (kavka, kafka))
        ours.pop("__consumer_offsets", None)
        theirs.pop("__consumer_offsets", None)  # Kafka's has as many records as its own group protocol writes
        assert different(ours, theirs) == {}, view
    assert shown(kafka, "topics", without=set())["orders"]["RECORDS"] == "110"
    assert shown(kafka, "topics", without=set())["orders"]["RECORDS/S"] not in {"0", "not told", "…"}
    assert shown(kafka, "groups", without=set())["readers"]["LAG"] == "60"
    quota = "client-id=etl\0consumer_byte_rate"
    assert shown(kafka, "quotas", without=set())[quota]["HIDDEN BY"] == "user=<default>"
    for view, title in (("quotas", "USED"), ("quotas", "HELD"), ("topics", "IN"), ("nodes", "CONNECTIONS")):
        told = {row[title] for row in shown(kafka, view, without=set()).values()}
        assert told == {"not told"}, (view, title)


def test_a_throttled_client_of_kavka_is_seen_with_its_limit_and_held(histories: tuple[History, History]) -> None:
    rows = shown(histories[0], "clients", without=set())
    etl = rows["\0etl\0produce"]
    assert (etl["LIMIT"], etl["LEVEL"], etl["BROKERS"]) == ("39.1 KiB/s", "7", "1")
    assert etl["RATE"] not in {"0 B/s", "not told"}
    assert etl["USED"] != "not told"
    assert etl["HELD"] not in {"not told", "…"}


def test_the_screen_shows_a_real_broker(both: Both, pages: str) -> None:
    async def play() -> list[str]:
        source = ClusterSource("here", both.kavka.bootstrap, (f"http://{pages}/metrics",))
        app = Top("here", source, every_seconds=None)
        async with app.run_test(size=(100, 20)) as pilot:
            await app.look()
            await app.look()
            await pilot.press("4")
            await pilot.pause()
            lines = seen(app)
        source.close()
        return lines

    lines = asyncio.run(play())
    assert any(line.startswith(" client-id=etl") and "39.1 KiB/s" in line for line in lines), lines
    assert not any("not told" in line for line in lines if "produce" in line), lines


def test_the_tables_are_printed_once_as_json(both: Both, pages: str) -> None:
    words = ("top", "--once", "--every", "0.5", "-o", "json")
    code, ours = run(*words, "--bootstrap", both.kavka.bootstrap, "--metrics", pages)
    assert code == 0, ours
    found = json.loads(ours)
    (etl,) = (row for row in found["clients"] if row["clientId"] == "etl" and row["does"] == "produce")
    assert etl["limit"] == 40_000
    (orders,) = (row for row in found["topics"] if row["topic"] == "orders")
    assert orders["in"] is not None
    assert orders["records"] >= 100
    code, theirs = run(*words, "--view", "topics", "--bootstrap", both.kafka.bootstrap)
    (orders,) = (row for row in json.loads(theirs)["topics"] if row["topic"] == "orders")
    assert (code, orders["in"]) == (0, None), "Kafka's API does not tell it"


def test_a_group_begins_where_it_is_told_and_is_deleted(both: Both) -> None:
    """On Kavka and Apache Kafka alike, by the clock of each."""
    topic = f"resets-{free_port()}"  # one name for both, as other tests compare what topics both have
    answers = [reset_in_turns(server, topic) for server in both]
    assert answers[0] == answers[1]


def reset_in_turns(server: Server, topic: str) -> list[object]:
    """The offsets of a group after each reset, and the words where one is refused."""
    at = time.time()
    produced(server, 20, topic)
    words = ("groups", "--bootstrap", server.bootstrap, "-g", "resets")
    found: list[object] = []
    for where in ("start", "now", "7", "999", "-1h", f"{datetime.fromtimestamp(at - 60, UTC).isoformat()}"):
        code, said = run(*words, "--reset-to", where, "-t", topic, "-o", "json")
        assert code == 0, said
        (move,) = json.loads(said)["partitions"]
        found.append((where if where[0].isalnum() and len(where) < 9 else "", move["newOffset"], move["lag"]))
    found.append(run(*words, "--reset-to", "start", "--dry-run")[0])
    (group,) = json.loads(run(*words, "-o", "json")[1])["groups"]
    found.append([partition["committedOffset"] for partition in group["partitions"]])
    reader = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "resets", "auto.offset.reset": "error"})
    reader.subscribe([topic])
    (record,) = reader.consume(1, 60)
    found.append(record.offset())
    code, said = run(*words, "--reset-to", "start")
    found.append((code, "stop them first, as they would commit over it" in said))
    code, said = run(*words, "--delete")
    found.append((code, "stop them first" in said))
    reader.close()
    found.append(run(*words, "--delete", "--dry-run"))
    found.append(run(*words, "--delete"))
    found.append(run(*words)[0])
    return found


def test_the_quotas_of_kavka_and_kafka_are_explained_alike(both: Both, pages: str) -> None:
    ours, theirs = (run("explain", "quota", "--bootstrap", server.bootstrap, "--client-id", "etl") for server in both)
    assert ours[0] == theirs[0] == 0
    assert ours[1].replace(both.kavka.bootstrap, both.kafka.bootstrap) == theirs[1]
    assert "consumer_byte_rate 1Gi: level 6, default user, hides client-id=etl" in theirs[1]
    assert "producer_byte_rate 40k: level 7, client id" in theirs[1]
    assert "Kafka's API does not tell usage" in theirs[1]
    told = run("explain", "quota", "--bootstrap", both.kavka.bootstrap, "--metrics", pages, "--client-id", "etl")[1]
    (line,) = (line for line in told.splitlines() if line.startswith("  1 ") and " 40k " in line)
    assert "KiB/s" in line or "B/s" in line, told


def test_a_limit_of_a_topic_is_told_where_there_is_one_and_apache_kafka_has_none(both: Both, pages: str) -> None:
    for server in both:
        produced(server, 10, "limited")
    admin = KafkaClient(both.kavka.bootstrap)
    admin.perform(AlterTopic("limited", {"kavka.topic.producer.byte.rate": "2097152"}))
    ours, theirs = (run("explain", "quota", "--bootstrap", server.bootstrap, "--topic", "limited") for server in both)
    assert ours[0] == theirs[0] == 0
    assert "kavka.topic.producer.byte.rate 2Mi: produce" in ours[1]
    assert "nothing limits this topic" in theirs[1]
    for server in both:  # the other tests compare what both hold
        produced(server, 10, "limited")
    told = run("explain", "quota", "--bootstrap", both.kavka.bootstrap, "--metrics", pages, "--topic", "limited")[1]
    (line,) = (line for line in told.splitlines() if line.startswith("  1 "))
    assert "B/s" in line, told
    source = ClusterSource("here", both.kavka.bootstrap, (f"http://{pages}/metrics",))
    sheet = VIEWS["quotas"](History((source.take(),)))
    source.close()
    assert 'topic "limited"' in [row.cells[0].text for row in sheet.rows]
    admin.perform(AlterTopic("limited", {}, ("kavka.topic.producer.byte.rate",)))
    admin.close()
    code, words = run("explain", "quota", "--bootstrap", both.kafka.bootstrap, "--topic", "none.such")[:2]
    assert (code, "none.such" in words) == (1, True), words
