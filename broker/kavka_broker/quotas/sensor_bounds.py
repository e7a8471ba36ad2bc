"""The room that clients have for sensors of their own, in number and in bytes.

Clients choose their client ids. One user, and all clients without a login together, have half of the room at most: a
client that invents ids pushes out clients of its own user, and no others.
"""

from sys import getsizeof
from typing import Final

NAMES_BYTES_MAX: Final = 8 * 1024 * 1024


class Room:
    """Counts the sensors that have been made, and the bytes of their names, in all and for each user (`by_user`)."""

    def __init__(self, sensors_max: int, bytes_max: int = NAMES_BYTES_MAX) -> None:
        assert sensors_max >= 1, sensors_max
        self._sensors_max = sensors_max
        self._bytes_max = bytes_max
        self.sensors = self.used_bytes = 0
        self.by_user: dict[str, tuple[int, int]] = {}

    def take(self, user: str, size_bytes: int) -> bool:
        """Take room for a sensor; returns whether there was any."""
        has_room = self.sensors < self._sensors_max and self.used_bytes + size_bytes <= self._bytes_max
        if self.is_over_half(user) or not has_room:
            return False
        self._add(user, 1, size_bytes)
        return True

    def is_over_half(self, user: str) -> bool:
        """Whether a user has half of the room already."""
        sensors, size_bytes = self.by_user.get(user, (0, 0))
        return 2 * sensors >= self._sensors_max or 2 * size_bytes >= self._bytes_max

    def give_back(self, user: str, size_bytes: int) -> None:
        """Give back what a sensor has taken."""
        self._add(user, -1, -size_bytes)

    def _add(self, user: str, sensors: int, size_bytes: int) -> None:
        former_sensors, former_bytes = self.by_user.pop(user, (0, 0))
        if former_sensors + sensors:
            self.by_user[user] = former_sensors + sensors, former_bytes + size_bytes
        self.sensors += sensors
        self.used_bytes += size_bytes
        assert 0 <= self.sensors <= self._sensors_max, f"{self.sensors} of {self._sensors_max} sensors"
        assert 0 <= self.used_bytes <= self._bytes_max, f"{self.used_bytes} of {self._bytes_max} bytes"


def size_of(client: tuple[str, str]) -> int:
    """Return the bytes that the names of a client take."""
    user, client_id = client
    return getsizeof(user) + getsizeof(client_id)
