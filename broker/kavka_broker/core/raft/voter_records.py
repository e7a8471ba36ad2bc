"""The control records of a batch that name the voters. All other records are none of the quorum's business."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from kavka_broker.protocol.codec import decode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.voters_record import VotersRecord
from kavka_broker.protocol.records.control import ControlType, control_type
from kavka_broker.protocol.records.record import read_records

KINDS: Final[dict[ControlType, type[Message]]] = {
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_VERSION: Final = Struct(">h")


def voter_records(batch: memoryview) -> Iterator[tuple[int, Message]]:
    """Records of a control batch that name voters or the kraft.version, with their offsets."""
    for record in read_records(batch):
        kind = control_type(record.key)
        if kind in KINDS and record.value is not None:
            version: int = _VERSION.unpack_from(record.value)[0]
            message = KINDS[kind]
            yield record.offset, decode(message, min(version, message.VERSIONS[1]), record.value)
