"""A topic id in Kafka's own spelling: the 16 bytes in URL-safe base64 without padding."""

import base64
from uuid import UUID


def text_of(topic_id: UUID) -> str:
    """As Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def uuid_of(text: str) -> UUID:
    """From Kafka's spelling."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
