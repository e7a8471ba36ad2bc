"""Which days of completeness are worked out again, and what was found of the others.

What clients tell is much, and a verdict little: the one is kept for two weeks, the other for as long as everything
else. A day is judged again as long as a bucket of it is open, or something new is in the lake that belongs to it. What
is new is known by the names of files: those that the last verdict was made from are written down once it stands, so
that a run that dies before is made again. A merged file has a new name; its days are then judged once more.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kavka_audit.lake.columns import SNAPSHOT
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake

DAY_MS: Final = 86_400_000
TOLD_DAYS: Final = 14
"""How long it is kept what clients tell; older days are not judged again."""
MARK: Final = "judged.json"
TABLE: Final = "completeness"
Row = dict[str, Any]


def stale(lake: Lake, now_ms: int) -> list[Row]:
    """Return the days that are to be judged, as rows."""
    limit_ms = now_ms - (TOLD_DAYS - 1) * DAY_MS
    found = {day_ms for day_ms in (*_touched(lake), *_open(lake)) if day_ms >= limit_ms}
    return [{"day_ms": day_ms} for day_ms in sorted(found)]


def verdicts(lake: Lake, now_ms: int, keep_days: int) -> list[Row]:
    """Return the verdicts of the last run that are not too old."""
    limit_ms = now_ms - keep_days * DAY_MS
    return list(_last(lake, "bucket_ms >= ?", limit_ms))


def note(lake: Lake) -> None:
    """Write down what the verdict that stands now was made from."""
    lake.put(lake.snapshot / MARK, json.dumps(_names(lake)).encode())


def _touched(lake: Lake) -> Iterator[int]:
    mark = lake.snapshot / MARK
    is_known = mark.exists() and _place(lake).exists()
    known = _known(mark) if is_known else set[str]()
    if new := [file for file, name in zip(lake.files("counts"), _names(lake), strict=True) if name not in known]:
        with connected() as connection:
            rows = connection.read_parquet(new, union_by_name=True).filter("bucket_ms IS NOT NULL")
            for (day_ms,) in rows.project("bucket_ms - bucket_ms % 86400000 AS day_ms").distinct().fetchall():
                yield day_ms


def _known(mark: Path) -> set[str]:
    """Return what the mark names; nothing where it is damaged, and then all days are judged again."""
    try:
        return set(json.loads(mark.read_bytes()))
    except (ValueError, TypeError):
        return set()


def _open(lake: Lake) -> Iterator[int]:
    for row in _last(lake, "NOT is_closed"):
        yield row["bucket_ms"] - row["bucket_ms"] % DAY_MS


def _last(lake: Lake, condition: str, *values: int) -> list[Row]:
    if not _place(lake).exists():
        return []
    columns = tuple(SNAPSHOT["verdicts"])
    with connected() as connection:
        query = f"SELECT {', '.join(columns)} FROM read_parquet(?) WHERE {condition}"  # noqa: S608  # no client's words
        rows = connection.execute(query, [str(_place(lake)), *values]).fetchall()
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _place(lake: Lake) -> Any:
    return lake.tables / f"{TABLE}.parquet"


def _names(lake: Lake) -> list[str]:
    return [file.removeprefix(f"{lake.counts}/") for file in lake.files("counts")]
