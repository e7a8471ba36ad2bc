"""The pure parts of the screen: units, order and filter, which columns fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kavka_operator.domain import units
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Order, Row, Sheet, arranged
from kavka_top.drawing import body, details, head, text_of, widths_of

SHEET = Sheet(
    "things",
    (
        Column("NAME", is_flexible=True),
        Column("AGE", is_number=True),
        Column("COLOUR", rank=1),
        Column("EXTRA", rank=4, is_flexible=True),
    ),
    tuple(
        Row(name, (Cell(name, name), age, Cell(colour, colour), Cell("x" * 30, None)))
        for name, age, colour in (
            ("b", Cell("7", 7.0), "red"),
            ("A", Cell("10", 10.0), "green"),
            ("c", UNTOLD, "red"),
            ("a-name-that-has-no-end-at-all-and-goes-on", Cell("7", 7.0), "blue"),
        )
    ),
    sort=1,
)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.size(0), "0 B"),
        (units.size(1023), "1023 B"),
        (units.size(1024), "1.0 KiB"),
        (units.rate(12.34 * 2**20), "12.3 MiB/s"),
        (units.size(1023.99 * 2**20), "1.0 GiB"),
        (units.count(0.2), "<1"),
        (units.count(999), "999"),
        (units.count(41_234), "41.2k"),
        (units.share(0.714), "71 %"),
        (units.share(250), "250 ×"),
        (units.change(-1234), "−1.2k"),
        (units.change(0.3), "0"),
        (units.bar(0.5, 4), "██  "),
        (units.bar(7.0, 4), "████"),
        (units.bar(1 / 32, 4), "▏   "),
        (units.trend([0, 1, 2, 4]), "▁▃▅█"),
        (units.trend([0, 0]), "▁▁"),
        (units.printable("a\x1b[31mb\n"), "a·[31mb·"),
    ],
)
def test_numbers_as_a_person_reads_them(shown: str, text: str) -> None:
    assert shown == text


@given(st.floats(0, 1e20), st.integers(1, 12))
def test_a_bar_is_as_wide_as_it_is_said_to_be(part: float, cells: int) -> None:
    assert cell_len(units.bar(part, cells)) == cells


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        (Order(0), ["A", "a-name-that-has-no-end-at-all-and-goes-on", "b", "c"]),
        (Order(1), ["A", "a-name-that-has-no-end-at-all-and-goes-on", "b", "c"]),
        (Order(1, is_reversed=True), ["a-name-that-has-no-end-at-all-and-goes-on", "b", "A", "c"]),
        (Order(0, filter="RED"), ["b", "c"]),
        (Order(0, filter="red 7"), ["b"]),
        (Order(0, filter="!red"), ["A", "a-name-that-has-no-end-at-all-and-goes-on"]),
        (Order(0, filter="pink"), []),
    ],
)
def test_rows_are_chosen_and_sorted_and_what_is_not_told_stands_last(order: Order, keys: list[str]) -> None:
    assert [row.key for row in arranged(SHEET, order)] == keys


@pytest.mark.parametrize(
    ("width", "titles"),
    [(100, [0, 1, 2, 3]), (60, [0, 1, 2]), (30, [0, 1, 2]), (24, [0, 1]), (5, [0, 1])],
)
def test_a_narrow_screen_has_the_columns_that_matter(width: int, titles: list[int]) -> None:
    widths = widths_of(SHEET, SHEET.rows, width)
    assert list(widths) == titles
    lines = [head(SHEET, widths, Order(1)), *(body(SHEET, widths, row) for row in SHEET.rows)]
    assert len({cell_len(text_of(line)) for line in lines}) == 1
    assert width < 24 or cell_len(text_of(lines[0]).rstrip()) <= width


def test_a_name_that_is_cut_says_so_and_all_of_it_is_in_the_details() -> None:
    widths = widths_of(SHEET, SHEET.rows, 40)
    assert text_of(body(SHEET, widths, SHEET.rows[3])).split()[0] == "a-name-that-has-no-…"
    assert text_of(details(SHEET, SHEET.rows[3])[0]) == "  NAME  a-name-that-has-no-end-at-all-and-goes-on"


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.integers(30, 90))
def test_lines_are_equally_wide_whatever_clients_call_themselves(name: str, width: int) -> None:
    shown = units.printable(name)
    rows = (*SHEET.rows, Row(name, (Cell(shown, name), UNTOLD, Cell("", None), UNTOLD)))
    widths = widths_of(SHEET, rows, width)
    assert len({cell_len(text_of(body(SHEET, widths, row))) for row in rows}) == 1
