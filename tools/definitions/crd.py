"""From a model to a CustomResourceDefinition.

The structural schema of its fields follows from a model (`schema`); what stands here is what a kind adds to it, and
the order in which the file reads like a page.
"""

from copy import deepcopy
from typing import Any

from kavka_operator.api import CATEGORY, GROUP, VERSION
from kavka_operator.api.model import Rule, Transition
from kavka_operator.api.resource import Column, Resource
from tools.definitions.schema import LEFT_OUT, rule_schema, schema_of

Schema = dict[str, Any]

NOT_SEEN = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NotSeen",
    "message": "not looked at yet",
    "lastTransitionTime": "1970-01-01T00:00:00Z",
}
"""The condition of a resource that nobody has looked at: without one, some tools take it for done."""


def definition(kind: type[Resource]) -> Schema:
    """The CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind_name,
                "listKind": f"{kind.kind_name}List",
                "plural": kind.plural,
                "singular": kind.kind_name.lower(),
                "shortNames": [kind.short_name],
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    **(
                        {"selectableFields": [{"jsonPath": path} for path in kind.selectable]}
                        if kind.selectable
                        else {}
                    ),
                    "subresources": {"status": {}, **({"scale": _scale(kind.scale)} if kind.scale else {})},
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": resource_schema(kind)},
                }
            ],
        },
    }


def resource_schema(kind: type[Resource]) -> Schema:
    """The structural schema of a kind."""
    properties = schema_of(kind)["properties"]
    found: tuple[Rule | Transition, ...] = (*kind.rules, *kind.transitions)
    rules = {"x-kubernetes-validations": [rule_schema(rule) for rule in found]} if found else {}
    return {
        "type": "object",
        "description": kind.purpose,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The version of this kind of resource."},
            "kind": {"type": "string", "description": "The kind of resource."},
            "metadata": {"type": "object", "properties": {"name": _name_schema(properties["metadata"])}},
            "spec": {**structural(properties["spec"]), "description": "What is wanted."},
            "status": {**seen(properties["status"]), "description": "What is seen."},
        },
        **rules,
    }


def structural(schema: Schema) -> Schema:
    """`schema` in the order in which a person reads it; an object is there by default if its fields have defaults."""
    result = dict(schema)
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = structural(result[key])
    if "properties" in result:
        result["properties"] = {
            name: _with_inner_defaults(structural(part)) for name, part in result["properties"].items()
        }
    return _ordered(result)


def _name_schema(metadata: Schema) -> Schema:
    """The schema of the name: all that a CRD may say of metadata, beside generateName."""
    return structural(metadata["properties"]["name"])


def seen(schema: Schema) -> Schema:
    """The schema of a status: only NOT_SEEN is there by default, and a map in it is written as a whole.

    Otherwise a map that is left out of the next status stays, empty, and its fields come back by default.
    """
    parts = schema.get("properties", {})
    properties = {name: _as_a_whole(_without_defaults(part)) for name, part in parts.items()}
    properties["conditions"] = {**properties["conditions"], "default": [NOT_SEEN]}
    return _ordered({**structural({**schema, "properties": properties}), "default": {}})


def _without_defaults(schema: Schema) -> Schema:
    result = {key: value for key, value in schema.items() if key != "default"}
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = _without_defaults(result[key])
    if "properties" in result:
        result["properties"] = {name: _without_defaults(part) for name, part in result["properties"].items()}
    return result


def _as_a_whole(schema: Schema) -> Schema:
    is_map = "properties" in schema or "additionalProperties" in schema
    return {**schema, "x-kubernetes-map-type": "atomic"} if is_map else schema


def _with_inner_defaults(schema: Schema) -> Schema:
    """An object whose fields have defaults is itself there by default, or they would not apply; unless that it is there
    says something. One with rules is there as a whole: an API server asks the rules of a default as it is written.
    """
    if LEFT_OUT in schema:
        return {key: value for key, value in schema.items() if key != LEFT_OUT}
    fields = schema.get("properties", {})
    if schema.get("required") or "default" in schema or not any("default" in part for part in fields.values()):
        return schema
    whole = {name: deepcopy(part["default"]) for name, part in fields.items() if "default" in part}
    return _ordered({**schema, "default": whole if "x-kubernetes-validations" in schema else {}})


def _ordered(schema: Schema) -> Schema:
    return dict(sorted(schema.items(), key=_order))


def _scale(paths: tuple[str, str]) -> Schema:
    wanted, there = paths
    return {"specReplicasPath": wanted, "statusReplicasPath": there}


def _column(column: Column) -> Schema:
    priority = {"priority": column.priority} if column.priority else {}
    return {"name": column.name, "type": column.kind, "jsonPath": column.path, **priority}


FIRST = ("type", "description", "default", "enum", "required")
LAST = ("properties", "items", "additionalProperties", "x-kubernetes-validations")


def _order(item: tuple[str, Any]) -> tuple[int, str]:
    """Type and description first, children and rules last, so that the file reads like a page."""
    key = item[0]
    if key in FIRST:
        return FIRST.index(key) - len(FIRST), key
    return (LAST.index(key) + 1, key) if key in LAST else (0, key)
