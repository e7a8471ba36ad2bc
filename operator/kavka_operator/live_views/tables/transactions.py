"""Transactions: which are open, for how long, and how far they hold back readers of committed records."""

from kavka_operator.domain import units
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.live_views.model import History
from kavka_operator.web_page import cells
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

COLUMNS = (
    Column("TRANSACTIONAL ID", is_flexible=True),
    Column("STATE"),
    Column("OPEN", is_number=True),
    Column("TIMEOUT", is_number=True, rank=2),
    Column("PARTITIONS", is_number=True, rank=3),
    Column("HELD BACK", is_number=True),
    Column("WHERE", rank=1, is_flexible=True),
    Column("COORDINATOR", is_number=True, rank=4),
    Column("PRODUCER", is_number=True, rank=5),
)
NONE_KNOWN = "none knows it"


def transactions(history: History) -> Sheet:
    """The sheet of open transactions; where none of them is known, that of producers that hold partitions back."""
    found = history.now.transactions
    note = "this cluster does not tell its transactions" if found is None else ""
    return Sheet("transactions", COLUMNS, tuple(_row(transaction) for transaction in found or ()), 5, note)


def _row(transaction: OpenTransaction) -> Row:
    held, where = max(((lag, key) for key, lag in transaction.holds.items()), default=(0, None))
    return Row(
        f"{transaction.transactional_id or ''}\0{transaction.producer_id}",
        (
            cells.name(transaction.transactional_id) if transaction.transactional_id is not None else UNTOLD,
            Cell(transaction.state, transaction.state) if transaction.state is not None else UNTOLD,
            _open(transaction),
            cells.number(transaction.timeout_seconds, units.seconds),
            cells.number(len(transaction.partitions)),
            Cell(units.count(held), held, Tone.NEAR) if held else cells.number(0),
            Cell(text := f"{units.printable(where[0])}-{where[1]}", text) if where is not None else Cell(""),
            _coordinator(transaction.coordinator),
            Cell(str(transaction.producer_id), transaction.producer_id),
        ),
    )


def _coordinator(broker: int | None) -> Cell:
    return Cell(str(broker), broker) if broker is not None else Cell(NONE_KNOWN, None, Tone.BAD)


def _open(transaction: OpenTransaction) -> Cell:
    """The time for which it is open, in red where its coordinator should have aborted it."""
    seconds, limit = transaction.open_seconds, transaction.timeout_seconds
    cell = cells.number(seconds, units.seconds)
    is_late = seconds is not None and limit is not None and seconds > limit
    return Cell(cell.text, cell.order, Tone.BAD) if is_late else cell
