"""What a run found, for Prometheus: a file in its text format, for the textfile collector of node-exporter.

Gauges, and no counters: each is what the last run found. Topics are shown the least complete first, up to a bound; how
many are not shown is a figure too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kavka_audit.lake.ingest import Ingested
from kavka_audit.questions.query_runner import Table
from kavka_audit.report.chain_summary import Chains

SERIES_MAX: Final = 200
"""Topics and tiers that have series of their own."""
FAMILIES: Final[Mapping[str, str]] = {
    "kavka_analytics_last_success_timestamp_seconds": "When the audit analytics last came to their end.",
    "kavka_analytics_new_records": "Records of the audit topic that the last run took in.",
    "kavka_analytics_missed_records": "Records that the audit topic had deleted before the last run read them.",
    "kavka_analytics_dead_records": "Records that the last run took in and that are no entries of a trail.",
    "kavka_analytics_gaps": "Places at which the trail does not tell everything, by kind, as in the table audit_gaps.",
    "kavka_analytics_gap_entries": "Entries that are not told at those places.",
    "kavka_analytics_clock_ahead_seconds": "How far entries of a node are ahead of the last run, beyond five minutes.",
    "kavka_analytics_chains": "Chains of the trail by verdict, where tables of Delta Lake look at them.",
    "kavka_analytics_answer_rows": "Rows of each answer.",
    "kavka_analytics_completeness_ratio": "Share of the expected records that are there, over a day of closed buckets.",
    "kavka_analytics_missing_records": "Expected records that are not there, over a day of closed buckets.",
    "kavka_analytics_duplicate_records": "Records that are there more often than expected, over a day.",
    "kavka_analytics_late_records": "Records that clients told of after their bucket had closed, over a day.",
    "kavka_analytics_omitted_series": "Topics and tiers that have no series, as there are too many.",
}
GAPS: Final = ("missing", "unended", "lost", "missed", "dead", "silent", "untold", "unnamed", "ahead")
AHEAD: Final = "ahead"
"""The gap of which `entries` is a time in seconds, and which is of a node."""
VERDICTS: Final = ("sound", "unsigned", "damaged", "unchecked")
OF_TOPIC: Final = {
    "kavka_analytics_completeness_ratio": "completeness",
    "kavka_analytics_missing_records": "missing",
    "kavka_analytics_duplicate_records": "duplicates",
    "kavka_analytics_late_records": "late",
}
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure and where it belongs."""

    name: str
    labels: Labels
    value: float


def metrics(
    cluster: str, now_ms: int, ingested: Ingested, tables: Mapping[str, Table], chains: Chains | None = None
) -> str:
    """Return the file."""
    of_cluster: Labels = (("cluster", cluster),)
    samples = [
        Sample("kavka_analytics_last_success_timestamp_seconds", of_cluster, now_ms / 1000),
        Sample("kavka_analytics_new_records", of_cluster, ingested.records),
        Sample("kavka_analytics_missed_records", of_cluster, ingested.missed),
        Sample("kavka_analytics_dead_records", of_cluster, ingested.dead),
        *_gaps(of_cluster, tables["audit_gaps"].dicts()),
        *_clocks(of_cluster, tables["audit_gaps"].dicts()),
        *_topics(of_cluster, tables["topic_completeness"]),
        *_answers(of_cluster, tables),
        *_chains(of_cluster, chains),
    ]
    return "".join(f"{line}\n" for line in _lines(samples))


def _gaps(of_cluster: Labels, rows: Iterable[Mapping[str, Any]]) -> Iterator[Sample]:
    found = dict.fromkeys(GAPS, (0, 0))
    for row in rows:
        places, entries = found[row["gap"]]
        found[row["gap"]] = places + 1, entries + row["entries"]
    for gap, (places, entries) in found.items():
        yield Sample("kavka_analytics_gaps", (*of_cluster, ("gap", gap)), places)
        if gap != AHEAD:
            yield Sample("kavka_analytics_gap_entries", (*of_cluster, ("gap", gap)), entries)


def _clocks(of_cluster: Labels, rows: Iterable[Mapping[str, Any]]) -> Iterator[Sample]:
    for row in rows:
        if row["gap"] == AHEAD:
            node = row["place"].rpartition(" ")[2]
            yield Sample("kavka_analytics_clock_ahead_seconds", (*of_cluster, ("node", node)), row["entries"])


def _topics(of_cluster: Labels, table: Table) -> Iterator[Sample]:
    shown = table.dicts()[:SERIES_MAX]
    for name, column in OF_TOPIC.items():
        for row in shown:
            labels = *of_cluster, ("topic", row["topic"]), ("tier", row["tier"]), ("group", row["name"])
            yield Sample(name, labels, row[column])
    yield Sample("kavka_analytics_omitted_series", of_cluster, table.count - len(shown))


def _answers(of_cluster: Labels, tables: Mapping[str, Table]) -> Iterator[Sample]:
    for name, table in sorted(tables.items()):
        yield Sample("kavka_analytics_answer_rows", (*of_cluster, ("answer", name)), table.count)


def _chains(of_cluster: Labels, chains: Chains | None) -> Iterator[Sample]:
    """Without a look at the chains there is no figure: 0 damaged ones would be a claim."""
    if chains is not None:
        for verdict in VERDICTS:
            yield Sample("kavka_analytics_chains", (*of_cluster, ("verdict", verdict)), chains.counts.get(verdict, 0))


def _lines(samples: Iterable[Sample]) -> Iterator[str]:
    by_name: dict[str, list[Sample]] = {name: [] for name in FAMILIES}
    for sample in samples:
        by_name[sample.name].append(sample)
    for name, found in by_name.items():
        if found:
            yield f"# HELP {name} {FAMILIES[name]}"
            yield f"# TYPE {name} gauge"
        for sample in found:
            labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels)
            yield f"{name}{{{labels}}} {sample.value!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
