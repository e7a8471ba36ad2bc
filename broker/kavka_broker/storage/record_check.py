"""What a leader demands of the records of a client's batch, and what it learns of them: their largest timestamp.

As Apache Kafka does, every record is walked over: its lengths, its time, in a compressed batch its offset, and in a
compacted topic whether it has a key. The header is a producer's word only. A batch that says more records than it has
would stop every reader there, and a largest timestamp that is too small would hide records from searches by time.
"""

from collections.abc import Iterator
from typing import Final

from kavka_broker.core.config.topic import LONG_MAX, LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import HEADER_BYTES, NO_TIMESTAMP, BatchHeader
from kavka_broker.protocol.records.batch_validation import Misnumbered, TooLong, time_span
from kavka_broker.protocol.records.compression import DECOMPRESSED_BYTES_MAX, Compression, TooLarge, decompress
from kavka_broker.protocol.records.scan import UNBOUNDED, RecordTooLarge, Seen, scan

#: Records that are walked over on the loop: two or three milliseconds.
WALKED_ON_LOOP_MAX: Final = 4000
#: Of a batch with more, in steps of the walk: enough where its records are alike, and little lost where they are not.
STEPS_ON_LOOP_MAX: Final = 1000
assert STEPS_ON_LOOP_MAX <= WALKED_ON_LOOP_MAX, "records that are alike take fewer steps than others"
#: Of a packed batch, what is unpacked as a whole; what is larger is looked at piece by piece.
UNPACKED_BYTES_MAX: Final = 16 * 1024 * 1024
#: Of the records that are refused, those that an answer names.
NAMED_MAX: Final = 100


