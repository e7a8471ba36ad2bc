"""The trail into the lake by several processes: each reads pieces of partitions and writes files of rows.

One process does not read faster by threads, as most of its time is Python's. So this one, which holds the lake, has
others read. It hands out pieces by offset, and a file that is written comes back to it to take its place. Only this
process changes the lake, or the store that keeps it, and it does so by partition and offset: a run that dies, here or
there, leaves the beginning of each partition, and files with the suffix `.part`. The others hold the lock of the
directory too, so that no other run begins while one of them may still write. They end as soon as this one is gone.

A process gets what it needs, credentials too, by a socket that no other process sees. A piece of 100,000
records took 187 MiB of memory there.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kavka_audit.lake.directory import PART, Lake, LakeError
from kavka_audit.lake.ingest import Ingested, Range, Trail, ingest, settle, spans, take

CREW_MAX: Final = 4
"""Processes that read; more of them wait for the broker, and for their files to take their places."""
RECORDS_MIN: Final = 250_000
"""New records for which others are started: with fewer, starting them takes longer than they save."""
PIECE_RECORDS_MAX: Final = 100_000
"""Records of a piece; with 250,000 of them two processes and this one took up to 1,068 MiB."""
ORDERS_MAX: Final = 2
"""Pieces that a process has, of which the second is to be read when the first is."""
AHEAD_MAX: Final = 4 * CREW_MAX
"""Pieces that are handed out behind the first whose file has not taken its place."""
END_SECONDS_MAX: Final = 5
"""How long a process may take to end once it has closed its socket."""
QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
"""What a pod may use: microseconds of processors, or `max`, in a period of so many microseconds."""
Opener = Callable[[], Trail]
"""Opens the trail in another process, to which it is pickled."""
Read = TypeVar("Read")
Reader = Callable[[Trail, Range, Path], Read]
"""Reads a piece in another process, to which it is pickled. It writes files at the path and beside it."""


class CrewError(LakeError):
    """A process that reads the trail has ended."""


def ingest_by_crew(lake: Lake, trail: Trail, opener: Opener, most: int | None = None) -> Iterator[Ingested]:
    """Take in what is new as `ingest` does; by several processes where it is much. Raises LakeError, and what the trail
    raises.
    """
    next_offsets = lake.next_offsets(trail.topic_id)
    new = sum(end - max(begin, next_offsets.get(partition, 0)) for partition, begin, end in trail.ranges())
    crew = crew_for(new, most)
    if crew < 2:
        yield from ingest(lake, trail)
        return
    so_far = Ingested()
    pieces = spans(lake, trail, rows_max=min(PIECE_RECORDS_MAX, ceil(new / crew)))
    for _, taken, part in read_by_crew(lake, trail.topic_id, opener, crew, take, pieces):
        settle(lake, trail.topic_id, taken, part, so_far)
        yield so_far


def crew_for(records: int, most: int | None = None) -> int:
    """Return by how many processes to read so many new records, `most` at the most; 1: by this one alone."""
    return 1 if records < RECORDS_MIN else processors() if most is None else most


def read_by_crew(
    lake: Lake, topic_id: str, opener: Opener, crew: int, reader: Reader[Read], pieces: Iterable[Range]
) -> Iterator[tuple[Range, Read, Path]]:
    """Have other processes read pieces of partitions; gives each piece, in their order, with what the reader made of it
    and the path that the reader was given. Raises LakeError, and what the trail raises.
    """
    with _Crew(lake, topic_id, (opener, reader), crew) as workers:
        yield from workers.taken(pieces)


def processors() -> int:
    """Return how many processes to read by: the processors that this one may use, up to CREW_MAX."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = QUOTA.read_text().split()
        allowed = min(allowed, int(quota) // int(period))
    return max(1, min(allowed, CREW_MAX))


@dataclass(slots=True)
class _Worker:
    """A process that reads, and the numbers of the pieces that it has."""

    process: subprocess.Popen[bytes]
    connection: Connection
    orders: list[int] = field(default_factory=list)


class _Crew:
    """Processes that read pieces of the trail."""

    def __init__(self, lake: Lake, topic_id: str, means: tuple[Opener, Reader[Any]], count: int) -> None:
        self._lake, self._topic_id, self._means, self._count = lake, topic_id, means, count
        self._workers: list[_Worker] = []
        self._spans: dict[int, Range] = {}
        self._done: dict[int, tuple[Any, Path]] = {}
        self._settled = 0

    def __enter__(self) -> Self:
        try:
            for _ in range(self._count):
                self._workers.append(self._started())
            for worker in self._workers:
                self._tell(worker, sys.path)
                self._tell(worker, self._means)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes: what one is still writing is no part of the lake."""
        for worker in self._workers:
            worker.process.kill()
            worker.connection.close()
        for worker in self._workers:
            worker.process.wait()

    def _started(self) -> _Worker:
        ours, theirs = Pipe()
        with theirs:
            words = [sys.executable, "-P", "-m", "kavka_audit.lake.ingest_worker", f"{theirs.fileno()}"]
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), self._lake.lock),
                process_group=0,  # Ctrl-C is for this process, which ends the others
            )
        return _Worker(process, ours)

    def taken(self, pieces: Iterable[Range]) -> Iterator[tuple[Range, Any, Path]]:
        """Give each piece, in their order, with what was read of it and where its file is. Raises LakeError, and what
        a process raises.
        """
        orders = enumerate(pieces)
        while self._hand_out(orders):
            found = wait([worker.connection for worker in self._workers])
            for worker in self._workers:
                if worker.connection in found:
                    self._hear(worker)
            while self._settled in self._done:
                yield self._spans.pop(self._settled), *self._done.pop(self._settled)
                self._settled += 1

    def _hand_out(self, orders: Iterator[tuple[int, Range]]) -> bool:
        """Have each process be busy; returns whether any is."""
        for _ in range(ORDERS_MAX):
            for worker in sorted(self._workers, key=lambda worker: len(worker.orders)):
                if len(worker.orders) < ORDERS_MAX and self._waiting < AHEAD_MAX:
                    for number, span in islice(orders, 1):
                        part = self._lake.place(self._topic_id, *span).with_suffix(PART)
                        self._spans[number] = span
                        self._tell(worker, (number, span, part))
                        worker.orders.append(number)
        return self._waiting > 0

    @property
    def _waiting(self) -> int:
        """How many pieces were handed out whose files have not taken their places."""
        return len(self._done) + sum(len(worker.orders) for worker in self._workers)

    def _tell(self, worker: _Worker, order: object) -> None:
        try:
            worker.connection.send(order)
        except OSError:
            while True:  # it may have told why it ends
                self._hear(worker)

    def _hear(self, worker: _Worker) -> None:
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            raise self._over(worker) from None
        if isinstance(answer, BaseException):
            raise answer
        number, taken, part = answer
        worker.orders.remove(number)
        self._done[number] = taken, part

    def _over(self, worker: _Worker) -> CrewError:
        """Return the words for a process that has ended, or that does not listen any more."""
        try:
            code = worker.process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            code = worker.process.wait()
        how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        more = ", as the kernel ends processes where memory is short" if code == -signal.SIGKILL else ""
        words = f"a process that reads the trail ended {how}{more}"
        return CrewError(f"{words}; run again: what is in {self._lake.name} counts once")
