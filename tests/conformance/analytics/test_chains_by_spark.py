"""Spark judges chains as `kavka audit verify` does, entry by entry: the same verdicts, whatever was done to a trail."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final

import pytest

from kavka_broker.core.audit.chain import Entry
from kavka_broker.core.audit.cloud_events import entry_of
from kavka_broker.core.audit.heads import TrailCluster
from kavka_broker.core.audit.trail_check import TrailCheck
from kavka_broker.core.audit.verification import Verdict
from tests.conformance.analytics.planted import Drawn, KeptSource
from tests.conformance.analytics.spark_frames import executed_plan
from tests.unit.analytics.trail import Kept
from tests.unit.audit.runs import steps
from tests.unit.audit.test_runs import drawn, entry_by_entry
from tests.unit.audit.test_tampered_trails import TAMPERINGS
from tests.unit.audit.trails import KEY, OTHER_CLUSTER, long_trail

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SEEDS: Final = range(20, 28)
BLOCK: Final = 100


class Apart:
    """Checks of trails each of which stands in a partition of its own, so that Spark reads all of them at once: with
    the key and without.
    """

    def __init__(self) -> None:
        self._checks: dict[int, tuple[TrailCheck, TrailCheck]] = {}
        self._read: tuple[TrailCheck, ...] = ()
        self.runs = self.refused = 0

    def add_hashed(self, partition: int, log_start: int, entry: Entry, *, has_its_hash: bool) -> None:
        self._read = self._checks.setdefault(partition, (TrailCheck((KEY,)), TrailCheck()))
        for check in self._read:
            check.add_hashed(partition, log_start, entry, has_its_hash=has_its_hash)

    def extend(self, last: Entry) -> bool:
        (is_taken,) = {check.extend(last) for check in self._read}
        self.runs += is_taken
        self.refused += not is_taken
        return is_taken

    def verdicts(self, partition: int) -> list[dict[str, Verdict]]:
        return [check.verdicts() for check in self._checks[partition]]


def expected(entries: list[Entry], log_start: int) -> list[dict[str, Verdict]]:
    """The verdicts with the key and without, by a look at each entry."""
    return [entry_by_entry(entries, keys, log_start) for keys in ((KEY,), ())]


def no_foreign(partition: int, offset: int, problem: str) -> None:
    raise AssertionError((partition, offset, problem))


def read_by_spark(
    spark: Any,
    kept: Kept,
    check: Any,
    foreign: Callable[[int, int, str], None] = no_foreign,
    task_records: int = 10_000,
) -> None:
    from kavka_audit.spark.verification import Verification

    ranges = [(partition, max(begin, kept.begin(partition)), end) for partition, begin, end in kept.ranges()]
    Verification(spark, KeptSource(kept), check, foreign, task_records).read(ranges)


def kept_apart(trails: Sequence[tuple[list[Entry], int]]) -> Kept:
    """Trails, each with the offset at which it begins, in a partition each."""
    kept = Kept()
    for partition, (entries, log_start) in enumerate(trails):
        for _ in range(log_start):
            kept.add(partition, [], b"")
        kept.begins[partition] = log_start
        kept.write(partition, entries)
    return kept


def tampered() -> Iterator[tuple[list[Entry], int]]:
    for tamper in TAMPERINGS:
        trail = long_trail()
        tamper(trail)
        yield trail.entries, trail.log_start
    sound = long_trail()
    yield sound.entries, 0
    sound.forget(500)
    yield sound.entries, sound.log_start


@pytest.fixture
def small_blocks(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kavka_audit.spark import verification
    from kavka_audit.spark.chain_runs import steps_of

    monkeypatch.setattr(verification, "steps_of", lambda entries: steps_of(entries, BLOCK))


@pytest.mark.usefixtures("small_blocks")
def test_each_tampering_has_the_same_verdict(spark: Any) -> None:
    trails = list(tampered())
    check = Apart()
    read_by_spark(spark, kept_apart(trails), check)
    for place, (entries, log_start) in enumerate(trails):
        name = TAMPERINGS[place].__name__ if place < len(TAMPERINGS) else "sound"
        assert check.verdicts(place) == expected(entries, log_start), name
    assert check.runs > len(trails)


@pytest.mark.usefixtures("small_blocks")
def test_a_trail_of_another_cluster_is_told_of_every_chain(spark: Any) -> None:
    trail = long_trail()
    check = TrailCheck((KEY,), TrailCluster(OTHER_CLUSTER))
    read_by_spark(spark, kept_apart([(trail.entries, 0)]), check)
    verdicts = check.verdicts()
    assert verdicts == trail.verdicts(cluster=OTHER_CLUSTER)
    assert {str(damage and damage.fault) for damage in (found.damage for found in verdicts.values())} == {"foreign"}


@pytest.mark.usefixtures("small_blocks")
def test_what_is_moved_about_has_the_same_verdict(spark: Any) -> None:
    trails = [(drawn(Random(seed)), 50 * (seed % 2)) for seed in SEEDS]
    check = Apart()
    read_by_spark(spark, kept_apart(trails), check)
    for place, (entries, log_start) in enumerate(trails):
        assert check.verdicts(place) == expected(entries, log_start), place
    assert check.refused, "no run was read again"


def test_the_driver_gets_few_entries_of_a_sound_trail(spark: Any) -> None:
    from kavka_audit.spark.chain_runs import hashed, steps_of

    trail = long_trail()
    kept = kept_apart([(trail.entries, 0)])
    records = KeptSource(kept).records(spark, kept.ranges(), 10_000)
    found = [(row["offset"], row["is_run"]) for row in steps_of(hashed(records), BLOCK).collect()]
    assert sorted(found) == [(step.offset, step.is_run) for step in steps(trail.entries, 0, BLOCK)]


def test_records_that_are_none_are_told_in_the_same_words(spark: Any) -> None:
    """Chains go on from batch to batch, and values and headers are whatever a client wrote."""
    kept = Drawn(0).trail(180)
    check, by_python = TrailCheck(), TrailCheck()
    foreign, words = list[tuple[int, int, str]](), list[tuple[int, int, str]]()
    read_by_spark(spark, kept, check, lambda *told: foreign.append(told), task_records=40)
    for partition, records in kept.records.items():
        for record in records:
            try:
                by_python.add(partition, 0, entry_of(record.headers, record.value))
            except ValueError as problem:
                words.append((partition, record.offset, str(problem)))
    assert foreign == words
    assert check.verdicts() == by_python.verdicts()
    assert words


def test_no_record_goes_to_python(spark: Any) -> None:
    from kavka_audit.spark.chain_runs import hashed, steps_of

    kept = Drawn(1).trail(60)
    frame = steps_of(hashed(KeptSource(kept).records(spark, kept.ranges(), 10_000)))
    plan = executed_plan(frame).toString()
    assert "Window" in plan
    assert not [name for name in ("Python", "MapInPandas", "ArrowEval") if name in plan]
