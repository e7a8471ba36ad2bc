from collections.abc import Callable

import pytest

from kavka_broker.runtime.health import STARTING, Contact, Health

SESSION_MS = 9000


def test_a_broker_is_ready_when_nothing_stands_in_its_way() -> None:
    health = Health(STARTING)
    ready_at_first = health.is_ready

    health.blocked("logs", "3 of 10 logs loaded")
    assert health.obstacles["logs"] == "3 of 10 logs loaded"
    for name in STARTING:
        health.cleared(name)

    assert (ready_at_first, health.is_ready) == (False, True)
    assert health.obstacles == {}


def test_an_obstacle_may_come_back() -> None:
    health = Health()

    health.blocked("stopping", "SIGTERM")

    assert not health.is_ready


def test_the_names_at_start_are_not_shared_between_brokers() -> None:
    Health(STARTING).cleared("logs")

    assert "logs" in Health(STARTING).obstacles


class Clock:
    def __init__(self) -> None:
        self.time_ms = 0.0

    def now_ms(self) -> int:
        return int(self.time_ms)

    def monotonic_ms(self) -> float:
        return self.time_ms


class Quorum:
    def __init__(self) -> None:
        self.leader_listeners: list[Callable[[], None]] = []
        self.role, self.leader_id = "Follower", 1

    def become(self, role: str, leader_id: int) -> None:
        self.role, self.leader_id = role, leader_id
        for tell in self.leader_listeners:
            tell()


class Member:
    is_unfenced = True
    silent_ms = 0.0


@pytest.mark.parametrize(("role", "leader_id"), [("Prospective", 1), ("Candidate", -1), ("Observer", -1)])
def test_a_node_without_its_quorum_is_not_ready_after_a_session(role: str, leader_id: int) -> None:
    clock, quorum, health = Clock(), Quorum(), Health()
    health.watch("leader", Contact(quorum, clock, SESSION_MS).no_leader)
    assert health.is_ready

    clock.time_ms = 50_000
    quorum.become(role, leader_id)
    clock.time_ms += SESSION_MS
    ready_during_an_election = health.is_ready
    clock.time_ms += 1000

    assert ready_during_an_election
    assert health.obstacles == {"leader": "no leader of the controller quorum is known for 10 s"}
    quorum.become("Follower", 2)
    assert health.is_ready


def test_a_broker_whose_heartbeats_nobody_answers_is_not_ready_after_a_session() -> None:
    member, health = Member(), Health()
    contact = Contact(Quorum(), Clock(), SESSION_MS)
    health.watch("heartbeats", lambda: contact.no_answer(member))
    assert health.is_ready

    member.silent_ms = SESSION_MS + 1

    assert health.obstacles == {"heartbeats": "no controller has answered a heartbeat for 9 s"}
