"""The producers of a log as its batches say them: the newest snapshot, and a walk over what stands behind it.

Behind the newest snapshot may be a whole segment, and in it millions of batches. Where a log is opened nobody waits for
the loop. Where it is cut, a thread takes the walk, with files of its own: those of the log belong to the loop.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from kavka_broker.core.partition.producer_state import Producer, ProducerStates, WrittenBatch
from kavka_broker.core.partition.transactions import NO_OFFSET, Ended
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.records.control import ControlType, read_marker
from kavka_broker.storage.disk import File
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.transaction_index import AbortedTransaction

NOT_READ: Final = memoryview(b"")  # of a batch of data its header is enough


def note_batch(producers: ProducerStates, header: BatchHeader, batch: memoryview) -> Ended | None:
    """Keep `producers` up with a batch of the log, without judging it; the transaction that it has ended, if any."""
    if not header.has_producer_id:
        return None
    if header.is_control:
        marker = read_marker(batch)
        if marker is None:
            return None
        return producers.end_transaction(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            header.max_timestamp,
            header.base_offset,
            is_aborted=marker.kind is ControlType.ABORT,
        )
    written = WrittenBatch(
        header.base_sequence, header.last_sequence, header.base_offset, header.last_offset, header.max_timestamp
    )
    producers.append(header.producer_id, header.producer_epoch, written, is_transactional=header.is_transactional)
    return None


def entry_of(ended: Ended) -> AbortedTransaction:
    return AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, ended.stable_offset)


class ProducerWalk:
    """The walk from `offset` on, before which these are the producers; `segments` hold it and what follows.

    To make one raises OSError where the first of them cannot be read.
    """

    def __init__(self, known: Iterable[tuple[int, Producer]], offset: int, segments: Iterable[Segment]) -> None:
        assert offset >= 0
        self._known = list(known)
        self.offset = offset
        self._stretches = [(segment, segment.begin_before(offset)) for segment in segments]
        assert self._stretches, f"no segment holds {offset}, nor what follows"

    @property
    def doubtful_offset(self) -> int:
        """The offset from which on a transaction may be open, before the walk is taken."""
        opened = (producer.transaction_first_offset for _, producer in self._known)
        return min((offset for offset in opened if offset != NO_OFFSET), default=self.offset)

    def take(self, producers_max: int) -> ProducerStates:
        """The producers at the end of the log, by its own files; what its transaction indexes lack is added to them.
        Raises OSError.
        """
        producers = self._before(producers_max)
        for segment, position in self._stretches:
            for ended in self._noted(producers, segment, segment.file, position):
                if ended.is_aborted:
                    segment.aborted.append(entry_of(ended))
        return producers

    def take_in_thread(self, producers_max: int) -> ProducerStates:
        """As `take`, beside the loop. The indexes are its own, and those of a log in service lack nothing."""
        producers = self._before(producers_max)
        for segment, position in self._stretches:
            try:
                file = segment.open_to_read()
            except FileNotFoundError:
                continue  # deleted meanwhile, as retention or the whole topic demands
            try:
                for _ in self._noted(producers, segment, file, position):
                    pass
            finally:
                file.close()
        return producers

    def _before(self, producers_max: int) -> ProducerStates:
        assert producers_max > 0
        producers = ProducerStates(producers_max)
        producers.replace((key, replace(known, batches=[*known.batches])) for key, known in self._known)
        return producers

    def _noted(self, producers: ProducerStates, segment: Segment, file: File, position: int) -> Iterator[Ended]:
        # A disk may have changed how far a batch reaches: the next one of its producer would come before its end.
        for at, header in segment.sound_batches(position, is_checked=True, file=file):
            if header.has_producer_id and header.last_offset >= self.offset:
                marker = file.read(at, header.size_bytes) if header.is_control else NOT_READ
                ended = note_batch(producers, header, marker)
                if ended is not None:
                    yield ended
