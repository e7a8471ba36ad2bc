"""Models read strictly, find all faults at once, and write what they read."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from kavka_broker.core.quota.entity import Entity
from kavka_operator.api.cluster import KafkaCluster, KafkaClusterSpec
from kavka_operator.api.field_names import fields_by_key
from kavka_operator.api.grants import Grant
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.model import Model
from kavka_operator.api.pools import NodePool
from kavka_operator.api.quota import (
    ClientQuota,
    EntityPart,
    EntitySpec,
    IpPart,
    Limits,
    Override,
    entity_of,
)
from kavka_operator.api.resource import Condition, Metadata, Resource
from kavka_operator.api.topic import Topic, TopicSpec
from kavka_operator.api.validation_errors import UNKNOWN, InvalidError
from tools.definitions.schema import schema_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SPEC = {"clusterRef": {"name": "main"}}


def faults(model: type[Model], value: object) -> dict[str, str]:
    with pytest.raises(InvalidError) as refused:
        model.decode(value)
    return {".".join(map(str, path)): words for path, words in refused.value.faults}


def paths(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a resource has fields, without those of items of lists."""
    for key, field in fields_by_key(model).items():
        yield (*above, key)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from paths(field.annotation, (*above, key))


FIELDS = [(kind, path) for kind in KINDS.values() for path in paths(kind)]
ODD: list[object] = [
    None,
    True,
    7,
    -1,
    10**400,
    0.5,
    float("nan"),
    "",
    "\ud800",
    "A b",
    NOON,
    [],
    [None],
    ["a", "a"],
    [{}],
    {},
    {1: 2},
    {"\ud800": 1},
]


def told_of(kind: type[Resource], path: tuple[str, ...], given: object) -> list[str]:
    """All that is told of a resource that has `given` in one field."""
    document: dict[str, Any] = {}
    place = document
    for part in path[:-1]:
        place = place.setdefault(part, {})
    place[path[-1]] = given
    try:
        kind.decode(document)
    except InvalidError as error:
        return [words for _, words in error.faults]
    return []


def test_all_faults_are_found_at_once() -> None:
    spec = {
        "partitions": "3",
        "replicationFactor": 0,
        "config": {"a": True},
        "guards": {"retentionCut": "Alow"},
        "x": 1,
    }
    assert faults(Topic, {"metadata": {"name": "A"}, "spec": spec}) == {
        "metadata.name": '"A" is not a name (lower-case letters, digits, "-" and "."); write "a"',
        "spec.clusterRef": "is missing; add it",
        "spec.partitions": '"3" is not a whole number; write 3',
        "spec.replicationFactor": "0 is out of range; write a number from 1",
        "spec.config.a": 'true is not text; write "true" in quotes',
        "spec.guards.retentionCut": '"Alow" is not one of Refuse, Allow; did you mean "Allow"?',
        "spec.x": "there is no such field; take it out, or use one of clusterRef, topicName, partitions,"
        " replicationFactor, config, deletionPolicy, guards, placement",
    }


@pytest.mark.parametrize("value", [True, 3.0, "3", [3], {"a": 3}])
def test_nothing_else_is_a_whole_number(value: object) -> None:
    assert list(faults(TopicSpec, {**SPEC, "partitions": value})) == ["partitions"]


def test_a_whole_number_is_a_number_and_true_is_not() -> None:
    assert Limits.decode({"requestPercentage": 12}).request_percentage == 12.0
    assert list(faults(Limits, {"requestPercentage": True})) == ["requestPercentage"]
    assert list(faults(Limits, {"requestPercentage": float("nan")})) == ["requestPercentage"]


@pytest.mark.parametrize("value", [10**400, 1 << 100_000], ids=["long", "longer"])
def test_a_number_that_no_float_holds_is_out_of_range(value: int) -> None:
    assert "is out of range; write a number" in faults(Limits, {"requestPercentage": value})["requestPercentage"]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_moment_that_utc_has_no_year_for_is_a_fault(moment: str) -> None:
    assert "is out of range" in faults(Override, {"from": moment, "until": NOON})["from"]


def test_a_name_ends_where_its_line_ends() -> None:
    assert list(faults(Metadata, {"name": "orders\n"})) == ["name"]


