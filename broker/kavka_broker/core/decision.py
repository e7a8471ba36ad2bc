"""What a command comes to: the records that make it so, and the answer once they are durable.

A command reads state and decides; it changes nothing. The shell appends `records`, replays them when they are safe, and
only then lets `response` leave. An empty list of records means that nothing has to be written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kavka_broker.protocol.message import Message

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[R_co]):
    """Records to append, all or none of them, and the response that goes with them."""

    records: Sequence[Message]
    response: R_co
