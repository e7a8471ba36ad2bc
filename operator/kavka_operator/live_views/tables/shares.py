"""Share groups: how much waits for each in each topic, for how long, and what was delivered again or given up.

Kafka's API tells the lag, metrics pages of Kavka the rest.
"""

from kavka_operator.domain import units
from kavka_operator.kafka.broker_metrics import ShareFigures, shares_of
from kavka_operator.kafka.offsets_and_lag import Group
from kavka_operator.live_views.model import History, Look, total
from kavka_operator.live_views.tables.groups import TONES
from kavka_operator.web_page import cells
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

COLUMNS = (
    Column("GROUP", is_flexible=True),
    Column("TOPIC", is_flexible=True),
    Column("STATE", rank=2),
    Column("MEMBERS", is_number=True, rank=3),
    Column("LAG", is_number=True),
    Column("LAG GROWS/S", is_number=True, rank=1),
    Column("OLDEST", is_number=True),
    Column("REDELIVERED/S", is_number=True),
    Column("ARCHIVED", is_number=True),
)
NO_PAGES = (
    "Kafka's API does not tell ages, redelivered and archived records; name the brokers' metrics pages: --metrics"
)
Pair = tuple[str, str]


def shares(history: History) -> Sheet:
    """The sheet of share groups, a row for each topic that one reads."""
    told, now = shares_of(history.now.pages.values()), history.now
    rows = [_row(history, pair, told.get(pair, ShareFigures())) for pair in sorted(_pairs(now) | told.keys())]
    note = "this cluster does not tell its groups" if now.groups is None else NO_PAGES if rows and not now.pages else ""
    return Sheet("shares", COLUMNS, tuple(rows), 4, note)


def _pairs(look: Look) -> set[Pair]:
    """Each share group with each topic that it has a start offset in; one without any with the topic ""."""
    told = {name for page in look.pages.values() for name, _ in page.shares}
    found: set[Pair] = set()
    for name, group in (look.groups or {}).items():
        if group.is_share:
            topics = {topic for topic, _ in group.partitions}
            found |= {(name, topic) for topic in topics or (set() if name in told else {""})}
    return found


def _row(history: History, pair: Pair, figures: ShareFigures) -> Row:
    group = (history.now.groups or {}).get(pair[0])
    behind, before = lag(history.now, pair), lag(history.before, pair)
    is_told = behind is not None and before is not None and history.seconds
    growth = ((behind or 0) - (before or 0)) / history.seconds if is_told else None
    growing = cells.number(growth, units.change, awaited=history.before is None and behind is not None)
    state = group.state if group is not None else ""
    return Row(
        "\0".join(pair),
        (
            cells.name(pair[0]),
            Cell(topic := units.printable(pair[1]), topic),
            Cell(state, state, TONES.get(state, Tone.NEAR)) if state else UNTOLD,
            cells.number(len(group.members)) if group is not None and group.members is not None else UNTOLD,
            cells.number(behind),
            Cell(growing.text, growing.order, Tone.NEAR) if growth is not None and growth >= 1 else growing,
            cells.number(figures.oldest_seconds, units.seconds),
            _redelivered(history, pair),
            UNTOLD if figures.archived is None else cells.alarming(round(figures.archived)),
        ),
    )


def lag(look: Look | None, pair: Pair) -> int | None:
    """Records of a topic that a share group is yet to read; None where its coordinator does not tell."""
    group: Group | None = (look.groups or {}).get(pair[0]) if look is not None else None
    if group is None:
        return None
    assert look is not None
    return group.part([key for key in group.partitions if key[0] == pair[1]]).total_lag(look.ends or {})


def _redelivered(history: History, pair: Pair) -> Cell:
    """Records a second that came again, at all brokers together."""
    before = history.before.pages if history.before is not None else {}
    rate = total(
        history.per_second(page.shares[pair].redelivered, before[node].shares.get(pair, ShareFigures()).redelivered)
        for node, page in history.now.pages.items()
        if pair in page.shares and node in before
    )
    is_counted = any(pair in page.shares for page in history.now.pages.values())
    cell = cells.number(rate, awaited=history.before is None and is_counted)
    return Cell(cell.text, cell.order, Tone.NEAR) if rate else cell
