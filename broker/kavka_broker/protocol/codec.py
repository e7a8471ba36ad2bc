"""Messages to bytes and back.

A decoder or an encoder is compiled for a message and a version when it is first wanted, about a millisecond each,
and kept. Paths that matter fetch theirs once with `decoder` or `encoder`; everybody else calls `decode` and `encode`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kavka_broker.protocol.compiler.decoder import Decoder, compile_decoder
from kavka_broker.protocol.compiler.encoder import (
    Encoder,
    PartsEncoder,
    Path,
    compile_elements_encoder,
    compile_encoder,
    compile_joined_encoder,
)
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.wire import TooManyElements, UnsupportedField

__all__ = [
    "TooManyElements",
    "UnsupportedField",
    "bounded_decoder",
    "decode",
    "decode_prefix",
    "decoder",
    "elements_encoder",
    "encode",
    "encode_parts",
    "encoder",
    "joined_encoder",
    "parts_encoder",
]

M = TypeVar("M", bound=Message)

# The cache is bounded by the messages and versions that exist: some fifteen hundred.
_decoders: dict[tuple[type[Message], int], Decoder] = {}
_bounded_decoders: dict[tuple[type[Message], int], Decoder] = {}
_encoders: dict[tuple[type[Message], int], tuple[Encoder, PartsEncoder]] = {}
_elements_encoders: dict[tuple[type[Message], int, Path], Encoder] = {}
_joined_encoders: dict[tuple[type[Message], int, Path], PartsEncoder] = {}


def decode(kind: type[M], version: int, buffer: Buffer) -> M:
    """Decode the message in `buffer`; bytes after it are ignored, as Kafka does. Raises ProtocolViolation."""
    return decode_prefix(kind, version, buffer)[0]


def decode_prefix(kind: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """Decode the message at `position`, and return the position after it too. Raises ProtocolViolation."""
    return decoder(kind, version)(memoryview(buffer), position)


def encode(message: Message, version: int) -> bytes:
    """Encode a message. Raises UnsupportedField for a field that the version cannot carry."""
    return encoder(type(message), version)(message)


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """Encode a message into several buffers, so that large records are not copied. Raises UnsupportedField."""
    return _encoder_pair(type(message), version)[1](message)


def decoder(kind: type[M], version: int) -> Callable[[memoryview, int], tuple[M, int]]:
    """The compiled decoder: from a buffer and a position to the message and the position after it."""
    try:
        return _decoders[kind, version]
    except KeyError:
        return _decoders.setdefault((kind, version), compile_decoder(kind, version))


def bounded_decoder(kind: type[M], version: int) -> Callable[..., tuple[M, int, int]]:
    """A decoder that raises TooManyElements before it makes more elements than its third argument allows, which is
    `wire.ELEMENTS_MAX` where there is none. It returns besides how many are left of them.
    """
    try:
        return _bounded_decoders[kind, version]
    except KeyError:
        made = compile_decoder(kind, version, bounded=True)
        return _bounded_decoders.setdefault((kind, version), made)


def encoder(kind: type[M], version: int) -> Callable[[M], bytes]:
    """The compiled encoder to one buffer."""
    return _encoder_pair(kind, version)[0]


def parts_encoder(kind: type[M], version: int) -> Callable[[M], list[Buffer]]:
    """The compiled encoder to several buffers."""
    return _encoder_pair(kind, version)[1]


def elements_encoder(kind: type[Message], version: int, path: Path) -> Encoder:
    """The compiled encoder of elements of the message's arrays at `path`, to one buffer."""
    try:
        return _elements_encoders[kind, version, path]
    except KeyError:
        made = compile_elements_encoder(kind, version, path)
        return _elements_encoders.setdefault((kind, version, path), made)


def joined_encoder(kind: type[Message], version: int, path: Path) -> PartsEncoder:
    """The compiled encoder of a message whose arrays at `path` are `EncodedElements`."""
    try:
        return _joined_encoders[kind, version, path]
    except KeyError:
        made = compile_joined_encoder(kind, version, path)
        return _joined_encoders.setdefault((kind, version, path), made)


def _encoder_pair(kind: type[Message], version: int) -> tuple[Encoder, PartsEncoder]:
    try:
        return _encoders[kind, version]
    except KeyError:
        return _encoders.setdefault((kind, version), compile_encoder(kind, version))
