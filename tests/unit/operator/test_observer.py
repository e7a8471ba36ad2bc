"""Looking at a running cluster: what answers become, what goes on beside the main loop, what a table shows of nodes."""

import threading
from asyncio import run, to_thread
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace as Bag
from typing import Any
from uuid import UUID

import pytest

from kavka_operator.api.printer_columns import node_table
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.observed import SeenObserver, SeenPartition
from kavka_operator.domain.plan import AlterBrokers, CreateTopic, ElectLeaders
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.kafka.eligible_leaders import with_eligible
from kavka_operator.kafka.roll_survey import doubt_about, partitions_of, quorum_of, teller_of
from kavka_operator.loop.observer import Looker, Question
from kavka_operator.loop.unexpected_errors import UnexpectedErrors
from kavka_operator.platform.local.background import Background
from tests.support.in_process import running
from tests.unit.operator.fakes import NOW, FakeKafka, cluster, topic


def voter(number: int, caught_up: int, fetched: int, *, end: int = 100, directory: int = 0) -> Bag:
    return Bag(
        replica_id=number,
        last_caught_up_timestamp=caught_up,
        last_fetch_timestamp=fetched,
        log_end_offset=end,
        replica_directory_id=UUID(int=directory),
    )


def described(leader: int, voters: list[Bag], observers: Sequence[Bag] = ()) -> Bag:
    return Bag(leader_id=leader, current_voters=voters, observers=list(observers))


def test_a_voter_is_behind_by_the_clock_of_the_leader() -> None:
    quorum = quorum_of(described(1, [voter(1, 90_000, 90_000), voter(2, 89_600, 89_900), voter(0, -1, -1)]))
    assert (quorum.leader, quorum.voters, quorum.behind_ms) == (1, (0, 1, 2), {1: 0, 2: 400, 0: None})
    assert [quorum.is_caught_up(number) for number in (0, 1, 2)] == [False, True, True]
    assert quorum_of(described(-1, [voter(1, 5, 5_000)])).is_caught_up(1) is False
    assert quorum.directories == {}, "voters that stand in every configuration have no directory"


def test_observers_are_told_by_their_directories() -> None:
    voters = [voter(1, 90_000, 90_000, directory=1), voter(2, 89_600, 89_900, directory=2)]
    quorum = quorum_of(described(1, voters, [voter(3, 10_000, 89_000, end=40, directory=3)]))
    assert quorum.directories == {1: "AAAAAAAAAAAAAAAAAAAAAQ", 2: "AAAAAAAAAAAAAAAAAAAAAg"}
    found = quorum.observer(3, "AAAAAAAAAAAAAAAAAAAAAw")
    assert found == SeenObserver(3, "AAAAAAAAAAAAAAAAAAAAAw", 80_000, 60)
    assert not found.is_caught_up
    assert quorum.observer(3, "AAAAAAAAAAAAAAAAAAAAAg") is None


def test_a_broker_that_is_cut_off_is_not_believed() -> None:
    level, cut_off = voter(7, 89_900, 89_950), voter(5, 80_000, 80_100)
    quorum = quorum_of(described(1, [voter(1, 90_000, 90_000)], [cut_off, level]))
    assert teller_of(quorum, [5, 7]) == 7
    assert teller_of(quorum, [5]) is None
    assert teller_of(quorum, [1, 5, 7]) == 1, "a node that is a controller, too"


def test_an_active_controller_without_a_majority_is_not_believed() -> None:
    alone = quorum_of(described(1, [voter(1, 90_000, 90_000), voter(2, 80_000, 80_000), voter(3, 80_000, 80_000)]))
    assert doubt_about(alone) == "only 1 of 3 controllers keep up with the active one"
    assert teller_of(alone, [1]) is None
    assert doubt_about(quorum_of(described(-1, [voter(1, 5, 5)]))) == "there is no active controller"


def test_partitions_come_in_order_and_without_what_cannot_be_described() -> None:
    def part(index: int, leader: int, replicas: list[int]) -> Bag:
        return Bag(partition_index=index, leader_id=leader, replica_nodes=replicas, isr_nodes=replicas[:1])

    metadata = Bag(
        topics=[
            Bag(name="b", error_code=0, partitions=[part(1, -1, [2, 1]), part(0, 1, [1])]),
            Bag(name="a", error_code=0, partitions=[part(0, 1, [1]), part(1, -1, [])]),
            Bag(name="c", error_code=3, partitions=[]),
        ]
    )
    assert partitions_of(metadata, {"b": 2}) == (
        SeenPartition("a", 0, 1, (1,), (1,), 1),
        SeenPartition("b", 0, 1, (1,), (1,), 2),
        SeenPartition("b", 1, None, (2, 1), (2,), 2),
    )


