"""DivergencesShorten: a follower that is told that its log has parted from its leader's cuts something off.

Where it cuts nothing it asks the same again, and is told the same, for good.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

Simulation = Any

IN_VAIN_MAX: Final = 5  # an answer may be from before a cut


class Divergences:
    """Counts, by process, partition and leader epoch, divergences in a row that have cut nothing."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._in_vain: Counter[tuple[str, str, int]] = Counter()
        simulation.events.listeners.setdefault("log.diverged", []).append(self._diverged)

    def _diverged(self, process: str, fields: Mapping[str, Any]) -> None:
        key = process, fields["partition"], fields["leader_epoch"]
        self._in_vain[key] = 0 if fields["to_offset"] < fields["from_offset"] else self._in_vain[key] + 1
        if self._in_vain[key] > IN_VAIN_MAX:
            self._simulation.fail(
                f"DivergencesShorten: {process} cuts nothing of {fields['partition']}: {dict(fields)}"
            )
