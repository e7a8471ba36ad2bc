"""A resource or a cluster that is paused: nothing is changed in Kafka for it, and the status says what waits."""

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_operator.api.kinds import Managed, key_of
from kavka_operator.loop.converge import Outcome, converge
from kavka_operator.loop.observation import Observation
from kavka_operator.reconcile.pause import PAUSE
from tests.unit.operator.fakes import NOW, FakeKafka, quota, topic
from tests.unit.operator.test_converge import after, deleted

PAUSED = {"annotations": {PAUSE: "true"}}


def told(outcome: Outcome, resource: Managed) -> dict[str, tuple[str, str, str]]:
    conditions = outcome.statuses[key_of(resource)].conditions
    return {found.type: (found.status, found.reason, found.message) for found in conditions}


def test_a_paused_resource_says_what_it_would_do_and_does_it_once_it_goes_on() -> None:
    kafka = FakeKafka()
    paused, other = topic("a", metadata=PAUSED), topic("b")
    outcome = converge(Observation([paused, other], NOW), kafka)
    assert list(kafka.topics) == ["b"]
    assert told(outcome, paused)["Ready"] == (
        "False", "Paused", f'paused by {PAUSE}; held back: create topic "a"',
    )  # fmt: skip
    assert told(outcome, paused)["Paused"][:2] == ("True", "AskedFor")
    assert "Paused" not in told(outcome, other)
    assert converge(Observation([topic("a", metadata={"annotations": {PAUSE: "false"}})], NOW), kafka).done != []


def test_drift_of_a_paused_quota_is_told_and_left() -> None:
    kafka = FakeKafka()
    wanted = quota("q", limits={"producerByteRate": 9})
    made = after(wanted, converge(Observation([wanted], NOW), kafka))
    paused = quota("q", limits={"producerByteRate": 9}, metadata=PAUSED).replaced({"status": made.status})
    assert told(converge(Observation([paused], NOW), kafka), paused)["Ready"][0] == "True", "it is as wanted"
    kafka.quotas[Entity(client_id="etl")] = {"producer_byte_rate": 5.0}
    outcome = converge(Observation([paused], NOW), kafka)
    assert kafka.quotas == {Entity(client_id="etl"): {"producer_byte_rate": 5.0}}
    assert "set producer_byte_rate=9" in told(outcome, paused)["Ready"][2]


@pytest.mark.parametrize("by_cluster", [False, True])
def test_a_deletion_waits_for_the_end_of_the_pause(*, by_cluster: bool) -> None:
    kafka = FakeKafka()
    wanted = topic("a", deletionPolicy="Delete")
    made = after(wanted, converge(Observation([wanted], NOW), kafka))
    going = topic("a", deletionPolicy="Delete", metadata={} if by_cluster else PAUSED)
    going = deleted(going.replaced({"status": made.status}))
    outcome = converge(Observation([going], NOW, paused=by_cluster), kafka)
    assert (outcome.released, outcome.done, list(kafka.topics)) == ([], [], ["a"])
    assert 'held back: delete topic "a"' in told(outcome, going)["Ready"][2]
    assert list(kafka.topics) == ["a"]
    assert converge(Observation([deleted(made)], NOW), kafka).released == [key_of(made)]
    assert list(kafka.topics) == []
