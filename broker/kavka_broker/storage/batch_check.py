"""What a leader demands of a batch before it takes it, and how it makes it its own.

The append judges the ordinary case by itself, field by field, in a few comparisons; whatever is out of the ordinary
comes here, to be refused with Kafka's own error or to be rewritten: the leader's time instead of the producer's,
another codec, records that are packed. Kafka's order of the checks is kept, so that a batch with
two faults gets the same answer.

To look into records and to pack them again may take long: a client's batch that is not small is `NotOnLoop`, and comes
again from a thread (`prepare_in_thread`), which knows nothing of the log but its configuration.
"""

from enum import Enum, auto
from struct import Struct
from typing import Final, NamedTuple

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    MAGIC,
    PREFIX_BYTES,
    BatchHeader,
    TimestampType,
    crc_is_valid,
    read_header,
    set_crc,
    set_log_append_time,
    set_max_timestamp,
)
from kavka_broker.protocol.records.batch_validation import TooLong, time_span
from kavka_broker.protocol.records.compression import DECOMPRESSED_BYTES_MAX, Compression, TooLarge
from kavka_broker.protocol.records.packing import packer
from kavka_broker.protocol.records.scan import UNBOUNDED
from kavka_broker.protocol.records.unpacking import unpack
from kavka_broker.storage.record_check import check_records, check_times, steps_on_loop

# Base offset and length, epoch, magic and CRC: a length below this cannot be a batch of any format.
_BATCH_LENGTH_MIN: Final = 14

#: Most records and bytes of a client's batch that the loop unpacks, checks one after the other, and packs
#: again: two or three milliseconds.
ON_LOOP_BYTES_MAX: Final = 16 * 1024
ON_LOOP_RECORDS_MAX: Final = 2000
#: The same bound where the batch is only unpacked, and checked in columns.
UNPACKED_ON_LOOP_BYTES_MAX: Final = 128 * 1024
assert ON_LOOP_BYTES_MAX <= UNPACKED_ON_LOOP_BYTES_MAX, "to unpack alone is less than to unpack and check"

_LENGTH: Final = Struct(">i")
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")


class NotOnLoop(Exception):
    """The batch takes too long for the loop: `prepare_in_thread`, and append the result."""


class Prepared(NamedTuple):
    """A batch as it is written to a log of this configuration."""

    batch: memoryview
    config: LogConfig


class Origin(Enum):
    """The sender of a batch. Only clients are mistrusted."""

    CLIENT = auto()
    COORDINATOR = auto()
    REPLICATION = auto()
    RAFT_LEADER = auto()


def invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_RECORD, message)


def corrupt(message: str) -> BrokerError:
    return BrokerError(ErrorCode.CORRUPT_MESSAGE, message)


def unsupported(magic: int) -> BrokerError:
    """Return the error for a magic: formats 0 and 1 were once good; any other magic is noise."""
    assert magic != MAGIC, "the format of today is supported"
    refuse = invalid if magic in (0, 1) else corrupt
    return refuse(f"batches of magic {magic} are not supported, only magic {MAGIC}")


def first_batch(batches: memoryview) -> tuple[BatchHeader, memoryview]:
    """Return the first batch and its header. Raises BrokerError where no batch is whole."""
    if len(batches) < HEADER_BYTES:
        if len(batches) > 16 and batches[16] != MAGIC:
            raise unsupported(batches[16])
        raise invalid(f"{len(batches)} bytes are no record batch")
    header = read_header(batches)
    if header.length < _BATCH_LENGTH_MIN:
        raise corrupt(f"a batch length of {header.length} is below the least overhead")
    if header.magic != MAGIC:
        raise unsupported(header.magic)
    if header.size_bytes > len(batches):
        raise invalid(f"a batch of {header.size_bytes} bytes is cut after {len(batches)}")
    if header.size_bytes < HEADER_BYTES:
        raise corrupt(f"a batch of {header.size_bytes} bytes is shorter than its header")
    return header, batches[: header.size_bytes]


def judged(
    batch: memoryview, records_count: int, base_timestamp: int, max_timestamp: int, now_ms: int, config: LogConfig
) -> int:
    """The largest timestamp of the records, once they are as the header says; it says that one from now on. Raises
    BrokerError, and NotOnLoop where there are many.
    """
    steps_max = steps_on_loop(records_count)
    try:
        earliest, latest = time_span(bytes(batch[HEADER_BYTES:]), records_count, steps_max)
        is_timely = now_ms - base_timestamp - earliest <= config.message_timestamp_before_max_ms
        if base_timestamp + latest == max_timestamp and is_timely:
            return max_timestamp
        largest = check_times(earliest, latest, batch, read_header(batch), config, now_ms, steps_max)
    except TooLong:
        raise NotOnLoop from None
    except ProtocolViolation as problem:
        raise invalid(f"the batch cannot be read: {problem}") from None
    if largest != max_timestamp:
        set_max_timestamp(batch, largest)
    return largest


def prepare(batch: memoryview, header: BatchHeader, config: LogConfig, origin: Origin, now_ms: int) -> memoryview:
    """Return the batch as it is written. Raises BrokerError with Kafka's code, and NotOnLoop for a client's."""
    return _prepare(batch, header, config, origin, now_ms, is_on_loop=origin is Origin.CLIENT)


def prepare_in_thread(batches: memoryview, config: LogConfig, now_ms: int) -> Prepared:
    """Prepare a client's batch that is too long for `prepare`; `batches` stays as it is. Raises BrokerError."""
    header, batch = first_batch(memoryview(bytearray(batches)))
    return Prepared(_prepare(batch, header, config, Origin.CLIENT, now_ms, is_on_loop=False), config)


