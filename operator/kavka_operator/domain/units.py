"""Numbers as a person reads them in a column: three figures and a unit."""

from collections.abc import Sequence

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
DECIMAL = ("", "k", "M", "G", "T", "P")
BARS = "▁▂▃▄▅▆▇█"
EIGHTHS = "▏▎▍▌▋▊▉█"
BAR_CELLS = 6
UNKNOWN = "?"  # what a cluster did not tell
BYTE_KINDS = ("produce", "fetch")
OTHER_KINDS = {"request": " %", "controller_mutation": "/s", "connection_creation": "/s"}


def size(count: float) -> str:
    """An amount of bytes: 12.3 MiB."""
    number, unit = _scaled(count, 1024, BINARY)
    return f"{number} {unit}"


def rate(per_second: float) -> str:
    """Bytes a second: 12.3 MiB/s."""
    return size(per_second) + "/s"


def amount(kind: str, value: float) -> str:
    """The unit that quotas of a kind count: bytes a second, a share of the loop's time, or things a second."""
    if kind in BYTE_KINDS:
        return rate(value)
    return f"{value:.3g}{OTHER_KINDS.get(kind, '')}"


def count(value: float) -> str:
    """A number of things: 12.3k."""
    return "".join(_scaled(value, 1000, DECIMAL))


def exact(value: int | None) -> str:
    """A number with all its figures: 12,345; None is not known."""
    return UNKNOWN if value is None else f"{value:,}"


def seconds(value: float) -> str:
    """A time: 12 s, 3 min, 2.5 h."""
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def share(part: float) -> str:
    """A part of a whole in per cent; far above it, how many times."""
    return f"{part:.0%}".replace("%", " %") if part < 100 else f"{count(part)} ×"


def change(per_second: float) -> str:
    """Growth or decline, with its sign."""
    return "0" if abs(per_second) < 0.5 else f"{'+' if per_second > 0 else '−'}{count(abs(per_second))}"


def bar(part: float, cells: int = BAR_CELLS) -> str:
    """A part of a whole as a bar of `cells` characters."""
    eighths = round(min(max(part, 0.0), 1.0) * cells * len(EIGHTHS))
    whole, rest = divmod(eighths, len(EIGHTHS))
    return ("█" * whole + (EIGHTHS[rest - 1] if rest else "")).ljust(cells)


def trend(values: Sequence[float]) -> str:
    """A line of bars, the tallest for the greatest value."""
    greatest = max(values, default=0.0)
    if greatest <= 0:
        return BARS[0] * len(values)
    return "".join(BARS[min(len(BARS) - 1, int(max(value, 0.0) / greatest * len(BARS)))] for value in values)


def printable(name: str) -> str:
    """A name without what a terminal would obey: clients choose their ids, also with escape sequences."""
    return "".join(character if character.isprintable() else "·" for character in name)


def _scaled(value: float, step: int, units: Sequence[str]) -> tuple[str, str]:
    if value < 1 and value > 0:
        return "<1", units[0]
    index = 0
    while round(value, 1) >= step and index < len(units) - 1:
        value, index = value / step, index + 1
    return (f"{value:.0f}" if not index or value >= 100 else f"{value:.1f}"), units[index]
