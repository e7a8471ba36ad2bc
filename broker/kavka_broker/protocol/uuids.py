"""Kafka's uuids: sixteen bytes on the wire, URL-safe base64 without padding in text.

A uuid stays `bytes` everywhere: it is compared, hashed and sent far more often than it is read by a person.
Making a new one needs randomness and so does not live here.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from string import ascii_letters, digits
from typing import Final

SIZE_BYTES: Final = 16
TEXT_LENGTH: Final = 22
ALPHABET: Final = frozenset(ascii_letters + digits + "-_")

ZERO: Final = bytes(SIZE_BYTES)
"""The uuid that stands for "none"."""
ONE: Final = bytes(SIZE_BYTES - 1) + b"\x01"
"""Kafka's METADATA_TOPIC_ID: the uuid of `__cluster_metadata`."""


def to_text(uuid: bytes) -> str:
    """The form in which Kafka prints and stores uuids."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def from_text(text: str) -> bytes:
    """The uuid of Kafka's text form. Raises ValueError for any other text."""
    if len(text) != TEXT_LENGTH or not ALPHABET.issuperset(text):
        raise ValueError(f"{text!r} is not a uuid: {TEXT_LENGTH} characters of URL-safe base64 are wanted")
    return urlsafe_b64decode(text + "==")
