"""Amounts as Kubernetes writes them: `10Mi` is 10 x 1024 x 1024, `10M` and `10e6` are ten million, `1500` is itself.

One spelling, so that a number in a resource means the same here and in `kubectl`. Other spellings that people use
("10 MiB", "10MB/s") are refused, with the spelling that would have worked, rather than guessed at: whether a "10MB"
was meant as 10M or 10Mi is not ours to decide.
"""

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from kavka_operator.api.error_messages import shown

SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
PATTERN = r"^[0-9]+(\.[0-9]{1,9})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi|[eE][0-9]{1,2})?$"
QUANTITY_MAX = 2**63 - 2  # an API server takes anything above it for one more
_TEXT_MAX = 32

_LOOSE = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtT]?)(i?)([bB]?)(?:ytes?)?\s*(?:/\s*s|ps)?\s*$")
_STRICT = re.compile(PATTERN)
_SPLIT = re.compile(r"^([0-9]+)(?:\.([0-9]+))?(?:[eE]([0-9]+)|([A-Za-z]*))$")


def parse(value: object) -> int:
    """The number of units that `value` stands for. Raises ValueError with the spelling that would do."""
    match value:
        case bool():
            raise ValueError(f"{str(value).lower()} is not an amount; write a number such as 10Mi")
        case int():
            return _bounded(value, str(value))
        case float() if value.is_integer():
            return _bounded(int(value), str(value))
        case str() if len(value) <= _TEXT_MAX and _STRICT.match(value):
            return _bounded(_exact(value), value)
        case str():
            raise ValueError(_complaint(value))
        case _:
            raise ValueError(f"{value!r} is not an amount; write a number such as 10Mi")


def spell(amount: float) -> str:
    """The shortest exact spelling of a whole amount (10485760 -> 10Mi); other numbers as they are."""
    if not math.isfinite(amount) or amount != int(amount):
        return f"{amount:g}"
    whole = int(amount)
    exact = [(factor, suffix) for suffix, factor in SUFFIXES.items() if whole and whole % factor == 0]
    factor, suffix = max(exact, default=(1, ""))
    return f"{whole // factor}{suffix}"


def _exact(text: str) -> int:
    """Whole units, without a detour over floats: 0.1Gi is 107374182."""
    found = _SPLIT.match(text)
    assert found is not None, text
    whole, fraction, exponent = found[1], found[2] or "", found[3]
    factor = SUFFIXES[found[4]] if exponent is None else int(10 ** int(exponent))
    return int(whole + fraction) * factor // int(10 ** len(fraction))


def _bounded(amount: int, text: str) -> int:
    if 0 < amount <= QUANTITY_MAX:
        return amount
    raise ValueError(f"{text} is out of range; write an amount from 1 to {QUANTITY_MAX}")


def _complaint(text: str) -> str:
    loose = _LOOSE.match(text)
    if loose is None or len(text) > _TEXT_MAX:
        return f"{shown(text[:_TEXT_MAX])} is not an amount; write a number such as 10Mi"
    number, letter, binary, unit = loose.groups()
    if text.strip() == f"{number}m":
        return (
            f'"{text}" would be thousandths, as Kubernetes writes them; write "{number}M" (millions) or a whole number'
        )
    wanted = _suffix(letter, binary)
    wrong = "has a space" if " " in text else f'has a unit ("{text[len(number) :].strip()}") that is not known'
    if unit and not binary and letter:
        binary_suffix = _suffix(letter, "i")
        return f'"{text}" {wrong}; write "{number}{binary_suffix}" (1024) or "{number}{wanted}" (1000)'
    return f'"{text}" {wrong}; write "{number}{wanted}"'


def _suffix(letter: str, binary: str) -> str:
    upper = letter.upper()
    return f"{upper}i" if binary and upper else ("k" if upper == "K" else upper)


Quantity = Annotated[
    int,
    BeforeValidator(parse),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": PATTERN,
            "maxLength": _TEXT_MAX,
            "x-kubernetes-validations": [
                {
                    "rule": "quantity(string(self)).compareTo(quantity('1')) >= 0"
                    f" && quantity(string(self)).compareTo(quantity('{QUANTITY_MAX + 1}')) < 0",
                    "message": f"is out of range; write an amount from 1 to {QUANTITY_MAX}",
                    "reason": "FieldValueInvalid",
                }
            ],
        }
    ),
]
"""A positive amount: an integer, or a number with one of the suffixes k M G T P Ki Mi Gi Ti Pi, or an exponent."""
