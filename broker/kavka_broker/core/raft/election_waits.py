"""Draws how long a node waits for a leader and between elections. Nodes draw apart, so that one of them is first."""

from collections.abc import Callable

from kavka_broker.core.raft.settings import Settings


class ElectionWaits:
    """The waits of one node."""

    def __init__(self, settings: Settings, random: Callable[[int, int], int]) -> None:
        self._settings = settings
        self._random = random
        self.rounds = 0  # elections without an outcome, since a node last led

    def soon_ms(self) -> int:
        """A short wait that differs between nodes: longer, the more rounds have been lost."""
        low, high = self._settings.lost_delay_ms
        return self._random(low, max(low, min(self._settings.election_backoff_max_ms, high << min(self.rounds, 10))))

    def election_timeout_ms(self) -> int:
        return self._random(self._settings.election_timeout_ms, 2 * self._settings.election_timeout_ms)
