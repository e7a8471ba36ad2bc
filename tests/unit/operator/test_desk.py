"""The kopf side: handlers are registered one a kind, decode, delegate, and write back only what is new."""

import asyncio
from collections.abc import Mapping
from typing import Any

import kopf
import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.handlers import process
from kavka_operator.handlers.desk import FINALIZER, Desk
from kavka_operator.platform.kubernetes import KubernetesPlatform
from tests.unit.operator.fakes import FakeKafka, cluster, topic

HEAD = {"apiVersion": "kavka.dev/v1alpha1"}


def body(kind: str, name: str, spec: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "generation": 1, "creationTimestamp": "2026-11-01T00:00:00Z"}
    return {**HEAD, "kind": kind, "metadata": {**metadata, **parts.pop("metadata", {})}, "spec": dict(spec), **parts}


def live_cluster() -> dict[str, Any]:
    status = {"bootstrapServers": "127.0.0.1:9092"}
    return body("KafkaCluster", "main", {"nodePools": [{"name": "nodes"}]}, status=status)


def a_topic(**parts: Any) -> dict[str, Any]:
    return body("Topic", "orders", {"clusterName": "main", "partitions": 3, "deletionPolicy": "Delete"}, **parts)


class Office:
    """A desk, the Kafka behind it, and an API server's merging of what is handed back."""

    def __init__(self) -> None:
        self.kafka = FakeKafka()
        self.desk = Desk(KubernetesPlatform(), lambda _address: self.kafka)

    def hand_in(self, value: dict[str, Any], *, gone: bool = False) -> dict[str, Any]:
        return asyncio.run(self.desk.hand_in(value, gone=gone))


def merged(value: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    result = dict(value)
    for part, fields in change.items():
        both = {**result.get(part, {}), **fields}
        result[part] = {key: each for key, each in both.items() if each is not None}
    return result


def condition(change: dict[str, Any], kind: str = "Ready") -> tuple[str, str]:
    (found,) = [each for each in change["status"]["conditions"] if each["type"] == kind]
    return found["status"], found["reason"]


def test_one_handler_a_kind_is_registered() -> None:
    registry = kopf.get_default_registry()
    handlers = registry._watching.get_all_handlers()
    assert {each.selector.any_name: each.fn for each in handlers if each.selector} == {
        "kafkaclusters": process.HANDLERS[0],
        "topics": process.HANDLERS[1],
        "clientquotas": process.HANDLERS[2],
    }


def test_a_handler_decodes_delegates_and_writes_into_the_patch() -> None:
    office = Office()
    patch = kopf.Patch()
    memo = kopf.Memo(desk=office.desk)
    handler: Any
    for handler, value in ((process.HANDLERS[0], live_cluster()), (process.HANDLERS[1], a_topic())):
        patch = kopf.Patch()
        asyncio.run(handler(event={"type": "ADDED"}, body=value, patch=patch, memo=memo))
    assert office.kafka.topics["orders"].partitions == 3
    assert patch["metadata"]["finalizers"] == [FINALIZER]
    assert patch["status"]["topicId"] == "id-1"


def test_a_cluster_on_kubernetes_says_that_brokers_cannot_run_there_yet() -> None:
    change = Office().hand_in(body("KafkaCluster", "main", {"nodePools": [{"name": "nodes"}]}))
    assert condition(change) == ("False", "PlatformUnavailable")
    assert condition(change, "Stalled") == ("True", "PlatformUnavailable")


def test_an_object_seen_twice_is_written_once() -> None:
    office = Office()
    office.hand_in(live_cluster())
    first = office.hand_in(a_topic())
    assert first["status"]["observedGeneration"] == 1
    assert office.hand_in(merged(a_topic(), first)) == {}
    assert len(office.kafka.writes) == 1
    refused = office.hand_in(live_cluster())
    assert office.hand_in(merged(live_cluster(), refused)) == {}


def test_a_topic_without_its_cluster_is_unknown() -> None:
    change = Office().hand_in(a_topic())
    assert condition(change) == ("Unknown", "ClusterUnavailable")


def test_an_object_that_the_models_refuse_says_so_once() -> None:
    office = Office()
    value = a_topic()
    value["spec"]["partitions"] = "4"
    change = office.hand_in(value)
    assert condition(change) == ("False", "Invalid")
    assert change["status"]["conditions"][0]["message"] == 'spec.partitions: "4" is not a whole number; write 4'
    assert office.hand_in(merged(value, change)) == {}


def test_fields_of_a_later_version_are_left_out() -> None:
    office = Office()
    office.hand_in(live_cluster())
    value = a_topic(status={"laterField": 5})
    value["spec"]["laterField"] = {"deep": 1}
    assert condition(office.hand_in(value)) == ("True", "Ready")


def test_a_fault_of_our_own_is_shown_and_the_desk_goes_on() -> None:
    office = Office()
    office.hand_in(live_cluster())
    look, office.kafka.look = office.kafka.look, None  # type: ignore[method-assign, assignment]
    assert condition(office.hand_in(a_topic()), "Stalled") == ("True", "ReconcileError")
    office.kafka.look = look  # type: ignore[method-assign]
    assert condition(office.hand_in(a_topic())) == ("True", "Ready")


def test_an_object_that_goes_late_does_not_take_another_of_its_name_along() -> None:
    office = Office()
    office.hand_in(live_cluster())
    office.hand_in(a_topic(metadata={"uid": "new"}))
    office.hand_in(a_topic(metadata={"uid": "old"}), gone=True)
    other = body("Topic", "other", {"clusterName": "main", "topicName": "orders"}, metadata={"uid": "x"})
    assert condition(office.hand_in(other)) == ("False", "Conflict")


def test_the_deletion_of_a_topic_is_carried_out_and_released() -> None:
    office = Office()
    office.hand_in(live_cluster())
    value = a_topic()
    value = merged(value, office.hand_in(value))
    value["metadata"] = {**value["metadata"], "deletionTimestamp": "2026-11-21T12:00:00Z"}
    assert office.hand_in(value) == {"metadata": {"finalizers": []}}
    assert office.kafka.topics == {}
    assert office.hand_in(value, gone=True) == {}


def test_a_topic_is_released_when_its_cluster_is_gone() -> None:
    value = a_topic(metadata={"finalizers": ["other/one", FINALIZER], "deletionTimestamp": "2026-11-21T12:00:00Z"})
    assert Office().hand_in(value) == {"metadata": {"finalizers": ["other/one"]}}


@pytest.mark.parametrize("made", [cluster(), topic()], ids=["cluster", "topic"])
def test_statuses_survive_the_way_through_an_object(made: KafkaCluster) -> None:
    value = {"metadata": {"name": "main"}, "spec": made.spec.to_dict(), "status": made.status.to_dict()}
    assert type(made).decode(value).status == made.status
