"""The answers as CSV, for people: a spreadsheet opens no Parquet.

Moments are those of UTC in words. Names in the trail are clients' own words: a text that a spreadsheet would take for a
formula has an apostrophe before it, and every field is in quotes, as some spreadsheets divide others at a semicolon.
"""

from typing import Final

from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import PART, Lake

ROWS_MAX: Final = 100_000
"""Rows of a file, the first of its table."""
CHARACTERS_MAX: Final = 1_000
"""Characters of a text, of which an entry that a client has forged may have a million."""
FORMULA: Final = "^[=+@\\t\\r\uff1d\uff0b\uff20\uff0d-]"


def write_csv(lake: Lake, name: str) -> None:
    """Write the answer to a question beside its table. Raises LakeError."""
    place = lake.tables / f"{name}.csv"
    part = place.with_name(place.name + PART)
    with connected() as connection:
        found = connection.read_parquet(str(lake.tables / f"{name}.parquet")).limit(ROWS_MAX)
        columns = [_column(column, str(kind)) for column, kind in zip(found.columns, found.types, strict=True)]
        found.project(", ".join(columns)).write_csv(str(part), header=True, quoting="all")
    lake.settle(part, place)


def _column(name: str, kind: str) -> str:
    """Return the expression that makes a column of the file."""
    if kind == "VARCHAR":
        text = f'left("{name}", {CHARACTERS_MAX})'
        return f"CASE WHEN regexp_matches({text}, '{FORMULA}') THEN concat(chr(39), {text}) ELSE {text} END AS {name}"
    if name.endswith("_ms") and not name.startswith("throttle"):
        moment = f'make_timestamp("{name}" * 1000)'
        return f"strftime({moment}, '%Y-%m-%dT%H:%M:%S.%gZ') AS {name.removesuffix('_ms')}"
    return f'"{name}"'
