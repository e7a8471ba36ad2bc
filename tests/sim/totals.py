"""What many seeds together have shown. Sums are the same however many processes ran the seeds, and in which slices."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from tests.sim.cluster import Outcome


@dataclass(slots=True)
class Totals:
    """Of some seeds. `digests` are theirs, of all that happened in each."""

    digests: dict[int, str] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0
    acknowledged: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)
    cpu_seconds: float = 0.0

    def add(self, outcome: Outcome, cpu_seconds: float) -> None:
        self.digests[outcome.seed] = outcome.digest
        self.steps += outcome.steps
        self.seconds += outcome.seconds
        self.acknowledged += outcome.acknowledged
        self.faults += outcome.faults
        self.refused += outcome.refused
        self.events += outcome.events
        self.cpu_seconds += cpu_seconds
        if outcome.failure is not None:
            self.failed.append(outcome.seed)

    def add_all(self, other: "Totals") -> None:
        """Those of other seeds."""
        self.digests |= other.digests
        self.steps += other.steps
        self.seconds += other.seconds
        self.acknowledged += other.acknowledged
        self.faults += other.faults
        self.refused += other.refused
        self.events += other.events
        self.cpu_seconds += other.cpu_seconds
        self.failed += other.failed

    @property
    def digest(self) -> str:
        """Of all that happened in all of them."""
        digest = blake2b(digest_size=8)
        for seed in sorted(self.digests):
            digest.update(f"{seed} {self.digests[seed]}\n".encode())
        return digest.hexdigest()

    def unreached(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not self.events[name]]

    # --- as a line of a file ------------------------------------------------------------------------------------

    def as_fields(self) -> dict[str, Any]:
        return {
            "digests": self.digests, "steps": self.steps, "seconds": self.seconds, "acknowledged": self.acknowledged,
            "faults": self.faults, "refused": self.refused, "events": self.events, "failed": self.failed,
            "cpu_seconds": self.cpu_seconds,
        }  # fmt: skip

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> "Totals":
        digests = {int(seed): digest for seed, digest in fields.pop("digests").items()}
        counters: dict[str, Any] = {name: Counter(fields.pop(name)) for name in ("faults", "refused", "events")}
        return cls(digests, **counters, **fields)
