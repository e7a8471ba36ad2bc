"""Metadata records as batches of the log, and back.

A batch holds either metadata records (no key; the value is framed with its type and version) or control records of
the quorum (who leads, who votes, where a snapshot begins and ends). Here both are just messages with an offset.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from struct import Struct
from typing import Final

from kavka_broker.core.metadata.image.features import METADATA_VERSION_LATEST, record_version
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.leader_change_message import LeaderChangeMessage
from kavka_broker.protocol.messages.leader_change_message import Voter as LeaderVoter
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kavka_broker.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kavka_broker.protocol.messages.voters_record import VotersRecord
from kavka_broker.protocol.metadata_records import frame, unframe
from kavka_broker.protocol.records.batch import crc_is_valid, read_header
from kavka_broker.protocol.records.control import ControlType, build_control_batch, control_type
from kavka_broker.protocol.records.record import build_batch, read_records

CONTROL_KINDS: Final[dict[ControlType, type[Message]]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
CONTROL_TYPES: Final = {kind: number for number, kind in CONTROL_KINDS.items()}

CONTROL_VERSION: Final = 0
#: RegisterBrokerRecord names cordoned directories from this version on.
CORDONED_VERSION: Final = 4
_VERSION: Final = Struct(">h")


def metadata_batch(
    records: Sequence[Message],
    *,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    metadata_version: int = METADATA_VERSION_LATEST,
) -> bytearray:
    """A batch of metadata records in the versions of this metadata.version: all of them are replayed, or none."""
    return build_batch(
        [(None, _framed(record, metadata_version)) for record in records],
        timestamp_ms=now_ms,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
    )


def _framed(record: Message, metadata_version: int) -> bytes:
    version = record_version(record, metadata_version)
    if isinstance(record, RegisterBrokerRecord) and version < CORDONED_VERSION and not record.cordoned_log_dirs:
        record = copy(record)
        record.cordoned_log_dirs = None  # older versions have no such field, which means that none is cordoned
    return frame(record, version)


def control_batch(records: Sequence[Message], *, base_offset: int, leader_epoch: int, now_ms: int) -> bytearray:
    """A batch of control records."""
    return build_control_batch(
        [(CONTROL_TYPES[type(record)], _written(record)) for record in records],
        timestamp_ms=now_ms,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
    )


def _written(record: Message) -> bytes:
    """A control record's value, in version 0.

    LeaderChange also has a version 1, with the voters' directories. Apache Kafka 4.3 has its schema, but does not write
    it, and Kafka's dump tool fails on it.
    """
    if isinstance(record, LeaderChangeMessage):
        voters, granting = (
            [LeaderVoter(voter.voter_id) for voter in voters] for voters in (record.voters, record.granting_voters)
        )
        record = LeaderChangeMessage(CONTROL_VERSION, record.leader_id, voters, granting)
    return encode(record, CONTROL_VERSION)


def read_batch(batch: memoryview) -> Iterator[tuple[int, Message]]:
    """The messages of a batch with their offsets. Raises ProtocolViolation if the batch is not valid."""
    if not crc_is_valid(batch):
        raise ProtocolViolation(f"the batch at offset {read_header(batch).base_offset} has a broken checksum")
    is_control = read_header(batch).is_control
    for record in read_records(batch):
        if record.value is None:
            raise ProtocolViolation(f"the metadata record at offset {record.offset} has no value")
        if not is_control:
            yield record.offset, unframe(record.value)
        elif (kind := control_type(record.key)) in CONTROL_KINDS:
            yield record.offset, _read_control(kind, record.value)


def _read_control(kind: ControlType, value: bytes) -> Message:
    version: int = _VERSION.unpack_from(value)[0]
    message = CONTROL_KINDS[kind]
    # A LeaderChange record may have version 1, which adds the voters' directories.
    return decode(message, min(version, message.VERSIONS[1]), value)
