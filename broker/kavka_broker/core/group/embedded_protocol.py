"""Reads and writes the consumer protocol that classic members embed in JoinGroup and SyncGroup.

Both messages begin with an int16, their version. A newer version is read as the newest known one: fields are only ever
added at the end.
"""

from struct import Struct, error
from typing import Final

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kavka_broker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

__all__ = ["CONSUMER_PROTOCOL_TYPE", "frame_assignment", "read_assignment", "read_subscription", "version_of"]

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_VERSION: Final = Struct(">h")


def version_of(message: bytes) -> int:
    """The version of a subscription or an assignment. Raises ProtocolViolation."""
    try:
        (version,) = _VERSION.unpack_from(message)
    except error as problem:
        raise ProtocolViolation(f"embedded consumer protocol: {problem}") from None
    assert isinstance(version, int)
    if version < 0:
        raise ProtocolViolation(f"embedded consumer protocol: version {version}")
    return version


def read_subscription(message: bytes) -> ConsumerProtocolSubscription:
    """Raises ProtocolViolation."""
    version = _known(message, ConsumerProtocolSubscription)
    return decode(ConsumerProtocolSubscription, version, memoryview(message)[_VERSION.size :])


def read_assignment(message: bytes) -> ConsumerProtocolAssignment:
    """Raises ProtocolViolation."""
    version = _known(message, ConsumerProtocolAssignment)
    return decode(ConsumerProtocolAssignment, version, memoryview(message)[_VERSION.size :])


def frame_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """The bytes of an assignment for a member whose subscription has this version."""
    known = min(version, ConsumerProtocolAssignment.VERSIONS[1])
    return _VERSION.pack(known) + encode(assignment, known)


def _known(message: bytes, kind: type[Message]) -> int:
    return min(version_of(message), kind.VERSIONS[1])
