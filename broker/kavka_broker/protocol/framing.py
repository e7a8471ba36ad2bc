"""What stands before a message: the headers of requests and responses, and a response's size.

Splitting a stream into frames is `net`'s; here a frame is complete and without its size.

- A request header has version 2 where the request is flexible, else 1. Even version 2 carries the client id with
  an old two-byte length, because a broker must be able to read the header of any ApiVersions request.
- A response header has version 1 where the response is flexible, else 0; ApiVersions always answers with 0, because
  the client cannot know yet which version the broker understood.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from kavka_broker.protocol.catalog import request_class
from kavka_broker.protocol.codec import encode_parts, joined_encoder
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.messages.index import REQUESTS
from kavka_broker.protocol.wire import skip_tags

API_VERSIONS: Final = 18
NEVER_FLEXIBLE: Final = 1 << 15

_FIXED: Final = Struct(">hhih")
FIXED_BYTES: Final = 10
"""A request header up to its client id."""
_read_fixed: Final = _FIXED.unpack_from
_new_tuple: Final = tuple.__new__  # skips the Python function that makes a named tuple
_CORRELATION_ID: Final = Struct(">i")
_PLAIN: Final = Struct(">ii")
_FLEXIBLE: Final = Struct(">iiB")

# `flexible_from` fills it; bounded by the API keys that exist.
_flexible_from: dict[int, int] = {}


class RequestHeader(NamedTuple):
    """The header of a request: its client, API key and version."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def read_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body begins. Raises ProtocolViolation.

    A header of an unknown key is read as version 1: enough to refuse the key by name.
    """
    try:
        api_key, api_version, correlation_id, length = _read_fixed(frame)
        if length < 0:
            position, client_id = FIXED_BYTES, None
        else:
            position = FIXED_BYTES + length
            client_id = frame[FIXED_BYTES:position].tobytes().decode()
        if api_version >= flexible_from(api_key):
            position = position + 1 if frame[position] == 0 else skip_tags(frame, position)
    except (error, IndexError, UnicodeDecodeError) as problem:
        raise ProtocolViolation(f"request header: {problem}") from None
    if position > len(frame):
        raise ProtocolViolation(f"request header: needs more than {len(frame)} bytes")
    return _new_tuple(RequestHeader, (api_key, api_version, correlation_id, client_id)), position


def encode_request_header(header: RequestHeader) -> bytes:
    """The bytes of a request header, for the requests that this node sends."""
    client_id = b"" if header.client_id is None else header.client_id.encode()
    length = -1 if header.client_id is None else len(client_id)
    fixed = _FIXED.pack(header.api_key, header.api_version, header.correlation_id, length)
    tags = b"\0" if header.api_version >= flexible_from(header.api_key) else b""
    return fixed + client_id + tags


def flexible_from(api_key: int) -> int:
    """The first flexible version of a request, which is that of its response too."""
    try:
        return _flexible_from[api_key]
    except KeyError:
        if api_key not in REQUESTS:
            return NEVER_FLEXIBLE
        found = request_class(api_key).FLEXIBLE_FROM
        return _flexible_from.setdefault(api_key, NEVER_FLEXIBLE if found is None else found)


def encode_response_parts(
    message: Message, version: int, correlation_id: int, encoded: tuple[str, ...] = ()
) -> list[Buffer]:
    """A whole response (size, header, body) in several buffers, large records uncopied. Its arrays at `encoded`, if
    there are any, are `EncodedElements`.
    """
    parts = joined_encoder(type(message), version, encoded)(message) if encoded else encode_parts(message, version)
    parts[0] = encode_response_header(message, version, correlation_id, sum(map(len, parts))) + parts[0]
    return parts


def encode_response_header(message: Message, version: int, correlation_id: int, body_bytes: int) -> bytes:
    """The size of a response and its header."""
    flexible = message.FLEXIBLE_FROM  # as `response_header_version`, without looking for the class
    if flexible is None or version < flexible or message.API_KEY == API_VERSIONS:
        return _PLAIN.pack(body_bytes + 4, correlation_id)
    return _FLEXIBLE.pack(body_bytes + 5, correlation_id, 0)


def response_header_version(api_key: int, version: int) -> int:
    """The version of a response's header: 0, or 1 where tagged fields follow the correlation id."""
    return 1 if version >= flexible_from(api_key) and api_key != API_VERSIONS else 0


def read_response_header(api_key: int, version: int, frame: memoryview) -> tuple[int, int]:
    """The correlation id of a response and where its body begins. Raises ProtocolViolation."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        position = skip_tags(frame, 4) if response_header_version(api_key, version) else 4
    except (error, IndexError) as problem:
        raise ProtocolViolation(f"response header: {problem}") from None
    if position > len(frame):
        raise ProtocolViolation(f"response header: needs more than {len(frame)} bytes")
    return correlation_id, position
