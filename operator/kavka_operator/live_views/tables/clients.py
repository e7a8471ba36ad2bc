"""Clients: who produces and fetches how much, of which limit, and for how long it is held back.

Metrics pages tell it. Without them the members of groups are the clients that Kafka's API names, and no more of them.
"""

from functools import partial

from kavka_operator.domain import units
from kavka_operator.kafka.broker_metrics import ClientKey
from kavka_operator.live_views.model import History, total, used
from kavka_operator.web_page import cells
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

COLUMNS = (
    Column("USER", is_flexible=True),
    Column("CLIENT ID", is_flexible=True),
    Column("DOES"),
    Column("RATE", is_number=True),
    Column("TREND", is_sorting=False, rank=6),
    Column("LIMIT", is_number=True, rank=1),
    Column("USED", is_number=True),
    Column("HELD", is_number=True),
    Column("BROKERS", is_number=True, rank=5),
    Column("LEVEL", is_number=True, rank=4),
    Column("QUOTA OF", rank=7, is_flexible=True),
)
OTHERS = "__other__"


def clients(history: History) -> Sheet:
    """The sheet of clients."""
    keys = history.client_keys()
    if history.now.pages:
        rows = [_row(history, key) for key in keys if _is_shown(history, key)]
        note = f"{history.now.silent} metrics pages do not answer" if history.now.silent else ""
    else:
        rows, note = _members(history), cells.NO_PAGES
    return Sheet("clients", COLUMNS, tuple(rows), 3, note)


def _is_shown(history: History, key: ClientKey) -> bool:
    """Whether a client stands there for this kind: for bytes always, for others where a limit holds."""
    figures = history.now.figures(key).values()
    return key.kind in units.BYTE_KINDS or any(client.limit is not None for client in figures)


def _row(history: History, key: ClientKey) -> Row:
    figures = history.now.figures(key)
    limits = [client for client in figures.values() if client.limit is not None]
    chosen = min(limits, key=lambda client: client.limit or 0.0, default=None)
    shown = partial(units.amount, key.kind)
    is_counted = any(client.bytes_total is not None for client in figures.values())
    return Row(
        f"{key.user}\0{key.client_id}\0{key.kind}",
        (
            _part(key.user),
            _part(key.client_id),
            Cell(key.kind.replace("_", " "), key.kind),
            cells.number(total(history.rates(key).values()), shown, awaited=is_counted and history.before is None),
            Cell(units.trend(history.trend(key)), None, Tone.TREND),
            cells.number(chosen.limit, shown) if chosen is not None else Cell("none", 0.0, Tone.FAINT),
            cells.usage(used(figures), is_limited=chosen is not None),
            cells.held(history.held(key), awaited=history.before is None),
            cells.number(len(figures)),
            Cell(str(chosen.level), chosen.level) if chosen is not None and chosen.level else Cell(""),
            Cell(units.printable(chosen.source), chosen.source) if chosen is not None else Cell(""),
        ),
    )


def _part(text: str) -> Cell:
    """A part of who counts together: where it is empty the quota counts everybody, and so does the row."""
    if text == OTHERS:
        return Cell("all others", text, Tone.FAINT)
    return cells.name(text) if text else Cell("any", "", Tone.FAINT)


def _members(history: History) -> list[Row]:
    groups = history.now.groups or {}
    named = {client_id for group in groups.values() for client_id, _ in group.members or ()}
    rest = (UNTOLD,) * 8
    return [Row(name, (UNTOLD, cells.name(name), Cell("fetch", "fetch"), *rest)) for name in sorted(named)]
