"""Whether the broker can serve, and if not, why.

Alive and ready are two things. A broker is alive while its loop answers: restarting it would not help anybody. It is
ready when nothing stands in its way: directories loaded, registered with the controller, listeners open. Each obstacle
has a name and a reason in words; the start puts the first ones there and takes them away as it goes.
"""

from collections.abc import Mapping


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


STARTING = {
    "logs": "log directories are being loaded",
    "registration": "not registered with the controller yet",
    "listeners": "listeners are not open yet",
}
