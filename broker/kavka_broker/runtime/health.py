"""Whether the broker can serve, and if not, why.

Alive and ready are two things. A broker is alive while its loop answers: restarting it would not help anybody. It is
ready when nothing stands in its way: a quorum, directories loaded, registered with the controller and unfenced,
listeners open. Each obstacle has a name and a reason in words; the start puts the first ones there and takes them
away as it goes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kavka_broker.protocol.message import Message

FENCED = "fenced by the controller, which waits for heartbeats"


class Health:
    """The obstacles between this broker and its clients."""

    def __init__(self, obstacles: Mapping[str, str] | None = None) -> None:
        self._obstacles = dict(obstacles or {})

    @property
    def is_ready(self) -> bool:
        return not self._obstacles

    @property
    def obstacles(self) -> dict[str, str]:
        """Name and reason, in the order in which they came up."""
        return dict(self._obstacles)

    def blocked(self, name: str, reason: str) -> None:
        """`name` stands in the way; saying so again changes the reason."""
        self._obstacles[name] = reason

    def cleared(self, name: str) -> None:
        """`name` no longer does."""
        self._obstacles.pop(name, None)


#: What a broker waits for when it starts; a controller alone waits for the quorum only.
STARTING = {
    "quorum": "the controller quorum has no leader that is known here, or this node has not caught up with it",
    "logs": "log directories are being loaded",
    "registration": "not registered with the controller yet",
    "listeners": "listeners are not open yet",
    "fenced": FENCED,
}


def starting(roles: Iterable[str]) -> dict[str, str]:
    """The obstacles at the beginning."""
    return dict(STARTING) if "broker" in roles else {"quorum": STARTING["quorum"]}


class Member(Protocol):
    """What health needs to know of the broker's membership."""

    @property
    def is_unfenced(self) -> bool: ...


class Image(Protocol):
    """Who is told when the cluster's metadata has changed."""

    subscribers: list[Callable[[Sequence[Message]], None]]


def watch(health: Health, member: Member, image: Image) -> None:
    """From now on a fenced broker is not ready: others lead its partitions, and clients are sent there."""

    def look(_: Sequence[Message] = ()) -> None:
        if member.is_unfenced:
            health.cleared("fenced")
        else:
            health.blocked("fenced", FENCED)

    look()
    image.subscribers.append(look)
