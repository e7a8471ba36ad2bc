"""A client's counts reach the topic, each with its own number, also where the topic does not take them at first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kavka_audit.completeness import clients
from kavka_audit.completeness.clients import CountedConsumer, CountedProducer, Teller
from kavka_audit.completeness.reports import TOPIC, Report, decode

BUCKET_MS = 1_789_999_800_000


@dataclass
class Message:
    """A message of confluent-kafka."""

    at: int | None
    of: str = "orders"
    problem: object = None

    def topic(self) -> str:
        return self.of

    def partition(self) -> int:
        return 3

    def offset(self) -> int | None:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, BUCKET_MS + 7

    def error(self) -> object:
        return self.problem


@dataclass
class Client:
    """A producer and a consumer of confluent-kafka, as far as they are used."""

    delivered: list[bytes] = field(default_factory=list)
    problem: object = None
    is_full: bool = False
    offset: int = 0
    given: list[Message | None] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def produce(self, topic: str, value: Any = None, **others: Callable[[object, Message], None]) -> None:
        if self.is_full:
            raise BufferError
        if self.problem is None and topic == TOPIC:
            self.delivered.append(value)
        others["on_delivery"](self.problem, Message(self.offset, topic))
        self.offset += 1

    def poll(self, _: float) -> Message | None:
        return self.given.pop(0) if self.given else None

    def consume(self, count: int, _: float) -> list[Message | None]:
        found, self.given = self.given[:count], self.given[count:]
        return found

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: self.calls.append(name)


@pytest.fixture
def topic() -> Client:
    return Client()


@pytest.fixture
def teller(topic: Client) -> Iterator[Teller]:
    found = Teller(topic, "producer", "shop", interval_seconds=3_600)
    yield found
    found.close()


def told(topic: Client) -> list[Report]:
    return [decode(value) for value in topic.delivered]


def runs(topic: Client) -> list[tuple[int, int]]:
    return [run for report in told(topic) for counted in report.counts for run in counted.runs]


def test_what_is_acknowledged_is_told_once(topic: Client, teller: Teller) -> None:
    producer, answers = CountedProducer(client := Client(), teller), list[object]()
    for _ in range(3):
        producer.produce("orders", b"v", on_delivery=lambda error, _: answers.append(error))
    client.problem = "refused"
    producer.produce("orders", b"v", callback=lambda error, _: answers.append(error))
    teller.tell()
    teller.tell()
    assert answers == [None, None, None, "refused"]
    (report,) = told(topic)
    assert (report.tier, report.name, report.sequence) == ("producer", "shop", 0)
    assert report.counts == (((("orders", 3, BUCKET_MS)), [(0, 2)], 0),)


def test_a_transaction_counts_once_it_is_committed(topic: Client, teller: Teller) -> None:
    producer = CountedProducer(client := Client(), teller)
    for is_committed in (False, True):
        producer.begin_transaction()
        producer.produce("orders", b"v")
        teller.tell()
        assert topic.delivered == []
        (producer.commit_transaction if is_committed else producer.abort_transaction)()
    teller.tell()
    assert runs(topic) == [(1, 1)]
    assert client.calls == ["begin_transaction", "abort_transaction", "begin_transaction", "commit_transaction"]


def test_a_consumer_tells_before_it_commits(topic: Client, teller: Teller) -> None:
    given: list[Message | None] = [Message(4), None, Message(9, problem="end"), Message(5), Message(5)]
    consumer = CountedConsumer(client := Client(given=given), teller)
    for _ in range(3):
        consumer.poll(1)
    consumer.consume(2, 1)
    consumer.commit()
    assert runs(topic) == [(4, 5), (5, 5)]
    consumer.close()
    assert client.calls == ["commit", "close"]


def test_the_counts_are_not_counted(topic: Client, teller: Teller) -> None:
    teller.count(Message(1, TOPIC))
    teller.count(Message(None))
    teller.tell()
    ((counted,),) = (report.counts for report in told(topic))
    assert (counted.runs, counted.unplaced) == ([], 1)


@pytest.mark.parametrize("fault", ["problem", "is_full"])
def test_a_report_that_is_not_taken_is_told_again_with_its_number(topic: Client, teller: Teller, fault: str) -> None:
    setattr(topic, fault, True)
    for offset in (1, 5):
        teller.count(Message(offset))
        teller.tell()
    assert topic.delivered == []
    setattr(topic, fault, None)
    teller.tell()
    assert [report.sequence for report in told(topic)] == [0, 1]
    assert runs(topic) == [(1, 1), (5, 5)]


def test_reports_that_wait_are_bounded(topic: Client, teller: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "UNDELIVERED_MAX", 2)
    topic.is_full = True
    for offset in range(0, 10, 2):
        teller.count(Message(offset))
        teller.tell()
    assert teller.dropped == 3
    topic.is_full = False
    teller.tell()
    assert [report.sequence for report in told(topic)] == [0, 1]


def test_many_runs_are_told_at_once(topic: Client, teller: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "RUNS_MAX", 4)
    for offset in range(0, 8, 2):
        teller.count(Message(offset))
    assert len(runs(topic)) == 4
