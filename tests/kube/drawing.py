"""Objects drawn from a structural schema: mostly as it wants them, and now and then beyond its borders."""

from typing import Any

from hypothesis import strategies as st

from kavka_operator.api.kinds import KINDS
from tests.support.control_plane import Json
from tools.definitions.crd import resource_schema

ITEMS_MAX = 3
CHANGED_MAX = 2
JUNK = st.sampled_from([None, True, -1, 0, 0.5, "", "x", "0", " ", [], {}, ["x"], {"x": 1}])
QUANTITIES = st.one_of(
    st.from_regex(r"\A-?[0-9]{1,20}(\.[0-9]{1,3})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|MB|e3|E30|e99)?\Z"),
    st.integers(-1, 3),
    st.sampled_from([2**31, 2**53 + 1, 2**63 - 1, 2**63, "2147483648Gi", "9223372036854775807", "+5", "5.", ".5", "٣"]),
)
TIMES = st.sampled_from(
    [
        *(
            "2026-11-21T13:00:00Z",
            "2026-11-21T15:00:00+01:00",
            "2026-11-21T13:00:00.123456789Z",
            "2027-02-28T23:59:59Z",
        ),
        *("2026-11-21t13:00:00z", "2026-11-21 13:00:00Z", "2026-11-21T13:00:00", "2026-11-21", "20261121T130000Z"),
        *("2026-11-21T24:00:00Z", "2026-11-21T23:59:60Z", "2026-02-29T00:00:00Z", "0000-01-01T00:00:00Z"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-21T13:00:00+25:00", "2026-W47-6T13:00Z"),
    ]
)
NAMES = st.one_of(
    st.sampled_from(["a.b", "n" * 64, "a", "A", "a_b", "-", ""]),
    st.from_regex(r"\A[a-z0-9]([-a-z0-9.]{0,70}[a-z0-9])?\Z"),
)


def resources(kind: str, good: list[Json]) -> st.SearchStrategy[Json]:
    """Good resources of a kind, some under another name, with up to `CHANGED_MAX` fields of their spec drawn."""
    fields = resource_schema(KINDS[kind])["properties"]["spec"]["properties"]
    changed = st.lists(st.sampled_from(sorted(fields)), max_size=CHANGED_MAX, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: values(fields[name]) for name in names})
    )
    return st.builds(_with, st.sampled_from(good), st.none() | NAMES, changed)


def _with(resource: Json, name: str | None, changed: Json) -> Json:
    """A resource, with another name and other fields."""
    metadata = resource["metadata"] if name is None else {"name": name}
    return {**resource, "metadata": metadata, "spec": {**resource["spec"], **changed}}


def values(schema: Json) -> st.SearchStrategy[Any]:
    """Values around one schema: one in sixteen is of another type."""
    usual = _usual(schema)
    return st.integers(0, 15).flatmap(lambda draw: JUNK if draw == 15 else usual)


def _usual(schema: Json) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return QUANTITIES if "pattern" in schema else st.one_of(st.text(max_size=5), st.integers(-3, 10**10))
    match schema.get("type"):
        case "object":
            return _maps(schema)
        case "array":
            return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=ITEMS_MAX)
        case "string":
            return _texts(schema)
        case "integer" | "number":
            return _numbers(schema)
        case "boolean":
            return st.booleans()
        case _:
            return JUNK


def _maps(schema: Json) -> st.SearchStrategy[Json]:
    """Maps with the fields that are required, and some of the others."""
    if "properties" not in schema:
        inner = schema.get("additionalProperties")
        return st.dictionaries(st.text(max_size=8), JUNK if inner is None else values(inner), max_size=ITEMS_MAX)
    fields = {name: values(part) for name, part in schema["properties"].items()}
    required = {name: fields.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(required, optional=fields)


def _texts(schema: Json) -> st.SearchStrategy[str]:
    """Texts of the pattern, the format or the length that a schema asks for, and those just beside it."""
    if schema.get("format") == "date-time":
        return TIMES
    least, most = schema.get("minLength", 0), min(schema.get("maxLength", 12), 80)
    if "pattern" in schema:
        matching: st.SearchStrategy[str] = st.from_regex(str(schema["pattern"]))
        return matching.map(lambda text: text[: schema.get("maxLength")])
    return st.text(min_size=least, max_size=most)


def _numbers(schema: Json) -> st.SearchStrategy[float]:
    """Numbers at the borders of what is allowed, and others."""
    least, most = int(schema.get("minimum", -2)), int(schema.get("maximum", 10))
    whole = st.one_of(st.sampled_from([least - 1, least, most, most + 1]), st.integers(least, max(least, most)))
    if schema["type"] == "integer":
        return whole
    return st.one_of(whole, st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([5e-324, 1e300, -0.0]))
