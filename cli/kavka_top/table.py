"""The table on the screen: rows that move under a cursor, which stays with its row when the rows change places."""

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from kavka_operator.web_page.sheet import Order, Row, Sheet, Tone, arranged
from kavka_top import drawing
from kavka_top.colours import BACKGROUND, CHOSEN, style_of
from kavka_top.drawing import Line

HEAD_LINES = 1


class Table(Widget):
    """A sheet, arranged, with one row chosen."""

    can_focus = True

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self._sheet: Sheet | None = None
        self._order = Order(0)
        self._cursor = 0
        self._top = 0
        self._lines: list[Line] = []

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self._cursor] if self.rows else None

    @property
    def page_rows(self) -> int:
        """The number of rows that fit."""
        return max(1, self.size.height - HEAD_LINES)

    def show(self, sheet: Sheet, order: Order) -> None:
        """Show a sheet. The row that was chosen stays so if it is still there."""
        is_same = self._sheet is not None and self._sheet.name == sheet.name
        key = self.chosen.key if self.chosen is not None and is_same else None
        self._sheet, self._order, self.rows = sheet, order, arranged(sheet, order)
        found = next((at for at, row in enumerate(self.rows) if row.key == key), None)
        self.choose(found if found is not None else self._cursor if is_same else 0)

    def choose(self, index: int) -> None:
        """Move the cursor to a row, or to the nearest that is there."""
        self._cursor = max(0, min(index, len(self.rows) - 1))
        self._top = max(self._cursor - self.page_rows + 1, min(self._top, self._cursor))
        self._top = max(0, min(self._top, len(self.rows) - self.page_rows))
        self._draw()

    def move(self, steps: int) -> None:
        """Move the cursor by some rows."""
        self.choose(self._cursor + steps)

    def find(self, words: str) -> bool:
        """Move the cursor to the next row with these words in a cell; whether there is one."""
        count = len(self.rows)
        for index in (*range(self._cursor + 1, count), *range(min(self._cursor + 1, count))):
            if any(words.lower() in cell.text.lower() for cell in self.rows[index].cells):
                self.choose(index)
                return True
        return False

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else []
        background = CHOSEN if self.rows and y == self._cursor - self._top + HEAD_LINES else BACKGROUND
        segments = [Segment(text, style_of(tone, background)) for text, tone in line]
        return (
            Strip(segments)
            .extend_cell_length(self.size.width, style_of(Tone.PLAIN, background))
            .crop(0, self.size.width)
        )

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def on_resize(self) -> None:
        self.choose(self._cursor)

    def _draw(self) -> None:
        if self._sheet is not None:
            widths = drawing.widths_of(self._sheet, self.rows, self.size.width)
            shown: Sequence[Row] = self.rows[self._top : self._top + self.page_rows]
            body = [drawing.body(self._sheet, widths, row) for row in shown]
            rest = body or [drawing.nothing(self._sheet, self._order)]
            self._lines = [drawing.head(self._sheet, widths, self._order), *rest]
        self.refresh()
