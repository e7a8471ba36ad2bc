"""A topic id in Kafka's own spelling: the 16 bytes in URL-safe base64 without padding."""

import base64
from uuid import UUID


def text_of(topic_id: UUID) -> str:
    """The text of a topic id, as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def uuid_of(text: str) -> UUID:
    """The UUID of a topic id's text."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
