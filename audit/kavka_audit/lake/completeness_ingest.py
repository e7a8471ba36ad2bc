"""What clients tell and what stands in the topics that they tell of, both into the lake."""

from collections.abc import Callable, Mapping
from typing import Protocol

from kavka_audit.completeness.reports import TOPIC
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import REPORTS, Trail, ingest
from kavka_audit.lake.logs import Log, UncountedError, count, told_of

Progress = Callable[[str], None]
"""Told how far a run is, in words."""


class Books(Protocol):
    """What clients tell of the records that they wrote and read, and the topics to compare it with."""

    def reports(self) -> Trail | None:
        """Return the topic with what clients tell; None where there is none."""

    def log(self, topic: str) -> Log | None:
        """Return a topic; None where it cannot be counted."""

    def uncounted(self, words: str) -> None:
        """Hear why a topic was not counted to its end."""


def balance(lake: Lake, books: Books, now_ms: int, progress: Progress) -> list[str]:
    """Take in what clients tell, then count the topics that they tell of: a record that is told of is in its log by
    then. Returns the topics that were counted.
    """
    reports, counted = books.reports(), []
    for so_far in ingest(lake, reports, REPORTS) if reports is not None else ():
        progress(f"{so_far.records:,} reports of clients read")
    for topic, begins in told_of(lake).items():
        # The topic with the counts is not counted: files of both tables would stand in one place.
        log = None if topic == TOPIC else books.log(topic)
        if log is not None and _is_counted(lake, books, log, begins, now_ms, progress):
            counted.append(topic)
    return counted


def _is_counted(lake: Lake, books: Books, log: Log, begins: Mapping[int, int], now_ms: int, progress: Progress) -> bool:
    """Count what is new in a topic; returns whether that went to its end."""
    records = 0
    try:
        for some in count(lake, log, begins, now_ms):
            records += some
            progress(f"{records:,} records of {log.topic} counted")
    except UncountedError as problem:
        books.uncounted(str(problem))
        return False
    return True
