"""docs/pictures/top.svg: the screen of `kavka top` over a cluster that is made up here. Tests look at the same one.

python -m tools.top_picture            rewrites the picture
python -m tools.top_picture --check    says whether it has drifted
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from kavka_broker.core.quota.entity import DEFAULT, Entity, QuotaKey
from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.observed import SeenBroker, SeenPartition
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka.broker_metrics import (
    CONNECTIONS,
    FETCH,
    PRODUCE,
    RECEIVED,
    SENT,
    WAITING,
    ClientFigures,
    ClientKey,
    Page,
    QuotaFigures,
    ShareFigures,
)
from kavka_operator.kafka.offsets_and_lag import Group, LogDirs, Members
from kavka_operator.live_views.model import Look
from kavka_top.app import Top

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "top.svg"
SIZE = (118, 22)
CELL_PIXELS = 12.2
LOOKS = 12
MIB = 2**20
NODES = (0, 1, 2)

PRODUCER, CONSUMER = QuotaKey.PRODUCER_BYTE_RATE.value, QuotaKey.CONSUMER_BYTE_RATE.value
QUOTAS: dict[AnyEntity, dict[str, float]] = {
    Entity(None, "backfill"): {PRODUCER: 1 * MIB},
    Entity("alice", "etl"): {PRODUCER: 8 * MIB, CONSUMER: 16 * MIB},
    Entity("bob", None): {CONSUMER: 4 * MIB},
    Entity(DEFAULT, None): {CONSUMER: 20 * MIB},
    Entity(None, DEFAULT): {CONSUMER: 30 * MIB, QuotaKey.REQUEST_PERCENTAGE.value: 25.0},
}
CLIENTS: tuple[tuple[ClientKey, Entity | None, int, float, float], ...] = (
    # who, whose limit, its level, the rate at each of three brokers in MiB/s, seconds held a second
    (ClientKey("alice", "etl", PRODUCE), Entity("alice", "etl"), 1, 6.9, 0.0),
    (ClientKey("alice", "etl", FETCH), Entity("alice", "etl"), 1, 3.4, 0.0),
    (ClientKey("", "backfill", PRODUCE), Entity(None, "backfill"), 7, 1.0, 0.71),
    (ClientKey("bob", "", FETCH), Entity("bob", None), 3, 3.99, 0.22),
    (ClientKey("carol", "web-7", PRODUCE), None, 0, 0.04, 0.0),
    (ClientKey("monitoring", "", FETCH), Entity(DEFAULT, None), 6, 0.0, 0.0),
    (ClientKey("carol", "", FETCH), Entity(DEFAULT, None), 6, 12.6, 0.0),
    (ClientKey("ANONYMOUS", "console-consumer", FETCH), None, 0, 0.31, 0.0),
)
TOPICS = {"orders": (12, 41_000), "payments": (6, 3_100), "clicks": (24, 220_000), "__consumer_offsets": (50, 40)}


class Example:
    """A source of looks at a cluster that is not there, two seconds apart; each of them is the same each time."""

    def __init__(self, *, has_pages: bool = True) -> None:
        self._has_pages = has_pages
        self._taken = 0

    def take(self) -> Look:
        """The next look."""
        self._taken += 1
        return look(self._taken, has_pages=self._has_pages)

    def close(self) -> None:
        """There is nothing to let go of."""


def look(number: int, *, has_pages: bool = True) -> Look:
    """The cluster at a moment."""
    seconds = 2.0 * number
    ends = {
        (name, index): int(rate * seconds / count) for name, (count, rate) in TOPICS.items() for index in range(count)
    }
    return Look(
        at_s=seconds,
        name="production",
        members=Members("xW2aQ", {node: _broker(node) for node in NODES}, _partitions()),
        controller=1,
        quotas=QUOTAS,
        ends=ends,
        transactions=_transactions(number),
        groups={
            "billing": _group("Stable", ends, "payments", 0, members=("billing-1", "billing-2", "billing-3")),
            "lake": _group("Stable", ends, "clicks", 9_000 + 2_400 * number, members=("lake-writer",)),
            "backtest": _group("Empty", dict.fromkeys(ends, 4_000), "orders", 0, members=()),
            "emails": _share_group(ends, number),
        },
        log_dirs={node: LogDirs(dict.fromkeys(ends, 730 * MIB), 0.41 + 0.23 * node) for node in NODES},
        pages={str(node): _page(node, number) for node in NODES} if has_pages else {},
    )


def _transactions(number: int) -> list[OpenTransaction]:
    keys = ("payments", 2), ("payments", 5)
    open_for = 2.0 * number
    return [
        OpenTransaction("settle-1", 4001, "Ongoing", 2, open_for, 60.0, frozenset(keys), {keys[0]: 517 * number}),
        OpenTransaction("settle-2", 4002, "PrepareCommit", 0, 0.2, 60.0, frozenset(keys[1:])),
        OpenTransaction(
            None, 977, None, None, 5400 + open_for, None, frozenset({("clicks", 3)}), {("clicks", 3): 48_812_000}
        ),
    ]


def _broker(node: int) -> SeenBroker:
    leaders = sum(partition.leader == node for partition in _partitions())
    return SeenBroker(node, f"broker-{node}.example:9092", f"rack-{'abc'[node]}", leaders, 3 if node == 1 else 0)


def _partitions() -> tuple[SeenPartition, ...]:
    return tuple(
        SeenPartition(name, index, index % 3, NODES, (0, 1) if (name, index % 8) == ("clicks", 1) else NODES)
        for name, (count, _) in TOPICS.items()
        for index in range(count)
    )


def _group(state: str, ends: dict[tuple[str, int], int], topic: str, lag: int, *, members: Sequence[str]) -> Group:
    keys = [key for key in ends if key[0] == topic]
    committed = {key: max(0, ends[key] - lag // len(keys)) for key in keys}
    return Group(state, "classic", tuple((name, "10.0.3.7") for name in members), committed)


def _share_group(ends: dict[tuple[str, int], int], number: int) -> Group:
    starts = {key: end for key, end in ends.items() if key[0] in {"orders", "payments"}}
    lags = {key: 30 * number if key[0] == "payments" else 0 for key in starts}
    return Group("Stable", "share", (("mailer-1", "10.0.3.8"), ("mailer-2", "10.0.3.9")), starts, lags)


def _page(node: int, number: int) -> Page:
    clients = {
        key: ClientFigures(
            rate=rate * MIB * (1.0 if held else _wave(number + len(key.user))),
            limit=QUOTAS[entity][PRODUCER if key.kind == PRODUCE else CONSUMER] if entity else None,
            level=level or None,
            source=str(entity) if entity else "",
            throttled_seconds=held * 2.0 * number,
        )
        for key, entity, level, rate, held in CLIENTS
    }
    quotas = {
        (str(entity), key.kind): QuotaFigures(figures.limit, figures.rate, 1.0, figures.throttled_seconds)
        for (key, entity, _, _, _), figures in zip(CLIENTS, clients.values(), strict=True)
        if entity is not None
    }
    quotas[str(Entity(None, DEFAULT)), FETCH] = QuotaFigures(30 * MIB, 0.0, 0.0, 0.0)
    received, sent = 19.4 * MIB * 2 * number, 37.1 * MIB * 2 * number
    totals = {CONNECTIONS: 41.0 + node, WAITING: float(node == 2), RECEIVED: received, SENT: sent}
    topics_in = {"orders": 5.3 * MIB * 2 * number, "payments": 0.6 * MIB * 2 * number, "clicks": 2.0 * MIB * number}
    topics_out = {"orders": 9.1 * MIB * 2 * number, "payments": 0.6 * MIB * 2 * number, "clicks": 40.0 * MIB * number}
    shares = {
        ("emails", "orders"): ShareFigures(0.0, 0.0, 0.0),
        ("emails", "payments"): ShareFigures(4.0 * number + node, 8.0 * number, float(number // 5)),
    }
    return Page(node, clients, quotas, topics_in, topics_out, totals, shares)


def _wave(number: int) -> float:
    """A factor that comes and goes."""
    return (1.0, 0.93, 0.7, 0.42, 0.3, 0.36, 0.55, 0.8)[number % 8]


def _in_place(drawn: str) -> str:
    """SVG without the fonts of another host, and with each text where it begins: some viewers drop spaces before it."""
    cells = re.compile(r'x="([0-9.]+)" (y="[0-9.]+") textLength="([0-9.]+)"([^>]*)>((?:&#160;)+)(?=[^<])')

    def moved(found: re.Match[str]) -> str:
        x, y, length, rest, spaces = found.groups()
        shift = CELL_PIXELS * spaces.count("&#160;")
        return f'x="{float(x) + shift:.1f}" {y} textLength="{float(length) - shift:.1f}"{rest}>'

    return cells.sub(moved, re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


@asynccontextmanager
async def screen(size: tuple[int, int] = SIZE, *, has_pages: bool = True) -> AsyncIterator[tuple[Top, Pilot[None]]]:
    """The screen after some looks, and who presses its keys."""
    app = Top("production", Example(has_pages=has_pages), every_seconds=None)
    async with app.run_test(size=size) as pilot:
        for _ in range(LOOKS):
            await app.look()
        await pilot.pause()
        yield app, pilot


async def picture() -> str:
    """The screen as SVG. Fonts are those of who looks at it."""
    async with screen() as (app, _):
        return _in_place(app.export_screenshot(title="kavka top"))


def main() -> int:
    """Write the picture or check it; returns the exit code."""
    drawn = asyncio.run(picture())
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn, encoding="utf-8")
        return 0
    if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == drawn:
        return 0
    sys.stderr.write("docs/pictures/top.svg has drifted from the screen; run `make generate`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
