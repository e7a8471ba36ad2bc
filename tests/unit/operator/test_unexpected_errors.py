"""Faults of our own and what other versions have stored: each costs one resource, and is told once."""

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_operator.api.files import load
from kavka_operator.api.kinds import key_of
from kavka_operator.api.resource import MESSAGE_LENGTH_MAX
from kavka_operator.api.stored_resources import Unreadable, UnreadableError, resource_from
from kavka_operator.api.topic import Topic
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.kafka.admin import AdminError
from kavka_operator.loop.converge import converge
from kavka_operator.loop.interfaces import NotWrittenError
from kavka_operator.loop.observation import Observation
from kavka_operator.loop.observer import Looker, Question
from kavka_operator.loop.unexpected_errors import UnexpectedErrors
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.reconcile.status import unreadable_status
from tests.unit.operator.fakes import NOW, FakeKafka, cluster, quota, topic
from tests.unit.operator.test_converge import deleted, ready
from tests.unit.operator.test_local_pieces import FILE

LATER = {"laterField": {"deep": [1]}}


def stored(kind: str = "Topic", **parts: Any) -> dict[str, Any]:
    spec = {"clusterRef": {"name": "main"}, **parts.pop("spec", {})}
    return {"apiVersion": "kavka.dev/v1alpha1", "kind": kind, "metadata": {"name": "orders"}, "spec": spec, **parts}


def test_fields_that_this_version_does_not_know_are_left_out() -> None:
    value = stored(
        spec={"partitions": 3, "guards": LATER, **LATER},
        status={"topicId": "one", **LATER},
        metadata={"name": "o", **LATER},
    )
    found = resource_from(value)
    assert isinstance(found, Topic)
    assert (found.spec.partitions, found.status.topic_id) == (3, "one")


def test_of_a_status_only_what_cannot_be_understood_is_left_out() -> None:
    value = stored(status={"topicId": "one", "partitions": "many", "conditions": [{"type": 5}]})
    found = resource_from(value)
    assert isinstance(found, Topic)
    assert (found.status.topic_id, found.status.partitions, found.status.conditions) == ("one", None, ())
    assert resource_from(stored(status="none")).status == Topic.decode(stored()).status


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (stored(spec={"partitions": 0}, status={"partitions": "x"}), "spec.partitions: 0 is out of range; write"),
        (stored("Later"), "kind: 'Later' is not a kind of this version"),
    ],
)
def test_a_spec_that_cannot_be_understood_is_said(value: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        resource_from(value)
    assert str(raised.value).startswith(words)
    assert "status" not in str(raised.value)


class Faulty(FakeKafka):
    """A Kafka whose answers about one topic our own code cannot take."""

    fault: Exception | None = ZeroDivisionError("by nothing")

    def perform(self, action: Any) -> None:
        if self.fault is not None and "bad" in str(action):
            raise self.fault
        super().perform(action)


def test_a_fault_costs_one_resource_is_told_once_and_tried_again_later() -> None:
    told: list[str] = []
    kafka, unexpected_errors = Faulty(), UnexpectedErrors(told.append)
    bad, good = topic("bad"), topic("good")
    outcome = converge(Observation([bad, good], NOW), kafka, unexpected_errors=unexpected_errors)
    assert ready(outcome.statuses[key_of(good)]) == ("True", "Ready")
    assert ready(outcome.statuses[key_of(bad)]) == ("False", "ReconcileError")
    assert len(told) == 1
    assert told[0].startswith('Topic "bad": ZeroDivisionError: by nothing\nTraceback')
    converge(Observation([bad, good], NOW + timedelta(seconds=5)), kafka, unexpected_errors=unexpected_errors)
    assert len(told) == 1, "the same fault is not told again"
    kafka.fault = None
    outcome = converge(Observation([bad], NOW + timedelta(seconds=5.5)), kafka, unexpected_errors=unexpected_errors)
    assert ready(outcome.statuses[key_of(bad)]) == ("False", "ReconcileError"), "two faults: a pause of two seconds"
    outcome = converge(Observation([bad], NOW + timedelta(seconds=7)), kafka, unexpected_errors=unexpected_errors)
    assert ready(outcome.statuses[key_of(bad)]) == ("True", "Ready")


def test_a_change_is_tried_at_once() -> None:
    kafka, unexpected_errors = Faulty(), UnexpectedErrors(print)
    converge(Observation([topic("bad")], NOW), kafka, unexpected_errors=unexpected_errors)
    kafka.fault = None
    changed = topic("bad", metadata={"generation": 2})
    assert ready(
        converge(Observation([changed], NOW), kafka, unexpected_errors=unexpected_errors).statuses[key_of(changed)]
    ) == (
        "True",
        "Ready",
    )


def test_a_deletion_that_fails_is_not_let_go() -> None:
    kafka = Faulty()
    gone = deleted(topic("bad", deletionPolicy="Delete", status={"topicId": kafka.make("bad").topic_id}))
    outcome = converge(Observation([gone, topic("good")], NOW), kafka)
    assert (outcome.released, "bad" in kafka.topics) == ([], True)
    assert ready(outcome.statuses[key_of(gone)]) == ("False", "ReconcileError")


@pytest.mark.parametrize("error", [AdminError("could not count", retriable=True), ValueError("what is that")])
def test_records_that_cannot_be_counted_hold_up_one_topic(error: Exception) -> None:
    class Uncounted(FakeKafka):
        def records(self, topic: str) -> int:
            raise error

    kafka = Uncounted()
    made = {name: kafka.make(name).topic_id for name in ("gone", "cut")}
    gone = deleted(topic("gone", deletionPolicy="DeleteIfEmpty", status={"topicId": made["gone"]}))
    cut = topic("cut", config={"retention.ms": 5})
    outcome = converge(Observation([gone, cut, topic("good")], NOW), kafka)
    assert (outcome.released, sorted(kafka.topics)) == ([], ["cut", "gone", "good"])
    assert kafka.topics["cut"].overrides == {}, "nobody knows what it would delete"
    assert ready(outcome.statuses[key_of(topic("good"))]) == ("True", "Ready")


def test_a_topic_that_an_unreadable_resource_names_is_not_deleted() -> None:
    kafka = FakeKafka()
    gone = deleted(topic("mine", topicName="t", deletionPolicy="Delete", status={"topicId": kafka.make("t").topic_id}))
    assert converge(Observation([gone], NOW, claimed=["t"]), kafka).done == []
    assert list(kafka.topics) == ["t"]


def question() -> Question:
    return Question(cluster(), [topic("orders"), quota()], "a:1", {}, 1, is_forming=False, now=NOW)


def test_a_fault_in_a_look_is_an_answer() -> None:
    class Blind(FakeKafka):
        def look(self, topics: Iterable[str]) -> SeenCluster:
            raise KeyError("brokers")

    answer = Looker(lambda *_: Blind(), UnexpectedErrors(print)).look(question())
    assert (answer.outcome, isinstance(answer.fault, KeyError)) == (None, True)

    class Unsurveyed(FakeKafka):
        def survey(self) -> Any:
            raise KeyError("quorum")

    answer = Looker(lambda *_: Unsurveyed(), UnexpectedErrors(print)).look(question())
    assert isinstance(answer.fault, KeyError)
    assert answer.outcome is not None, "what became of the topics is told all the same"
    assert {ready(status)[0] for status in answer.outcome.statuses.values()} == {"True"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    layout = Layout.of(tmp_path, "default", "main")
    layout.make()
    apply(Store(layout))
    return Store(layout)


def apply(store: Store, text: str = FILE) -> None:
    path = store.layout.root / "given.yaml"
    path.write_text(text)
    store.apply(load([path]), NOW)


def test_a_stored_resource_that_cannot_be_understood_is_told_of_and_mended_by_applying_it_again(store: Store) -> None:
    path = store.layout.resources / "topic.orders.yaml"
    value = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**value, "spec": {**value["spec"], "partitions": -1, "topicName": "t"}}))
    (one,) = store.read()[1]
    assert (one.key, one.topic_name) == (("Topic", "default", "orders"), "t")
    assert [each.name for each in store.all()] == ["main"]
    store.note_unreadable(one, unreadable_status(one, NOW))
    document = store.documents()[one.key]
    assert document["status"]["conditions"][0]["reason"] == "Invalid"
    assert document["spec"]["partitions"] == -1, "it is shown as it is"
    store.mark_deleted(one.key, NOW)
    assert store.read()[1][0].is_deleted
    apply(store)
    assert [each.name for each in store.all()] == ["main", "orders"]


