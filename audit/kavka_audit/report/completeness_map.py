"""Completeness as a map: a line for each topic and tier, the worst first, and a field for each bucket of a day."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from kavka_audit.report.number_format import moment, tier

BUCKET_MS: Final = 600_000
COLUMNS: Final = 144
LINES_MAX: Final = 20
LEFT: Final = 300
FIELD: Final = 4
HEIGHT: Final = 18
CHARACTERS_MAX: Final = 42
Row = Mapping[str, Any]


def heat(rows: Sequence[Row]) -> str:
    """Return the map, or nothing without rows. The last day is shown that any row is of."""
    if not rows:
        return ""
    first = max(row["bucket_ms"] for row in rows) - (COLUMNS - 1) * BUCKET_MS
    lines = _lines([row for row in rows if row["bucket_ms"] >= first])
    body = "".join(_line(number, found, first) for number, found in enumerate(lines))
    width, height = LEFT + COLUMNS * FIELD, len(lines) * HEIGHT + HEIGHT
    labels = (
        f'<text x="{LEFT}" y="{height - 5}">{moment(first)}</text>'
        f'<text x="{width}" y="{height - 5}" text-anchor="end">{moment(first + (COLUMNS - 1) * BUCKET_MS)}</text>'
    )
    words = f"Completeness of {len(lines)} topics and tiers by buckets of ten minutes from {moment(first)} on"
    marks = " ".join(f'<span class="{kind}"></span>{label}' for kind, label in KINDS.items())
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(words)}">{body}{labels}</svg>'
        f'<p class="key">{marks}</p>'
    )


KINDS: Final = {"lacking": "missing", "twice": "twice", "whole": "whole", "open": "not closed yet"}


def _lines(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows by topic and tier, those first that lack most."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["topic"], row["tier"], row["name"]), []).append(row)
    worst = sorted(found.items(), key=lambda line: (-sum(map(_wrong, line[1])), line[0]))
    return [of for _, of in worst[:LINES_MAX]]


def _wrong(row: Row) -> int:
    return int(row["missing"] + row["duplicates"]) if row["is_closed"] else 0


def _line(number: int, rows: Sequence[Row], first: int) -> str:
    top = number * HEIGHT
    name = f"{rows[0]['topic']}, {tier(rows[0])}"
    shown = name if len(name) <= CHARACTERS_MAX else name[: CHARACTERS_MAX - 1] + "…"
    label = f'<text x="0" y="{top + HEIGHT - 5}"><title>{escape(name)}</title>{escape(shown)}</text>'
    return label + "".join(_field(row, LEFT + (row["bucket_ms"] - first) // BUCKET_MS * FIELD, top) for row in rows)


def _field(row: Row, left: int, top: int) -> str:
    sums = f"{row['missing']:,} missing and {row['duplicates']:,} twice of {row['expected']:,}"
    title = f"{moment(row['bucket_ms'])}: {sums}"
    place = f'x="{left}" y="{top}" width="{FIELD}" height="{HEIGHT - 3}"'
    return f'<rect class="{_kind(row)}" {place}><title>{escape(title)}</title></rect>'


def _kind(row: Row) -> str:
    if not row["is_closed"]:
        return "open"
    if row["missing"]:
        return "lacking"
    return "twice" if row["duplicates"] else "whole"
