"""Kafka's uuids: sixteen bytes on the wire, URL-safe base64 without padding in text.

A uuid stays `bytes` everywhere: it is compared, hashed and sent far more often than it is read by a person.
Making a new one needs randomness and so does not live here.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

SIZE_BYTES: Final = 16
TEXT_LENGTH: Final = 22

ZERO: Final = bytes(SIZE_BYTES)
"""The uuid that stands for "none"."""
ONE: Final = bytes(SIZE_BYTES - 1) + b"\x01"
"""Kafka's METADATA_TOPIC_ID: the uuid of `__cluster_metadata`."""


def to_text(uuid: bytes) -> str:
    """The form in which Kafka prints and stores uuids."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def from_text(text: str) -> bytes:
    """The uuid behind Kafka's text form; ValueError where it is none."""
    if len(text) != TEXT_LENGTH or not text.isascii() or set("+/=") & set(text):
        raise ValueError(f"{text!r} is not a uuid: {TEXT_LENGTH} URL-safe base64 characters are wanted")
    uuid = urlsafe_b64decode(text + "==")
    if len(uuid) != SIZE_BYTES:
        raise ValueError(f"{text!r} is not a uuid: it decodes to {len(uuid)} bytes")
    return uuid
