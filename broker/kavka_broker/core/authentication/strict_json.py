"""JSON of strangers: one object, or an error of one kind, however deep or odd it is."""

import json
from typing import Any, NoReturn


class JsonError(Exception):
    """The text is no object of JSON."""


def parse_object(text: bytes) -> dict[str, Any]:
    """The object. Raises JsonError for anything else, a name that is given twice among it."""
    try:
        found = json.loads(text.decode(), parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise JsonError("not JSON") from None
    if not isinstance(found, dict):
        raise JsonError("no object")
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers might each take another one of two values."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found
