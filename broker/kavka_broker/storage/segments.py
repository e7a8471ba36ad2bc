"""The segments of one log, a row of which the last is active, and their files.

A segment that goes away is first renamed to `.deleted`, which is cheap, and removed later in a thread; a start removes
what was left.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.storage.discarded_files import DiscardedFiles
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import SEGMENT_FILES, SNAPSHOT, offset_file
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.transaction_index import Trust


class Segments:
    """One or more; each goes on where the one before it ends, except for gaps that compaction has left.

    `all` is another list once segments have gone or were exchanged. `name_changes` counts changes of names in the
    log's directory.
    """

    __slots__ = (
        "_bases",
        "_directory",
        "_disk",
        "_index_bytes_max",
        "_index_interval_bytes",
        "_released_at",
        "active",
        "all",
        "bytes_max",
        "discarded",
        "has_aborted",
        "has_doubted",
        "name_changes",
        "proof_problem",
        "roll_ms",
    )

    def __init__(self, disk: Disk, directory: str, segments: list[Segment], *, name_changes: int) -> None:
        assert segments, f"{directory} has no segment"
        assert name_changes >= 0
        self._disk = disk
        self._directory = directory
        self._bases = _bases_of(segments)
        self.all = segments
        self.active = segments[-1]
        self.discarded = DiscardedFiles(disk)
        self.name_changes = name_changes
        self.has_aborted = self.has_doubted = False
        self.proof_problem = ""  # why an index in doubt could not be compared
        self._released_at = -1  # where the log ended when idle segments were let go

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, index: int) -> Segment:
        return self.all[index]

    def configure(self, config: LogConfig) -> None:
        """Take over what the topic says of segments and their indexes."""
        assert config.segment_bytes_max > 0
        assert config.index_interval_bytes >= 0
        assert config.segment_index_bytes >= 0
        self.bytes_max = config.segment_bytes_max
        self.roll_ms = config.roll_ms
        self._index_interval_bytes = config.index_interval_bytes
        self._index_bytes_max = config.segment_index_bytes
        for segment in self.all:
            segment.index_interval_bytes = config.index_interval_bytes

    # --- looking ------------------------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.all)

    @property
    def first_base(self) -> int:
        return self._bases[0]

    @property
    def active_base(self) -> int:
        return self._bases[-1]

    def from_offset(self, offset: int) -> list[Segment]:
        """The segments that hold `offset` and what follows; one at least."""
        found = self.all[max(0, bisect_right(self._bases, offset) - 1) :]
        assert found, f"{self._directory} has no segment from {offset} on"
        return found

    def base_behind(self, segment: Segment) -> int:
        """Where the segment behind this one begins."""
        assert segment is not self.active, f"nothing lies behind the active segment of {self._directory}"
        return self._bases[bisect_right(self._bases, segment.base_offset)]

    def locate(self, offset: int) -> tuple[Segment, int]:
        """The segment that holds `offset`, and the position of its batch. Raises Damage."""
        index = max(0, bisect_right(self._bases, offset) - 1)
        while True:
            segment = self.all[index]
            place = segment.locate(offset)
            if place is not None:
                return segment, place.position
            # Compaction may have left nothing between this offset and the next segment.
            index += 1
            if index == len(self.all):
                return segment, segment.file.size

    def look_at_indexes(self) -> None:
        """Find out what the transaction indexes of all segments come to."""
        self.has_aborted = any(segment.aborted.last_offset >= 0 for segment in self.all)
        self.has_doubted = any(segment.aborted.trust is Trust.DOUBTED for segment in self.all)

    # --- changing -----------------------------------------------------------------------------------------------

    def make(self, base_offset: int, now_ms: int, suffix: str = "") -> Segment:
        """A segment that is not one of them yet. Raises OSError."""
        assert base_offset >= 0, f"a segment of {self._directory} from {base_offset} on"
        return Segment(
            self._disk,
            self._directory,
            base_offset,
            now_ms,
            index_interval_bytes=self._index_interval_bytes,
            index_bytes_max=self._index_bytes_max,
            suffix=suffix,
        )

    def must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch of `size` bytes goes into another segment than the active one."""
        assert size > 0, f"{self._directory}: a batch of {size} bytes"
        active = self.active
        if not active.file.size:
            return last_offset > active.offset_max
        if active.first_timestamp_ms >= 0 and max_timestamp >= 0:
            age_ms = max_timestamp - active.first_timestamp_ms
        else:
            age_ms = now_ms - active.created_ms
        return (
            active.file.size + size > self.bytes_max
            or age_ms > self.roll_ms
            or last_offset > active.offset_max
            or active.is_index_full
        )

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """End the active segment, and begin another. Raises OSError, and then nothing has changed."""
        assert self.active is self.all[-1], f"{self._directory} writes to a segment that is not its last one"
        assert base_offset > self._bases[-1], f"{self._directory} has a segment from {base_offset} on"
        try:
            self.active.finish()
            segment = self.make(base_offset, now_ms)
        except OSError:
            self._remove_unborn(base_offset)
            raise
        self.all.append(segment)
        self._bases.append(base_offset)
        self.active = segment
        self.name_changes += 1
        assert len(self._bases) == len(self.all)
        return segment

    def _remove_unborn(self, base_offset: int) -> None:
        """A start would take what is left of a segment that could not be made for the end of the log."""
        if base_offset in self._bases:
            return
        assert base_offset > self._bases[-1], f"{self._directory}: {base_offset} lies within the log"
        for suffix in SEGMENT_FILES:
            with suppress(OSError):
                self._disk.remove(os.path.join(self._directory, offset_file(base_offset, suffix)))

    def replace(self, segments: list[Segment]) -> None:
        """These are the segments from now on."""
        assert segments, f"{self._directory} is left without a segment"
        # In this order: a flush in another thread must not look up new segments by old bases, and leave some out.
        self._bases = _bases_of(segments)
        self.all = segments
        self.active = segments[-1]
        self.name_changes += 1

    def keep_below(self, offset: int) -> int:
        """Cut off the batch that holds `offset`, and all that follow; returns where the row ends. Raises OSError."""
        keep = bisect_right(self._bases, offset)
        assert keep, f"{self._directory} begins at {self._bases[0]}: nothing is left below {offset}"
        self.discard(reversed(self.all[keep:]))
        self.replace(self.all[:keep])
        return self.active.truncate(offset)

    def discard(self, segments: Iterable[Segment], *, keeps_snapshot: int = -1) -> None:
        """Take their files out of the log, and the snapshot of producers where each begins. Raises OSError."""
        for segment in segments:
            assert segment.directory == self._directory, f"{segment.file.path} is not of {self._directory}"
            segment.close()
            # The log last: an index without one is a sign that the disk has lost it.
            for path in reversed(segment.paths()):
                self.discarded.add(path)
            if segment.base_offset != keeps_snapshot:
                self.discarded.add(os.path.join(self._directory, offset_file(segment.base_offset, SNAPSHOT)))

    # --- the end ------------------------------------------------------------------------------------------------

    def release_idle(self, log_end_offset: int) -> None:
        """Let go of the maps and descriptors of all segments; of the active one too if nothing has been written since
        this was called last.
        """
        is_idle, self._released_at = self._released_at == log_end_offset, log_end_offset
        for segment in self.all if is_idle else self.all[:-1]:
            segment.release()

    def release(self) -> None:
        """Let go of all of them: the next use takes them up again."""
        for segment in self.all:
            segment.release()

    def close(self) -> None:
        for segment in self.all:
            segment.close()


def _bases_of(segments: list[Segment]) -> list[int]:
    bases = [segment.base_offset for segment in segments]
    assert all(base < other for base, other in pairwise(bases)), f"the segments begin at {bases}"
    return bases
