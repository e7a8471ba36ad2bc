"""Groups: how far behind the ends of the logs they are, and whether that grows."""

from kavka_operator.domain import units
from kavka_operator.kafka.offsets_and_lag import Group
from kavka_operator.live_views.model import History, Look
from kavka_operator.web_page import cells
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

COLUMNS = (
    Column("GROUP", is_flexible=True),
    Column("STATE"),
    Column("KIND", rank=3),
    Column("MEMBERS", is_number=True),
    Column("TOPICS", rank=2, is_flexible=True),
    Column("COMMITS/S", is_number=True, rank=1),
    Column("LAG", is_number=True),
    Column("LAG GROWS/S", is_number=True),
    Column("TREND", is_sorting=False, rank=4),
)
TONES = {"Stable": Tone.GOOD, "Empty": Tone.FAINT, "Dead": Tone.BAD}


def groups(history: History) -> Sheet:
    """The sheet of groups."""
    found = history.now.groups
    note = "this cluster does not tell its groups" if found is None else ""
    rows = [_row(history, name, group) for name, group in (found or {}).items()]
    return Sheet("groups", COLUMNS, tuple(rows), 6, note)


def lag(look: Look | None, name: str) -> int | None:
    """Records behind the ends of the logs that a group is yet to read; None where an end is not told."""
    group = (look.groups or {}).get(name) if look is not None else None
    if look is None or group is None or (look.ends is None and not group.is_share):
        return None
    return group.total_lag(look.ends or {})


def _row(history: History, name: str, group: Group) -> Row:
    behind, before = lag(history.now, name), lag(history.before, name)
    is_told = behind is not None and before is not None and history.seconds
    growth = ((behind or 0) - (before or 0)) / history.seconds if is_told else None
    told = [behind_then for look in history.looks if (behind_then := lag(look, name)) is not None]
    return Row(
        name,
        (
            cells.name(name),
            Cell(group.state, group.state, TONES.get(group.state, Tone.NEAR)) if group.state else UNTOLD,
            Cell(group.kind, group.kind),
            cells.number(len(group.members)) if group.members is not None else UNTOLD,
            Cell(topics := " ".join(sorted({units.printable(topic) for topic, _ in group.partitions})), topics),
            cells.number(_commits(history, name), awaited=history.before is None),
            cells.number(behind),
            _growing(growth, awaited=history.before is None and behind is not None),
            Cell(units.trend(told), None, Tone.TREND),
        ),
    )


def _commits(history: History, name: str) -> float | None:
    """Records a second by which the committed offsets moved forward."""
    before = (history.before.groups or {}).get(name) if history.before is not None else None
    now = (history.now.groups or {}).get(name)
    if before is None or now is None:
        return None
    both = before.committed.keys() & now.committed.keys()
    moved = sum(max(0, now.committed[key] - before.committed[key]) for key in sorted(both))
    return moved / history.seconds if history.seconds else None


def _growing(growth: float | None, *, awaited: bool) -> Cell:
    cell = cells.number(growth, units.change, awaited=awaited)
    return Cell(cell.text, cell.order, Tone.NEAR) if growth is not None and growth >= 1 else cell
