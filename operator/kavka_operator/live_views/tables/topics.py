"""Topics: what comes in, what is kept, and whether every replica has it.

Records a second follow from the ends of the logs, which every Kafka tells, bytes from metrics pages.
"""

from kavka_operator.domain import units
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.kafka.offsets_and_lag import Ends
from kavka_operator.live_views.model import History, Look, total
from kavka_operator.web_page import cells
from kavka_operator.web_page.sheet import Cell, Column, Row, Sheet, Tone

COLUMNS = (
    Column("TOPIC", is_flexible=True),
    Column("PARTITIONS", is_number=True),
    Column("REPLICAS", is_number=True, rank=3),
    Column("RECORDS/S", is_number=True),
    Column("IN", is_number=True, rank=1),
    Column("OUT", is_number=True, rank=2),
    Column("SIZE", is_number=True),
    Column("RECORDS", is_number=True, rank=2),
    Column("STATE"),
)
NO_PAGES = "Kafka's API does not tell bytes a second; name the brokers' metrics pages: --metrics HOST:PORT,..."
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__audit_events")


def topics(history: History) -> Sheet:
    """The sheet of topics."""
    rows = [_row(history, name, partitions) for name, partitions in history.by_topic.items()]
    return Sheet("topics", COLUMNS, tuple(rows), 3, "" if history.now.pages else NO_PAGES)


def _row(history: History, name: str, partitions: list[SeenPartition]) -> Row:
    keys = [partition.key for partition in partitions]
    now = _end(history.now.ends, keys)
    before = _end(history.before.ends, keys) if history.before is not None else None
    return Row(
        name,
        (
            cells.name(name, Tone.FAINT if name in INTERNAL else Tone.NAME),
            cells.number(len(partitions)),
            cells.number(min(len(partition.replicas) for partition in partitions)),
            cells.number(history.per_second(now, before), awaited=history.before is None and now is not None),
            *(_bytes(history, name, is_in=is_in) for is_in in (True, False)),
            cells.number(_size(history.now, keys), units.size),
            cells.number(now),
            _state(partitions),
        ),
    )


def _end(ends: Ends | None, keys: list[tuple[str, int]]) -> int | None:
    """The sum of the ends of a topic's partitions; None while one of them is not told."""
    return sum(ends[key] for key in keys) if ends is not None and all(key in ends for key in keys) else None


def _bytes(history: History, topic: str, *, is_in: bool) -> Cell:
    before = history.before.pages if history.before is not None else {}
    rate = total(
        history.per_second(*((page.topics_in if is_in else page.topics_out).get(topic) for page in (now, before[name])))
        for name, now in history.now.pages.items()
        if name in before
    )
    return cells.number(rate, units.rate, awaited=history.before is None and bool(history.now.pages))


def _size(look: Look, keys: list[tuple[str, int]]) -> int | None:
    """The bytes of all replicas; None where no broker told any of them."""
    found = [log_dirs.sizes[key] for log_dirs in look.log_dirs.values() for key in keys if key in log_dirs.sizes]
    return sum(found) if found else None


def _state(partitions: list[SeenPartition]) -> Cell:
    offline = sum(partition.leader is None for partition in partitions)
    behind = sum(len(partition.isr) < len(partition.replicas) for partition in partitions)
    if offline:
        return Cell(f"{offline} offline", f"2 {offline}", Tone.BAD)
    if behind:
        return Cell(f"{behind} under-replicated", f"1 {behind}", Tone.NEAR)
    return Cell("in sync", "0", Tone.GOOD)
