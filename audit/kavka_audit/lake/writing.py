"""Rows into Parquet, by DuckDB: it reads them as lines of JSON, so that nothing else has to know the format."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from kavka_audit.lake.columns import Columns
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import PART, Lake


def line_of(row: Mapping[str, object]) -> str:
    """Return a row as a line of JSON. Bytes stand in it as DuckDB writes them in a text."""
    return json.dumps(row, default=_escaped)


def _escaped(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} in a row")
    return "".join(f"\\x{byte:02X}" for byte in value)


def write(lake: Lake, place: Path, rows: Iterable[Mapping[str, object]], columns: Columns) -> None:
    """Write rows, whole or not at all."""
    write_lines(lake, place, map(line_of, rows), columns)


def write_lines(lake: Lake, place: Path, rows: Iterable[str], columns: Columns) -> None:
    """Write rows, each of which is an object of JSON in one line, whole or not at all."""
    lines, part = place.with_name(f"{place.name}.lines{PART}"), place.with_name(place.name + PART)
    with lines.open("w", encoding="utf-8") as file:
        file.writelines(f"{row}\n" for row in rows)
    with connected() as connection:
        read = connection.read_json(str(lines), columns=dict(columns), format="newline_delimited")
        read.write_parquet(str(part), compression="zstd")
    lines.unlink()
    lake.settle(part, place)
