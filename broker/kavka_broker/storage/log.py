"""The log of one partition: batches in order, in segments, with everything that is known about them.

    append   check the header, give the batch its offsets, write it as it came       here
    read     a slice of the file's map, whole batches from the one that holds an offset  log_reading
    roll     begin a new segment when the active one is full, old, or its index is   log_segments
    flush    sync what was appended, and the recovery point follows                  log_sync
    truncate cut off the end, as a follower that has what its leader has not         log_segments
    advance  move the start, as retention and DeleteRecords do                       log_segments, retention

All methods but `flush`, `sync_records` and `secure` run on the loop (or before it starts); these may run in a thread
beside them. `truncate_to` and `start_at` block, and are for whoever need not share the loop; a follower cuts in steps
(`log_sync`). An append syncs nothing: where `flush.messages` wants a sync the log says so (`awaits_sync`), and whoever
answers for its records waits for a thread to do that. What a write or a sync could not do is a BrokerError with
KAFKA_STORAGE_ERROR. A write that fails, as on a full disk, changes nothing and may be tried again. After a failed sync
nobody knows what is on the disk, so the log takes no more until it is recovered.

`append_as_leader` is the hottest code of the broker, and therefore flat: the ordinary batch is judged by one condition;
what is not ordinary goes to `batch_check`, which says what is wrong with it or makes it right.
"""

import struct
from typing import Final, NamedTuple

from crc32c import crc32c

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.partition.producer_state import SEQUENCE_MAX, WrittenBatch
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    crc_is_valid,
    set_log_append_time,
    set_max_timestamp,
    split_batches,
)
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.judgement import TooLong, time_span
from kavka_broker.storage.batch_check import NotOnLoop, Origin, Prepared, corrupt, first_batch, invalid, prepare
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.log_reading import Chunk, ReadableLog
from kavka_broker.storage.record_check import check_times, steps_on_loop
from kavka_broker.storage.segment import OFFSETS_MAX, Found, Segment

__all__ = ["Appended", "Chunk", "Found", "Log", "Origin"]

# A batch with one of these is not ordinary.
_UNUSUAL: Final = LOG_APPEND_TIME_BIT | CONTROL_BIT | DELETE_HORIZON_BIT
EPOCH_MAX: Final = 2**31 - 1

_unpack_header = HEADER.unpack_from
_pack_place = struct.Struct(">qii").pack_into


