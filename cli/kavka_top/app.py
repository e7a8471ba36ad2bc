"""The screen of `kavka top`: keys and time come in, the views are drawn. Nothing here knows Kafka."""

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.background import aside
from kavka_operator.live_views.model import History
from kavka_operator.live_views.sources import Source
from kavka_operator.live_views.tables import VIEWS
from kavka_top import drawing, header
from kavka_top.colours import BACKGROUND, BAND, style_of
from kavka_top.drawing import Line
from kavka_top.table import Table
from kavka_top.view_choice import ViewChoice

PROMPTS = {"filter": "show only rows with", "find": "find"}


def drawn(line: Line, background: str = BACKGROUND) -> Text:
    """A line in its colours."""
    return Text.assemble(*((text, style_of(tone, background)) for text, tone in line), no_wrap=True, overflow="crop")


class Words(ModalScreen[None]):
    """Lines over the table, until a key is pressed."""

    CSS = f"""
    Words {{ align: center middle; background: $background 60%; }}
    Words > Static {{ width: auto; max-width: 96%; height: auto; max-height: 96%; padding: 1 2;
                      background: {BAND}; border: round #30363d; }}
    """

    def __init__(self, lines: list[Line]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        yield Static(Text("\n").join(drawn(line, BAND) for line in self._lines))

    def on_key(self) -> None:
        self.dismiss()


class Top(App[None]):
    """The screen. `every_seconds` is the time between looks; None leaves it to who calls `look`."""

    ENABLE_COMMAND_PALETTE = False
    CSS = f"""
    Screen {{ background: {BACKGROUND}; }}
    #title, #tabs, #note, #foot {{ height: 1; background: {BACKGROUND}; }}
    #note.empty {{ display: none; }}
    Table {{ height: 1fr; }}
    Input, Input:focus {{ height: 1; border: none; padding: 0 1; background: {BAND}; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *((str(number), f"view('{name}')") for number, name in enumerate(VIEWS, 1)),
        ("tab", "turn(1)"),
        ("shift+tab", "turn(-1)"),
        ("slash", "ask('filter')"),
        ("f", "ask('find')"),
        ("n", "find"),
        ("s", "sort(1)"),
        ("S", "sort(-1)"),
        ("r", "reverse"),
        ("space", "pause"),
        ("enter", "details"),
        ("question_mark", "help"),
        ("escape", "clear"),
        ("q", "quit"),
        ("j,down", "move(1)"),
        ("k,up", "move(-1)"),
        ("pagedown", "page(1)"),
        ("pageup", "page(-1)"),
        ("g,home", "edge(-1)"),
        ("G,end", "edge(1)"),
    ]

    def __init__(self, name: str, source: Source, every_seconds: float | None = 2.0) -> None:
        super().__init__()
        self.title = "kavka top"
        self._cluster, self._source, self._every_seconds = name, source, every_seconds
        self._choice = ViewChoice()
        self._is_looking = False
        self._sought = self._said = self._trouble = ""
        self._is_paused = False
        self._table = Table()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(id="title")
            yield Static(id="tabs")
            yield self._table
            yield Static(id="note")
            yield Static(id="foot")

    def on_mount(self) -> None:
        self._table.focus()
        self._show()
        if self._every_seconds is not None:
            self._look_again()
            self.set_interval(self._every_seconds, self._look_again)

    def on_resize(self, _: Resize) -> None:
        self.call_after_refresh(self._show)

    async def look(self) -> None:
        """Take a look and show it. Does nothing while another is under way."""
        if self._is_looking:
            return
        self._is_looking = True
        try:
            look = await aside(self._source.take)
            self._choice.history, self._trouble = History.after(self._choice.history, look), ""
        except AdminError as error:
            self._trouble = f"{error}; what is shown is old" if self._choice.history is not None else str(error)
        finally:
            self._is_looking = False
        self._show()

    def _look_again(self) -> None:
        if not self._is_paused:
            self.run_worker(self.look())

    def _show(self) -> None:
        history, sheet, order = self._choice.history, self._choice.sheet, self._choice.order
        if sheet is not None:
            self._table.show(sheet, order)
        self._say("title", header.title(self._cluster, history, is_paused=self._is_paused, trouble=self._trouble))
        self._say("tabs", header.tabs(list(VIEWS), self._choice.name, sheet, len(self._table.rows)))
        notes = header.notes(sheet, history)
        self._say("note", notes)
        self.query_one("#note").set_class(not notes, "empty")
        self._say("foot", header.foot(order, self._said))

    def _say(self, where: str, line: Line) -> None:
        self.query_one(f"#{where}", Static).update(drawn(line))

    def action_view(self, name: str) -> None:
        """Show another view."""
        self._choice.name, self._said = name, ""
        self._show()

    def action_turn(self, steps: int) -> None:
        """Show the next view, or the one before."""
        self._choice.turn(steps)
        self._said = ""
        self._show()

    def action_sort(self, steps: int) -> None:
        """Sort by the next column that sorts, or the one before."""
        self._choice.sort(steps)
        self._show()

    def action_reverse(self) -> None:
        """Turn the order around."""
        self._choice.reverse()
        self._show()

    def action_pause(self) -> None:
        """Stop looking, or go on."""
        self._is_paused = not self._is_paused
        self._show()

    async def action_clear(self) -> None:
        """Ask no more, and show all rows."""
        fields = self.query(Input)
        if not fields or fields.first().name == "filter":
            self._choice.filter("")
        for field in fields:
            await self._close(field)
        self._said = ""
        self._show()

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._table.move(rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by a screen."""
        self._table.move(pages * self._table.page_rows)

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or the last row."""
        self._table.move(direction * len(self._table.rows))

    def action_details(self) -> None:
        """Show all of the chosen row."""
        sheet, row = self._choice.sheet, self._table.chosen
        if sheet is not None and row is not None:
            self.push_screen(Words(drawing.details(sheet, row)))

    def action_help(self) -> None:
        """Say what the keys do."""
        self.push_screen(Words(header.help_lines()))

    async def action_ask(self, what: str) -> None:
        """Ask for words at the foot of the screen."""
        before = self._choice.order.filter if what == "filter" else self._sought
        field = Input(before, placeholder=PROMPTS[what], name=what, select_on_focus=False, compact=True)
        await self.mount(field, after="#foot")
        self.query_one("#foot").display = False
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the words are typed."""
        if event.input.name == "filter":
            self._choice.filter(event.value)
            self._show()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the words."""
        await self._close(event.input)
        if event.input.name == "find":
            self._sought = event.value
            self.action_find()

    async def _close(self, field: Input) -> None:
        await field.remove()
        self.query_one("#foot").display = True
        self._table.focus()

    def action_find(self) -> None:
        """Go to the next row with the words that were sought."""
        self._said = "" if not self._sought or self._table.find(self._sought) else f'no row with "{self._sought}"'
        self._show()
