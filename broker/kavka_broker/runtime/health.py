"""Whether the broker can serve, and if not, why.

Alive and ready are two things. A broker is alive while its loop answers: restarting it would not help anybody. It is
ready when nothing stands in its way: a quorum, directories loaded, registered with the controller and unfenced,
listeners open. Each obstacle has a name and a reason in words; the start puts the first ones there and takes them
away as it goes.

Later a broker is not ready while it is fenced, by its own image, and any node while the quorum has been silent for a
whole session (`broker.session.timeout.ms`): the image of a node that is cut off says nothing new, least of all that it
has been fenced. Shorter silences are elections, and clients need not hear of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kavka_broker.interfaces import Clock
from kavka_broker.protocol.message import Message

FENCED = "fenced by the controller, which waits for heartbeats"

#: Returns why the obstacle stands, as long as it does; called again each time.
Condition = Callable[[], str | None]


class Health:
    """The obstacles between this broker and its clients."""

    def __init__(self, obstacles: Mapping[str, str] | None = None) -> None:
        self._obstacles = dict(obstacles or {})
        self._conditions: dict[str, Condition] = {}

    @property
    def is_ready(self) -> bool:
        return not self.obstacles

    @property
    def obstacles(self) -> dict[str, str]:
        """Name and reason, in the order in which they came up."""
        found = {name: condition() for name, condition in self._conditions.items()}
        return {**self._obstacles, **{name: reason for name, reason in found.items() if reason is not None}}

    def watch(self, name: str, condition: Condition) -> None:
        """Watch a condition: `name` stands in the way whenever `condition` gives a reason."""
        self._conditions[name] = condition

    def blocked(self, name: str, reason: str) -> None:
        """Note an obstacle; the same name again changes the reason."""
        self._obstacles[name] = reason

    def cleared(self, name: str) -> None:
        """Remove an obstacle."""
        self._obstacles.pop(name, None)


#: The obstacles of a broker that starts; a controller alone waits for the quorum only.
STARTING = {
    "quorum": "the controller quorum has no leader that is known here, or this node has not caught up with it",
    "logs": "log directories are being loaded",
    "registration": "not registered with the controller yet",
    "listeners": "listeners are not open yet",
    "fenced": FENCED,
}


def starting(roles: Iterable[str]) -> dict[str, str]:
    """Return the obstacles at the beginning."""
    return dict(STARTING) if "broker" in roles else {"quorum": STARTING["quorum"]}


#: The roles of a node that leads the quorum, or has heard of the leader within the fetch timeout.
IN_TOUCH = frozenset({"Leader", "Follower", "Observer"})


class Membership(Protocol):
    """The broker's membership, as health sees it."""

    @property
    def is_unfenced(self) -> bool: ...

    @property
    def silent_ms(self) -> float: ...


class MetadataFeed(Protocol):
    """The feed of changes of the cluster's metadata."""

    subscribers: list[Callable[[Sequence[Message]], None]]


class Quorum(Protocol):
    """Place of this node in the quorum, as health sees it."""

    leader_listeners: list[Callable[[], None]]

    @property
    def role(self) -> str: ...

    @property
    def leader_id(self) -> int: ...


class Contact:
    """Whether this node is in touch with the quorum, and since when it is not."""

    def __init__(self, quorum: Quorum, clock: Clock, silence_ms_max: float) -> None:
        self._quorum = quorum
        self._clock = clock
        self._silence_ms_max = silence_ms_max
        self._lost_ms: float | None = None
        quorum.leader_listeners.append(self._look)

    def no_leader(self) -> str | None:
        """Return the obstacle of a node that knows of no leader of the quorum."""
        self._look()
        if self._lost_ms is None:
            return None
        return self._too_long("no leader of the controller quorum is known", self._clock.monotonic_ms() - self._lost_ms)

    def no_answer(self, member: Membership) -> str | None:
        """Return the obstacle of a broker that no controller hears."""
        return self._too_long("no controller has answered a heartbeat", member.silent_ms)

    def _too_long(self, what: str, silent_ms: float) -> str | None:
        return None if silent_ms <= self._silence_ms_max else f"{what} for {silent_ms / 1000:.0f} s"

    def _look(self) -> None:
        """Look at the node's role: a candidate that never wins still knows which leader it followed before."""
        if self._quorum.leader_id < 0 or self._quorum.role not in IN_TOUCH:
            if self._lost_ms is None:
                self._lost_ms = self._clock.monotonic_ms()
        else:
            self._lost_ms = None


def watch_fence(health: Health, member: Membership, image: MetadataFeed) -> None:
    """Watch the fence: a fenced broker is not ready, since others lead its partitions and clients are sent there."""

    def look(_: Sequence[Message] = ()) -> None:
        if member.is_unfenced:
            health.cleared("fenced")
        else:
            health.blocked("fenced", FENCED)

    look()
    image.subscribers.append(look)
