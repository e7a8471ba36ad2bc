"""How much was moved, refused and held back on each day, as rows of bars for the page.

Bars are boxes of HTML, whose words stay readable on a phone. A day of which the trail tells nothing is grey.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake
from kavka_audit.report.number_format import date, seconds, sized

DAYS_MAX: Final = 90
DAY_MS: Final = 86_400_000
DAYS: Final = """
SELECT
    bucket_ms - bucket_ms % 86400000 AS day_ms, CAST(sum(written_bytes) + sum(read_bytes) AS BIGINT),
    CAST(sum(denied) AS BIGINT), CAST(sum(throttle_time_ms) AS BIGINT)
FROM read_parquet(?) WHERE bucket_ms >= ? GROUP BY day_ms ORDER BY day_ms
"""


@dataclass(frozen=True, slots=True)
class Day:
    """What the trail tells of a day of UTC."""

    day_ms: int
    moved_bytes: int
    denied: int
    throttle_time_ms: int


def days_of(lake: Lake, now_ms: int) -> list[Day]:
    """Return the last `DAYS_MAX` days up to that of the run, without those that the answers have nothing of."""
    place = lake.tables / "traffic.parquet"
    if not place.is_file():  # that question was not asked
        return []
    since_ms = now_ms - now_ms % DAY_MS - (DAYS_MAX - 1) * DAY_MS
    with connected() as connection:
        rows = connection.execute(DAYS, [str(place), since_ms]).fetchall()
    return [Day(*row) for row in rows]


SERIES: Final[Sequence[tuple[str, str, Callable[[Day], int], Callable[[int], str]]]] = (
    ("moved", "written", lambda day: day.moved_bytes, sized),
    ("refused", "lacking", lambda day: day.denied, lambda count: f"{count:,}"),
    ("held back", "twice", lambda day: day.throttle_time_ms, seconds),
)


def trend(days: Sequence[Day], now_ms: int) -> str:
    """Return the rows of bars, or nothing where there is one day at most."""
    if len(days) < 2:
        return ""
    last_ms = now_ms - now_ms % DAY_MS
    told = {day.day_ms: day for day in days}
    shown = [(day_ms, told.get(day_ms)) for day_ms in range(days[0].day_ms, last_ms + 1, DAY_MS)]
    return f'<h2>Day by day</h2><div class="trend">{"".join(_row(shown, last_ms, *series) for series in SERIES)}</div>'


def _row(
    shown: Sequence[tuple[int, Day | None]],
    last_ms: int,
    label: str,
    kind: str,
    figure: Callable[[Day], int],
    words: Callable[[int], str],
) -> str:
    highest, highest_ms = max((figure(day), day_ms) for day_ms, day in shown if day is not None)
    bars = []
    for day_ms, day in shown:
        if day is None:
            bars.append(f'<span class="gap" title="{date(day_ms)}: nothing told"></span>')
            continue
        so_far = " so far" if day_ms == last_ms else ""
        title = escape(f"{date(day_ms)}: {words(figure(day))} {label}{so_far}")
        bar = f'class="{kind}" style="--share:{figure(day) / highest * 100:.1f}%" ' if figure(day) else ""
        bars.append(f'<span {bar}title="{title}"></span>')
    most = f"{words(highest)} at most, on {date(highest_ms)}" if highest else "nothing"
    between = f"{date(shown[0][0])} to {date(last_ms)}"
    return f'<div><p><b>{label}</b> {most}</p><div class="days">{"".join(bars)}</div><p class="key">{between}</p></div>'
