"""Cells that several views have."""

from collections.abc import Callable

from kavka_operator.domain import units
from kavka_operator.web_page.sheet import SOON, UNTOLD, Cell, Tone

NEAR = 0.8
AT = 0.995
NO_PAGES = "Kafka's API does not tell rates of clients; name the brokers' metrics pages: --metrics HOST:PORT,..."


def name(text: str, tone: Tone = Tone.NAME) -> Cell:
    """A name; an empty one in words."""
    shown = units.printable(text)
    return Cell(shown, text, tone) if shown else Cell("(empty)", "", Tone.FAINT)


def number(value: float | None, shown: Callable[[float], str] = units.count, *, awaited: bool = False) -> Cell:
    """A number; where there is none it is not told, or told with the next look."""
    if value is None:
        return SOON if awaited else UNTOLD
    return Cell(shown(value), value, Tone.PLAIN if value else Tone.FAINT)


def alarming(value: int) -> Cell:
    """A number that should be 0."""
    return Cell(units.count(value), float(value), Tone.BAD if value else Tone.FAINT)


def usage(part: float | None, *, is_limited: bool) -> Cell:
    """The cell that shows the use of a limit, as a bar and in per cent."""
    if part is None:
        return UNTOLD if is_limited else Cell("", None)
    tone = Tone.BAD if part >= AT else Tone.NEAR if part >= NEAR else Tone.GOOD
    return Cell(f"{units.bar(part)}{units.share(part):>6}", part, tone)


def held(seconds_a_second: float | None, *, awaited: bool) -> Cell:
    """The share of the time for which connections were held back."""
    if seconds_a_second is None:
        return SOON if awaited else UNTOLD
    tone = Tone.BAD if seconds_a_second >= 0.1 else Tone.NEAR if seconds_a_second > 0 else Tone.FAINT
    return Cell(units.share(seconds_a_second), seconds_a_second, tone)
