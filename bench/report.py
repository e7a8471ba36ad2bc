"""The measures as tables: in the terminal, as Markdown, and as JSON for whoever wants to look closer."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measure import (
    ANSWERED,
    BURST,
    COMMIT_P50,
    COMMIT_P99,
    CONSUMER_P50,
    CONSUMER_P99,
    COST,
    CPU_PER_GB,
    CPU_PER_OPERATION,
    EPOCHS,
    FIRST_P99,
    GROWN,
    HEARTBEATS,
    HELD,
    HELD_CORES,
    IDLE_CORES,
    LAST_P99,
    MOVED,
    OF_LIMIT,
    OF_LIMIT_LATER,
    P50,
    P99,
    P999,
    PRODUCER_P50,
    PRODUCER_P99,
    RATE,
    REBALANCE,
    REBALANCE_CPU,
    REQUESTS,
    SHARE,
    SPREAD,
    STALL,
    THROUGHPUT,
    TOLD,
    TRANSACTIONS,
    Comparison,
    Measure,
    Metric,
    cases,
    compare,
)
from bench.repetitions import Spread, brief

CAPTION = (
    "Median (least to greatest) of the repetitions. The lead is Kavka : Kafka where more is better and "
    "Kafka : Kavka where less is, so above 1 Kavka is ahead. MB and GB are of record values, powers of ten."
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which metrics of a section stand side by side in one table."""

    title: str
    section: str
    metrics: tuple[Metric, ...]


LAYOUTS = (
    Layout("Process", "process", (COST,)),
    Layout("Produce", "produce", (RATE, THROUGHPUT, CPU_PER_GB)),
    Layout("Produce, latency under full load (Java's producer)", "produce", (P50, P99, P999)),
    Layout("Consume", "consume", (RATE, THROUGHPUT, CPU_PER_GB)),
    Layout("Three brokers, three replicas, acks=all", "replicated", (RATE, THROUGHPUT, CPU_PER_GB)),
    Layout("Three brokers: failures and many partitions", "cluster", (COST,)),
    Layout("A sync before each answer (flush.messages=1), acks=all", "flush", (REQUESTS, SHARE, P50, P99)),
    Layout("TLS and logins, 1 partition, acks=all, rdkafka", "tls", (RATE, THROUGHPUT, CPU_PER_GB)),
    Layout("Transactions", "transactions", (TRANSACTIONS, COMMIT_P50, COMMIT_P99, CPU_PER_OPERATION)),
    Layout("Quotas, default window: the rate reached", "quotas", (OF_LIMIT, OF_LIMIT_LATER, TOLD, HELD)),
    Layout("Quotas, default window: how it comes", "quotas", (BURST, STALL, SPREAD)),
    Layout("Connections that are held by a quota", "crowd", (HELD, IDLE_CORES, HELD_CORES)),
    Layout("Client ids that come once, under the default quota", "crowd", (ANSWERED, GROWN, FIRST_P99, LAST_P99)),
    Layout(
        "Rebalances of consumer groups (KIP-848)", "rebalances", (REBALANCE, REBALANCE_CPU, MOVED, EPOCHS, HEARTBEATS)
    ),
    Layout("A light producer beside others", "neighbours", (PRODUCER_P50, PRODUCER_P99)),
    Layout("A light consumer beside others", "neighbours", (CONSUMER_P50, CONSUMER_P99)),
    Layout("One at a time", "latency", (P50, P99, P999, CPU_PER_OPERATION)),
)


def markdown(measures: Sequence[Measure], environment: dict[str, object]) -> str:
    """The whole report."""
    about = ", ".join(f"{name}: {value}" for name, value in environment.items())
    parts = ["# Kavka beside Apache Kafka", about, CAPTION]
    for layout in LAYOUTS:
        if rows := table(measures, layout):
            parts += [f"## {layout.title}", "\n".join(_markdown_row(row) for row in _with_rule(rows))]
    return "\n\n".join([*parts, summary(measures)]) + "\n"


