"""The value of a record in `__cluster_metadata`: which message, in which version, and the message.

Three unsigned varints stand before it: the version of this very frame, the message's key and its version.
"""

from __future__ import annotations

from typing import Final

from kavka_broker.protocol.catalog import metadata_record_class
from kavka_broker.protocol.codec import decode, decoder, encode
from kavka_broker.protocol.compiler.decoder import Decoder
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.index import METADATA_RECORDS
from kavka_broker.protocol.wire import read_uvarint, uvarint

FRAME_VERSION: Final = 1
#: The bytes of three varints of a byte each, as all frames in use have.
HEAD_BYTES_MIN: Final = 3
#: Classes by these bytes, once found to be good: a start replays very many records. Bounded by the versions known.
_decoders: dict[bytes, Decoder] = {}


def frame(record: Message, version: int | None = None) -> bytes:
    """The value that holds this record; by default in the newest version, which metadata.version 4.3 writes."""
    chosen = record.VERSIONS[1] if version is None else version
    return _head(type(record), chosen) + encode(record, chosen)


def unframe(buffer: bytes | memoryview) -> Message:
    """The record in a value. Raises ProtocolViolation where this release knows no such record."""
    known = _decoders.get(bytes(buffer[:HEAD_BYTES_MIN]))
    if known is not None:
        message: Message = known(buffer, HEAD_BYTES_MIN)[0]
        return message
    view = memoryview(buffer)
    try:
        frame_version, position = read_uvarint(view, 0)
        key, position = read_uvarint(view, position)
        version, position = read_uvarint(view, position)
    except IndexError:
        raise ProtocolViolation(f"metadata record: {len(view)} bytes hold no frame") from None
    if frame_version != FRAME_VERSION:
        raise ProtocolViolation(f"metadata record: frame version {frame_version}, only {FRAME_VERSION} is known")
    if key not in METADATA_RECORDS:
        raise ProtocolViolation(f"metadata record: key {key} is unknown")
    kind = metadata_record_class(key)
    if not kind.VERSIONS[0] <= version <= kind.VERSIONS[1]:
        raise ProtocolViolation(f"metadata record: {kind.NAME} has no version {version}")
    if position == HEAD_BYTES_MIN:
        _decoders[bytes(view[:HEAD_BYTES_MIN])] = decoder(kind, version)
    return decode(kind, version, view[position:])


def _head(kind: type[Message], version: int) -> bytes:
    assert kind.KIND == "metadata", f"{kind.NAME} is no metadata record"
    assert kind.API_KEY is not None
    return uvarint(FRAME_VERSION) + uvarint(kind.API_KEY) + uvarint(version)