def test_a_field_is_known_by_its_name_in_a_resource_only() -> None:
    assert faults(TopicSpec, {"cluster_name": "main"}) == {
        "clusterRef": "is missing; add it",
        "cluster_name": 'there is no such field; did you mean "clusterRef"?',
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("alice", '"alice" is not a map of fields; write {name: alice}'),
        (["alice"], "a list is not a map of fields; write a map of fields"),
        ({"name": "a", "default": True}, "needs either a name or the default; write {name: NAME} or {default: true}"),
        ({"default": False}, "false makes no sense here; write true or leave it out"),
        ({"default": 1}, "1 makes no sense here; write true or leave it out"),
    ],
)
def test_a_part_of_an_entity_that_is_wrong_is_told_in_words(value: object, words: str) -> None:
    assert list(faults(EntityPart, value).values()) == [words]


def test_a_list_is_not_called_short_because_its_items_are_wrong() -> None:
    assert list(faults(Grant, {"namespaces": [3]})) == ["namespaces.0"]
    assert faults(Grant, {"namespaces": []}) == {"namespaces": "a list is too short; at least 1 must be given"}


def test_half_a_character_is_no_text() -> None:
    words = "is not text: it holds a half of a character; take it out"
    assert faults(TopicSpec, {**SPEC, "config": {"a": "\ud800"}}) == {"config.a": words}


@pytest.mark.parametrize("given", ODD, ids=lambda value: type(value).__name__)
def test_whatever_stands_in_a_field_is_told_in_words(given: object) -> None:
    for kind, path in FIELDS:
        told = told_of(kind, path, given)
        assert all(words and "\n" not in words and UNKNOWN not in words for words in told), (kind, path, told)


def test_a_rule_complains_of_its_field_where_the_part_stands() -> None:
    override = {"from": "2026-11-21T13:00:00Z", "until": "2026-11-21T12:00:00Z", "limits": {}, "reason": "sale"}
    found = faults(ClientQuota, {"metadata": {"name": "q"}, "spec": {"overrides": [override]}})
    assert found["spec.overrides.0.limits"].startswith("limits nothing; set at least one of")
    override["limits"] = {"producerByteRate": 1}
    found = faults(ClientQuota, {"metadata": {"name": "q"}, "spec": {"overrides": [override]}})
    assert found["spec.overrides.0.until"] == "ends before it begins; let until be later than from"


def test_what_is_made_by_hand_is_read_as_well() -> None:
    with pytest.raises(ValidationError, match="0 is out of range"):
        Limits(producer_byte_rate=0)
    with pytest.raises(ValidationError, match="limits nothing"):
        Limits()
    assert (
        Override(begin=NOON, until=NOON.replace(hour=13), limits=Limits(producer_byte_rate=1), reason="x").begin == NOON
    )


def test_a_model_writes_what_it_read() -> None:
    value: dict[str, Any] = {
        "apiVersion": "kavka.dev/v1alpha1",
        "kind": "ClientQuota",
        "metadata": {"name": "etl", "creationTimestamp": "2026-11-21T12:00:00.250000Z", "finalizers": ["a"]},
        "spec": {
            "clusterRef": {"name": "main"},
            "entity": {"user": {"default": True}},
            "limits": {"producerByteRate": "10Mi"},
            "overrides": [
                {"from": NOON, "until": "2026-11-21T15:00:00+02:00", "limits": {"consumerByteRate": 1}, "reason": "x"}
            ],
        },
    }
    made = ClientQuota.decode(value)
    written = made.to_dict()
    assert ClientQuota.decode(written) == made
    assert written["metadata"]["creationTimestamp"] == "2026-11-21T12:00:00.250000Z"
    assert written["spec"]["overrides"][0] == {
        "from": "2026-11-21T12:00:00Z",
        "until": "2026-11-21T13:00:00Z",
        "limits": {"consumerByteRate": 1},
        "reason": "x",
    }
    assert written["spec"]["limits"] == {"producerByteRate": 10 * 2**20}


def test_models_are_values() -> None:
    made = Topic.decode({"metadata": {"name": "t"}, "spec": SPEC})
    later = made.replaced({"status": made.status.replaced({"partitions": 3})})
    assert (made.status.partitions, later.status.partitions) == (None, 3)
    assert later.replaced({"status": made.status}) == made
    with pytest.raises(ValidationError, match="frozen"):
        made.kind = "Topic"
    with pytest.raises(AssertionError):
        made.replaced({"stauts": made.status})
    with pytest.raises(ValidationError):
        Condition(typ="Ready")  # type: ignore[call-arg]


