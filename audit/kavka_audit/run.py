"""A run: what is new in the trail goes into the lake, the questions are asked, and the page is written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested, Trail, ingest
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.asking import Settings, Table, ask
from kavka_audit.report.answers import answer
from kavka_audit.report.page import page

ROWS_READ: Final = 1_000
"""Rows of each table that the page may draw from; the files have all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has made."""

    ingested: Ingested
    tables: dict[str, Table]
    page: Path

    def answer(self, name: str) -> str:
        """Return the answer to a question in one line."""
        return answer(self.tables[name])


def refresh(
    directory: Path, trail: Trail, snapshot: Snapshot, settings: Settings, progress: Callable[[Ingested], None]
) -> Outcome:
    """Take in what is new and answer all questions again. Raises LakeError, and what `trail` raises."""
    lake, so_far = Lake(directory), Ingested()
    with lake.held(snapshot.cluster_id):
        keep(lake, snapshot)
        for so_far in ingest(lake, trail):
            progress(so_far)
        tables = ask(lake, settings, ROWS_READ)
        place = directory / "report.html"
        lake.put(place, page(snapshot.cluster_id, settings.now_ms, tables, snapshot.untold).encode())
    return Outcome(so_far, tables, place)
