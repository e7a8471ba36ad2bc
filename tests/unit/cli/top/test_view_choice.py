"""Which view is shown, and that each keeps its order."""

from typing import cast

from kavka_operator.live_views.model import History
from kavka_operator.web_page.sheet import Cell, Column, Order, Row, Sheet
from kavka_top.view_choice import ViewChoice

COLUMNS = (Column("NAME"), Column("TREND", is_sorting=False), Column("BYTES", is_number=True))


def sheet(name: str, sort: int) -> Sheet:
    return Sheet(name, COLUMNS, (Row("a", (Cell("a"), Cell(""), Cell("1", 1.0))),), sort)


def made(*, has_looked: bool = True) -> ViewChoice:
    views = {"first": lambda _: sheet("first", 2), "second": lambda _: sheet("second", 0)}
    return ViewChoice(views, history=cast("History", object()) if has_looked else None)


def test_the_first_view_is_shown_until_another_is_chosen() -> None:
    choice = made()
    names = [choice.name]
    for steps in (1, 1, -1):
        choice.turn(steps)
        names.append(choice.name)
    assert names == ["first", "second", "first", "second"]
    assert choice.sheet is not None
    assert choice.sheet.name == "second"


def test_a_view_is_sorted_as_its_sheet_says_until_it_is_asked_otherwise() -> None:
    choice = made()
    assert choice.order == Order(2)
    choice.reverse()
    assert choice.order == Order(2, is_reversed=True)
    choice.sort(1)
    assert choice.order == Order(0), "columns that do not sort are passed over, and the new one is not reversed"
    choice.sort(-1)
    assert choice.order == Order(2)


def test_each_view_keeps_its_order_and_filter() -> None:
    choice = made()
    choice.filter("a")
    choice.reverse()
    choice.turn(1)
    assert choice.order == Order(0)
    choice.turn(1)
    assert choice.order == Order(2, is_reversed=True, filter="a")


def test_before_the_first_look_there_is_nothing_to_sort() -> None:
    choice = made(has_looked=False)
    assert (choice.sheet, choice.order) == (None, Order(0))
    choice.sort(1)
    assert choice.order == Order(0)
