"""The segments of a log and their upkeep: begin and end them, cut them off at either end.

A segment that goes away is first renamed to `.deleted`, which is cheap, and removed later in a thread; a start removes
what was left.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from errno import ENOSPC

from kavka_broker.core.partition.producer_state import Producer
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.storage import retention
from kavka_broker.storage.cleaning.replacing import rename_all
from kavka_broker.storage.log_sync import SyncedLog
from kavka_broker.storage.names import CLEANED, SEGMENT_FILES, SWAP, offset_file
from kavka_broker.storage.producer_walk import ProducerWalk
from kavka_broker.storage.segment import Segment
from kavka_broker.storage.transaction_index import Trust
from kavka_broker.storage.transaction_proof import entry_of, note_batch
from kavka_broker.storage.witness import batch_of, witness_of

log = get("storage")

# How many readers' positions are remembered, so that each goes on where it stopped without a search.
READERS_MAX = 64


class SegmentedLog(SyncedLog):
    """A log as a row of segments, the last of which is active."""

    # --- roll ---------------------------------------------------------------------------------------------------

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Begin a new active segment at the end of the log (as a follower, at its leader's next offset)."""
        base_offset = self.log_end_offset if base_offset is None else base_offset
        try:
            self._active.finish()
            segment = self.new_segment(base_offset, now_ms)
        except OSError as problem:
            self._remove_unborn(base_offset)
            raise self._storage_error("roll", problem) from problem
        self.segments.append(segment)
        self._bases.append(base_offset)
        self._active = segment
        self.name_changes += 1
        with suppress(OSError):
            # Without it the next start reads more batches, no more than that.
            self.write_snapshot(base_offset, durable=False)
        return segment

    def _remove_unborn(self, base_offset: int) -> None:
        """A start would take what is left of a segment that could not be made for the end of the log."""
        if base_offset in self._bases:
            return
        for suffix in SEGMENT_FILES:
            with suppress(OSError):
                self.disk.remove(os.path.join(self.directory, offset_file(base_offset, suffix)))

    def new_segment(self, base_offset: int, now_ms: int, suffix: str = "") -> Segment:
        return Segment(
            self.disk,
            self.directory,
            base_offset,
            now_ms,
            index_interval_bytes=self._config.index_interval_bytes,
            index_bytes_max=self._config.segment_index_bytes,
            suffix=suffix,
        )

    def write_snapshot(self, offset: int, *, durable: bool) -> None:
        """Write down the producers as they are before `offset`."""
        witness = witness_of(self.segments_from(offset - 1)[0], offset)
        path = self._snapshots.write(offset, self.producers, witness, durable=durable)
        if not durable:
            self._unsynced_paths.append(path)

    # --- truncate -----------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Cut off the batch that holds `offset`, and all that follow. Returns whether there was anything. Blocks."""
        self.plan_cut(offset)
        return self._cut_at_once()

    def start_at(self, offset: int) -> None:
        """Forget everything and go on at `offset`. Blocks."""
        self.secure()
        self.plan_start(offset)
        self._cut_at_once()

    def _cut_at_once(self) -> bool:
        is_cut = self._planned is not None
        try:
            self.lower_on_disk()
            if is_cut:
                self.carry_out_cut()
        finally:
            self.give_up_cut()
        self.seal()
        return is_cut

    def plan_cut(self, offset: int) -> None:
        """The batch that holds `offset`, and all that follow, are to go, as a follower's that its leader has not.

        Nothing is planned where there is nothing to cut. Raises KAFKA_STORAGE_ERROR, on a full disk too.
        """
        if offset >= self.log_end_offset:
            # An epoch may begin at the end that wrote nothing yet, and that the leader has never heard of.
            self._are_epochs_changed |= self.epochs.truncate_from_end(offset)
        elif offset < self._bases[0]:
            self.plan_start(offset)
        else:
            self._plan(self.segments_from(offset)[0].end_below(offset))

    def plan_start(self, offset: int) -> None:
        """Everything is to go, as of a follower far behind its leader's start, which goes on at `offset`. Raises
        KAFKA_STORAGE_ERROR.
        """
        self._plan(min(offset, self._bases[0]), offset)

    def carry_out_cut(self) -> None:
        """Cut as planned, once that may be (`may_be_cut`); until `seal` the log takes no records. Raises
        KAFKA_STORAGE_ERROR, and nobody knows then what is on the disk.
        """
        planned = self._planned
        assert planned is not None, f"{self.name} is to be cut, and nobody has said where"
        assert not self._is_lowering, f"{self.name} promises on the disk what is to be cut"
        try:
            if planned.begins_at < 0:
                self._cut_off(planned.offset)
            else:
                self._begin_anew(planned.begins_at)
            self._producer_walk = self._walk_for_producers()
        except OSError as problem:
            self.fail()
            raise self._storage_error("truncate", problem) from problem
        with self._flush_lock:
            # At the end, when nothing of the former history can be taken for what a sync has made durable.
            self.truncations += 1
            self.sync_wanted_offset = min(self.sync_wanted_offset, self.log_end_offset)
            self._unsealed, self._planned = self._active, None
        self._has_begun, self.config = False, self._config  # whoever appends has to look
        self.look_at_indexes()

    def _cut_off(self, offset: int) -> None:
        log.info("log.truncated", log=str(self.name), from_offset=self.log_end_offset, to_offset=offset)
        keep = bisect_right(self._bases, offset)
        self._discard(reversed(self.segments[keep:]))
        self._set_segments(self.segments[:keep])
        self.log_end_offset = self._active.truncate(offset)
        # It may have stood in the middle of the batch that goes.
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.epochs.truncate_from_end(self.log_end_offset)
        self._snapshots.drop(lambda at: at > self.log_end_offset)

    def _begin_anew(self, offset: int) -> None:
        log.info("log.restarted", log=str(self.name), from_offset=self.log_end_offset, to_offset=offset)
        self._discard(reversed(self.segments))
        self.epochs.clear()
        try:
            first = self.new_segment(offset, self.segments[-1].created_ms)
        except OSError as problem:
            if problem.errno != ENOSPC:
                raise
            self.discarded.remove()  # the room that they took is enough
            first = self.new_segment(offset, self.segments[-1].created_ms)
        self._set_segments([first])
        self._snapshots.drop(lambda at: True)
        self.log_start_offset = self.log_end_offset = offset

    def advance_start(self, offset: int) -> bool:
        """Records below `offset` are not served any more; retention deletes their segments."""
        if offset > self.log_end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.name} ends at {self.log_end_offset}, below {offset}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.note_changed()
        self._are_epochs_changed |= self.epochs.truncate_from_start(offset)
        return True

    def delete_expired(self, now_ms: int, high_watermark: int) -> int:
        """Delete old segments as the topic's retention says; returns how many. None above the high watermark goes, and
        none that a cut is planned for, or that is yet to be synced after one.
        """
        count = retention.expired_count(self, now_ms, min(high_watermark, self.untouched_end))
        if not count:
            return 0
        if count == len(self.segments):
            try:
                self.roll(now_ms)
            except BrokerError:
                count -= 1  # the disk may be full; the older ones make room
        try:
            self._discard(self.segments[:count])
        except OSError as problem:
            raise self._storage_error("delete", problem) from problem
        self._set_segments(self.segments[count:])
        self.advance_start(self._bases[0])
        log.info("segments.deleted", log=str(self.name), count=count, log_start_offset=self.log_start_offset)
        return count

    def replace_segments(self, old: list[Segment], cleaned: Segment) -> bool:
        """Put what a cleaning has written in the place of `old`; returns whether these are still there. Its files are
        synced, their names are not yet. Raises KAFKA_STORAGE_ERROR; then the next start finishes it.
        """
        first = self.segments.index(old[0]) if old[0] in self.segments else -1
        behind = first + len(old)
        if first < 0 or self.segments[first:behind] != old or behind >= len(self.segments):
            return False
        base_offset = cleaned.base_offset
        try:
            rename_all(self.disk, self.directory, base_offset, CLEANED, SWAP)
            self._discard(old, keeps_snapshot=base_offset)
            rename_all(self.disk, self.directory, base_offset, SWAP, "")
            made = self.new_segment(base_offset, cleaned.created_ms)
        except OSError as problem:
            self.fail()
            raise self._storage_error("replace", problem) from problem
        made.take_over(cleaned)
        self._set_segments([*self.segments[:first], made, *self.segments[behind:]])
        self.look_at_indexes()
        return True

    def _set_segments(self, segments: list[Segment]) -> None:
        # In this order: a flush in another thread must not look up new segments by old bases, and leave some out.
        self._bases = [segment.base_offset for segment in segments]
        self.segments = segments
        self._active = segments[-1]
        self.name_changes += 1
        self._readers.clear()
        self._upper = None

    def _discard(self, segments: Iterable[Segment], *, keeps_snapshot: int = -1) -> None:
        self.note_changed()
        for segment in segments:
            segment.close()
            # The log last: an index without one is a sign that the disk has lost it.
            for path in reversed(segment.paths()):
                self.discarded.add(path)
            if segment.base_offset != keeps_snapshot:
                self.discarded.add(self._snapshots.path(segment.base_offset))

    # --- producers ----------------------------------------------------------------------------------------------

    def load_producers(self, snapshot_offsets: Sequence[int] | None = None) -> None:
        """Work out the producers' state, as the log is opened: the newest snapshot, and the batches behind it.
        `snapshot_offsets` says which there are, ascending, if somebody has just looked. Blocks.

        A transaction index that has to be built anew needs the state at the start of its segment, and all from there.
        """
        self.producers = self._walk_for_producers(snapshot_offsets).take(self.producers.producers_max)
        for segment in self.segments:
            if segment.aborted.trust is Trust.INCOMPLETE:
                segment.aborted.trust = Trust.WHOLE
        self.look_at_indexes()

    def _walk_for_producers(self, snapshot_offsets: Sequence[int] | None = None) -> ProducerWalk:
        """Raises OSError."""
        unindexed = (one.base_offset for one in self.segments if one.aborted.trust is Trust.INCOMPLETE)
        end_offset = self.log_end_offset
        at_most = min(unindexed, default=end_offset)
        known = self._snapshots.load(at_most, end_offset, self.bears_out, snapshot_offsets)
        # Without a snapshot the batch in which the log begins counts too.
        offset = self._snapshots.newest if self._snapshots.newest >= 0 else self.log_start_offset
        return ProducerWalk(known, offset, self.segments_from(offset))

    def bears_out(self, offset: int, producers: list[tuple[int, Producer]]) -> bool:
        """Whether the batches agree that these are the producers before `offset`, as far as two of them tell."""
        by_id = dict(producers)
        ends = [producer.batches[-1].last_offset for producer in by_id.values() if producer.batches]
        for last in (offset - 1, max(ends, default=offset - 1)):
            try:
                header = batch_of(self.segments_from(last)[0], last)
            except OSError:
                return False
            if header is None or header.is_control or (last == offset - 1 and not header.has_producer_id):
                continue
            known = by_id.get(header.producer_id)
            if known is None or not known.batches or known.batches[-1].last_offset != header.last_offset:
                return False
        return max(ends, default=-1) < offset

    def look_at_indexes(self) -> None:
        """What the transaction indexes of all segments come to."""
        self.has_aborted = any(segment.aborted.last_offset >= 0 for segment in self.segments)
        self.has_doubted = any(segment.aborted.trust is Trust.DOUBTED for segment in self.segments)

    def drop_stray_snapshots(self) -> None:
        """Keep those that stand before a segment, and the newest."""
        kept = {*self._bases, max(self._snapshots.offsets(), default=0)}
        self._snapshots.drop(lambda at: at not in kept)

    def note_producer(self, header: BatchHeader, batch: memoryview, segment: Segment) -> None:
        """Keep the producers' state up with a batch that is in `segment`, without judging it."""
        ended = note_batch(self.producers, header, batch)
        if ended is not None and ended.is_aborted:
            segment.aborted.append(entry_of(ended))
            self.has_aborted = True

    # --- the end ------------------------------------------------------------------------------------------------

    def release_idle(self) -> None:
        """Let go of the maps and descriptors of all segments; of the active one too if nothing has been written since
        this was called last.
        """
        is_idle, self._released_at = self._released_at == self.log_end_offset, self.log_end_offset
        for segment in self.segments if is_idle else self.segments[:-1]:
            segment.release()

    def release(self) -> None:
        """Let go of all of them: the next use takes them up again."""
        for segment in self.segments:
            segment.release()

    def close(self) -> None:
        """Flush, and leave the log as a clean start wants to find it. Blocks."""
        if self.is_closed:
            return
        self.give_up_cut()
        try:
            if not self.is_failed:
                self._finish()
        except OSError as problem:
            raise self._storage_error("close", problem) from problem
        finally:
            self.abandon()

    @property
    def is_finished(self) -> bool:
        """Whether to close it waits for no disk: there is nothing to sync, nor to write down."""
        return not (self.is_changed or self.is_being_cut or self._lacks_snapshot)

    @property
    def _lacks_snapshot(self) -> bool:
        return self.log_end_offset > max(self._snapshots.newest, 0)

    def _finish(self) -> None:
        self.seal()  # a snapshot of the producers is to come
        self._active.finish()
        self.flush()
        if self._lacks_snapshot:
            self.write_snapshot(self.log_end_offset, durable=True)
        if self._snapshots.are_there:
            self.drop_stray_snapshots()

    def abandon(self) -> None:
        """Let go of all files as they are: the log is deleted, or its disk has failed."""
        self.is_closed = True
        for segment in self.segments:
            segment.close()
