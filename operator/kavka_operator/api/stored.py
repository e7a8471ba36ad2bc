"""Resources as an API server or our own store holds them: read with more patience than what a person writes.

Another version may have written them. Fields that this version does not know are left out; of a status, also what this
version does not understand: the next look says it again. Only a spec that cannot be understood is refused, and then
that one resource is left alone until somebody mends it.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from kavka_operator.api.complaints import complaints
from kavka_operator.api.kinds import KINDS, AnyResource

STATUS_FIELDS_MAX = 64


class UnreadableError(ValueError):
    """A stored resource that this version cannot understand; the message says which field, and why."""


def resource_from(value: Mapping[str, Any]) -> AnyResource:
    """The resource that is stored. Raises UnreadableError if this version cannot understand it."""
    model = KINDS.get(str(value.get("kind")))
    if model is None:
        raise UnreadableError(f"kind: {value.get('kind')!r} is not a kind of this version ({', '.join(KINDS)})")
    wanted = {key: field for key, field in value.items() if key in {"apiVersion", "kind", "metadata", "spec"}}
    status = dict(value["status"]) if isinstance(value.get("status"), Mapping) else {}
    for _ in range(STATUS_FIELDS_MAX):
        try:
            return model.model_validate({**wanted, "status": status}, extra="ignore")
        except ValidationError as error:
            faults = [fault["loc"] for fault in error.errors()]
            if any(loc[0] != "status" for loc in faults):
                raise UnreadableError(_in_words(error, model)) from None
            status = {key: field for key, field in status.items() if key not in {loc[1] for loc in faults if loc[1:]}}
    raise UnreadableError("status: cannot be understood")


def _in_words(error: ValidationError, model: type[AnyResource]) -> str:
    found = [fault for fault in complaints(error, model) if fault[0][:1] != ("status",)]
    return "; ".join(f"{'.'.join(map(str, path))}: {message}" for path, message in found)
