"""What Prometheus is told of a run is what the tables hold, and no name breaks its format."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kavka_audit.lake.ingest import Ingested
from kavka_audit.report.chain_summary import Chains
from kavka_audit.report.metrics import FAMILIES, SERIES_MAX, VERDICTS, metrics
from tests.unit.analytics.books import BUCKET_MS, Books, judged
from tests.unit.analytics.trail import NOW_MS

CLUSTER = 'a"\\\nb'


def read(text: str) -> dict[tuple[str, ...], float]:
    """The figures, by name and the values of labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_figures_are_those_of_the_tables(tmp_path: Path) -> None:
    books = Books()
    books.with_log().fill(0, [BUCKET_MS] * 9)
    producer, reader = books.teller(), books.teller("consumer", "g")
    producer.add(0, BUCKET_MS, *range(10))
    producer.tell(told_ms=NOW_MS)
    reader.add(0, BUCKET_MS, *range(9), 3, 4)
    reader.tell()
    books.kept.add(0, [], b"foreign")
    tables = judged(tmp_path, books)
    assert "kavka_analytics_chains{" not in metrics(CLUSTER, NOW_MS, Ingested(), tables)
    chains = Chains({"sound": 3, "unsigned": 2, "damaged": 1}, ["1-1"], NOW_MS)
    found = read(metrics(CLUSTER, NOW_MS, Ingested(5, 2, 3), tables, chains))
    verdicts = [found["kavka_analytics_chains", CLUSTER, verdict] for verdict in VERDICTS]
    assert verdicts == [3, 2, 1, 0]
    assert found["kavka_analytics_answer_rows", CLUSTER, "audit_gaps"] == tables["audit_gaps"].count
    assert found["kavka_analytics_last_success_timestamp_seconds", CLUSTER] == NOW_MS / 1000
    assert found["kavka_analytics_new_records", CLUSTER] == 5
    assert (found["kavka_analytics_dead_records", CLUSTER], found["kavka_analytics_missed_records", CLUSTER]) == (2, 3)
    log, group = (CLUSTER, "orders", "log", ""), (CLUSTER, "orders", "consumer", "g")
    assert found["kavka_analytics_completeness_ratio", *log] == 0.9
    assert found["kavka_analytics_missing_records", *log] == 1
    assert found["kavka_analytics_late_records", *log] == 10
    assert found["kavka_analytics_completeness_ratio", *group] == 1
    assert found["kavka_analytics_duplicate_records", *group] == 2
    assert found["kavka_analytics_omitted_series", CLUSTER] == 0
    assert found["kavka_analytics_gaps", CLUSTER, "dead"] == found["kavka_analytics_gap_entries", CLUSTER, "dead"] == 1
    assert found["kavka_analytics_gaps", CLUSTER, "silent"] == 0
    assert {name for name, *_ in found} == FAMILIES.keys() - {"kavka_analytics_clock_ahead_seconds"}


def test_the_least_complete_topics_have_series(tmp_path: Path) -> None:
    books = Books()
    producer = books.teller()
    for number in range(SERIES_MAX + 5):
        topic = f"topic-{number:03}"
        books.with_log(topic).fill(0, [BUCKET_MS] * (1 if number == 204 else 2))
        producer.add(0, BUCKET_MS, 0, 1, topic=topic)
    producer.tell()
    found = read(metrics("c", NOW_MS, Ingested(), judged(tmp_path, books)))
    shown = [labels for labels in found if labels[0] == "kavka_analytics_completeness_ratio"]
    assert len(shown) == SERIES_MAX
    assert found["kavka_analytics_completeness_ratio", "c", "topic-204", "log", ""] == 0.5
    assert found["kavka_analytics_omitted_series", "c"] == 5
