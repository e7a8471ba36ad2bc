"""Decisions that are remembered until a rule changes, bounded in number and in bytes.

Clients ask about names that they make up, so a decision about a name that no topic may have is not remembered. Where
there is no room for another one all are forgotten: what is asked often is soon known again.
"""

from sys import getsizeof
from typing import Final

DECISIONS_MAX: Final = 10_000
DECISIONS_BYTES_MAX: Final = 4 * 1024 * 1024
DECISION_BYTES: Final = 250  # of one beside its names
NAME_CHARACTERS_MAX: Final = 249
"""The longest name of a topic. Groups and transactional ids may have longer ones."""

#: Principal, address, operation, type of the resource, and its name (None: of any).
Key = tuple[str, str, int, int, str | None]


class DecisionCache:
    """Remembers who may do what. `size_bytes` is what the decisions take, with their names."""

    def __init__(self, decisions_max: int = DECISIONS_MAX, bytes_max: int = DECISIONS_BYTES_MAX) -> None:
        self._decisions_max = decisions_max
        self._bytes_max = bytes_max
        self._decided: dict[Key, bool] = {}
        self.size_bytes = 0
        self.get: Final = self._decided.get

    def __len__(self) -> int:
        return len(self._decided)

    def keep(self, key: Key, decision: bool) -> None:
        """Remember a decision, unless it is about a name that no topic may have."""
        principal, address, _, _, name = key
        if len(name or "") > NAME_CHARACTERS_MAX:
            return
        size_bytes = DECISION_BYTES + getsizeof(principal) + getsizeof(address) + getsizeof(name)
        if len(self._decided) >= self._decisions_max or self.size_bytes + size_bytes > self._bytes_max:
            self.clear()
        self._decided[key] = decision
        self.size_bytes += size_bytes

    def clear(self) -> None:
        """Forget all decisions."""
        self._decided.clear()
        self.size_bytes = 0
