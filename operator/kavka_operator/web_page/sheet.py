"""A table before it is drawn: columns, rows, and which rows are shown in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto


class Tone(Enum):
    """The meaning of a colour."""

    PLAIN = auto()
    FAINT = auto()
    NAME = auto()
    GOOD = auto()
    NEAR = auto()
    BAD = auto()
    TITLE = auto()
    KEY = auto()
    TREND = auto()


@dataclass(frozen=True, slots=True)
class Cell:
    """A text with what it is sorted by; what is not told has no `order` and stands last either way."""

    text: str
    order: float | str | None = None
    tone: Tone = Tone.PLAIN


UNTOLD = Cell("not told", None, Tone.FAINT)
SOON = Cell("…", None, Tone.FAINT)
"""Follows from two looks, and there was only one."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Of a narrow screen those of the greatest `rank` go first; flexible ones are cut.

    Rows are sorted by it with the greatest number first, or the first name, unless `is_ascending` says otherwise.
    """

    title: str
    is_number: bool = False
    rank: int = 0
    is_flexible: bool = False
    is_sorting: bool = True
    is_ascending: bool | None = None

    @property
    def is_descending(self) -> bool:
        return self.is_number if self.is_ascending is None else not self.is_ascending


@dataclass(frozen=True, slots=True)
class Row:
    """A row, with a key that stays while its subject does."""

    key: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. `note` says what the cluster does not tell, `sort` is the column by which it is sorted at first."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sort: int
    note: str = ""

    def __post_init__(self) -> None:
        assert all(len(row.cells) == len(self.columns) for row in self.rows), self.name
        assert 0 <= self.sort < len(self.columns), self.name


@dataclass(frozen=True, slots=True)
class Order:
    """The rule by which rows are chosen and sorted."""

    column: int
    is_reversed: bool = False
    filter: str = ""


def arranged(sheet: Sheet, order: Order) -> list[Row]:
    """The rows that match, in order. Rows that are equal stay in the order of their keys."""
    rows = sorted((row for row in sheet.rows if matches(row, order.filter)), key=lambda row: row.key)
    told = [row for row in rows if row.cells[order.column].order is not None]
    untold = [row for row in rows if row.cells[order.column].order is None]
    is_descending = sheet.columns[order.column].is_descending != order.is_reversed
    return [*sorted(told, key=lambda row: _key(row.cells[order.column]), reverse=is_descending), *untold]


def matches(row: Row, words: str) -> bool:
    """Whether a row has each of the words in some cell; `!word` wants it in none."""
    texts = [cell.text.lower() for cell in row.cells]
    return all(_matches(texts, word) for word in words.lower().split())


def _matches(texts: Sequence[str], word: str) -> bool:
    if word.startswith("!") and len(word) > 1:
        return not any(word[1:] in text for text in texts)
    return any(word in text for text in texts)


def _key(cell: Cell) -> tuple[float, str]:
    assert cell.order is not None, "rows without it are kept apart"
    return (0.0, cell.order.lower()) if isinstance(cell.order, str) else (cell.order, "")
