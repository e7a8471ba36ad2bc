"""A run: what is new in the trail goes into the lake, the questions are asked, and the page is written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kavka_audit.engine import DUCKDB, Engine
from kavka_audit.lake.completeness_ingest import Books, Progress, balance
from kavka_audit.lake.completeness_results import note, stale, verdicts
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.errors import told
from kavka_audit.lake.ingest import Ingested, Trail
from kavka_audit.lake.own_files import MADE
from kavka_audit.lake.snapshot import Rows, Snapshot, keep
from kavka_audit.questions.query_runner import Settings, Table, questions
from kavka_audit.report.answers import answer
from kavka_audit.report.chain_summary import Chains
from kavka_audit.report.csv_files import write_csv
from kavka_audit.report.metrics import metrics
from kavka_audit.report.openlineage import lineage_events, uses_of
from kavka_audit.report.page import Beside, page
from kavka_audit.report.previous import read_previous, write_previous
from kavka_audit.report.trend import days_of

KEEP_DAYS: Final = 400
"""How long rows are kept, unless said otherwise: a year and what it takes to compare it with the one before."""
PAGE: Final = "report.html"
LINEAGE: Final = "lineage.jsonl"
METRICS: Final = "metrics.prom"
assert {PAGE, LINEAGE, METRICS} < set(MADE), "what a run writes may be taken for a file of others"
ROWS_READ: Final = 1_000
"""Rows of each table that the page may draw from; the files have all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has made. `page` is where it is, for people, and `besides` names the files beside it."""

    ingested: Ingested
    tables: dict[str, Table]
    page: str
    besides: frozenset[str] = frozenset()
    unknown: Sequence[str] = ()  # files in the directory that no run has written
    chains: Chains | None = None  # None where nothing looks at them

    def answer(self, name: str) -> str:
        """Return the answer to a question in one line."""
        return answer(self.tables[name])


Files = Callable[[Mapping[str, Table]], Mapping[str, str]]
"""Makes texts of the answers, by the names of their files; one that is empty is not to be there."""


def refresh(
    lake: Lake,
    trail: Trail,
    snapshot: Snapshot,
    settings: Settings,
    progress: Progress,
    books: Books | None = None,
    keep_days: int = KEEP_DAYS,
    engine: Engine = DUCKDB,
    besides: Files = lambda _: {},
) -> Outcome:
    """Take in what is new and answer all questions again. Raises LakeError, EngineError, and what `trail` raises."""
    so_far = Ingested()
    with told(lake), lake.held(snapshot.cluster_id):
        for so_far in engine.ingest(lake, trail):
            progress(f"{so_far.records:,} records of the trail read")
        counted = [] if books is None else balance(lake, books, settings.now_ms, progress)
        keep(lake, replace(snapshot, tables={**snapshot.tables, **_judged(lake, counted, settings.now_ms, keep_days)}))
        progress(f"asking {len(questions())} questions")
        tables = engine.ask(lake, settings, ROWS_READ)
        note(lake)
        engine.retain(lake, settings.now_ms, keep_days)
        for table in sorted(lake.tables.glob("*.parquet")):
            if table.stem in tables:
                write_csv(lake, table.stem)
        chains = chains_of(lake, settings.now_ms)
        previous = read_previous(lake)
        beside = Beside(snapshot.name, chains, previous, days_of(lake, settings.now_ms))
        made = page(snapshot.cluster_id, settings.now_ms, tables, snapshot.untold, beside)
        lake.put(lake.directory / PAGE, made.encode())
        write_previous(lake, settings.now_ms, tables, previous)
        figures = metrics(snapshot.name or snapshot.cluster_id, settings.now_ms, so_far, tables, chains)
        lake.put(lake.directory / METRICS, figures.encode())
        lake.put(lake.directory / LINEAGE, _lineage(lake, snapshot, settings.now_ms).encode())
        texts = besides(tables)
        for name, text in texts.items():
            _write(lake, name, text)
    besides_made = frozenset(name for name, text in texts.items() if text)
    unknown = [lake.named(file) for file in lake.unknown]
    return Outcome(so_far, tables, f"{lake.name}/{PAGE}", besides_made, unknown, chains)


def chains_of(lake: Lake, now_ms: int) -> Chains | None:
    """Return what the tables know of the chains; None where nothing looks at them. Raises LakeError."""
    if lake.table_format != "delta":
        return None
    from kavka_audit.delta.chain_rows import summary_of

    return summary_of(lake, now_ms)


def _write(lake: Lake, name: str, text: str) -> None:
    """Write a file; without any text, take that of an earlier run away."""
    place = lake.directory / name
    if text:
        lake.put(place, f"{text}\n".encode())
    else:
        lake.remove(place)


def _judged(lake: Lake, counted: Sequence[str], now_ms: int, keep_days: int) -> dict[str, Rows]:
    """Return what completeness is judged with."""
    rows = [{"topic": topic} for topic in counted]
    return {"counted": rows, "stale": stale(lake, now_ms), "verdicts": verdicts(lake, now_ms, keep_days)}


def _lineage(lake: Lake, snapshot: Snapshot, now_ms: int) -> str:
    labels = snapshot.tables.get("labels", ())
    owners = {
        str(row["name"]): str(row["value"]) for row in labels if (row["kind"], row["label"]) == ("topic", "owner")
    }
    return lineage_events(snapshot.address or snapshot.cluster_id, now_ms, uses_of(lake), owners)