class RecordsRefused(BrokerError):
    """Some records make the whole batch unfit; which, as index and reason (KIP-467)."""

    def __init__(self, code: ErrorCode, message: str, records: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.records = records


def steps_on_loop(count: int) -> int:
    """The steps that the loop may take to look at so many records."""
    return WALKED_ON_LOOP_MAX if count <= WALKED_ON_LOOP_MAX else STEPS_ON_LOOP_MAX


def check_records(
    batch: memoryview,
    header: BatchHeader,
    config: LogConfig,
    now_ms: int,
    bytes_max: int,
    steps_max: int = UNBOUNDED,
    *,
    repacks: bool,
) -> int:
    """The largest timestamp of the records. Raises BrokerError, ProtocolViolation, or TooLong beyond `steps_max`.

    Where records are packed, are to be packed again, or are to be compacted, the offsets that they say themselves must
    go up by one.
    """
    data = None if config.compacts or repacks else _whole(batch, header, bytes_max)
    if data is None:
        return _check_each(batch, header, config, now_ms, bytes_max, is_numbered=True)
    is_packed = header.codec != Compression.NONE
    if is_packed and len(data) > config.max_decompressed_message_bytes:
        if header.records_count > steps_max:
            raise TooLong
        return _check_each(batch, header, config, now_ms, bytes_max, is_numbered=True)
    try:
        earliest, latest = time_span(data, header.records_count, steps_max, is_numbered=is_packed)
    except Misnumbered:
        if header.records_count > steps_max:
            raise TooLong from None
        return _check_each(batch, header, config, now_ms, bytes_max, is_numbered=True)
    return check_times(earliest, latest, batch, header, config, now_ms, steps_max)


def check_times(
    earliest: int, latest: int, batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int, steps_max: int
) -> int:
    """The largest timestamp, if no delta is out of bounds. Raises BrokerError, or TooLong."""
    base_ms = header.base_timestamp
    if _is_timely(base_ms + earliest, config, now_ms) and _is_timely(base_ms + latest, config, now_ms):
        return base_ms + latest
    if header.records_count > steps_max:
        raise TooLong
    return _check_each(batch, header, config, now_ms, DECOMPRESSED_BYTES_MAX)


def _whole(batch: memoryview, header: BatchHeader, bytes_max: int) -> bytes | None:
    """All records, unpacked; None where they are many bytes. Raises ProtocolViolation."""
    body = batch[HEADER_BYTES : header.size_bytes]
    if header.codec == Compression.NONE:
        return bytes(body)
    try:
        return bytes(decompress(header.codec, body, min(bytes_max, UNPACKED_BYTES_MAX)))
    except TooLarge:
        if bytes_max <= UNPACKED_BYTES_MAX:
            raise
        return None


def _check_each(
    batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int, bytes_max: int, *, is_numbered: bool = False
) -> int:
    """As `check_records`, one record after the other: which of them are unfit. Raises BrokerError."""
    index, max_timestamp_ms, untimely, keyless, misnumbered = 0, NO_TIMESTAMP, _Named(), _Named(), _Named()
    for seen in _scanned(batch, header, config, bytes_max):
        for offset, timestamp_ms, has_key in seen:
            if is_numbered and offset != header.base_offset + index:
                misnumbered.add(index, f"has the offset delta {offset - header.base_offset}")
            if config.compacts and not has_key:
                keyless.add(index, "a compacted topic needs keys, and this record has none")
            elif config.log_append_time and abs(timestamp_ms) > LONG_MAX:
                raise _invalid(index, "has a timestamp beyond 64 bits")
            elif not _is_timely(timestamp_ms, config, now_ms):
                untimely.add(index, _untimely(timestamp_ms, config, now_ms))
            max_timestamp_ms = max(max_timestamp_ms, timestamp_ms)
            index += 1
    if keyless.first:
        problem = f"a compacted topic needs keys; record {keyless.first[0][0]} of the batch has none"
        raise RecordsRefused(ErrorCode.INVALID_RECORD, problem, keyless.first)
    if untimely.first:
        index, problem = untimely.first[0]
        raise RecordsRefused(ErrorCode.INVALID_TIMESTAMP, f"record {index}: {problem}", untimely.first)
    if misnumbered.first:
        raise _invalid(*misnumbered.first[0])
    return max_timestamp_ms


def _scanned(batch: memoryview, header: BatchHeader, config: LogConfig, bytes_max: int) -> Iterator[list[Seen]]:
    """The records by their pieces. Raises BrokerError at one that unpacks to more than the topic takes."""
    is_packed = header.codec != Compression.NONE
    record_bytes_max = config.max_decompressed_message_bytes if is_packed else UNBOUNDED
    try:
        yield from scan(header, batch, bytes_max, record_bytes_max)
    except RecordTooLarge as problem:
        bound = f"max.decompressed.message.bytes is {record_bytes_max}"
        raise BrokerError(ErrorCode.INVALID_RECORD, f"{problem}, {bound}") from None


def _invalid(index: int, problem: str) -> RecordsRefused:
    return RecordsRefused(ErrorCode.INVALID_RECORD, f"record {index} of the batch {problem}", [(index, problem)])


class _Named:
    """The first records that are unfit, and why."""

    def __init__(self) -> None:
        self.first: list[tuple[int, str]] = []

    def add(self, index: int, reason: str) -> None:
        if len(self.first) < NAMED_MAX:
            self.first.append((index, reason))


def _is_timely(timestamp_ms: int, config: LogConfig, now_ms: int) -> bool:
    if config.log_append_time:
        return abs(timestamp_ms) <= LONG_MAX
    if timestamp_ms == NO_TIMESTAMP:
        return True
    return -config.message_timestamp_after_max_ms <= now_ms - timestamp_ms <= config.message_timestamp_before_max_ms


def _untimely(timestamp_ms: int, config: LogConfig, now_ms: int) -> str:
    return (
        f"timestamp {timestamp_ms} is outside [{now_ms} - {config.message_timestamp_before_max_ms}, "
        f"{now_ms} + {config.message_timestamp_after_max_ms}] (message.timestamp.before/after.max.ms)"
    )
