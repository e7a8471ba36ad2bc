"""A plot of the traffic as SVG: what was written and read in each bucket of ten minutes."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Final

from kavka_audit.report.number_format import moment, seconds, sized

WIDTH: Final = 900
HEIGHT: Final = 180
BOTTOM: Final = 20
BUCKET_MS: Final = 600_000
BARS_MAX: Final = 450
TOP: Final = 16
"""The height above the bars that marks take."""
MARKS: Final[tuple[tuple[str, str, Callable[[int], str]], ...]] = (
    ("denied", "lacking", lambda count: f"{count:,} refused"),
    ("throttle_time_ms", "twice", lambda delay_ms: f"{seconds(delay_ms)} held back"),
)
SERIES: Final = (("written_bytes", "written"), ("read_bytes", "read"))


def plot(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the plot, or nothing without traffic. Of a long time the newest `BARS_MAX` buckets are shown. `rows` begin
    with the newest.
    """
    shown = [row for row in reversed(rows) if row["bucket_ms"] > rows[0]["bucket_ms"] - BARS_MAX * BUCKET_MS]
    highest = max((row[name] for row in shown for name, _ in SERIES), default=0)
    if not highest:
        return ""
    first = shown[0]["bucket_ms"]
    count = (shown[-1]["bucket_ms"] - first) // BUCKET_MS + 1
    step = WIDTH / count
    bars = "".join(_bars(row, (row["bucket_ms"] - first) // BUCKET_MS * step, step, highest) for row in shown)
    bars += "".join(_marks(row, (row["bucket_ms"] - first) // BUCKET_MS * step, step) for row in shown)
    words = f"Bytes written and read from {moment(first)} on; the highest bar is {sized(highest)}"
    labels = (
        f'<text x="0" y="{HEIGHT + BOTTOM - 4}">{moment(first)}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + BOTTOM - 4}" text-anchor="end">{moment(shown[-1]["bucket_ms"])}</text>'
    )
    size = f'class="plot" viewBox="0 0 {WIDTH} {HEIGHT + BOTTOM}"'
    return f'<svg {size} role="img" aria-label="{escape(words)}">{bars}{labels}</svg><p class="key">{_key(highest)}</p>'


def _marks(row: Mapping[str, Any], left: float, step: float) -> str:
    """Mark a bucket in which clients were refused or held back, above its bars."""
    found = []
    for number, (name, label, words) in enumerate(MARKS):
        if row[name]:
            told = words(row[name])
            place = f'x="{left:.1f}" y="{number * 7}" width="{max(step - 1, 1):.1f}" height="5"'
            title = f"{moment(row['bucket_ms'])}: {told}"
            found.append(f'<rect class="{label}" {place}><title>{escape(title)}</title></rect>')
    return "".join(found)


def _bars(row: Mapping[str, Any], left: float, step: float, highest: int) -> str:
    width = max(step / 2 - min(step / 8, 4), 0.5)
    found = []
    for number, (name, label) in enumerate(SERIES):
        height = row[name] / highest * (HEIGHT - TOP)
        place = f'x="{left + number * width:.1f}" y="{HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}"'
        title = f"{moment(row['bucket_ms'])}: {sized(row[name])} {label}"
        found.append(f'<rect class="{label}" {place}><title>{escape(title)}</title></rect>')
    return "".join(found)


def _key(highest: int) -> str:
    marks = " ".join(f'<span class="{label}"></span>{label}' for _, label in SERIES)
    marks += ' <span class="lacking"></span>refused <span class="twice"></span>held back'
    return f"{marks}; the highest bar is {sized(highest)} in ten minutes"
