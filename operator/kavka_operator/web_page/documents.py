"""Makes JSON documents of sheets for the page: cells with their text, what they sort by, and their meaning. Pure.

What a cluster does not tell is `unknown` there, and sorts last. The number of rows and the length of texts are bounded.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kavka_operator.domain import units
from kavka_operator.web_page.sheet import SOON, UNTOLD, Cell, Column, Order, Row, Sheet, Tone, arranged

ROWS_MAX: Final = 5_000
TEXT_CHARACTERS_MAX: Final = 400
UNKNOWN: Final = "unknown"
BARS: Final = ("USED", "DISK")
"""Columns whose cells begin with a bar of characters: the page draws it."""
TITLES: Final[Mapping[str, str]] = {
    "ACLS": "ACLs",
    "BEHIND": "Under-replicated",
    "CLIENT ID": "Client id",
    "clients LIMIT": "Limit per broker",
    "DOES": "Operation",
    "HELD": "Throttled",
    "HELD NOW": "Throttled now",
    "IN": "In",
    "KIND": "Protocol",
    "LEADS": "Leaders",
    "MOST": "Highest use",
    "TRANSACTIONAL ID": "Transactional id",
}
TONES: Final = {Tone.GOOD: "good", Tone.NEAR: "warn", Tone.BAD: "bad", Tone.FAINT: "dim", Tone.NAME: "name"}

Document = dict[str, Any]
Links = Mapping[str, Sequence[str]]


def sheet_document(sheet: Sheet, title: str, links: Links | None = None, rows_max: int = ROWS_MAX) -> Document:
    """Return a sheet with so many rows at most; `links` are the places on the page that rows lead to, by their keys."""
    rows = arranged(sheet, Order(sheet.sort))
    return {
        "name": sheet.name,
        "title": title,
        "columns": [_column(sheet.name, column) for column in sheet.columns],
        "rows": [_row(sheet, row, links or {}) for row in rows[:rows_max]],
        "omitted": max(0, len(rows) - rows_max),
        "sort": sheet.sort,
        "note": sheet.note,
    }


def _column(sheet: str, column: Column) -> Document:
    return {
        "title": TITLES.get(f"{sheet} {column.title}") or title_of(column.title),
        "isNumber": column.is_number,
        "isSorting": column.is_sorting,
        "isDescending": column.is_descending,
    }


def title_of(title: str) -> str:
    """The title of a column as a page has it: `LAG GROWS/S` is `Lag grows/s`."""
    return TITLES.get(title, title.capitalize())


def _row(sheet: Sheet, row: Row, links: Links) -> Document:
    cells = zip(sheet.columns, row.cells, strict=True)
    found: Document = {"key": row.key, "cells": [_cell(column, cell) for column, cell in cells]}
    if row.key in links:
        found["link"] = list(links[row.key])
    return found


def _cell(column: Column, cell: Cell) -> Document:
    if cell == UNTOLD:
        return {"text": UNKNOWN, "order": None, "tone": "dim"}
    if cell == SOON:
        return {"text": cell.text, "order": None, "tone": "dim"}
    found: Document = {"text": shortened(cell.text), "order": cell.order}
    if isinstance(cell.order, str):
        found["order"] = shortened(cell.order.lower())
    elif cell.order is not None and not math.isfinite(cell.order):
        found["order"] = None  # a metrics page may hold NaN, and JSON does not
    if cell.tone in TONES:
        found["tone"] = TONES[cell.tone]
    if column.title in BARS and isinstance(cell.order, int | float) and math.isfinite(cell.order):
        found |= {"text": units.share(cell.order), "share": min(1.0, max(0.0, float(cell.order)))}
    if cell.tone is Tone.TREND:
        found["trend"] = [units.BARS.index(mark) for mark in cell.text if mark in units.BARS]
    return found


def shortened(text: str) -> str:
    """The text, cut where it is too long for a cell."""
    return text if len(text) <= TEXT_CHARACTERS_MAX else text[: TEXT_CHARACTERS_MAX - 1] + "…"


def facts(pairs: Iterable[tuple[str, str, str]]) -> list[Document]:
    """Return the facts that stand above sheets, from their names, texts and tones."""
    return [{"name": name, "text": text, "tone": tone} for name, text, tone in pairs]
