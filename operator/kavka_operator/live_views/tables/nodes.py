"""Nodes: the brokers with what they lead, hold and carry."""

from kavka_operator.domain import units
from kavka_operator.domain.observed import SeenBroker
from kavka_operator.kafka.broker_metrics import CONNECTIONS, RECEIVED, SENT, WAITING, Page
from kavka_operator.live_views.model import History
from kavka_operator.web_page import cells
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

COLUMNS = (
    Column("NODE", is_number=True, is_ascending=True),
    Column("ADDRESS", is_flexible=True),
    Column("RACK", rank=5, is_flexible=True),
    Column("ROLE", rank=4),
    Column("LEADS", is_number=True),
    Column("REPLICAS", is_number=True, rank=2),
    Column("BEHIND", is_number=True),
    Column("IN", is_number=True, rank=1),
    Column("OUT", is_number=True, rank=1),
    Column("CONNECTIONS", is_number=True, rank=3),
    Column("HELD NOW", is_number=True, rank=3),
    Column("DISK", is_number=True),
)
NO_PAGES = "Kafka's API does not tell traffic; name the brokers' metrics pages: --metrics HOST:PORT,..."


def nodes(history: History) -> Sheet:
    """The sheet of nodes."""
    rows = [_row(history, broker) for broker in history.now.members.brokers.values()]
    return Sheet("nodes", COLUMNS, tuple(rows), 0, "" if history.now.pages else NO_PAGES)


def _row(history: History, broker: SeenBroker) -> Row:
    page, log_dirs = history.now.pages.get(str(broker.id)), history.now.log_dirs.get(broker.id)
    held = sum(broker.id in partition.replicas for partition in history.now.members.partitions)
    fullest = log_dirs.fullest if log_dirs is not None else None
    return Row(
        str(broker.id),
        (
            Cell(str(broker.id), broker.id, Tone.NAME),
            Cell(broker.address, broker.address),
            Cell(units.printable(broker.rack or ""), broker.rack or None),
            _role(broker.id, history.now.controller),
            cells.number(broker.leaders),
            cells.number(held),
            cells.alarming(broker.under_replicated),
            *(_traffic(history, broker.id, name) for name in (RECEIVED, SENT)),
            *(_total(page, name) for name in (CONNECTIONS, WAITING)),
            cells.usage(fullest, is_limited=True),
        ),
    )


def _role(broker: int, controller: int | None) -> Cell:
    if controller is None:
        return UNTOLD
    return Cell("controller", "0", Tone.GOOD) if broker == controller else Cell("", "1")


def _traffic(history: History, broker: int, name: str) -> Cell:
    pages = [look.pages.get(str(broker)) for look in (history.now, history.before) if look is not None]
    values = [page.totals.get(name) if page is not None else None for page in pages]
    if len(values) < 2:
        return cells.number(None, awaited=values[0] is not None)
    return cells.number(history.per_second(values[0], values[1]), units.rate)


def _total(page: Page | None, name: str) -> Cell:
    return cells.number(page.totals.get(name)) if page is not None else UNTOLD
