"""What a listener allows each of its connections."""

from dataclasses import dataclass, field

from kavka_broker.loop.turns import Turns
from kavka_broker.net.request_memory import RequestMemory


@dataclass(frozen=True, slots=True)
class Limits:
    """What one listener allows."""

    request_bytes_max: int = 100 * 1024 * 1024
    idle_ms_max: int = 600_000
    login_ms_max: int = 30_000
    memory: RequestMemory = field(default_factory=RequestMemory)  # which other listeners may share
    turns: Turns = field(default_factory=Turns)  # of the loop, the same for all listeners