def text(measures: Sequence[Measure]) -> str:
    """The same for a terminal, without what is known there."""
    found = [(layout.title, table(measures, layout)) for layout in LAYOUTS]
    tables = ["\n".join([title, *_aligned(rows)]) for title, rows in found if rows]
    return "\n\n".join([*tables, CAPTION, summary(measures)])


def table(measures: Sequence[Measure], layout: Layout) -> list[list[str]]:
    """Header and rows of one table; nothing where the section was not measured or lacks these metrics."""
    rows = []
    for case in cases(measures, layout.section):
        found = [compare(measures, layout.section, case, metric) for metric in layout.metrics]
        if any(comparison.kavka or comparison.kafka for comparison in found):
            busy = _others(measures, layout.section, case)
            rows.append([case, *(cell for comparison in found for cell in _cells(comparison)), brief(busy)])
    if not rows:
        return []
    titles = [title for metric in layout.metrics for title in _titles(metric)]
    return [["case", *titles, "others busy, cores"], *rows]


def summary(measures: Sequence[Measure]) -> str:
    """In how many rows Kavka is ahead, and where it is not."""
    found: dict[tuple[str, str, str], float] = {}
    for layout in LAYOUTS:
        for case in cases(measures, layout.section):
            for metric in layout.metrics:
                lead = compare(measures, layout.section, case, metric).lead
                if lead is not None:
                    found[layout.section, case, metric.title] = lead
    behind = {name: lead for name, lead in found.items() if lead < 1.0}
    lines = [f"Kavka is level or ahead in {len(found) - len(behind)} of {len(found)} figures."]
    for (section, case, title), lead in sorted(behind.items(), key=lambda item: item[1]):
        lines.append(f"- behind: {section}, {case}, {title}".rstrip(", ") + f": {lead:.2f}")
    return "\n".join(lines)


def as_json(measures: Sequence[Measure], environment: dict[str, object]) -> str:
    """Every repetition, a line each, with four digits."""
    lines = []
    for measure in measures:
        plain = asdict(measure)
        plain["figures"] = {name: float(f"{value:.4g}") for name, value in measure.figures.items()}
        plain["others_cores"] = round(measure.others_cores, 2)
        lines.append("  " + json.dumps(plain))
    return f'{{"environment": {json.dumps(environment)},\n "measures": [\n' + ",\n".join(lines) + "\n]}\n"


def write(path: Path, measures: Sequence[Measure], environment: dict[str, object]) -> None:
    """`path` with .json and .md."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(as_json(measures, environment))
    path.with_suffix(".md").write_text(markdown(measures, environment))


def _titles(metric: Metric) -> list[str]:
    return [f"{metric.title} Kavka".strip(), "Kafka", *([] if metric.derived else ["lead"])]


def _cells(comparison: Comparison) -> list[str]:
    both = [_spread(comparison.kavka), _spread(comparison.kafka)]
    if comparison.metric.derived:
        return both
    return [*both, "" if comparison.lead is None else f"{comparison.lead:.2f}"]


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return ""
    if spread.least == spread.greatest:
        return brief(spread.median)
    return f"{brief(spread.median)} ({brief(spread.least)}-{brief(spread.greatest)})"


def _others(measures: Sequence[Measure], section: str, case: str) -> float:
    found = [m.others_cores for m in measures if (m.section, m.case) == (section, case)]
    return Spread.of(found).median


def _aligned(rows: list[list[str]]) -> list[str]:
    """Columns side by side: the case to the left, figures to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for case, *figures in rows:
        padded = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        lines.append("  ".join(["", case.ljust(widths[0]), *padded]))
    return lines


def _with_rule(rows: list[list[str]]) -> list[list[str]]:
    """Markdown's line under the header; figures stand to the right."""
    return [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]


def _markdown_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
