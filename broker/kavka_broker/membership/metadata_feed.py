"""Where committed metadata can be read, and heard of when it changes."""

from collections.abc import Callable, Sequence
from typing import Protocol

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.message import Message


class MetadataFeed(Protocol):
    """The committed metadata, and the callbacks for its changes."""

    metadata: Metadata
    subscribers: list[Callable[[Sequence[Message]], None]]
