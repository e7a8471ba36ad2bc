"""What a leader demands of a batch before it takes it, and how it makes it its own.

The append judges the ordinary case by itself, field by field, in a few comparisons; whatever is out of the ordinary
comes here, to be refused with Kafka's own error or to be rewritten: the leader's time instead of the producer's,
another codec, records that a compacted topic must look into. Kafka's order of the checks is kept, so that a batch with
two faults gets the same answer.
"""

from enum import Enum, auto
from typing import Final

from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.records.batch import (
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    TimestampType,
    crc_is_valid,
    read_header,
    set_log_append_time,
)
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, read_records, rebuild_batch

# Base offset and length, epoch, magic and CRC: a length below this cannot be a batch of any format.
_BATCH_LENGTH_MIN: Final = 14


class Origin(Enum):
    """Who hands in a batch. Only clients are mistrusted."""

    CLIENT = auto()
    COORDINATOR = auto()
    REPLICATION = auto()
    RAFT_LEADER = auto()


def invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_RECORD, message)


def corrupt(message: str) -> BrokerError:
    return BrokerError(ErrorCode.CORRUPT_MESSAGE, message)


def unsupported(magic: int) -> BrokerError:
    """Formats 0 and 1 were once good; any other magic is noise."""
    refuse = invalid if magic in (0, 1) else corrupt
    return refuse(f"batches of magic {magic} are not supported, only magic {MAGIC}")


def first_batch(batches: memoryview) -> tuple[BatchHeader, memoryview]:
    """The first batch and its header. Raises BrokerError where there is no whole one."""
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


def prepare(batch: memoryview, header: BatchHeader, config: LogConfig, origin: Origin, now_ms: int) -> memoryview:
    """The batch as it shall be written. Raises BrokerError with the code that Kafka answers."""
    _check_envelope(batch, header, config, origin)
    if origin is Origin.CLIENT:
        _check_client(header)
    if header.codec > Compression.ZSTD:
        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {header.codec} is unknown")
    if origin is Origin.RAFT_LEADER or header.is_control:
        return batch
    if not config.log_append_time:
        _check_timestamps(header, config, now_ms)
    return _rewrite(batch, header, config, now_ms)


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
            f"the batch has {size_bytes} bytes, max.message.bytes is {config.max_message_bytes}",
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


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise BrokerError(ErrorCode.INVALID_TIMESTAMP, "a producer may not say that the broker set the timestamps")
    for timestamp_ms in (header.base_timestamp, header.max_timestamp):
        _check_timestamp(timestamp_ms, config, now_ms)


def _check_timestamp(timestamp_ms: int, config: LogConfig, now_ms: int) -> None:
    early_ms = now_ms - timestamp_ms
    if timestamp_ms != NO_TIMESTAMP and not (
        -config.message_timestamp_after_max_ms <= early_ms <= config.message_timestamp_before_max_ms
    ):
        raise BrokerError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {timestamp_ms} is outside [{now_ms} - {config.message_timestamp_before_max_ms}, "
            f"{now_ms} + {config.message_timestamp_after_max_ms}] (message.timestamp.before/after.max.ms)",
        )


def _rewrite(batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> memoryview:
    codec = header.codec
    if config.compression_type != "producer":
        codec = Compression.named(config.compression_type)
    if config.compacts or codec != header.codec:
        records = _read(batch)
        _check_records(records, header, config, now_ms)
        if codec != header.codec:
            batch = memoryview(rebuild_batch(header, records, Compression(codec), _level(config, codec)))
            _check_size(len(batch), config)
    if config.log_append_time:
        set_log_append_time(batch, now_ms)
    return batch


def _read(batch: memoryview) -> list[Record]:
    try:
        return read_records(batch)
    except ProtocolViolation as problem:
        raise invalid(f"the batch cannot be read: {problem}") from None


def _check_records(records: list[Record], header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """A rebuilt batch takes its header from its records, so they must not say anything else than the header did."""
    for index, record in enumerate(records):
        if record.offset != header.base_offset + index:
            raise invalid(f"record {index} of the batch has the offset delta {record.offset - header.base_offset}")
        if not config.log_append_time:
            _check_timestamp(record.timestamp, config, now_ms)
        elif abs(record.timestamp) > LONG_MAX:
            raise invalid(f"record {index} of the batch has a timestamp beyond 64 bits")
        if config.compacts and record.key is None:
            raise invalid(f"a compacted topic needs keys; record {index} of the batch has none")


def _level(config: LogConfig, codec: int) -> int | None:
    match codec:
        case Compression.GZIP:
            return config.compression_gzip_level
        case Compression.LZ4:
            return config.compression_lz4_level
        case Compression.ZSTD:
            return config.compression_zstd_level
    return None
