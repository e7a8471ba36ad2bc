"""The log of one partition: batches in order, in segments, with everything that is known about them.

    append   check the header, give the batch its offsets, write it as it came       here, batch_check, fetched_check
    read     a slice of the file's map, whole batches from the one that holds an offset  `reader` (log_reading)
    roll     begin a new segment when the active one is full, old, or its index is   `segments`
    flush    sync what was appended, and the recovery point follows                  `durability`
    truncate cut off the end, as a follower that has what its leader has not         `truncation` (log_truncation)
    advance  move the start, as retention and DeleteRecords do                       here, retention

Beside the segments there are `epochs` and `producers`, and the files that keep them: `epoch_file` and `producer_files`.
What all these parts have to know of each other is in `state`: where the log begins and ends, and whether it still can
be used. A part changes what is its own; only an append, an advance and a cut move the ends.

All methods but `flush`, `sync_records` and `secure` run on the loop (or before it starts); these may run in a thread
beside them. `truncate_to` and `start_at` block, and are for whoever need not share the loop; a follower cuts in steps
(`durability`). An append syncs nothing: where `flush.messages` wants a sync `durability` says so (`awaits_sync`), and
whoever answers for its records waits for a thread to do that. What a write or a sync could not do is a BrokerError with
KAFKA_STORAGE_ERROR. A write that fails, as on a full disk, changes nothing and may be tried again. After a failed sync
nobody knows what is on the disk, so the log takes no more until it is recovered.

`append_as_leader` is the hottest code of the broker, and therefore flat: the ordinary batch is judged by one condition;
what is not ordinary goes to `batch_check`, which says what is wrong with it or makes it right.
"""

import struct
from contextlib import suppress
from typing import Final, NamedTuple

from crc32c import crc32c

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.partition.leader_epochs import EpochEnd, LeaderEpochs
from kavka_broker.core.partition.producer_state import SEQUENCE_MAX, ProducerStates, WrittenBatch
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    PREFIX_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
    set_log_append_time,
)
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage.batch_check import NotOnLoop, Origin, Prepared, first_batch, judged, prepare
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.durability import Durability
from kavka_broker.storage.epoch_file import EpochFile
from kavka_broker.storage.fetched_check import judge_fetched
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log_reading import EMPTY, Chunk, Reader
from kavka_broker.storage.log_state import LogState
from kavka_broker.storage.log_truncation import Truncation
from kavka_broker.storage.producer_files import ProducerFiles
from kavka_broker.storage.producer_snapshot import ProducerSnapshots
from kavka_broker.storage.segment import OFFSETS_MAX, Segment
from kavka_broker.storage.segments import Segments

__all__ = ["Appended", "Chunk", "Log", "Origin"]

# A batch with one of these attributes is not ordinary.
_UNUSUAL: Final = LOG_APPEND_TIME_BIT | CONTROL_BIT | DELETE_HORIZON_BIT
EPOCH_MAX: Final = 2**31 - 1

_unpack_header = HEADER.unpack_from
_pack_place = struct.Struct(">qii").pack_into


