"""Who wrote the copies of a record that is there twice: the batches in the nodes' logs, and what the library noted.

Both copies of one producer id and epoch, with one base sequence, are the broker's mistake. With a later epoch the
library has sent the record again: librdkafka raises its epoch when a batch is refused as out of order, and sends what
it has no answer for from sequence 0 on, though it may be in the log (`rd_kafka_idemp_drain_epoch_bump`).
"""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from kavka_broker.core.partition.producer_state import SEQUENCE_MAX
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.records.batch import HEADER_BYTES, BatchHeader, read_extent, read_header
from tests.sim.history import Place, place_text

LINES_KEPT_MAX: Final = 400
LINES_SHOWN_MAX: Final = 60
RAISED: Final = "bumped epoch to"
#: What librdkafka notes of its producer's id and epoch, and of batches that were refused as out of order.
NOTED: Final = {"debug": "eos", "log_level": 7}


class LibraryLog(logging.Handler):
    """Keeps the last lines that the library of a client has logged."""

    def __init__(self, client: str) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LINES_KEPT_MAX)
        self.raises = 0  # of the epoch, each of which may have sent records again
        self.logger = logging.getLogger(f"{__name__}.{client}")
        self.logger.setLevel(logging.DEBUG)
        self.logger.propagate = False
        self.logger.handlers = [self]
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self.raises += RAISED in line
        self.lines.append(line)


def copies(data: Mapping[int, Iterable[Path]], place: Place, offset: int) -> list[str]:
    """Each different batch that the nodes' log directories hold at an offset, in words, with the nodes that hold it."""
    holders: dict[str, list[str]] = {}
    for node_id, directories in data.items():
        for directory in directories:
            with suppress(OSError):  # a log directory that fails
                for header in batches_at(directory / place_text(place), offset):
                    holders.setdefault(batch_text(header, offset), []).append(str(node_id))
    where = f"{place_text(place)}@{offset}"
    return [f"{where}: {text}; on {', '.join(nodes)}" for text, nodes in holders.items()] or [f"{where}: on no node"]


def batches_at(directory: Path, offset: int) -> Iterator[BatchHeader]:
    """The batches of a log that hold an offset: one, or none."""
    bases = sorted((int(path.stem), path) for path in directory.glob("*.log"))
    for _, path in [found for found in bases if found[0] <= offset][-1:]:
        content, position = memoryview(path.read_bytes()), 0
        while len(content) - position >= HEADER_BYTES:
            try:
                extent = read_extent(content, position)
            except ProtocolViolation:
                return  # room that is not written yet
            if extent.base_offset <= offset <= extent.last_offset:
                yield read_header(content, position)
                return
            position += extent.size_bytes


def batch_text(header: BatchHeader, offset: int) -> str:
    """Producer, epoch and sequence of the record at an offset of a batch."""
    sequence = (header.base_sequence + offset - header.base_offset) & SEQUENCE_MAX
    return (
        f"producer id {header.producer_id}, epoch {header.producer_epoch}, sequence {sequence} of a batch from base"
        f" sequence {header.base_sequence} to {header.last_sequence} at {header.base_offset} to {header.last_offset},"
        f" leader epoch {header.leader_epoch}, sent at {header.base_timestamp} ms"
    )
