"""What a group wants done, as values.

A group decides; the shell acts. A command on a group changes its soft state at once and lists here what has to happen
outside: answers to requests (also to requests that were parked long ago), timers, and a record that has to reach the
log. A test reads the list like a sentence.

A `token` stands for a request that waits. It is the shell's, and opaque here; each token is answered exactly once.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, auto

from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue

__all__ = ["Effect", "Effects", "Persist", "Respond", "Start", "Stop", "TimerKind", "TimerName", "Token"]

Token = Hashable


class TimerKind(Enum):
    """The event that a group's timer waits for."""

    JOIN = auto()  # the members to join, or the initial delay to end
    SYNC = auto()  # every member to fetch its assignment
    SESSION = auto()  # a sign of life of one member


@dataclass(frozen=True, slots=True)
class TimerName:
    """A timer of a group; setting one that runs replaces it."""

    kind: TimerKind
    member_id: str = ""


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer the request that `token` stands for."""

    token: Token
    response: Message


@dataclass(frozen=True, slots=True)
class Start:
    """Start the timer: `expired(timer)` is called after `delay_ms`."""

    timer: TimerName
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a timer that is not needed any more."""

    timer: TimerName


@dataclass(frozen=True, slots=True)
class Persist:
    """Append the group's record, then call `persisted(ticket, error)`. Records are appended in the order of tickets."""

    ticket: int
    value: GroupMetadataValue


Effect = Respond | Start | Stop | Persist


class Effects(list[Effect]):
    """A list with a verb for each effect."""

    __slots__ = ()

    def answer(self, token: Token, response: Message) -> None:
        self.append(Respond(token, response))

    def start(self, kind: TimerKind, delay_ms: int, member_id: str = "") -> None:
        self.append(Start(TimerName(kind, member_id), delay_ms))

    def stop(self, kind: TimerKind, member_id: str = "") -> None:
        self.append(Stop(TimerName(kind, member_id)))

    def persist(self, ticket: int, value: GroupMetadataValue) -> None:
        assert ticket >= 1, ticket
        self.append(Persist(ticket, value))
