"""Reads durations as kubectl takes them, and moments as a command line or a form has them."""

import re
import time
from datetime import datetime
from typing import Final

START: Final = "start"
NOW: Final = "now"
A_WEEK_SECONDS = 7 * 24 * 3600.0
LONGEST_SECONDS = 1e12
"""In milliseconds it fits into the 64 bits of a request, with the time now."""

_DURATION = re.compile(r"(-?)((?:\d+(?:\.\d+)?(?:ms|s|m|h))+|\d+(?:\.\d+)?)")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


class BadMomentError(ValueError):
    """A text that is no moment or duration; the message says what to write."""


def duration_seconds(text: str) -> float:
    """The seconds of 30s, 5m, 1h30m or 500ms; as with kubectl, a negative time is a week. Raises BadMomentError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise BadMomentError(f'"{text}" is no duration; write for example 30s, 5m or 1h30m')
    if found[1]:
        return A_WEEK_SECONDS
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(found[2]))
    if seconds > LONGEST_SECONDS:
        raise BadMomentError("the duration is too long; write for example 30s, 5m or 1h30m")
    return seconds


def milliseconds_of(text: str) -> int | None:
    """The time that start, now, -5m or a time in ISO 8601 stands for, in ms since 1970; 0 is the start, None is now.
    Raises BadMomentError.
    """
    if text == START:
        return 0
    if text == NOW:
        return None
    if text.startswith("-"):
        return round((time.time() - duration_seconds(text[1:])) * 1000)
    try:
        moment = datetime.fromisoformat(text)
        return round(moment.astimezone().timestamp() * 1000)  # raises too, of the first and the last years
    except (ValueError, OverflowError, OSError):
        words = f'"{text}" is not a time; write start, now, -5m or 2026-11-28T19:00:00Z'
        raise BadMomentError(words) from None
