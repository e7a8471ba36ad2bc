"""A trail whose readers, and a run whose process, end at a chosen point. Run as a program, it is such a run."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kavka_audit.lake import parallel_ingest, partition_reader
from kavka_audit.lake.directory import Lake, LakeError
from kavka_broker.core.audit.usage import Use
from tests.unit.analytics.trail import CLUSTER, At, Kept, Single, chain_of

USE = Use("User:alice", "10.0.0.1", "app", "WRITE", "orders", 100, 3)
EVENTS = 11
PIECE = 3


def trail_of(events: int = EVENTS) -> Kept:
    """Two partitions, of which the beginning of one was deleted, and a record that is no entry."""
    trail = Kept()
    for partition in range(2):
        trail.write(partition, chain_of(partition, [At(USE)] * events)[1])
    trail.add(1, [], b"dead")
    trail.begins[1] = 2
    return trail


@dataclass(frozen=True)
class Opener:
    """Opens a trail in another process, and has it end there at a point of the piece that begins at an offset."""

    trail: Kept
    point: str = ""
    at: int = PIECE

    def __call__(self) -> Kept:
        if self.point == "opening":
            os.kill(os.getpid(), signal.SIGKILL)
        return Ending(self.trail, self.point, self.at) if self.point else self.trail


class Ending(Kept):
    """A trail whose reader ends."""

    def __init__(self, trail: Kept, point: str, at: int) -> None:
        super().__init__(trail.topic_id, trail.records, trail.begins, trail.cuts)
        self._point, self._at = point, at
        self._write = partition_reader.Taking.write

    def batches(self, partition: int, first: int, until: int) -> Iterator[Single]:
        is_here = (partition, first) == (0, self._at)
        if is_here and self._point == "refused":
            raise LakeError("the trail is not to be read")
        if is_here and self._point == "silent":
            signal.pause()
        found = super().batches(partition, first, until)
        if is_here:
            yield next(found)
            self._plant()
        yield from found

    def _plant(self) -> None:
        if self._point == "reading":
            self._end()
        if self._point in ("writing", "written"):
            point, write, end = self._point, self._write, self._end

            def write_and_end(made: partition_reader.Taking) -> None:
                if point == "written":
                    write(made)
                end()

            setattr(partition_reader.Taking, "write", write_and_end)  # noqa: B010 - in this process alone

    @staticmethod
    def _end() -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def run(directory: Path, point: str, reading: str) -> None:
    """Take in the trail by two processes; this one ends at a point of the second piece, and a reader at one of the
    fourth.
    """
    # Where the tests themselves run in the background a shell has them ignore it, and their children with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    small = {"PIECE_RECORDS_MAX": PIECE, "RECORDS_MIN": 0}
    for name, value in small.items():
        setattr(parallel_ingest, name, value)
    settle = Lake.settle

    def ending(lake: Lake, part: Path, place: Path) -> None:
        is_here = f"0-{PIECE:020}" in place.name
        if is_here and point == "settling":
            os.kill(os.getpid(), signal.SIGKILL)
        settle(lake, part, place)
        if is_here and point == "settled":
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(Lake, "settle", ending)  # noqa: B010 - of this process alone
    lake, opener = Lake(directory), Opener(trail_of(), reading, 3 * PIECE)
    with lake.held(CLUSTER):
        for so_far in parallel_ingest.ingest_by_crew(lake, opener.trail, opener, 2):
            print(so_far.records, flush=True)


if __name__ == "__main__":
    from tests.unit.analytics import interrupted_runs  # under the name that other processes know

    interrupted_runs.run(Path(sys.argv[1]), *sys.argv[2:])


def read_by_two(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """Have two processes read from the first record on, in small pieces."""
    monkeypatch.setattr(parallel_ingest, "PIECE_RECORDS_MAX", piece)
    monkeypatch.setattr(parallel_ingest, "RECORDS_MIN", 0)
