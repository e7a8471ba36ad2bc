"""Replicas are moved throttled, as the status says, and nothing of the throttle is left, whenever the operator dies."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_operator.api.kinds import key_of
from kavka_operator.api.topic import Topic
from kavka_operator.domain.observed import SeenBroker
from kavka_operator.domain.plan import KafkaAction, LimitBrokers, LimitReplicas, MoveReplicas
from kavka_operator.loop.converge import converge, plan_once
from kavka_operator.loop.observation import Observation
from kavka_operator.reconcile.reassignments import LISTS, RATES
from kavka_operator.reconcile.replica_placement import spread
from tests.unit.operator.fakes import NOW, FakeKafka, topic

LEADERS, FOLLOWERS = LISTS
MEBIBYTES = 20 * 2**20
AT_20MI = dict.fromkeys(RATES, str(MEBIBYTES))


class Mortal(FakeKafka):
    """A cluster whose operator dies right after its Nth write."""

    last = 0

    def perform(self, action: KafkaAction) -> None:
        super().perform(action)
        if len(self.writes) == self.last:
            raise KeyboardInterrupt


def three(kafka: FakeKafka | None = None, *racks: str) -> FakeKafka:
    """Three brokers, or as many as there are racks."""
    kafka = kafka or FakeKafka()
    names = racks or ("a", "b", "c")
    kafka.brokers = {number: SeenBroker(number, "a:1", rack) for number, rack in enumerate(names)}
    return kafka


def looked(kafka: FakeKafka, *topics: Topic) -> list[Topic]:
    """The topics with their statuses after a look."""
    statuses = converge(Observation(topics, NOW), kafka).statuses
    return [found.replaced({"status": statuses[key_of(found)]}) for found in topics]


def said(found: Topic) -> tuple[str, str]:
    condition = found.status.condition("Ready")
    assert condition is not None
    return condition.reason, condition.message


def two_replicas(kafka: FakeKafka, name: str = "orders", **spec: Any) -> Topic:
    """A topic with one replica that is to have two; its id is known."""
    there = kafka.make(name, 3, 1)
    return topic(name, replicationFactor=2, status={"topicId": there.topic_id}, **spec)


def test_a_move_stands_in_the_status_before_anything_is_done() -> None:
    kafka = three()
    (orders,) = looked(kafka, two_replicas(kafka))
    assert kafka.writes == []
    assert said(orders)[0] == "Changing"
    move = orders.status.move
    assert move is not None
    assert (move.since, move.partitions, move.throttled_brokers, move.throttle) == (NOW, 3, (0, 1, 2), MEBIBYTES)


def test_lists_and_rates_come_first_and_go_last_and_the_status_tells_how_far_it_is() -> None:
    kafka = three()
    kafka.is_slow = True
    (orders,) = looked(kafka, *looked(kafka, two_replicas(kafka)))
    assert [type(action) for action in kafka.writes] == [LimitBrokers, LimitReplicas, MoveReplicas]
    assert kafka.rate_of == dict.fromkeys(range(3), AT_20MI)
    assert kafka.topics["orders"].overrides == {LEADERS: "0:0,1:1,2:2", FOLLOWERS: "0:1,1:2,2:0"}
    assert orders.status.move is not None
    assert (orders.status.move.partitions_done, orders.status.move.replicas_left) == (0, 3)
    assert orders.status.unmanaged_config == (), "the lists are ours"
    kafka.arrive("orders", 0, 1)
    (orders,) = looked(kafka, orders)
    assert said(orders) == (
        "Moving",
        (
            "2 of 3 partitions moved since 2026-11-21T12:00:00Z; 1 replica of orders-2 still to be copied, at 20Mi"
            " a second and broker"
        ),
    )
    kafka.arrive("orders", 2)
    (orders,) = looked(kafka, orders)
    assert (orders.status.move, said(orders)) == (None, ("Ready", "3 partitions with 2 replicas"))
    assert (kafka.rate_of, kafka.topics["orders"].overrides) == ({key: {} for key in range(3)}, {})
    count = len(kafka.writes)
    assert looked(kafka, orders) == [orders]
    assert len(kafka.writes) == count, "at rest nothing is written"


def test_the_operator_may_die_after_each_of_the_steps() -> None:
    whole = three()
    looked(whole, *looked(whole, two_replicas(whole)))
    assert len(whole.writes) == 5
    for last in range(1, 6):
        kafka = Mortal()
        three(kafka)
        (orders,) = looked(kafka, two_replicas(kafka))
        kafka.last = last
        with pytest.raises(KeyboardInterrupt):
            looked(kafka, orders)
        (orders,) = looked(kafka, orders)  # by the status that was written last
        assert said(orders) == ("Ready", "3 partitions with 2 replicas")
        assert (kafka.rate_of, kafka.topics["orders"].overrides) == ({key: {} for key in range(3)}, {}), last
        assert orders.status.move is None


def test_a_broker_keeps_its_rate_while_another_topic_is_moved_there_at_the_least_rate() -> None:
    kafka = three()
    kafka.is_slow = True
    found = looked(kafka, two_replicas(kafka), two_replicas(kafka, "clicks", placement={"throttle": "1Mi"}))
    orders, clicks = looked(kafka, *found)
    assert kafka.rate_of == dict.fromkeys(range(3), dict.fromkeys(RATES, str(2**20)))
    kafka.arrive("clicks", 0, 1, 2)
    orders, clicks = looked(kafka, orders, clicks)
    assert (clicks.status.move, kafka.topics["clicks"].overrides) == (None, {})
    assert kafka.rate_of == dict.fromkeys(range(3), AT_20MI), "what the other asks for"
    kafka.arrive("orders", 0, 1, 2)
    looked(kafka, orders, clicks)
    assert kafka.rate_of == {key: {} for key in range(3)}


def test_moves_that_end_together_leave_nothing() -> None:
    kafka = three()
    looked(kafka, *looked(kafka, two_replicas(kafka), two_replicas(kafka, "clicks")))
    assert kafka.rate_of == {key: {} for key in range(3)}


def test_the_rate_that_a_person_has_set_counts_and_stays() -> None:
    kafka = three()
    theirs = dict.fromkeys(RATES, "5")
    kafka.rate_of[1] = theirs
    found = looked(kafka, two_replicas(kafka))
    assert found[0].status.move is not None
    assert found[0].status.move.throttled_brokers == (0, 2)
    looked(kafka, *found)
    assert kafka.rate_of == {0: {}, 1: theirs, 2: {}}


def test_lists_that_the_resource_names_itself_are_left_alone() -> None:
    kafka = three()
    orders = two_replicas(kafka, config={LEADERS: "*", FOLLOWERS: "*"})
    looked(kafka, *looked(kafka, orders))
    assert kafka.topics["orders"].overrides == {LEADERS: "*", FOLLOWERS: "*"}


def test_a_resource_that_is_deleted_in_the_middle_leaves_no_throttle() -> None:
    kafka = three()
    kafka.is_slow = True
    (orders,) = looked(kafka, *looked(kafka, two_replicas(kafka)))
    gone = orders.replaced({"metadata": orders.metadata.replaced({"deletion_timestamp": NOW})})
    outcome = converge(Observation([gone], NOW), kafka)
    assert outcome.released == [key_of(gone)]
    assert (kafka.rate_of, kafka.topics["orders"].overrides) == ({key: {} for key in range(3)}, {})
    assert kafka.topics["orders"].moving, "Kafka goes on with what it has begun"


def test_a_broker_that_is_away_keeps_its_rate_until_it_is_back_and_the_topic_is_ready_meanwhile() -> None:
    kafka = three()
    kafka.is_slow = True
    (orders,) = looked(kafka, *looked(kafka, two_replicas(kafka)))
    away = kafka.brokers.pop(2)
    kafka.arrive("orders", 0, 1, 2)
    (orders,) = looked(kafka, orders)
    assert kafka.rate_of == {0: {}, 1: {}, 2: AT_20MI}
    assert said(orders)[0] == "Ready"
    assert orders.status.move is not None
    kafka.brokers[2] = away
    (orders,) = looked(kafka, orders)
    assert (kafka.rate_of[2], orders.status.move) == ({}, None)


def test_a_plan_names_the_move_and_does_nothing() -> None:
    kafka = three()
    orders = two_replicas(kafka)
    _, plans = plan_once(Observation([orders], NOW), kafka)
    assert [str(action) for action in plans[key_of(orders)].actions] == [
        "throttle the replicas that are moved to 20Mi a second on brokers 0, 1, 2",
        'list the replicas of topic "orders" that are moved as throttled',
        'give each partition of topic "orders" 2 replicas',
    ]
    assert kafka.writes == []


def test_replicas_below_min_isr_are_refused() -> None:
    kafka = three()
    kafka.make("orders", 1, 3, {"min.insync.replicas": "2"})
    (orders,) = looked(kafka, topic(replicationFactor=1))
    assert said(orders) == (
        "Refused",
        (
            "3 -> 1 replica leaves fewer than min.insync.replicas=2, and writes with acks=all would be refused;"
            " set spec.config.min.insync.replicas to 1 or less first"
        ),
    )
    assert not kafka.writes


def test_racks_and_brokers_that_change_move_replicas_only_where_that_is_asked_for() -> None:
    kafka = three(None, "a", "a", "b", "b")
    kafka.topics["orders"] = replace(kafka.make("orders", 2, 2), assignment={0: (0, 1), 1: (2, 3)})
    assert looked(kafka, topic())[0].status.move is None, "adopted as it is"
    (orders,) = looked(kafka, topic(placement={"racks": "Spread"}))
    assert said(orders)[1] == 'spread the replicas of 2 partitions of topic "orders"'
    (orders,) = looked(kafka, orders)
    racks = {index: {number // 2 for number in ids} for index, ids in kafka.topics["orders"].assignment.items()}
    assert racks == {0: {0, 1}, 1: {0, 1}}
    assert said(orders)[0] == "Ready"


def test_a_broker_that_is_added_gets_its_part_and_one_that_is_away_moves_nothing() -> None:
    kafka = three(None, "a", "b")
    kafka.make("orders", 6, 2)
    orders = topic(placement={"racks": "Spread", "brokers": "Balance"})
    three(kafka, "a", "b", "c")
    found = looked(kafka, *looked(kafka, orders))
    placed = kafka.topics["orders"].assignment
    assert Counter(broker for ids in placed.values() for broker in ids) == {0: 4, 1: 4, 2: 4}
    assert Counter(ids[0] for ids in placed.values()) == {0: 2, 1: 2, 2: 2}
    del kafka.brokers[1]
    count = len(kafka.writes)
    assert looked(kafka, *found)[0].status.move is None
    assert len(kafka.writes) == count


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[int, tuple[int, ...]], int, dict[int, str | None]]:
    """An assignment of replicas, a number of them that is wanted, and brokers with racks."""
    racks = dict(enumerate(draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=7))))
    there = st.lists(st.sampled_from(sorted(racks)), min_size=1, max_size=4, unique=True).map(tuple)
    assignment = dict(enumerate(draw(st.lists(there, min_size=1, max_size=8))))
    return assignment, draw(st.integers(1, len(racks))), racks


@given(clusters(), st.booleans(), st.booleans())
def test_where_replicas_are_spread_nothing_is_left_to_spread(
    drawn: tuple[dict[int, tuple[int, ...]], int, dict[int, str | None]], over_racks: bool, over_brokers: bool
) -> None:
    assignment, factor, racks = drawn
    after = assignment | spread(assignment, factor, racks, over_racks=over_racks, over_brokers=over_brokers)
    assert all(len(set(ids)) == factor for ids in after.values())
    most = min(factor, len(set(racks.values())))
    if over_racks:
        assert all(len({racks[broker] for broker in ids}) == most for ids in after.values())
    if over_brokers and len(set(racks.values())) == 1:
        load = Counter(dict.fromkeys(racks, 0))
        load.update(broker for ids in after.values() for broker in ids)
        assert max(load.values()) - min(load.values()) <= 1
    assert spread(after, factor, racks, over_racks=over_racks, over_brokers=over_brokers) == {}
