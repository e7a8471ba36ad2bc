"""The reference page of the resources, written from the same schemas as the CRDs."""

from collections.abc import Iterator
from typing import Any

from kavka_operator.api import API_VERSION
from kavka_operator.api.kinds import KINDS, names_of
from kavka_operator.api.resource import Resource
from tools.definitions.crd import resource_schema

HEAD = f"""# The resources

Four kinds, all `{API_VERSION}`, category `kavka`. This page is generated from the models
(`make generate`); `crds/` holds the same as CustomResourceDefinitions.

Amounts are whole numbers or Kubernetes quantities: `1500`, `500k`, `10Mi`. Settings under `config` have Kafka's own
names; numbers may stand without quotes, `"true"` and `"false"` need them. On Kubernetes a fraction such as `"0.5"`
needs them too.
"""


def reference() -> str:
    """The page."""
    return "\n".join([HEAD, *(line for kind in KINDS.values() for line in _kind(kind))]).rstrip() + "\n"


def _kind(kind: type[Resource]) -> Iterator[str]:
    schema = resource_schema(kind)
    yield f"## {kind.kind_name}\n"
    yield f"{kind.purpose} `kubectl get` and `kavka get` know it as {_listed(names_of(kind))}.\n"
    yield from _section("spec", schema["properties"]["spec"])
    yield from _rules("spec", schema["properties"]["spec"])
    yield from _section("status", schema["properties"]["status"])


def _section(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    yield "| field | type | default | meaning |"
    yield "|---|---|---|---|"
    for path, field, required in _fields("", schema):
        yield f"| `{path}` | {_type(field)} | {_default(field, required)} | {field.get('description', '')} |"
    yield ""


def _rules(name: str, schema: dict[str, Any]) -> Iterator[str]:
    found = list(_all_rules(name, schema))
    if not found:
        return
    yield "Rules between fields, checked when the resource is applied:\n"
    for path, rule in found:
        yield f"- `{path}`: {rule['message']}"
    yield ""


def _all_rules(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path + rule.get("fieldPath", ""), rule
    for name, field in schema.get("properties", {}).items():
        yield from _all_rules(f"{path}.{name}", field)
    if "items" in schema:
        yield from _all_rules(f"{path}[]", schema["items"])


def _fields(prefix: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield path, field, name in schema.get("required", ())
        yield from _fields(f"{path}.", field)
        yield from _fields(f"{path}[].", field.get("items", {}))


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " \\| ".join(f"`{_spelled(value)}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "amount"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return "map"
    return str(field.get("format") if field.get("format") == "date-time" else field.get("type", "any"))


def _default(field: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    default = field.get("default")
    return "" if default in (None, {}) else f"`{_spelled(default)}`"


def _spelled(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return "[" + ", ".join(_spelled(part) for part in value) + "]"
        case dict():
            return "{" + ", ".join(f"{key}: {_spelled(part)}" for key, part in value.items()) + "}"
        case _:
            return str(value)


def _listed(names: tuple[str, ...]) -> str:
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} or {last}"
