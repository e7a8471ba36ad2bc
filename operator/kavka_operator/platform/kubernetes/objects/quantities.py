"""Amounts of a pod's requests and limits, so that one amount in two spellings is the same. Pure.

People write 0.5 or 500m, 2 or "2", and an API server may give back another spelling than it was given.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from kavka_operator.api.quantity import SUFFIXES
from kavka_operator.api.stored_resources import part

KINDS: Final = ("limits", "requests")
AMOUNT: Final = re.compile(r"^([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)$")
FACTORS: Final = {"m": Decimal("0.001"), **{suffix: Decimal(factor) for suffix, factor in SUFFIXES.items()}}


def plain(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Requests and limits with each amount as a plain number; as it is written where it is none."""
    return {
        name: {key: _plain(value) for key, value in part(resources, name).items()} if name in KINDS else asked
        for name, asked in resources.items()
    }


def number_of(value: object) -> Decimal | None:
    """An amount as a number; None where it is none, or is spelled in a rare way."""
    found = AMOUNT.match(str(value))
    return None if found is None or found[2] not in FACTORS else Decimal(found[1]) * FACTORS[found[2]]


def _plain(value: object) -> str:
    number = number_of(value)
    return str(value) if number is None else f"{number.normalize():f}"
