"""The trail into Delta tables: each batch a range of one partition, committed to `chains` last.

Where there is much to read, several processes read batches and write their files; this one alone commits, in the order
of the offsets.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import ceil
from pathlib import Path

from kavka_audit.delta.batch_files import BatchReader, ReadBatch, staged_in
from kavka_audit.delta.chain_rows import known_chains, replace_chains
from kavka_audit.delta.chain_states import Batch, ChainState, Place, Steps, follow
from kavka_audit.delta.deleted_topics import end_deleted_topics
from kavka_audit.delta.tables import NUMBER, Tables, identifier
from kavka_audit.lake import parallel_ingest
from kavka_audit.lake.chain_steps import Links
from kavka_audit.lake.directory import PART, Lake, LakeError
from kavka_audit.lake.ingest import ROWS_MAX, Ingested, Range, Trail
from kavka_audit.lake.parallel_ingest import Opener, crew_for, read_by_crew


def ingest(
    lake: Lake, trail: Trail, now_ms: int, opener: Opener | None = None, most: int | None = None
) -> Iterator[Ingested]:
    """Take in what is new; gives what was read so far for each batch. At the end all batches are committed. With
    `opener`, which opens the trail in another process, it is read by several where it is much, `most` at the most.
    """
    run, ranges = _Run(lake, trail, now_ms), [*trail.ranges()]
    for span in run.unfinished(ranges):
        yield from run.read(span)
    new = sum(until - max(first, begin) for begin, (_, first, until) in run.new(ranges))
    crew = 1 if opener is None else crew_for(new, most)
    if opener is None or crew < 2:
        for span in run.spans(ranges, ROWS_MAX):
            yield from run.read(span)
        return
    pieces = run.spans(ranges, min(parallel_ingest.PIECE_RECORDS_MAX, ceil(new / crew)))
    for (partition, _, until), read, part in read_by_crew(lake, trail.topic_id, opener, crew, run.reader, pieces):
        yield run.commit(read, part)
        yield from run.read((partition, read.taken.until, until))  # what is behind a hole


class _Run:
    """The tables and the chains as this run has made them."""

    def __init__(self, lake: Lake, trail: Trail, now_ms: int) -> None:
        self._lake, self._trail, self._now_ms = lake, trail, now_ms
        self._tables, self._so_far = Tables(lake), Ingested()
        self.reader = BatchReader(trail.topic_id, now_ms)
        end_deleted_topics(self._tables, trail.topic_id, now_ms)
        self._chains: Mapping[Place, ChainState] = known_chains(self._tables.chains)

    def new(self, ranges: Iterable[Range]) -> Iterator[tuple[int, Range]]:
        """Give what is new of each partition, behind the first offset that the topic still has."""
        for partition, begin, end in ranges:
            first = self._tables.chains.reached(self._trail.topic_id, partition)
            if first < end:
                yield begin, (partition, first, end)

    def spans(self, ranges: Iterable[Range], records_max: int) -> Iterator[Range]:
        """Give what is new in pieces that become a batch each."""
        for begin, (partition, begun, end) in [*self.new(ranges)]:
            first = begun
            while first < end:
                until = min(end, max(first, begin) + records_max)
                yield partition, first, until
                first = until

    def unfinished(self, ranges: Iterable[Range]) -> Iterator[Range]:
        """Give the batch that a run which died has left half done, if there is one. Raises LakeError."""
        chains, before_chains = self._tables.chains, (self._tables.dead_letters, self._tables.events)
        for partition, _, _ in ranges:
            first = chains.reached(self._trail.topic_id, partition)
            until = max(table.reached(self._trail.topic_id, partition) for table in before_chains)
            # Of the same number too: a batch that is read again ends earlier at what was deleted meanwhile.
            if first < until:
                yield partition, first, until
                return
        ahead = [table for table in before_chains if table.number > chains.number]
        if ahead:
            raise LakeError(
                f"{ahead[0].name} has a batch that chains does not have, of another engine; go on with the engine that"
                " wrote it, or choose another directory"
            )

    def read(self, span: Range) -> Iterator[Ingested]:
        """Read a range here, and commit it; gives what was read so far for each batch."""
        partition, first, until = span
        while first < until:
            part = self._lake.place(self._trail.topic_id, partition, first, until).with_suffix(PART)
            read = self.reader(self._trail, (partition, first, until), part)
            yield self.commit(read, part)
            first = read.taken.until

    def commit(self, read: ReadBatch, part: Path) -> Ingested:
        """Commit a batch whose files stand beside `part`; returns what was read so far."""
        (topic_id, taken), tables = (self._trail.topic_id, read.taken), self._tables
        log_start, cluster = self._trail.begin(taken.partition), self._lake.trail_cluster
        batch = Batch(topic_id, taken.partition, log_start, self._now_ms, bool(taken.missed), cluster)
        found = follow(self._chains, batch, read.steps, partial(_reread, self._trail, taken.partition))
        identifiers = {NUMBER: tables.chains.number + 1, identifier(topic_id, taken.partition): taken.until}
        for table, files in ((tables.dead_letters, read.dead_letters), (tables.events, read.events)):
            if files and table.reached(topic_id, taken.partition) < taken.until:
                table.add(files, identifiers)
        replace_chains(tables.chains, found, identifiers)
        for directory in staged_in(part):
            shutil.rmtree(directory, ignore_errors=True)
        self._chains = found
        self._so_far.records += taken.records
        self._so_far.dead += taken.dead
        self._so_far.missed += taken.missed
        return self._so_far


def _reread(trail: Trail, partition: int, source: str, first: int, until: int) -> Steps:
    """Give the entries of a chain between two offsets as steps, each by itself."""
    for batch in trail.batches(partition, first, until):
        for record in batch.records():
            if first <= record.offset < until:
                links = Links()
                links.add(record)
                yield from (step for step in links.steps() if step.entry.source == source)