@pytest.mark.parametrize("words", ["spec.odd: unknown", "x" * 2 * MESSAGE_LENGTH_MAX])
def test_what_is_said_of_a_resource_that_cannot_be_understood_rests(words: str) -> None:
    theirs = {"type": "BackedUp", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "then"}
    key = ("Topic", "default", "orders")
    said = unreadable_status(Unreadable(key, {"status": {"conditions": [theirs]}}, words), NOW)
    beside = {**said, "conditions": [*said["conditions"], theirs]}
    assert unreadable_status(Unreadable(key, {"status": beside}, words), NOW + timedelta(seconds=5)) == beside


@pytest.mark.parametrize("text", ["{not: [yaml", "", "- a\n- b\n", "{spec: 5, metadata: [1], status: 7}", "2026-99-99"])
def test_any_bytes_in_a_file_are_read_or_refused_in_words(store: Store, text: str) -> None:
    path = store.layout.resources / "topic.orders.yaml"
    path.write_text(text)
    (store.layout.status / "topic.orders.yaml").write_text(text)
    (one,) = store.read()[1]
    assert one.topic_name == "orders"
    store.note_unreadable(one, unreadable_status(one, NOW))
    assert store.documents()[one.key]["metadata"]["name"] == "orders"
    store.mark_deleted(one.key, NOW)
    assert store.remove(one.key)
    assert not path.exists()


def test_what_is_applied_again_is_not_deleted(store: Store) -> None:
    key = ("Topic", "default", "orders")
    store.mark_deleted(key, NOW)
    apply(store)
    assert store.all()[1].metadata.deletion_timestamp is None, "the later word counts"
    assert not store.remove(key), "whoever saw the mark comes too late"
    assert store.has(key)


def test_what_an_api_server_refuses_is_no_fault_of_ours_and_tried_again_soon() -> None:
    told: list[str] = []
    unexpected_errors = UnexpectedErrors(told.append)
    noted = [unexpected_errors.note("turn", NotWrittenError("the API server does not answer"), NOW) for _ in range(10)]
    assert {(word.reason, word.message) for words in noted for word in words if word.type == "Stalled"} == {
        ("PlatformUnavailable", "the API server does not answer; it is tried again")
    }
    assert told == ["turn: the API server does not answer"], "once, and without a traceback"
    assert not unexpected_errors.waiting("turn", NOW + timedelta(seconds=2.5))
