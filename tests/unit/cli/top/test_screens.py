"""The screen as a person sees it and works it: pictures in text of a cluster that is made up, and what keys do.

A picture that is not there is written, and the test fails: look at it before it is kept.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.model import Look
from kavka_top.app import Top
from kavka_top.table import Table
from tests.support.screens import seen
from tools.top_picture import SIZE, Example, screen

pytestmark = pytest.mark.thorough

SCREENS = Path(__file__).parent / "screens"
NARROW = (80, 24)


def worked(
    use: Callable[[Top, Pilot[None]], Awaitable[None]], size: tuple[int, int] = SIZE, *, has_pages: bool = True
) -> list[str]:
    """The lines after somebody has used the screen."""

    async def play() -> list[str]:
        async with screen(size, has_pages=has_pages) as (app, pilot):
            await use(app, pilot)
            await pilot.pause()
            return seen(app)

    return asyncio.run(play())


def pressed(*keys: str, size: tuple[int, int] = SIZE, has_pages: bool = True) -> list[str]:
    """The lines after these keys."""

    async def use(_: Top, pilot: Pilot[None]) -> None:
        await pilot.press(*keys)

    return worked(use, size, has_pages=has_pages)


@pytest.mark.parametrize(
    ("name", "keys", "size", "has_pages"),
    [
        ("clients", "1", SIZE, True),
        ("topics", "2", SIZE, True),
        ("groups", "3", SIZE, True),
        ("quotas", "4", SIZE, True),
        ("nodes", "5", SIZE, True),
        ("transactions", "6", SIZE, True),
        ("shares", "7", SIZE, True),
        ("clients-narrow", "1", NARROW, True),
        ("topics-narrow", "2", NARROW, True),
        ("groups-narrow", "3", NARROW, True),
        ("quotas-narrow", "4", NARROW, True),
        ("nodes-narrow", "5", NARROW, True),
        ("transactions-narrow", "6", NARROW, True),
        ("shares-narrow", "7", NARROW, True),
        ("clients-untold", "1", SIZE, False),
        ("quotas-untold", "4", NARROW, False),
        ("help", "?", NARROW, True),
    ],
)
def test_a_screen_looks_as_it_did(name: str, keys: str, size: tuple[int, int], has_pages: bool) -> None:
    lines = pressed("question_mark" if keys == "?" else keys, size=size, has_pages=has_pages)
    path, text = SCREENS / f"{name}.txt", "\n".join(lines).rstrip() + "\n"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path.name} was written; look at it")
    assert text == path.read_text(encoding="utf-8"), f"remove {path.name} to have it written again"


@pytest.mark.parametrize("size", [SIZE, NARROW, (40, 10), (200, 50)])
@pytest.mark.parametrize("view", "12345")
def test_no_line_is_wider_than_the_screen_and_every_row_is_on_it(view: str, size: tuple[int, int]) -> None:
    lines = pressed(view, size=size)
    assert len(lines) == size[1]
    assert max(map(len, lines)) <= size[0]


def test_keys_sort_and_turn_around() -> None:
    assert "RATE↓" in pressed()[2]
    assert "RATE↑" in pressed("r")[2]
    assert "LIMIT↓" in pressed("s")[2], "the trend is no column to sort by"
    assert "DOES↑" in pressed("S")[2]
    rows = pressed("s")[3:11]
    assert "20.0 MiB/s" in rows[0]
    assert "none" in rows[-1]


def test_a_filter_shows_fewer_rows_while_it_is_typed_and_escape_shows_all() -> None:
    typed = pressed("/", *"back")
    assert typed[1].startswith("  1 clients 1 of 8")
    assert "backfill" in typed[3]
    assert not typed[4]
    kept = pressed("/", *"back", "enter")
    assert kept[-1].startswith(" /back  escape shows all")
    assert pressed("/", *"back", "enter", "escape")[1].startswith("  1 clients 8")
    assert pressed("/", *"back", "escape")[1].startswith("  1 clients 8")
    assert pressed("/", *"nobody", "enter")[3] == " no clients with nobody"


def test_a_text_is_found_again_and_again() -> None:
    async def use(app: Top, pilot: Pilot[None]) -> None:
        found = []
        await pilot.press("f", *"etl", "enter")
        for _ in range(3):
            await pilot.pause()
            row = app.query_one(Table).chosen
            assert row is not None
            found.append(row.key)
            await pilot.press("n")
        assert found == ["alice\0etl\0produce", "alice\0etl\0fetch", "alice\0etl\0produce"]

    worked(use)
    assert pressed("f", *"nowhere", "enter")[-1] == ' no row with "nowhere"'


def test_keys_move_the_cursor_and_it_stays_with_its_row() -> None:
    async def use(app: Top, pilot: Pilot[None]) -> None:
        table = app.query_one(Table)
        await pilot.press("j", "down", "k", "G", "up")
        before = table.chosen
        await pilot.press("r")
        await pilot.pause()
        assert before is not None
        assert table.chosen == before
        assert table.rows.index(before) == 1, "the last but one is the second of the reversed"
        await pilot.press("home")
        assert table.chosen == table.rows[0]
        await pilot.press("pagedown", "pagedown")
        assert table.chosen == table.rows[-1]

    worked(use, (60, 8))


def test_enter_shows_all_of_a_row_and_any_key_closes_it() -> None:
    text = "\n".join(pressed("j", "enter", size=NARROW))
    assert 'user "alice" with client id "etl"' in text
    assert 'user "alice"' not in "\n".join(pressed("j", "enter", "x", size=NARROW))


def test_words_that_are_typed_are_no_commands() -> None:
    async def use(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("/", "q", "2", "s")
        assert app.query_one(Input).value == "q2s"

    assert worked(use)[1].startswith("  1 clients 0 of 8")


class Dying(Example):
    """A cluster that answers once."""

    def take(self) -> Look:
        if self._taken:
            raise AdminError("could not describe the cluster: NoBrokersAvailable")
        return super().take()


def test_what_was_seen_stays_where_nobody_answers_any_more() -> None:
    async def play() -> tuple[list[str], list[str]]:
        app = Top("production", Dying(), every_seconds=None)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            first = seen(app)
            for _ in range(2):
                await app.look()
            await pilot.pause()
            return first, seen(app)

    first, last = asyncio.run(play())
    assert " looking …" in first
    assert "could not describe the cluster: NoBrokersAvailable; what is shown is old" in last[0]
    assert "carol" in last[3]


def test_space_stops_the_looks() -> None:
    assert "stopped: space goes on" in pressed("space")[0]
    assert "stopped" not in pressed("space", "space")[0]