def test_a_schema_is_made_afresh_each_time() -> None:
    """PyYAML writes an object that stands twice as an anchor, which no reader of a CRD expects."""
    for kind in KINDS.values():
        schema_of(kind)["properties"]["spec"]["properties"].clear()
        assert schema_of(kind)["properties"]["spec"]["properties"]


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (Topic, "prod.eu.orders-1", None),
        (Topic, "a" * 170, None),
        (Topic, "a..b", '"a..b" is not a name (lower-case letters, digits, "-" and "."); write "a.b"'),
        (Topic, ".a", '".a" is not a name (lower-case letters, digits, "-" and "."); write "a"'),
        (KafkaCluster, "main.eu", '(lower-case letters, digits and "-", a letter first); write "main-eu"'),
        (KafkaCluster, "1st", '(lower-case letters, digits and "-", a letter first); write "a1st"'),
        (KafkaCluster, "a" * 41, "the names of the cluster and of a pool have more than 46 characters together"),
        (KafkaCluster, "a" * 40, None),
    ],
)
def test_names_are_those_that_kubernetes_can_use(kind: type[Resource], name: str, said: str | None) -> None:
    spec = SPEC if kind is Topic else {"nodePools": [{"name": "poolid"}]}
    document = {"metadata": {"name": name}, "spec": spec}
    if said is None:
        assert kind.decode(document).name == name
    else:
        assert said in faults(kind, document)["metadata.name"]


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ("10.0.0.1", True),
        ("2001:db8::1", True),
        ("::1.2.3.4", True),
        ("not-an-ip", False),
        ("10.0.0.0/8", False),
        ("010.0.0.1", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1 ", False),
    ],
)
def test_a_quota_of_an_address_names_one_machine(address: str, is_one: bool) -> None:
    if is_one:
        assert EntitySpec.decode({"ip": {"name": address}}).ip == IpPart(name=address)
    else:
        words = "is not the address of one machine; write one as 10.0.0.1 or 2001:db8::1"
        assert faults(EntitySpec, {"ip": {"name": address}}) == {"ip.name": words}


def test_client_ids_are_named_by_one_of_three_ways() -> None:
    assert entity_of(EntitySpec.decode({"clientId": {"prefix": "etl-"}})) == Entity(None, "etl-")
    words = "needs a name, a prefix or the default; write {name: NAME}, {prefix: BEGINNING} or {default: true}"
    for given in ({}, {"name": "a", "prefix": "b"}, {"prefix": "b", "default": True}):
        assert faults(EntitySpec, {"clientId": given}) == {"clientId": words}
    assert "user.prefix" in faults(EntitySpec, {"user": {"prefix": "a"}})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"listeners": [{"name": "A", "port": 9092}], "metrics": {"port": 9092}}, "has the port of metrics"),
        ({"listeners": [{"name": "A", "port": 9092}], "metrics": {"port": 9092, "enabled": False}}, None),
        ({"listeners": [{"name": "A", "port": 9092}], "metrics": {"port": 10092}}, "no port for controllers"),
        ({"listeners": [{"name": "A", "port": 9092}, {"name": "B", "port": 10092}]}, "no port for controllers"),
        ({"listeners": [{"name": "A", "port": 65000}]}, "no port for controllers"),
        ({"listeners": [{"name": "A", "port": 65000}, {"name": "CONTROLLER", "port": 9093}]}, None),
    ],
)
def test_ports_are_there_and_each_its_own(spec: dict[str, Any], said: str | None) -> None:
    document = {"nodePools": [{"name": "a"}], **spec}
    if said is None:
        assert KafkaClusterSpec.decode(document).node_pools
    else:
        (words,) = faults(KafkaClusterSpec, document).values()
        assert said in words


@pytest.mark.parametrize("rack", ["a,b", "a b", "-a", "ä"])
def test_a_rack_is_what_a_label_can_be(rack: str) -> None:
    assert faults(NodePool, {"name": "a", "racks": [rack]})
    assert NodePool.decode({"name": "a", "racks": ["eu-west_1.a"]}).racks == ("eu-west_1.a",)


def test_a_list_of_different_things_holds_each_once() -> None:
    assert faults(Grant, {"namespaces": ["a", "b", "a"]}) == {"namespaces": 'has "a" twice; keep one'}
    twice = {"nodePools": [{"name": "a"}, {"name": "a"}]}
    assert faults(KafkaClusterSpec, twice) == {"nodePools": 'has "a" twice; keep one'}
