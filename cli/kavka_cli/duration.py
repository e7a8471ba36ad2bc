"""Reads durations as kubectl takes them, for options of the command."""

from kavka_cli.output import CommandError
from kavka_operator.domain.moments import BadMomentError, duration_seconds


def parse_duration(text: str) -> float:
    """The seconds of 30s, 5m, 1h30m or 500ms; as with kubectl, a negative time is a week. Raises CommandError."""
    try:
        return duration_seconds(text)
    except BadMomentError as error:
        raise CommandError(str(error)) from error
