"""Bounds the names that clients choose, before anything keeps them.

A client id may have 32 KiB, and Python keeps four bytes a character where one of them is beyond the basic plane. A
name that is too long becomes its beginning and a hash of all of it, so that two long names stay apart.
"""

from hashlib import sha256
from typing import Final

ANONYMOUS: Final = "ANONYMOUS"
"""The user of a client that has not proved who it is."""
NAME_CHARACTERS_MAX: Final = 256
"""The longest client id, user or software that is kept as it is."""
LABEL_BYTES_MAX: Final = 128
"""The longest name in a label of a metric, in UTF-8."""
_HASH_CHARACTERS: Final = 32
_SHORT_CHARACTERS: Final = LABEL_BYTES_MAX // 4  # a name of so many characters fits into a label, whatever they are


def shortened(name: str) -> str:
    """Return the name, or for a longer one than `NAME_CHARACTERS_MAX` its beginning, `~` and a hash of all of it."""
    if len(name) <= NAME_CHARACTERS_MAX:
        return name
    return f"{name[: NAME_CHARACTERS_MAX - _HASH_CHARACTERS - 1]}~{_hash(name)}"


def shortened_principal(principal: str) -> str:
    """Return the principal (`User:alice`) with its name `shortened`."""
    kind, colon, name = principal.partition(":")
    return f"{shortened(kind)}{colon}{shortened(name)}"


def label_of(name: str) -> str:
    """Return the name as a label of a metric has it: as `shortened`, to `LABEL_BYTES_MAX` bytes of UTF-8."""
    if len(name) <= _SHORT_CHARACTERS:
        return name
    encoded = name.encode(errors="replace")
    if len(encoded) <= LABEL_BYTES_MAX:
        return name
    return f"{encoded[: LABEL_BYTES_MAX - _HASH_CHARACTERS - 1].decode(errors='ignore')}~{_hash(name)}"


def _hash(name: str) -> str:
    return sha256(name.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
