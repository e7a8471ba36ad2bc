"""The batches that a log has appended since the last look at it, by the bytes of its node's disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage.file_names import LOG
from tests.sim.node import as_written, whole_batches

NO_BASE: Final = -1


@dataclass(slots=True)
class Appended:
    """Up to where a log has been read. A log that is cut needs another one."""

    end_offset: int
    base_offset: int = NO_BASE  # of the segment that was read last
    position: int = 0  # in its file

    def read(self, log: Any) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Headers and bytes of the batches behind `end_offset`, which moves to the end of the log."""
        files, segments = log.disk.peek(log.directory), list(log.segments)
        since, self.end_offset = self.end_offset, log.log_end_offset
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            if following is not None and following.base_offset <= since:
                continue
            inode = files.get(f"{segment.base_offset:020}{LOG}")
            if inode is None:
                continue
            begin = self.position if segment.base_offset == self.base_offset else 0
            self.base_offset, self.position = segment.base_offset, begin
            for _, header, batch in whole_batches(as_written(inode)[begin:]):
                self.position += len(batch)
                if header.next_offset > since:
                    yield header, batch
