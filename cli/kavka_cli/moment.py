"""Reads moments as people write them: start, now, a time ago, or a time."""

from kavka_cli.output import CommandError
from kavka_operator.domain.moments import BadMomentError, milliseconds_of


def moment_ms(text: str) -> int | None:
    """The time that a word stands for, in ms since 1970; 0 is the start, None is now. Raises CommandError."""
    try:
        return milliseconds_of(text)
    except BadMomentError as error:
        raise CommandError(str(error)) from error
