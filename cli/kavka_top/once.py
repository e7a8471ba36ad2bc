"""Tables and JSON of the views, as `kavka top --once` prints them: for pipes, scripts and tickets."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Final

from kavka_operator.api.printer_columns import aligned
from kavka_operator.domain import units
from kavka_operator.live_views.model import History
from kavka_operator.live_views.sources import Source
from kavka_operator.live_views.tables import VIEWS
from kavka_operator.web_page.sheet import SOON, UNTOLD, Cell, Column, Order, Sheet, Tone, arranged

Document = dict[str, str | float | None]

PER_SECOND: Final = "/S"


def look_twice(source: Source, seconds: float, sleep: Callable[[float], None] = time.sleep) -> History:
    """Return two looks that are `seconds` apart: rates follow from two. Raises AdminError."""
    first = History.after(None, source.take())
    sleep(seconds)
    return History.after(first, source.take())


def tables(history: History, names: list[str]) -> Iterator[str]:
    """Give each of these views as text: its name, its rows in the order of the screen, and what is not told."""
    for name in names:
        sheet = VIEWS[name](history)
        rows = arranged(sheet, Order(sheet.sort))
        titles = [column.title for column in sheet.columns]
        yield name.upper()
        yield aligned([titles, *([cell.text for cell in row.cells] for row in rows)]) if rows else "(none)"
        if sheet.note:
            yield sheet.note
        yield ""
    yield from map(units.printable, history.now.untold)


def document(history: History, names: list[str]) -> dict[str, object]:
    """Return these views as JSON: rows by view, numbers in base units, null for what is not told."""
    views = {name: list(_rows(VIEWS[name](history))) for name in names}
    return {"cluster": history.now.name, "seconds": round(history.seconds, 3), **views, "untold": history.now.untold}


def _rows(sheet: Sheet) -> Iterator[Document]:
    columns = [(at, column) for at, column in enumerate(sheet.columns) if column.is_sorting]  # a trend is a drawing
    for row in arranged(sheet, Order(sheet.sort)):
        yield {key(column): value(column, row.cells[at]) for at, column in columns}


def key(column: Column) -> str:
    """Return the title of a column as a key: `LAG GROWS/S` is `lagGrowsPerSecond`."""
    words: list[str] = re.findall(r"[A-Z]+", column.title.replace(PER_SECOND, " PER SECOND"))
    return words[0].lower() + "".join(word.capitalize() for word in words[1:])


def value(column: Column, cell: Cell) -> str | float | None:
    """Return what a cell says; None where that is nothing, or a word in place of a number."""
    if cell in (UNTOLD, SOON):
        return None
    if column.is_number:
        is_told = isinstance(cell.order, int | float) and any(letter.isdigit() for letter in cell.text)
        return cell.order if is_told else None
    is_name = cell.tone is Tone.NAME and isinstance(cell.order, str)
    return (cell.order if is_name else cell.text) or None
