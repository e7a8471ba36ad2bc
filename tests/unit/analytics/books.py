"""Clients that tell their counts, a topic with chosen records, and the verdict over both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from kavka_audit.completeness.offset_ranges import Ranges
from kavka_audit.completeness.reports import Report, encode, parts
from kavka_audit.engine import DUCKDB, Engine
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Range
from kavka_audit.lake.logs import UncountedError
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings, Table
from kavka_audit.run import refresh
from tests.unit.analytics.few_questions import Few, asked
from tests.unit.analytics.trail import CLUSTER, NOW_MS, Kept, given

BUCKET_MS = NOW_MS // 600_000 * 600_000 - 3_600_000
"""A bucket that is closed."""


class Stamped(NamedTuple):
    """A record of a topic."""

    offset: int
    timestamp: int


@dataclass
class Logged:
    """A topic. An offset that is not in `records` is not in the log."""

    topic: str = "orders"
    topic_id: str = "of-orders"
    records: dict[int, dict[int, int]] = field(default_factory=dict)  # the timestamp, by partition and offset
    ends: dict[int, int] = field(default_factory=dict)
    begins: dict[int, int] = field(default_factory=dict)
    cuts: dict[int, tuple[int, int]] = field(default_factory=dict)
    problem: str = ""

    def ranges(self) -> list[Range]:
        return [(partition, self.begins.get(partition, 0), end) for partition, end in sorted(self.ends.items())]

    def read(self, partition: int, first: int, until: int) -> Iterator[Stamped]:
        if self.problem:
            raise UncountedError(self.problem)
        found = self.records.get(partition, {})
        there = (Stamped(offset, found[offset]) for offset in range(first, until) if offset in found)
        yield from given(self, partition, there)

    def begin(self, partition: int) -> int:
        return self.begins.get(partition, 0)

    def fill(self, partition: int, timestamps: Sequence[int]) -> None:
        """Append records."""
        records, end = self.records.setdefault(partition, {}), self.ends.get(partition, 0)
        records.update({end + place: found for place, found in enumerate(timestamps)})
        self.ends[partition] = end + len(timestamps)


@dataclass
class Told:
    """A client that tells."""

    kept: Kept
    tier: str = "producer"
    name: str = "shop"
    instance: str = "one"
    sequence: int = 0
    ranges: Ranges = field(default_factory=Ranges)

    def add(self, partition: int, timestamp_ms: int, *offsets: int, topic: str = "orders") -> None:
        for offset in offsets:
            self.ranges.add(topic, partition, timestamp_ms, offset)

    def tell(self, *, times: int = 1, told_ms: int = NOW_MS - 3_000_000) -> None:
        """Write the reports, each as often as said."""
        counted, self.ranges = self.ranges, Ranges()
        for part in parts(counted):
            value = encode(Report(self.tier, self.name, self.instance, self.sequence, told_ms, part))
            self.sequence += 1
            for _ in range(times):
                self.kept.add(0, [], value)


@dataclass
class Books:
    """What clients tell, and the topics."""

    kept: Kept = field(default_factory=lambda: Kept("of-counts"))
    logs: dict[str, Logged] = field(default_factory=dict)
    untold: list[str] = field(default_factory=list)

    def reports(self) -> Kept:
        return self.kept

    def log(self, topic: str) -> Logged | None:
        return self.logs.get(topic)

    def uncounted(self, words: str) -> None:
        self.untold.append(words)

    def teller(self, tier: str = "producer", name: str = "shop", instance: str | None = None) -> Told:
        return Told(self.kept, tier, name, instance or f"{tier} {name}")

    def with_log(self, topic: str = "orders") -> Logged:
        return self.logs.setdefault(topic, Logged(topic, f"of-{topic}"))


def judged(directory: Path, books: Books, now_ms: int = NOW_MS, engine: Engine = DUCKDB) -> dict[str, Table]:
    """The answers of a run."""
    snapshot = Snapshot(CLUSTER, {}, books.untold)
    asked = Settings(now_ms)
    return refresh(Lake(directory), Kept(), snapshot, asked, lambda _: None, books, engine=engine).tables


ASKED: Final = ("audit_gaps", "completeness", "first_access", "top_talkers", "topic_completeness")
"""What a run makes its page's completeness and its lineage of, and what of the trail is missing."""


@cache
def others() -> dict[str, Table]:
    """Answers to all questions, of nothing."""
    with TemporaryDirectory() as directory:
        return judged(Path(directory), Books())


def balanced(directory: Path, books: Books, now_ms: int = NOW_MS) -> dict[str, Table]:
    """The answers of a run, of which those that stand in `ASKED` alone are asked."""
    engine = Few(others())
    with asked(*ASKED):
        return judged(directory, books, now_ms, engine)


def verdicts(directory: Path, books: Books, now_ms: int = NOW_MS) -> dict[tuple[int, str], tuple[Any, ...]]:
    """Expected, missing and twice, by bucket and by group; the log has none."""
    rows = balanced(directory, books, now_ms)["completeness"].dicts()
    return {
        (row["bucket_ms"], row["name"]): (row["expected"], row["missing"], row["duplicates"])
        for row in rows
        if row["is_closed"]
    }
