"""The lines around the table: what is looked at, which views there are, which keys do what."""

from collections.abc import Mapping

from kavka_operator.domain import units
from kavka_operator.kafka.broker_metrics import RECEIVED, SENT
from kavka_operator.live_views.model import History, total
from kavka_operator.web_page.sheet import Order, Sheet, Tone
from kavka_top.drawing import EDGE, Line

HELP = (
    ("1 – 7, tab", "another view"),
    ("↑ ↓  j k", "another row; also page up and down, home, end, g, G"),
    ("enter", "all of a row, also what this screen has no room for"),
    ("/", "show only rows with these words; !word: without it"),
    ("escape", "show all rows"),
    ("f, n", "find: go to the next row with a text; once more"),
    ("s, S", "sort by the next column, by the one before"),
    ("r", "turn the order around"),
    ("space", "stop and go on"),
    ("q", "quit"),
)
MEANINGS = (
    ("RATE", "bytes a second at all brokers, as quotas measure them"),
    ("LIMIT", "what each broker allows; the least where they differ"),
    ("MOST", "what the client uses that uses most of it, at one broker"),
    ("USED", "of the limit, at the broker where it is nearest"),
    ("HELD", "time for which connections are held, at the busiest broker"),
    ("OPEN", "since a transaction began; without a coordinator, since its last record"),
    ("HELD BACK", "records before which readers with read_committed wait, in one partition"),
    ("OLDEST", "age of the oldest record that a share group is not done with"),
    ("not told", "neither Kafka's API nor a metrics page tells it"),
)
KEYS = (
    ("/", "filter"),
    ("f", "find"),
    ("s", "sort"),
    ("r", "reverse"),
    ("enter", "all of it"),
    ("?", "help"),
    ("q", "quit"),
)


def title(name: str, history: History | None, *, is_paused: bool, trouble: str) -> Line:
    """The first line: the cluster and what passes through it."""
    line: Line = [(f"{EDGE}kavka top", Tone.KEY), (f"  {units.printable(name)}", Tone.NAME)]
    if history is not None:
        brokers = len(history.now.members.brokers)
        line.append((f"  {brokers} {'node' if brokers == 1 else 'nodes'}", Tone.PLAIN))
        for words, metric in (("in", RECEIVED), ("out", SENT)):
            if (rate := _traffic(history, metric)) is not None:
                line += [(f"  {words} ", Tone.FAINT), (units.rate(rate), Tone.PLAIN)]
    if trouble:
        line.append((f"  {trouble}", Tone.BAD))
    elif is_paused:
        line.append(("  stopped: space goes on", Tone.NEAR))
    return line


def tabs(names: list[str], current: str, sheet: Sheet | None, shown: int) -> Line:
    """The second line: the views, with how many rows the one on the screen has."""
    line: Line = []
    for number, name in enumerate(names, 1):
        is_current = name == current
        line += [(f"{EDGE} {number} ", Tone.KEY), (name, Tone.NAME if is_current else Tone.FAINT)]
        if is_current and sheet is not None:
            rows = len(sheet.rows)
            line.append((f" {rows}" if shown == rows else f" {shown} of {rows}", Tone.PLAIN))
    return line


def foot(order: Order, said: str) -> Line:
    """The last line: what was said to the last key, or the filter and the keys."""
    if said:
        return [(f"{EDGE}{said}", Tone.NEAR)]
    line: Line = [(EDGE, Tone.PLAIN)]
    if order.filter:
        line += [(f"/{order.filter}", Tone.NEAR), ("  escape shows all  ", Tone.FAINT)]
    for key, word in KEYS:
        line += [(key, Tone.KEY), (f" {word}  ", Tone.FAINT)]
    return line


def notes(sheet: Sheet | None, history: History | None) -> Line:
    """The line above the last: what the cluster does not tell; empty where it tells all."""
    if sheet is None or history is None:
        return [(f"{EDGE}looking …", Tone.FAINT)]
    said = [*([sheet.note] if sheet.note else []), *history.now.untold]
    return [(f"{EDGE}{units.printable('; '.join(said))}", Tone.FAINT)] if said else []


def help_lines() -> list[Line]:
    """Lines that say what the keys do, and what the words mean."""
    pairs: Mapping[str, str] = dict((*HELP, ("", ""), *MEANINGS))
    return [[(f"{key:>12}  ", Tone.KEY), (words, Tone.PLAIN)] for key, words in pairs.items()]


def _traffic(history: History, name: str) -> float | None:
    before = history.before.pages if history.before is not None else {}
    return total(
        history.per_second(page.totals.get(name), before[node].totals.get(name))
        for node, page in history.now.pages.items()
        if node in before
    )
