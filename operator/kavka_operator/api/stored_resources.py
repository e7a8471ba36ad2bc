"""Resources as an API server or our own store holds them: read with more patience than what a person writes.

Another version may have written them. Fields that this version does not know are left out; of a status, also what this
version does not understand: the next look says it again. Only a spec that cannot be understood is refused, and then
that one resource is left alone until somebody mends it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kavka_operator.api.kinds import KINDS, AnyResource, Key
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.api.yaml_lines import Where

STATUS_FIELDS_MAX = 64


class UnreadableError(ValueError):
    """A stored resource that this version cannot understand; the message says which field, and why."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stored resource that this version cannot understand: what it is, as far as that is known, and why not."""

    key: Key
    document: dict[str, Any]
    words: str

    @property
    def is_deleted(self) -> bool:
        """Whether its deletion was asked for."""
        return bool(part(self.document, "metadata").get("deletionTimestamp"))

    @property
    def topic_name(self) -> str | None:
        """The topic that it claims, if it is a Topic."""
        return str(part(self.document, "spec").get("topicName") or self.key[2]) if self.key[0] == "Topic" else None


def part(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A map in a document; empty where there is none."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def resource_from(value: Mapping[str, Any]) -> AnyResource:
    """The resource that is stored. Raises UnreadableError if this version cannot understand it."""
    model = KINDS.get(str(value.get("kind")))
    if model is None:
        raise UnreadableError(f"kind: {value.get('kind')!r} is not a kind of this version ({', '.join(KINDS)})")
    wanted = {key: field for key, field in value.items() if key in {"apiVersion", "kind", "metadata", "spec"}}
    status = dict(value["status"]) if isinstance(value.get("status"), Mapping) else {}
    for _ in range(STATUS_FIELDS_MAX):
        try:
            return model.decode({**wanted, "status": status}, is_strict=False)
        except InvalidError as error:
            faults = [path for path, _ in error.faults]
            if any(path[0] != "status" for path in faults):
                raise UnreadableError(_in_words(error.faults)) from None
            status = {key: part for key, part in status.items() if key not in {path[1] for path in faults if path[1:]}}
    raise UnreadableError("status: cannot be understood")


def _in_words(faults: tuple[tuple[Where, str], ...]) -> str:
    found = [fault for fault in faults if fault[0][:1] != ("status",)]
    return "; ".join(f"{'.'.join(map(str, path))}: {message}" for path, message in found)
