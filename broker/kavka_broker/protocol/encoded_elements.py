"""Elements of an array that are encoded before the message that they belong to is whole.

A long answer that is made part by part would take some five times its bytes as objects. So the elements of each part
are encoded when they are made, and the objects are gone before the next part.
"""

from collections.abc import Sequence
from typing import Final, Self

from kavka_broker.protocol.codec import elements_encoder
from kavka_broker.protocol.compiler.encoder import Path
from kavka_broker.protocol.message import Message, Struct

__all__ = ["EncodedElements", "encode_elements"]

JOINED_BYTES_MIN: Final = 32 * 1024
"""Each piece but the last has so many: each costs a look when the answer is sent."""


class EncodedElements:
    """Stands in an array's place: the number of its elements, and their bytes."""

    __slots__ = ("_count", "pieces", "size_bytes")

    def __init__(self, count: int, data: bytes) -> None:
        self._count = count
        self.pieces = [data]
        self.size_bytes = len(data)

    def __len__(self) -> int:
        return self._count

    def __iadd__(self, more: "EncodedElements") -> Self:
        self._count += len(more)
        self.size_bytes += more.size_bytes
        for piece in more.pieces:
            if len(self.pieces[-1]) < JOINED_BYTES_MIN:
                self.pieces[-1] += piece
            else:
                self.pieces.append(piece)
        return self


def encode_elements(answer: Message, version: int, path: Path) -> int:
    """Encode the elements of the answer's arrays at `path` in their place; returns the bytes that they have. Raises
    UnsupportedField for a field that the version cannot carry.
    """
    encode = elements_encoder(type(answer), version, path)
    size_bytes = 0
    for owner in _owners(answer, path[:-1]):
        items = getattr(owner, path[-1])
        data = encode(items)
        size_bytes += len(data)
        setattr(owner, path[-1], EncodedElements(len(items), data))
    return size_bytes


def _owners(answer: Struct, path: Path) -> Sequence[Struct]:
    """The structs that the arrays belong to."""
    owners: Sequence[Struct] = (answer,)
    for name in path:
        owners = [item for owner in owners for item in getattr(owner, name)]
    return owners