class Appended(NamedTuple):
    """Where batches were written. `log_append_time_ms` is -1 where the producers' own timestamps count."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int = -1
    duplicate: bool = False


class Log(ReadableLog):
    """One partition's log. Made by `Log.open`."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        *,
        recover: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        now_ms: int,
        keeps_end: bool = True,
        cleaned_offset: int = 0,
        topic_id: bytes | None = None,
    ) -> "Log":
        """Open a log as it is on disk, or begin it; with `recover` check what a crash may have torn. Below
        `cleaned_offset` it has been cleaned, whatever its topic says now. `topic_id` is what its directory says, if
        that was read already.
        """
        from kavka_broker.storage.recovery import open_log

        return open_log(
            disk,
            directory,
            config,
            recover=recover,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            now_ms=now_ms,
            keeps_end=keeps_end,
            cleaned_offset=cleaned_offset,
            topic_id=topic_id,
        )

    # --- append -------------------------------------------------------------------------------------------------

    def append_as_leader(
        self, batches: memoryview, leader_epoch: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> Appended:
        """Append one batch (or, unless a client sends them, several); offsets and epoch are written into it.

        Raises BrokerError with Kafka's code, or NotOnLoop for a client's batch that takes long to make ready (see
        `append_prepared`); then nothing was appended.
        """
        size = len(batches)
        try:
            (
                given_offset,
                length,
                _,
                magic,
                crc,
                attributes,
                last_offset_delta,
                base_timestamp,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                records_count,
            ) = _unpack_header(batches)
        except struct.error:
            first_batch(batches)
            raise
        if not (
            self._is_plain
            and length + PREFIX_BYTES == size
            and magic == MAGIC
            and given_offset == 0
            and size <= self._message_bytes_max
            and (origin is not Origin.CLIENT or not attributes & CODEC_MASK)
            and crc32c(batches[21:]) == crc
            and records_count == last_offset_delta + 1
            and records_count > 0
            and not attributes & _UNUSUAL
            and attributes & CODEC_MASK <= Compression.ZSTD
            and max_timestamp - now_ms <= self._after_max_ms
            and now_ms - base_timestamp <= self._before_max_ms
            and (producer_id < 0 or base_sequence >= 0)
        ):
            return self._append_unusual(batches, leader_epoch, now_ms, origin)
        if size > self._segment_bytes_max:
            raise self._too_large_for_segment(size)
        if origin is Origin.CLIENT:
            max_timestamp = self._judged(batches, records_count, base_timestamp, max_timestamp, now_ms)
        last_sequence = -1
        if producer_id >= 0:
            last_sequence = (base_sequence + last_offset_delta) & SEQUENCE_MAX
            earlier = self.producers.check(producer_id, producer_epoch, base_sequence, last_sequence)
            if earlier is not None:
                return Appended(earlier.base_offset, earlier.last_offset, -1, True)
        base_offset = self.log_end_offset
        last_offset = base_offset + last_offset_delta
        _pack_place(batches, 0, base_offset, length, leader_epoch)
        self._write(batches, size, leader_epoch, base_offset, last_offset, max_timestamp, now_ms)
        if producer_id >= 0:
            written = WrittenBatch(base_sequence, last_sequence, base_offset, last_offset, max_timestamp)
            self.producers.append(
                producer_id, producer_epoch, written, is_transactional=bool(attributes & TRANSACTIONAL_BIT)
            )
        return Appended(base_offset, last_offset)

    def _judged(
        self, batch: memoryview, records_count: int, base_timestamp: int, max_timestamp: int, now_ms: int
    ) -> int:
        """The largest timestamp of the records, once they are as the header says; it says that one from now on."""
        steps_max = steps_on_loop(records_count)
        try:
            earliest, latest = time_span(bytes(batch[HEADER_BYTES:]), records_count, steps_max)
            if base_timestamp + latest == max_timestamp and now_ms - base_timestamp - earliest <= self._before_max_ms:
                return max_timestamp
            header = BatchHeader._make(_unpack_header(batch))
            largest = check_times(earliest, latest, batch, header, self._config, now_ms, steps_max)
        except TooLong:
            raise NotOnLoop from None
        except ProtocolViolation as problem:
            raise invalid(f"the batch cannot be read: {problem}") from None
        if largest != max_timestamp:
            set_max_timestamp(batch, largest)
        return largest

    def _append_unusual(self, batches: memoryview, leader_epoch: int, now_ms: int, origin: Origin) -> Appended:
        """Batches that are refused, rewritten, of the broker's own, or more than one; and the first of a new log."""
        self._begin_records()
        header, batch = first_batch(batches)
        if len(batch) == len(batches):
            return self._append_prepared(batch, header, leader_epoch, now_ms, origin)
        if origin is Origin.CLIENT:
            raise BrokerError(ErrorCode.INVALID_RECORD, "a produce request has one record batch a partition")
        first = last = self._append_prepared(batch, header, leader_epoch, now_ms, origin)
        rest = batches[len(batch) :]
        while len(rest):
            header, batch = first_batch(rest)
            last = self._append_prepared(batch, header, leader_epoch, now_ms, origin)
            rest = rest[len(batch) :]
        return first._replace(last_offset=last.last_offset)

    def _append_prepared(
        self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int, origin: Origin
    ) -> Appended:
        return self._append_ready(prepare(batch, header, self._config, origin, now_ms), leader_epoch, now_ms, origin)

    def append_prepared(self, prepared: Prepared, leader_epoch: int, now_ms: int) -> Appended:
        """Append a client's batch that a thread has made ready. Raises as `append_as_leader`: NotOnLoop where the
        configuration has changed since.
        """
        if prepared.config is not self._config:
            raise NotOnLoop
        self._begin_records()
        if self._config.log_append_time:
            set_log_append_time(prepared.batch, now_ms)
        return self._append_ready(prepared.batch, leader_epoch, now_ms, Origin.CLIENT)

    def _append_ready(self, batch: memoryview, leader_epoch: int, now_ms: int, origin: Origin) -> Appended:
        header = BatchHeader._make(_unpack_header(batch))
        if len(batch) > self._segment_bytes_max:
            raise self._too_large_for_segment(len(batch))
        append_time_ms = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else -1
        if header.has_producer_id and not header.is_control and origin is Origin.CLIENT:
            earlier = self.producers.check(
                header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence
            )
            if earlier is not None:
                return Appended(
                    earlier.base_offset, earlier.last_offset, min(append_time_ms, earlier.timestamp_ms), True
                )
        _pack_place(batch, 0, self.log_end_offset, header.length, leader_epoch)
        header = header._replace(base_offset=self.log_end_offset)
        last_offset = header.last_offset
        self._write(batch, len(batch), leader_epoch, header.base_offset, last_offset, header.max_timestamp, now_ms)
        self.note_producer(header, batch, self._active)
        return Appended(header.base_offset, last_offset, append_time_ms)

    def append_as_follower(self, batches: memoryview, now_ms: int = 0, *, leader_epoch: int = EPOCH_MAX) -> Appended:
        """Append what the leader of `leader_epoch` has sent, with its offsets and epochs.

        A batch cut at the end is left out. All are judged before the first is written: raises BrokerError with
        CORRUPT_MESSAGE for a wrong CRC or length, and with UNKNOWN_SERVER_ERROR for offsets or epochs that go back and
        epochs that lie ahead of the leader's. Offsets may leave gaps, for compaction does.

        DeleteRecords may put a leader's start into the middle of a batch. A log that begins there is empty, and takes
        the whole batch.
        """
        self._begin_records()
        first_offset = end_offset = self.log_end_offset
        latest_epoch = self.epochs.latest
        whole = self._whole(batches)
        begins_within = bool(whole) and whole[0][0].base_offset < end_offset <= whole[0][0].last_offset
        if begins_within and self.log_start_offset == end_offset:
            end_offset = whole[0][0].base_offset
        for header, batch in whole:
            if header.magic != MAGIC or not crc_is_valid(batch):
                raise corrupt(f"{self.name}: a fetched batch at offset {header.base_offset} has a wrong CRC")
            if header.base_offset < end_offset or header.last_offset_delta < 0:
                raise self._unexpected(header, f"the log ends at {end_offset}")
            if not latest_epoch <= header.leader_epoch <= leader_epoch:
                if header.leader_epoch < self.epochs.latest:
                    self._were_epochs_wrong()  # the leader knows of no divergence; the next fetch names what is true
                raise self._unexpected(header, f"the log is at epoch {latest_epoch}, the leader at {leader_epoch}")
            end_offset, latest_epoch = header.next_offset, header.leader_epoch
        if begins_within:
            self.start_at(whole[0][0].base_offset)
        for header, batch in whole:
            size, epoch, base_offset = len(batch), header.leader_epoch, header.base_offset
            self._write(batch, size, epoch, base_offset, header.last_offset, header.max_timestamp, now_ms)
            self.note_producer(header, batch, self._active)
        if begins_within:
            self.advance_start(first_offset)
        return Appended(first_offset, self.log_end_offset - 1)

    def _whole(self, batches: memoryview) -> list[tuple[BatchHeader, memoryview]]:
        try:
            whole = list(split_batches(batches))
        except ProtocolViolation as problem:
            raise corrupt(f"{self.name}: what was fetched at offset {self.log_end_offset}: {problem}") from None
        if len(batches) and not whole:
            raise corrupt(f"{self.name}: not one whole batch in what was fetched at offset {self.log_end_offset}")
        return whole

    def _unexpected(self, header: BatchHeader, why: str) -> BrokerError:
        return BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{self.name}: a fetched batch of epoch {header.leader_epoch} spans {header.base_offset} to "
            f"{header.last_offset}; {why}",
        )

    def _begin_records(self) -> None:
        """The topic's id is synced before the first record; by a thread already, unless the record came very soon.

        Raises NOT_LEADER_OR_FOLLOWER while the log is being cut: it has come to lead meanwhile, and will soon.
        """
        if not self._has_begun:
            if self.is_being_cut:
                raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} was cut, and is not synced yet")
            self.secure()
            self._has_begun = True
            self.config = self._config

    def _write(
        self,
        batch: memoryview,
        size: int,
        leader_epoch: int,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        """The one place where a log grows."""
        if self.is_failed:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: an earlier sync failed")
        active = self._active
        if (
            active.file.size + size > self._segment_bytes_max
            or max_timestamp - active.first_timestamp_ms > self._segment_ms
            or max_timestamp < 0
            or last_offset > active.offset_max
            or active.is_index_full
        ) and self._must_roll(active, size, last_offset, max_timestamp, now_ms):
            # Where the leader's log has a gap this one's segments still follow on each other: nothing is missing there.
            has_reach = last_offset - self.log_end_offset <= OFFSETS_MAX
            active = self.roll(now_ms, None if has_reach else base_offset)
        if leader_epoch > self.epochs.begun:
            self._begin_epoch(leader_epoch, base_offset)
        try:
            active.append(batch, last_offset, max_timestamp)
        except OSError as problem:
            raise self._storage_error("append", problem) from problem
        end_offset = self.log_end_offset = last_offset + 1
        if not self.is_changed:
            self.note_changed()
        # What an earlier append wants synced will be; from there on it counts anew.
        flush_messages = self._flush_messages
        if (
            end_offset - self.recovery_point >= flush_messages
            and end_offset - self.sync_wanted_offset >= flush_messages
        ):
            self.sync_wanted_offset = end_offset

    def _too_large_for_segment(self, size: int) -> BrokerError:
        return BrokerError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {size} bytes, segment.bytes is {self._segment_bytes_max}",
        )

    def _must_roll(self, active: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        if not active.file.size:
            return last_offset > active.offset_max
        if active.first_timestamp_ms >= 0 and max_timestamp >= 0:
            age_ms = max_timestamp - active.first_timestamp_ms
        else:
            age_ms = now_ms - active.created_ms
        return (
            active.file.size + size > self._segment_bytes_max
            or age_ms > self._segment_ms
            or last_offset > active.offset_max
            or active.is_index_full
        )
