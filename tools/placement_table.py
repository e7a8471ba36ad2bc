"""The table of docs/explanation/placement.md: Kavka's placement beside Apache Kafka's own placer, from its jars.

    python -m tools.placement_table            rewrites the table; needs a JDK
    python -m tools.placement_table --check    says whether it has drifted

Kafka's placer begins at a place that is drawn again for each topic, so it is asked with several seeds; the table shows
the median and the worst. Kavka's draws nothing: one answer.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from kavka_broker.core.placement import Site, place
from tools.kafka_jars import class_path

PAGE: Final = Path(__file__).parent.parent / "docs/explanation/placement.md"
PROGRAM: Final = Path(__file__).parent / "kafka/Placer.java"
BEGIN: Final = "<!-- table: python -m tools.placement_table -->"
END: Final = "<!-- end of the table -->"
SEEDS: Final = range(1, 22)
NO_RACK: Final = "-"

Assignment = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Shape:
    """Brokers by rack, and the topics that are put on them."""

    racks: tuple[int, ...]  # brokers in each; empty: brokers without a rack
    brokers: int
    topics: int
    partitions: int
    factor: int

    @property
    def sites(self) -> list[Site]:
        """Brokers are numbered across the racks, as they are when racks are filled side by side."""
        if not self.racks:
            return [Site(broker_id) for broker_id in range(1, self.brokers + 1)]
        layers = range(max(self.racks))
        where = [rack for layer in layers for rack, size in enumerate(self.racks, 1) if layer < size]
        return [Site(broker_id, f"r{rack}") for broker_id, rack in enumerate(where, 1)]

    def question(self, seed: int) -> str:
        racks = " ".join(site.rack or NO_RACK for site in self.sites)
        return f"{seed} {self.topics} {self.partitions} {self.factor} {racks}"


@dataclass(frozen=True, slots=True)
class Balance:
    """How uneven a placement is. Spreads are the most minus the least."""

    leaders: float  # over brokers
    rack_leaders: float  # over racks, a broker's share: a rack of twice the brokers should lead twice as much
    replicas: float  # over the brokers of a rack, the worst rack
    crowded: int  # partitions with more replicas in one rack than need be


def balance(shape: Shape, assignment: Assignment) -> Balance:
    """The figures of one placement."""
    rack_of = {site.broker_id: site.rack for site in shape.sites}
    brokers_in = Counter(rack_of.values())
    leaders = Counter(replicas[0] for replicas in assignment)
    replicas = Counter(broker_id for replicas_of in assignment for broker_id in replicas_of)
    rack_leaders = Counter(rack_of[replicas_of[0]] for replicas_of in assignment)
    distinct = min(shape.factor, len(brokers_in))
    return Balance(
        spread(leaders[broker_id] for broker_id in rack_of),
        round(spread(rack_leaders[rack] / size for rack, size in brokers_in.items()), 1),
        max(spread(replicas[b] for b in rack_of if rack_of[b] == rack) for rack in brokers_in),
        sum(len({rack_of[broker_id] for broker_id in replicas_of}) < distinct for replicas_of in assignment),
    )


def spread(values: Iterable[float]) -> float:
    known = list(values)
    return max(known) - min(known)


def ours(shape: Shape) -> Balance:
    """Kavka's answer, as the controller places: each topic goes on where the partitions that exist end."""
    placed: list[tuple[int, ...]] = []
    for _ in range(shape.topics):
        placed += place(shape.partitions, shape.factor, shape.sites, rotation=len(placed))
    return balance(shape, placed)


def theirs(shapes: Sequence[Shape]) -> list[list[Balance]]:
    """Kafka's answers to all shapes: one for each seed."""
    questions = [(shape, shape.question(seed)) for shape in shapes for seed in SEEDS]
    ran = subprocess.run(
        ["java", "-cp", class_path(), str(PROGRAM)],
        input="\n".join(question for _, question in questions),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    blocks = ran.stdout.split("\n\n")
    answers = [[[int(word) for word in line.split()] for line in block.splitlines()] for block in blocks]
    balances = [balance(shape, answer) for (shape, _), answer in zip(questions, answers, strict=False)]
    return [balances[first : first + len(SEEDS)] for first in range(0, len(balances), len(SEEDS))]


RACKS: Final = {
    1: ((),),
    3: ((), (1, 1, 1), (2, 1)),
    6: ((), (2, 2, 2), (3, 2, 1)),
    30: ((), (10, 10, 10), (15, 10, 5)),
}
TOPICS: Final = {1: ((1, 10),), 3: ((1, 30), (20, 4)), 6: ((1, 60), (40, 4)), 30: ((1, 300), (200, 4))}


def all_shapes() -> list[Shape]:
    return [
        Shape(racks, brokers, topics, partitions, min(3, brokers))
        for brokers in RACKS
        for racks in RACKS[brokers]
        for topics, partitions in TOPICS[brokers]
    ]


def described(shape: Shape) -> str:
    racks = " + ".join(map(str, shape.racks)) if shape.racks else "none"
    topics = "1 topic" if shape.topics == 1 else f"{shape.topics} topics"
    return f"| {shape.brokers} | {racks} | {topics} of {shape.partitions} x {shape.factor} "


def table() -> str:
    """Rows of the table, Kavka's figure first, then the median and the worst of Kafka's."""
    head = [
        "| brokers | racks | topics, partitions x replicas "
        + "".join(
            f"| {what}: Kavka | Kafka "
            for what in ("leaders a broker", "leaders a rack", "replicas a broker", "crowded")
        )
        + "|",
        "|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    shapes = all_shapes()
    return "\n".join([*head, *map(row, shapes, theirs(shapes))])


def row(shape: Shape, answers: Sequence[Balance]) -> str:
    own, cells = ours(shape), []
    for name in ("leaders", "rack_leaders", "replicas", "crowded"):
        known = [getattr(answer, name) for answer in answers]
        middle, worst = median(known), max(known)
        cells.append(f"| {getattr(own, name):g} | {middle:g}" + (f" ({worst:g}) " if worst != middle else " "))
    return described(shape) + "".join(cells) + "|"


def main() -> int:
    """Rewrite the page, or check it."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if PAGE.read_text() != wanted:
            print(f"error: {PAGE} has drifted; run python -m tools.placement_table")
            return 1
        return 0
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
