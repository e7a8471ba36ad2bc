"""A sheet as lines of text: which columns fit, how wide they are, what is cut. Pure, so that tests read the screen."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from kavka_operator.web_page.sheet import Cell, Column, Order, Row, Sheet, Tone

Span = tuple[str, Tone]
Line = list[Span]

GAP = "  "
EDGE = " "
FLEXIBLE_CELLS_MIN = 10
READABLE_CELLS_MIN = 24
EXTRA_RANK = 3
ARROWS = {True: "↓", False: "↑"}


def widths_of(sheet: Sheet, rows: Sequence[Row], width: int) -> dict[int, int]:
    """The columns that fit and their widths.

    Names are cut a little, then the columns that matter least go, then names are cut more, then other columns go.
    """
    natural = [_natural(sheet, rows, index) for index in range(len(sheet.columns))]
    room = width - len(EDGE)
    shown = list(range(len(natural)))
    for cells_min, rank in ((READABLE_CELLS_MIN, EXTRA_RANK), (FLEXIBLE_CELLS_MIN, 1)):
        while _least(sheet, natural, shown, cells_min) > room:
            last = max(shown, key=lambda index: sheet.columns[index].rank)
            if sheet.columns[last].rank < rank:
                break
            shown.remove(last)
    return _cut(sheet, natural, shown, room)


def head(sheet: Sheet, widths: Mapping[int, int], order: Order) -> Line:
    """The titles of the columns, with an arrow at that by which rows are sorted."""
    line: Line = [(EDGE, Tone.TITLE)]
    for index, cells in widths.items():
        title = _title(sheet.columns[index], is_sorted=index == order.column, is_reversed=order.is_reversed)
        line += _aligned(Cell(title, None, Tone.TITLE), sheet.columns[index], cells)
    return line


def body(sheet: Sheet, widths: Mapping[int, int], row: Row) -> Line:
    """One row."""
    line: Line = [(EDGE, Tone.PLAIN)]
    for index, cells in widths.items():
        line += _aligned(row.cells[index], sheet.columns[index], cells)
    return line


def details(sheet: Sheet, row: Row) -> list[Line]:
    """Every cell of a row, a line each, also those that do not fit on the screen."""
    wide = max(len(column.title) for column in sheet.columns)
    return [
        [(f"{column.title:>{wide}}  ", Tone.FAINT), (cell.text, cell.tone)]
        for column, cell in zip(sheet.columns, row.cells, strict=True)
    ]


def nothing(sheet: Sheet, order: Order) -> Line:
    """The line in place of rows where there are none."""
    return [(f"{EDGE}no {sheet.name}" + (f" with {order.filter}" if order.filter else ""), Tone.FAINT)]


def text_of(line: Line) -> str:
    """The characters of a line."""
    return "".join(text for text, _ in line)


def _title(column: Column, *, is_sorted: bool, is_reversed: bool) -> str:
    return column.title + (ARROWS[column.is_descending != is_reversed] if is_sorted else "")


def _natural(sheet: Sheet, rows: Sequence[Row], index: int) -> int:
    """The width of a column with nothing cut; its title has room for the arrow."""
    longest = max((cell_len(row.cells[index].text) for row in rows), default=0)
    return max(longest, len(sheet.columns[index].title) + 1)


def _least(sheet: Sheet, natural: Sequence[int], shown: Sequence[int], cells_min: int) -> int:
    cells = [min(natural[at], cells_min) if sheet.columns[at].is_flexible else natural[at] for at in shown]
    return sum(cells) + len(GAP) * (len(cells) - 1)


def _cut(sheet: Sheet, natural: Sequence[int], shown: Sequence[int], room: int) -> dict[int, int]:
    """The widths where the widest flexible columns are cut until all fit."""
    widths = {index: natural[index] for index in shown}
    flexible = [index for index in shown if sheet.columns[index].is_flexible]
    while sum(widths.values()) + len(GAP) * (len(widths) - 1) > room and flexible:
        widest = max(flexible, key=lambda index: widths[index])
        if widths[widest] <= FLEXIBLE_CELLS_MIN:
            break
        widths[widest] -= 1
    return widths


def _aligned(cell: Cell, column: Column, cells: int) -> Line:
    text = cell.text
    if cell_len(text) > cells:
        text = set_cell_size(text, cells - 1) + "…"
    padding = " " * (cells - cell_len(text))
    return [((padding + text) if column.is_number else (text + padding), cell.tone), (GAP, cell.tone)]