def _prepare(
    batch: memoryview, header: BatchHeader, config: LogConfig, origin: Origin, now_ms: int, *, is_on_loop: bool
) -> memoryview:
    assert len(batch) == header.size_bytes, "a batch is judged as a whole"
    _check_envelope(batch, header, config, origin)
    if origin is Origin.CLIENT:
        _check_client(header)
    if header.codec > Compression.ZSTD:
        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {header.codec} is unknown")
    if origin is Origin.RAFT_LEADER or header.is_control:
        assert origin is not Origin.CLIENT, "a client writes no control batch"
        return batch
    if not config.log_append_time:
        _check_timestamp_type(header)
    codec = header.codec if config.compression_type == "producer" else Compression.named(config.compression_type)
    # Batches that the broker itself writes are not checked.
    if codec != header.codec or origin is Origin.CLIENT:
        batch = _rewrite(batch, header, codec, config, now_ms, is_on_loop=is_on_loop)
    if config.log_append_time:
        set_log_append_time(batch, now_ms)
    return batch


def _check_envelope(batch: memoryview, header: BatchHeader, config: LogConfig, origin: Origin) -> None:
    if origin is Origin.CLIENT and header.base_offset != 0:
        raise invalid(f"the base offset of a produced batch is 0, not {header.base_offset}")
    if origin is not Origin.RAFT_LEADER:
        _check_size(header.size_bytes, config)
    if not crc_is_valid(batch):
        raise corrupt("the batch has a wrong CRC")


def _check_size(size_bytes: int, config: LogConfig) -> None:
    if size_bytes > config.max_message_bytes:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch comes to {size_bytes} bytes, max.message.bytes is {config.max_message_bytes}",
        )


def _check_client(header: BatchHeader) -> None:
    spanned = header.last_offset_delta + 1
    if spanned <= 0:
        raise invalid(f"a last offset delta of {header.last_offset_delta}")
    if header.records_count <= 0:
        raise invalid(f"a batch of {header.records_count} records")
    if spanned != header.records_count:
        raise invalid(f"{header.records_count} records span {spanned} offsets")
    if header.is_control:
        raise invalid("clients may not write control batches")
    if header.has_producer_id and header.base_sequence < 0:
        raise invalid(f"a producer id with sequence {header.base_sequence}")


def _check_timestamp_type(header: BatchHeader) -> None:
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise BrokerError(ErrorCode.INVALID_TIMESTAMP, "a producer may not say that the broker set the timestamps")


def _rewrite(
    batch: memoryview, header: BatchHeader, codec: int, config: LogConfig, now_ms: int, *, is_on_loop: bool
) -> memoryview:
    """The batch once its records have been looked at: with another codec, if it is another, and their largest time."""
    repacks = codec != header.codec
    bytes_max, steps_max = DECOMPRESSED_BYTES_MAX, UNBOUNDED
    if is_on_loop:
        bytes_max, steps_max = _on_loop(batch, header, is_walked=repacks or config.compacts)
    try:
        max_timestamp_ms = check_records(batch, header, config, now_ms, bytes_max, steps_max, repacks=repacks)
        if repacks:
            batch = _repack(batch, header, codec, config, max_timestamp_ms, bytes_max)
            _check_size(len(batch), config)
        elif max_timestamp_ms != header.max_timestamp and not config.log_append_time:
            set_max_timestamp(batch, max_timestamp_ms)
    except TooLong:
        raise NotOnLoop from None
    except ProtocolViolation as problem:
        if is_on_loop and isinstance(problem, TooLarge):
            raise NotOnLoop from None
        raise invalid(f"the batch cannot be read: {problem}") from None
    return batch


def _on_loop(batch: memoryview, header: BatchHeader, *, is_walked: bool) -> tuple[int, int]:
    """Return the bytes that the loop may unpack, and the steps to check the records. Raises NotOnLoop."""
    bytes_max = ON_LOOP_BYTES_MAX if is_walked else UNPACKED_ON_LOOP_BYTES_MAX
    if is_walked and header.records_count > ON_LOOP_RECORDS_MAX:
        raise NotOnLoop
    if (is_walked or header.codec) and len(batch) > bytes_max:
        raise NotOnLoop
    return bytes_max, steps_on_loop(header.records_count)


def _repack(
    batch: memoryview, header: BatchHeader, codec: int, config: LogConfig, max_timestamp_ms: int, bytes_max: int
) -> memoryview:
    """Pack the same records with another codec, piece by piece: to join them all would hold up every other thread. The
    header gets their largest timestamp, whatever it said. Raises BrokerError, ProtocolViolation.
    """
    assert codec != header.codec
    packing, repacked = packer(Compression(codec), _level(config, codec)), bytearray(batch[:HEADER_BYTES])
    for piece in unpack(header.codec, batch[HEADER_BYTES:], bytes_max):
        repacked += packing.compress(piece)
        _check_size(len(repacked), config)
    repacked += packing.flush()
    _LENGTH.pack_into(repacked, 8, len(repacked) - PREFIX_BYTES)
    _ATTRIBUTES.pack_into(repacked, 21, header.attributes & ~CODEC_MASK | codec)
    _TIMESTAMP.pack_into(repacked, 35, max_timestamp_ms)
    set_crc(repacked)
    assert read_header(repacked).size_bytes == len(repacked)
    assert read_header(repacked).codec == codec
    return memoryview(repacked)


def _level(config: LogConfig, codec: int) -> int | None:
    match codec:
        case Compression.GZIP:
            return config.compression_gzip_level
        case Compression.LZ4:
            return config.compression_lz4_level
        case Compression.ZSTD:
            return config.compression_zstd_level
    return None
