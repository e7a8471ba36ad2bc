"""Reads moments as people write them: start, now, a time ago, or a time."""

import time
from datetime import datetime
from typing import Final

from kavka_cli.duration import parse_duration
from kavka_cli.output import CommandError

START: Final = "start"
NOW: Final = "now"


def moment_ms(text: str) -> int | None:
    """The time that a word stands for, in ms since 1970; 0 is the start, None is now. Raises CommandError."""
    if text == START:
        return 0
    if text == NOW:
        return None
    if text.startswith("-"):
        return round((time.time() - parse_duration(text[1:])) * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        words = f'"{text}" is not a time; write start, now, -5m or 2026-11-28T19:00:00Z'
        raise CommandError(words) from None
    return round(moment.astimezone().timestamp() * 1000)
