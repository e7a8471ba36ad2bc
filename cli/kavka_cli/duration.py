"""Reads durations as kubectl takes them."""

import re

from kavka_cli.output import CommandError

A_WEEK_SECONDS = 7 * 24 * 3600.0

_DURATION = re.compile(r"(-?)((?:\d+(?:\.\d+)?(?:ms|s|m|h))+|\d+(?:\.\d+)?)")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """The seconds of 30s, 5m, 1h30m or 500ms; as with kubectl, a negative time is a week. Raises CommandError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise CommandError(f'"{text}" is no duration; write for example 30s, 5m or 1h30m')
    if found[1]:
        return A_WEEK_SECONDS
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(found[2]))
