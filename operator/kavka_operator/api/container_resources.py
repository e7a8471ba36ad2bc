"""Requests and limits of a container, by Kubernetes' own names.

What may be asked for besides is Kubernetes' own affair. An amount that is none would be found out by the API server
when the pod is to be made, so it is refused here, by a file's reader and by the API server's CEL alike.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from kavka_operator.api.error_messages import shown

KINDS = ("limits", "requests")
AMOUNTS_MAX = 32
LENGTH_MAX = 32
FIX = "is no amount; write one such as 500m, 2 or 4Gi"
_AMOUNT = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?"  # as Kubernetes reads it
)


def _read(value: object) -> dict[str, Any]:
    """The requests and limits as they are written. Raises ValueError with the field and the fix."""
    found = _entries(value)
    for name in KINDS:
        amounts = _entries(found.get(name, {}), f"{name}: ")
        if len(amounts) > AMOUNTS_MAX:
            raise ValueError(f"{name}: has {len(amounts)} amounts; write {AMOUNTS_MAX} at most")
        for key, amount in amounts.items():
            if not _is_amount(amount):
                raise ValueError(f"{name}.{key}: {shown(amount)} {FIX}")
    return dict(found)


def _entries(value: object, where: str = "") -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise ValueError(f"{where}{shown(value)} is not a map; write a map")


def _is_amount(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LENGTH_MAX and _AMOUNT.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool)


def _amounts(name: str) -> dict[str, Any]:
    amount = {
        "x-kubernetes-int-or-string": True,
        "maxLength": LENGTH_MAX,
        "x-kubernetes-validations": [
            {"rule": "isQuantity(string(self))", "message": FIX, "reason": "FieldValueInvalid"}
        ],
    }
    return {
        "type": "object",
        "description": f"The {name}: amounts by the names of resources.",
        "maxProperties": AMOUNTS_MAX,
        "additionalProperties": amount,
    }


RequestsAndLimits = Annotated[
    dict[str, Any],
    BeforeValidator(_read),
    WithJsonSchema(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {name: _amounts(name) for name in KINDS},
        }
    ),
]
"""A map with requests and limits, which is kept as it is written."""