class Appended(NamedTuple):
    """Offsets of appended batches. `log_append_time_ms` is -1 where the producers' own timestamps count."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int = -1
    duplicate: bool = False


class Log:
    """The log of one partition. Made by `recovery.open_log`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        name: PartitionName,
        config: LogConfig,
        segments: list[Segment],
        *,
        epochs: LeaderEpochs,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        is_as_left: bool,
        topic_id: bytes = ZERO,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.name = name
        self.topic_id = topic_id
        self.found_end_offset = log_end_offset
        self.damage = ""  # damage that the start found in synced records
        self.is_foreign = False  # the start found that the log is another partition's
        is_secured = is_as_left or log_end_offset > 0
        self.state = state = LogState(name, log_start_offset, log_end_offset, has_begun=is_secured)
        self.segments = Segments(disk, directory, segments, name_changes=int(not is_as_left))
        self.epochs = epochs
        # A log that was closed and opened again needs no sync.
        is_unsynced = not is_as_left and (bool(epochs.entries) or log_end_offset > log_start_offset)
        self.epoch_file = EpochFile(disk, directory, state, self.segments, epochs, is_unsynced=is_unsynced)
        snapshots = ProducerSnapshots(disk, directory, topic_id, name.partition)
        self.producer_files = ProducerFiles(state, self.segments, snapshots)
        self.durability = Durability(
            disk,
            directory,
            state,
            self.segments,
            self.epoch_file,
            self.producer_files,
            recovery_point=recovery_point,
            is_secured=is_secured,
        )
        self.truncation = Truncation(state, self.segments, self.epoch_file, self.producer_files, self.durability)
        self.reader = Reader(state, self.segments, self.epoch_file)
        self.config = config

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._keeps_built = config.compression_type in ("producer", "uncompressed") and not config.log_append_time
        self._is_plain = config.compression_type == "producer" and not config.log_append_time and not config.compacts
        self._message_bytes_max = config.max_message_bytes
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._flush_messages = config.flush_messages
        self.segments.configure(config)

    @property
    def log_start_offset(self) -> int:
        return self.state.start_offset

    @property
    def log_end_offset(self) -> int:
        return self.state.end_offset

    @property
    def recovery_point(self) -> int:
        return self.durability.recovery_point

    @property
    def truncations(self) -> int:
        return self.state.truncations

    @property
    def is_failed(self) -> bool:
        return self.state.is_failed

    @property
    def is_closed(self) -> bool:
        return self.state.is_closed

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def producers(self) -> ProducerStates:
        return self.producer_files.states

    def epoch_end_offset(self, epoch: int) -> EpochEnd:
        """Return the end of an epoch; the newest epoch ends with the log."""
        return self.epochs.end_offset(epoch, self.state.end_offset)

    # --- append -------------------------------------------------------------------------------------------------

    def append_as_leader(
        self, batches: memoryview, leader_epoch: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> Appended:
        """Append one batch (or, unless a client sends them, several); offsets and epoch are written into it.

        Raises BrokerError with Kafka's code, or NotOnLoop for a client's batch that takes long to make ready (see
        `append_prepared`); then nothing was appended.
        """
        size, state = len(batches), self.state
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
            and state.has_begun
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
        if size > self.segments.bytes_max:
            raise self._too_large_for_segment(size)
        if origin is Origin.CLIENT:
            max_timestamp = judged(batches, records_count, base_timestamp, max_timestamp, now_ms, self._config)
        last_sequence = -1
        if producer_id >= 0:
            last_sequence = (base_sequence + last_offset_delta) & SEQUENCE_MAX
            earlier = self.producer_files.states.check(producer_id, producer_epoch, base_sequence, last_sequence)
            if earlier is not None:
                return Appended(earlier.base_offset, earlier.last_offset, -1, True)
        base_offset = state.end_offset
        last_offset = base_offset + last_offset_delta
        _pack_place(batches, 0, base_offset, length, leader_epoch)
        self._write(batches, size, leader_epoch, base_offset, last_offset, max_timestamp, now_ms)
        if producer_id >= 0:
            written = WrittenBatch(base_sequence, last_sequence, base_offset, last_offset, max_timestamp)
            self.producer_files.states.append(
                producer_id, producer_epoch, written, is_transactional=bool(attributes & TRANSACTIONAL_BIT)
            )
        return Appended(base_offset, last_offset)

    def _append_unusual(self, batches: memoryview, leader_epoch: int, now_ms: int, origin: Origin) -> Appended:
        """Append batches that are refused, rewritten, of the broker's own, or several; and the first of a new log."""
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
        is_built = origin is Origin.COORDINATOR and self._keeps_built and not header.codec
        if not is_built or len(batch) > self._message_bytes_max:
            batch = prepare(batch, header, self._config, origin, now_ms)
            header = read_header(batch)
        return self._append_ready(batch, header, leader_epoch, now_ms, origin)

    def append_prepared(self, prepared: Prepared, leader_epoch: int, now_ms: int) -> Appended:
        """Append a client's batch that a thread has made ready. Raises as `append_as_leader`: NotOnLoop where the
        configuration has changed since.
        """
        if prepared.config is not self._config:
            raise NotOnLoop
        self._begin_records()
        if self._config.log_append_time:
            set_log_append_time(prepared.batch, now_ms)
        return self._append_ready(prepared.batch, read_header(prepared.batch), leader_epoch, now_ms, Origin.CLIENT)

    def _append_ready(
        self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int, origin: Origin
    ) -> Appended:
        assert len(batch) == header.size_bytes
        if len(batch) > self.segments.bytes_max:
            raise self._too_large_for_segment(len(batch))
        append_time_ms = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else -1
        if header.has_producer_id and not header.is_control and origin is Origin.CLIENT:
            earlier = self.producer_files.states.check(
                header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence
            )
            if earlier is not None:
                return Appended(
                    earlier.base_offset, earlier.last_offset, min(append_time_ms, earlier.timestamp_ms), True
                )
        _pack_place(batch, 0, self.state.end_offset, header.length, leader_epoch)
        header = header._replace(base_offset=self.state.end_offset)
        last_offset = header.last_offset
        self._write(batch, len(batch), leader_epoch, header.base_offset, last_offset, header.max_timestamp, now_ms)
        self.producer_files.note(header, batch, self.segments.active)
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
        state = self.state
        first_offset = state.end_offset
        whole, begins_within = judge_fetched(batches, state, self.epoch_file, leader_epoch)
        if begins_within:
            assert state.start_offset == first_offset, f"{self.name} is not empty"
            self.start_at(whole[0][0].base_offset)
        for header, batch in whole:
            size, epoch, base_offset = len(batch), header.leader_epoch, header.base_offset
            self._write(batch, size, epoch, base_offset, header.last_offset, header.max_timestamp, now_ms)
            self.producer_files.note(header, batch, self.segments.active)
            if begins_within:
                # At once: there may be no room for the next batch, and the records in front of it are deleted.
                self.advance_start(first_offset)
                begins_within = False
        assert state.end_offset >= first_offset
        return Appended(first_offset, state.end_offset - 1)

    def _begin_records(self) -> None:
        """Sync the topic's id before the first record; a thread has done so already, unless the record came very soon.

        Raises NOT_LEADER_OR_FOLLOWER while the log is being cut: it has come to lead meanwhile, and will soon.
        """
        if not self.state.has_begun:
            if self.durability.is_being_cut:
                raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} was cut, and is not synced yet")
            self.durability.secure()
            assert self.durability.is_secured, f"{self.name}: the id of its topic may be lost"
            self.state.has_begun = True

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
        """Write batches: the one place where a log grows."""
        state, segments = self.state, self.segments
        if state.is_failed:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: an earlier sync failed")
        assert state.end_offset <= base_offset <= last_offset, (
            f"{self.name}: {base_offset} comes behind {state.end_offset}"
        )
        active = segments.active
        if (
            active.file.size + size > segments.bytes_max
            or max_timestamp - active.first_timestamp_ms > segments.roll_ms
            or max_timestamp < 0
            or last_offset > active.offset_max
            or active.is_index_full
        ) and segments.must_roll(size, last_offset, max_timestamp, now_ms):
            # Where the leader's log has a gap this log's segments still follow on each other: nothing is missing there.
            has_reach = last_offset - state.end_offset <= OFFSETS_MAX
            active = self.roll(now_ms, None if has_reach else base_offset)
        if leader_epoch > self.epochs.begun:
            self.epoch_file.begin(leader_epoch, base_offset)
        assert last_offset <= active.offset_max, f"{active.file.path} has no room for {last_offset}"
        try:
            active.append(batch, last_offset, max_timestamp)
        except OSError as problem:
            raise state.storage_error("append", problem) from problem
        end_offset = state.end_offset = last_offset + 1
        if not state.is_changed:
            state.note_changed()
        # What an earlier append wants synced will be; from there on it counts again.
        durability, flush_messages = self.durability, self._flush_messages
        if (
            end_offset - durability.recovery_point >= flush_messages
            and end_offset - durability.sync_wanted_offset >= flush_messages
        ):
            durability.sync_wanted_offset = end_offset

    def _too_large_for_segment(self, size: int) -> BrokerError:
        problem = f"the batch has {size} bytes, segment.bytes is {self.segments.bytes_max}"
        return BrokerError(ErrorCode.RECORD_LIST_TOO_LARGE, problem)

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Begin a new active segment at the end of the log (as a follower, at its leader's next offset)."""
        assert not self.state.is_closed, f"{self.name} is closed"
        base_offset = self.state.end_offset if base_offset is None else base_offset
        assert base_offset >= self.state.end_offset, f"{self.name} ends behind {base_offset}, where a segment begins"
        try:
            segment = self.segments.roll(base_offset, now_ms)
        except OSError as problem:
            raise self.state.storage_error("roll", problem) from problem
        with suppress(OSError):
            # Without the snapshot the next start reads more batches, no more than that.
            self.durability.sync_later(self.producer_files.write_snapshot(base_offset, durable=False), is_named=True)
        return segment

    # --- read ---------------------------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        bytes_max: int,
        *,
        upper_offset: int | None = None,
        at_least_one: bool = True,
        is_doubted: bool = False,
    ) -> Chunk:
        """Return whole batches below `upper_offset` from the one that holds `offset`, at most `bytes_max` of a segment.

        With `at_least_one` the first batch comes also where it alone is larger. What `is_doubted` is checked in any
        case. Raises OFFSET_OUT_OF_RANGE, and CORRUPT_MESSAGE.
        """
        state = self.state
        end_offset = state.end_offset
        upper = end_offset if upper_offset is None else min(upper_offset, end_offset)
        if not state.start_offset <= offset <= end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside {state.start_offset} to {end_offset} of {self.name}",
            )
        if offset >= upper:
            return EMPTY
        try:
            return self.reader.read(offset, bytes_max, upper, at_least_one, is_doubted)
        except (ProtocolViolation, OSError) as problem:
            raise self.reader.told(offset, problem) from problem

    # --- sync and cut -------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make everything appended so far survive a loss of power. Blocks; may run in a thread beside appends."""
        self.durability.flush()

    def truncate_to(self, offset: int) -> bool:
        """Cut off the batch that holds `offset`, and all that follow; returns whether there was any. Blocks."""
        return self.truncation.truncate_to(offset)

    def start_at(self, offset: int) -> None:
        """Forget everything and go on at `offset`. Blocks."""
        self.truncation.start_at(offset)

    # --- the start moves ----------------------------------------------------------------------------------------

    def advance_start(self, offset: int) -> bool:
        """Move the start: records below `offset` are served no more, and retention deletes them. Raises BrokerError."""
        state = self.state
        if offset > state.end_offset:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.name} ends at {state.end_offset}, below {offset}")
        if offset <= state.start_offset:
            return False
        state.start_offset = offset
        assert state.start_offset <= state.end_offset
        state.note_changed()
        self.epoch_file.truncate_from_start(offset)
        return True

    # --- the end ------------------------------------------------------------------------------------------------

    def release_idle(self) -> None:
        """Close maps and descriptors that were not used lately."""
        self.reader.forget_gone()
        self.segments.release_idle(self.state.end_offset)

    def close(self) -> None:
        """Flush, and leave the log as a clean start wants to find it. Blocks."""
        if self.state.is_closed:
            return
        self.durability.give_up_cut()
        try:
            if not self.state.is_failed:
                self.durability.seal()  # a snapshot of the producers is to come
                self.segments.active.finish()
                self.durability.flush()
                self.producer_files.finish()
                assert self.recovery_point == self.state.end_offset, f"{self.name}: {self.recovery_point} is synced"
        except OSError as problem:
            raise self.state.storage_error("close", problem) from problem
        finally:
            self.abandon()

    @property
    def is_finished(self) -> bool:
        """Whether closing waits for no disk: there is nothing to sync, nor to write down."""
        is_settled = not (self.state.is_changed or self.durability.is_being_cut)
        return is_settled and not self.producer_files.lacks_snapshot

    def abandon(self) -> None:
        """Close all files as they are: the log is deleted, or its disk has failed."""
        self.state.is_closed = True
        self.segments.close()
