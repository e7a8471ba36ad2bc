"""How long requests wait for others, and how many topics a client may ask for beside them."""

from dataclasses import dataclass
from typing import Final

from kavka_broker.membership.topic_creation import TOGETHER_MAX

FORWARD_MS_MAX: Final = 60_000
UNFENCED_MS_MAX: Final = 1_000
QUEUED_TOPICS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """Bounds of the requests of one broker."""

    forward_ms_max: int = FORWARD_MS_MAX
    """For a request that another node answers, as in Apache Kafka."""
    unfenced_ms_max: int = UNFENCED_MS_MAX
    """For this broker to be known as alive, where an answer would name no broker at all."""
    queued_topics_max: int = QUEUED_TOPICS_MAX
    """Of one connection, each of 249 characters at most."""
    created_together_max: int = TOGETHER_MAX


BOUNDS: Final = RequestBounds()
