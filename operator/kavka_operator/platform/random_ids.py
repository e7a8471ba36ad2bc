"""Random ids, as Kafka spells them: those of clusters and of log directories."""

import uuid
from base64 import urlsafe_b64encode


def draw_id() -> str:
    """A random id; none that a command line would take for an option."""
    while True:
        drawn = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not drawn.startswith("-"):
            return drawn