def test_the_controller_is_asked_who_may_lead_where_nobody_is_in_sync() -> None:
    def part(index: int, isr: list[int], elr: list[int] | None, last: list[int]) -> Bag:
        names = ("replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr")
        leader = isr[0] if isr else -1
        return Bag(partition_index=index, leader_id=leader, **dict(zip(names, ([1, 2], isr, elr, last), strict=True)))

    pages = [
        ([part(0, [], [1], [])], Bag(topic_name="b", partition_index=1)),
        ([part(1, [], None, [2]), part(2, [2], [1], [])], None),
    ]
    asked: list[Any] = []

    def send(request: Any) -> Bag:
        asked.append(request)
        partitions, cursor = pages[len(asked) - 1]
        return Bag(topics=[Bag(name="b", error_code=0, partitions=partitions)], next_cursor=cursor)

    empty = [SeenPartition("b", index, None, (1, 2), (), 2) for index in range(3)]
    whole = SeenPartition("a", 0, 1, (1, 2), (1, 2))
    assert with_eligible(send, [whole, *empty]) == (
        whole,
        replace(empty[0], elr=(1,)),
        replace(empty[1], last_known_elr=(2,)),
        replace(empty[2], leader=2, isr=(2,), elr=(1,)),
    )
    assert [[topic.name for topic in request.topics] for request in asked] == [["b"], ["b"]]
    assert (asked[0].cursor, asked[1].cursor.partition_index) == (None, 1)
    assert with_eligible(send, [whole]) == (whole,), "nothing is asked where all have a replica in sync"


def test_a_broker_tells_who_may_lead(tmp_path: Path) -> None:
    unknown = [SeenPartition(name, 1, None, (1,), ()) for name in ("orders", "gone")]

    async def ask() -> tuple[SeenPartition, ...]:
        async with running(tmp_path) as inside:
            await inside.create("orders", 3)
            admin = await to_thread(KafkaClient, f"127.0.0.1:{inside.server.advertised[0].port}")
            try:
                return await to_thread(with_eligible, admin._send, unknown)
            finally:
                await to_thread(admin.close)

    led, gone = run(ask())
    assert (led.leader, led.isr, led.elr, led.last_known_elr) == (1, (1,), (), ())
    assert gone == unknown[1]


def test_work_beside_the_main_loop_is_fetched_once_it_is_done() -> None:
    gate = threading.Event()
    work = Background(lambda: gate.wait(60))
    assert not work.is_done
    gate.set()
    assert work.result()
    assert work.is_done


def test_work_beside_the_main_loop_fails_where_it_is_fetched() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Background(fail).result()


class Connections:
    """Makes a connection to the same Kafka every time, and counts."""

    def __init__(self, kafka: FakeKafka) -> None:
        self.kafka = kafka
        self.made: list[str] = []

    def __call__(self, bootstrap: str, _: Security = OPEN) -> FakeKafka:
        self.made.append(bootstrap)
        return self.kafka


def question(bootstrap: str = "a:1", **parts: Any) -> Question:
    wanted = cluster(config={"log.retention.ms": 5})
    values = {"brokers_expected": 1, "is_forming": False, "nodes": {}, **parts}
    return Question(wanted, [topic("orders", partitions=3)], bootstrap, now=NOW, **values)


def test_a_look_converges_topics_and_settings_and_tells_what_it_did() -> None:
    connections = Connections(FakeKafka())
    looker = Looker(connections, UnexpectedErrors(print))
    first = looker.look(question())
    assert first.done == (CreateTopic("orders", 3, None, {}), AlterBrokers({"log.retention.ms": "5"}))
    assert first.seen is not None
    assert first.seen.config == {"log.retention.ms": "5"}
    second = looker.look(question())
    assert (second.done, second.is_at_rest, second.survey) == ((), True, connections.kafka.survey())
    assert connections.made == ["a:1"]
    looker.look(question("b:1"))
    assert connections.made == ["a:1", "b:1"], "other brokers run: the old ones may be gone"
    assert looker.perform(ElectLeaders((("orders", 0),))) is None


def test_a_look_without_an_answer_closes_the_connection_for_the_next() -> None:
    kafka = FakeKafka()
    connections = Connections(kafka)
    looker = Looker(connections, UnexpectedErrors(print))
    kafka.refuse = AdminError("could not create it: nobody leads", retriable=True)
    assert looker.look(question()).error == "could not create it: nobody leads"
    kafka.refuse = None
    assert looker.look(question()).error is None
    assert connections.made == ["a:1", "a:1"]


def test_a_setting_that_brokers_refuse_is_told_and_the_look_goes_on() -> None:
    kafka = FakeKafka()
    kafka.make("orders", 3)
    kafka.refuse = AdminError("could not set it: out of range", retriable=False)
    answer = Looker(Connections(kafka), UnexpectedErrors(print)).look(question())
    assert (answer.refused, answer.error, answer.done) == ("could not set it: out of range", None, ())
    assert answer.survey is not None


def test_topics_wait_while_the_cluster_forms() -> None:
    kafka = FakeKafka()
    answer = Looker(Connections(kafka), UnexpectedErrors(print)).look(question(brokers_expected=3, is_forming=True))
    assert (kafka.topics, answer.is_at_rest) == ({}, False)


def test_the_node_table_has_a_line_for_each_node() -> None:
    status = {
        "activeController": 1,
        "nodes": [
            {"id": 0, "rack": "a", "roles": ["broker"], "state": "Running", "leaders": 2, "underReplicated": 0},
            {"id": 1, "roles": ["controller"], "state": "Failed", "restarts": 6, "address": "h:1"},
        ],
    }
    assert [line.split() for line in node_table({"status": status}).splitlines()] == [
        ["NODE", "RACK", "STATE", "LEADERS", "UNDER-REPLICATED", "CONTROLLER", "RESTARTS", "ADDRESS"],
        ["0", "a", "Running", "2", "0"],
        ["1", "Failed", "active", "6", "h:1"],
    ]
    assert node_table({}) == ""
