"""From a model to a CustomResourceDefinition.

Pydantic writes JSON Schema; an API server wants a structural schema: no references, no `anyOf` with null, no
`additionalProperties: false` (unknown fields are pruned, or refused with strict validation), a default on an object so
that the defaults inside it apply. The conversion is one function over plain dictionaries.
"""

from typing import Any

from kavka_operator.api import CATEGORY, GROUP, VERSION
from kavka_operator.api.model import Column, Resource, rule_schema

Schema = dict[str, Any]

DROPPED = ("title", "$defs", "discriminator")


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
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": resource_schema(kind)},
                }
            ],
        },
    }


def resource_schema(kind: type[Resource]) -> Schema:
    """The structural schema of a kind."""
    whole = kind.model_json_schema(by_alias=True)
    properties = whole["properties"]
    rules = {"x-kubernetes-validations": [rule_schema(rule) for rule in kind.transitions]} if kind.transitions else {}
    return {
        "type": "object",
        "description": kind.purpose,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The version of this kind of resource."},
            "kind": {"type": "string", "description": "The kind of resource."},
            "metadata": {"type": "object"},
            "spec": {**structural(properties["spec"], whole["$defs"]), "description": "What is wanted."},
            "status": {**structural(properties["status"], whole["$defs"]), "description": "What is seen."},
        },
        **rules,
    }


def structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """`schema` with its references resolved, in the form that an API server takes."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return structural({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, definitions)
    if "anyOf" in schema:
        (only,) = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return structural({**only, **{key: value for key, value in schema.items() if key != "anyOf"}}, definitions)
    result = {key: value for key, value in schema.items() if key not in DROPPED}
    _convert_children(result, definitions)
    _convert_bounds(result)
    _convert_default(result)
    if "const" in result:
        result["enum"] = [result.pop("const")]
    return dict(sorted(result.items(), key=_order))


def _convert_children(result: Schema, definitions: dict[str, Schema]) -> None:
    if "items" in result:
        result["items"] = structural(result["items"], definitions)
    if isinstance(result.get("additionalProperties"), dict):
        result["additionalProperties"] = structural(result["additionalProperties"], definitions)
    else:
        result.pop("additionalProperties", None)
    if "properties" in result:
        result["properties"] = {
            name: _with_inner_defaults(structural(field, definitions)) for name, field in result["properties"].items()
        }


def _with_inner_defaults(schema: Schema) -> Schema:
    """An object whose fields have defaults is itself there by default, or they would not apply."""
    fields = schema.get("properties", {})
    if schema.get("required") or "default" in schema or not any("default" in field for field in fields.values()):
        return schema
    return dict(sorted({**schema, "default": {}}.items(), key=_order))


def _convert_bounds(result: Schema) -> None:
    """OpenAPI 3.0 says `exclusiveMinimum` with a boolean beside `minimum`."""
    if "exclusiveMinimum" in result:
        result["minimum"] = result["exclusiveMinimum"]
        result["exclusiveMinimum"] = True


def _convert_default(result: Schema) -> None:
    if "default" not in result:
        return
    default = _without_nulls(result.pop("default"))
    if default not in (None, [], {}):
        result["default"] = default


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_nulls(part) for key, part in value.items() if part is not None}
        case list() | tuple():
            return [_without_nulls(part) for part in value]
        case _:
            return value


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
