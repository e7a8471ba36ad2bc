"""What a person can have written of a resource, before and after a change, field by field. Pure.

Lists whose entries have names are compared by those: their order says nothing, and neither does a place in them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kavka_cli.kubernetes.server_dry_run import LAST_APPLIED
from kavka_operator.api.stored_resources import part

WRITTEN_METADATA = ("annotations", "labels")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field and its values, None where it has none."""

    path: str
    was: Any
    will_be: Any


def field_changes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[FieldChange]:
    """The fields that differ, by their paths."""
    return sorted(_between("", _written(before or {}), _written(after)), key=lambda change: change.path)


def _written(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: dict(part(part(document, "metadata"), name)) for name in WRITTEN_METADATA}
    metadata["annotations"].pop(LAST_APPLIED, None)
    return {"metadata": metadata, "spec": part(document, "spec")}


def _between(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    was, will_be = _by_name(before), _by_name(after)
    if not (isinstance(was, dict) or isinstance(will_be, dict)):
        if was != will_be:
            yield FieldChange(path, before, after)
        return
    if not all(isinstance(value, dict) or value is None for value in (was, will_be)):
        yield FieldChange(path, before, after)
        return
    former, latter = was or {}, will_be or {}
    if not (former or latter) and before is not after and (before is None or after is None):
        yield FieldChange(path, before, after)
    for name in sorted({*former, *latter}):
        inside = _inside(path, name, is_item=isinstance(before, list) or isinstance(after, list))
        yield from _between(inside, former.get(name), latter.get(name))


def _by_name(value: Any) -> Any:
    """A list of named entries as a map of them; any other value as it is."""
    if not isinstance(value, list) or not value:
        return value
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in value]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return value
    return {
        name: {key: field for key, field in entry.items() if key != "name"}
        for name, entry in zip(names, value, strict=True)
    }


def _inside(path: str, name: str, *, is_item: bool) -> str:
    if is_item or not name.replace("_", "").isalnum():
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name
