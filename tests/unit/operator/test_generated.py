"""What follows from the models is in the repository as it follows, and is what an API server takes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.resource import Resource
from kavka_operator.api.stored_resources import resource_from
from kavka_operator.api.topic import Topic
from tools.definitions.crd import NOT_SEEN, definition
from tools.definitions.generate import drifted

ROOT = Path(__file__).parents[3]
Schema = dict[str, Any]
MAIN = {"clusterRef": {"name": "main"}}
LEAST: dict[str, Any] = {
    "KafkaCluster": {"nodePools": [{"name": "a"}]},
    "Topic": MAIN,
    "ClientQuota": {**MAIN, "entity": {"user": {"name": "a"}}, "limits": {"producerByteRate": 1}},
    "KafkaUser": MAIN,
}
"""The least that a spec may say."""


def walk(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(f"{path}.{name}", field)
    for part in ("items", "additionalProperties"):
        if part in schema:
            yield from walk(f"{path}[]", schema[part])


def schema_of(kind: type[Resource]) -> Schema:
    (version,) = definition(kind)["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def test_nothing_has_drifted() -> None:
    assert drifted(ROOT) == []


@kinds
def test_schemas_are_structural(kind: type[Resource]) -> None:
    for path, schema in walk("", schema_of(kind)):
        typed = schema.get("type") or schema.get("x-kubernetes-int-or-string") or "enum" in schema
        assert typed, f"{path} has no type"
        assert not {"$ref", "anyOf", "oneOf", "allOf", "title", "const"} & set(schema), path
        assert not (schema.get("properties") and schema.get("additionalProperties")), path


@kinds
def test_every_field_says_what_it_is(kind: type[Resource]) -> None:
    for path, schema in walk("", schema_of(kind)):
        for name, field in schema.get("properties", {}).items():
            if (path, name) != ("", "metadata"):
                assert len(field.get("description", "")) >= 8, f"{path}.{name}"


@kinds
def test_what_can_be_iterated_is_bounded(kind: type[Resource]) -> None:
    for path, schema in walk("", schema_of(kind)):
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path
        if path.startswith(".spec") and schema.get("type") == "string" and "enum" not in schema:
            assert "maxLength" in schema or "format" in schema or "pattern" in schema, path


@kinds
def test_lists_of_objects_in_status_and_spec_say_how_they_merge(kind: type[Resource]) -> None:
    for path, schema in walk("", schema_of(kind)):
        match schema.get("x-kubernetes-list-type"):
            case "map":
                (key,) = schema["x-kubernetes-list-map-keys"]
                assert key in schema["items"]["required"], path
            case "atomic" | "set" | None:
                pass
            case other:
                raise AssertionError(f"{path}: {other}")


@kinds
def test_rules_name_a_field_that_is_there(kind: type[Resource]) -> None:
    for path, schema in walk("", schema_of(kind)):
        for rule in schema.get("x-kubernetes-validations", ()):
            field = rule.get("fieldPath", "").removeprefix(".")
            assert not field or field in schema["properties"], f"{path}: {rule}"


@kinds
def test_definitions_have_the_columns_and_names_that_are_documented(kind: type[Resource]) -> None:
    made = definition(kind)
    names = made["spec"]["names"]
    assert names["categories"] == ["kavka"]
    assert names["shortNames"] == [
        {"KafkaCluster": "kvc", "Topic": "kvt", "ClientQuota": "kvq", "KafkaUser": "kvu"}[names["kind"]]
    ]
    (version,) = made["spec"]["versions"]
    scale = {"specReplicasPath": ".spec.partitions", "statusReplicasPath": ".status.partitions"}
    assert version["subresources"] == {"status": {}, **({"scale": scale} if kind is Topic else {})}
    selectable = [] if kind is KafkaCluster else [{"jsonPath": ".spec.clusterRef.name"}]
    assert version.get("selectableFields", []) == selectable
    assert version["additionalPrinterColumns"][-1]["name"] == "Age"
    for column in version["additionalPrinterColumns"]:
        top, *rest = column["jsonPath"].split("[")[0].strip(".").split(".")
        schema = schema_of(kind)["properties"][top]
        for step in rest:
            if top != "metadata":
                assert step in schema["properties"], column
                schema = schema["properties"][step]


@kinds
def test_a_resource_that_nobody_has_looked_at_says_so_and_nothing_else(kind: type[Resource]) -> None:
    """Some tools take a resource without conditions for done; a status that says more would not be so."""
    status = schema_of(kind)["properties"]["status"]
    assert [path for path, schema in walk("", status) if "default" in schema] == ["", ".conditions"]
    stored = {"kind": kind.kind_name, "metadata": {"name": "a"}, "status": {"conditions": [NOT_SEEN]}}
    document = {**stored, "spec": LEAST[kind.kind_name]}
    ready = resource_from(document).status.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("Unknown", "NotSeen")


def test_the_files_are_yaml_that_names_its_origin() -> None:
    for kind in KINDS.values():
        text = (ROOT / "crds" / f"{kind.plural}.yaml").read_text()
        assert text.startswith("# Generated")
        assert "&id" not in text
        assert yaml.safe_load(text)["metadata"]["name"] == f"{kind.plural}.kavka.dev"


def test_the_rules_promised_are_there() -> None:
    rules = {
        rule["message"]: rule["rule"]
        for kind in KINDS.values()
        for _, s in walk("", schema_of(kind))
        for rule in s.get("x-kubernetes-validations", ())
    }
    text = " ".join(rules.values())
    for part in (
        "self.spec.partitions >= oldSelf.status.partitions",
        "has(self.name) != has(self.default)",
        "!has(self.ip) ||",
        "self.entity == oldSelf.entity",
        "self.clusterRef == oldSelf.clusterRef",
    ):
        assert part in text
