"""No join of Spark sends all rows of the trail to every task: ten million of them ended a run.

Spark sends a side of a join whole where it takes it for small, by the size of its files unless told otherwise; rows of
the trail are many times as large in memory. They stand in the lake, and those of the table `denials_delays_changes`
beside it too. What is summed up may be sent.
"""

from pathlib import Path
from typing import Any

import pytest

from kavka_audit.lake.directory import Lake
from kavka_audit.questions.query_runner import Settings, aggregations, questions
from kavka_audit.spark.settings import DEFAULTS
from tests.conformance.analytics.planted import Drawn
from tests.conformance.analytics.spark_frames import executed_plan
from tests.conformance.analytics.test_engines_agree import engine_over
from tests.unit.analytics.trail import NOW_MS, Kept, taken_in

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

FACTOR = "spark.sql.sources.fileCompressionFactor"
ROWS = ("/entries/", "-denials_delays_changes.part")
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"


def sent_whole(plan: Any) -> list[str]:
    """The scans of the trail whose rows a plan sends to every task as they are."""
    found = [scan for child in children(plan) for scan in sent_whole(child)]
    return found + (unsummed(plan) if plan.nodeName() == "BroadcastExchange" else [])


def unsummed(plan: Any) -> list[str]:
    """The scans of the trail whose rows come out of a plan, and not sums of them."""
    if "Aggregate" in plan.nodeName():
        return []
    if plan.nodeName().startswith("Scan parquet"):
        words = plan.verboseStringWithOperatorId()
        return [words] if any(name in words for name in ROWS) else []
    return [scan for child in children(plan) for scan in unsummed(child)]


def children(plan: Any) -> list[Any]:
    found = plan.children()
    return [found.apply(index) for index in range(found.size())]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return taken_in(tmp_path, Drawn(11).trail(300))[0]


def sending(spark: Any, lake: Lake) -> set[str]:
    """What is asked by plans that send rows of the trail whole, where the limit is the size of all files."""
    spark.conf.set(THRESHOLD, str(sum(Path(file).stat().st_size for file in lake.files())))
    try:
        asked = aggregations() | {one.name: one.sql for one in questions() if one.name != "topic_completeness"}
        return {name for name, sql in asked.items() if sent_whole(executed_plan(spark.sql(sql)))}
    finally:
        spark.conf.unset(THRESHOLD)


def seen_by(spark: Any, lake: Lake) -> None:
    engine = engine_over(spark, Kept())
    engine.see(lake, Settings(NOW_MS))
    engine.aggregate(lake)


def test_rows_of_the_trail_are_sent_to_no_task_whole(spark: Any, lake: Lake) -> None:
    seen_by(spark, lake)
    assert spark.conf.get(FACTOR) == DEFAULTS[FACTOR]
    assert sending(spark, lake) == set()
    spark.conf.set(FACTOR, "1")
    try:
        seen_by(spark, lake)
        assert sending(spark, lake)
    finally:
        spark.conf.set(FACTOR, DEFAULTS[FACTOR])
