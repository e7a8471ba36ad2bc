"""Who votes, by the offset of the log that says so.

A new set of voters is in force from the moment it is appended, committed or not: that is what keeps two sets that
follow on each other from both electing. If the record is cut away again, the former set is back in force. Therefore a
node keeps every set since its newest snapshot, with the offset of its record.

At `kraft.version` 0 no records name the voters; the set is that of the configuration, at offset -1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kavka_broker.core.raft.voters import Voter

STATIC_OFFSET = -1


@dataclass(slots=True)
class VoterHistory:
    """Sets of voters and levels of kraft.version, each with the offset of its record; the oldest first."""

    sets: list[tuple[int, tuple[Voter, ...]]] = field(default_factory=list)
    versions: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, voters: Iterable[Voter], *, kraft_version: int, offset: int = STATIC_OFFSET) -> "VoterHistory":
        """The history of a log or snapshot that ends at `offset`."""
        return cls([(offset, tuple(voters))], [(offset, kraft_version)])

    @property
    def voters(self) -> tuple[Voter, ...]:
        return self.sets[-1][1] if self.sets else ()

    def open_sets(self, high_watermark: int) -> list[tuple[Voter, ...]]:
        """The sets of voters in force at the high watermark, and all that follow: one of them will hold."""
        opened = [voters for _, voters in _in_force(self.sets, high_watermark)]
        assert not self.sets or opened[-1] == self.voters, f"{self.voters} vote, and are not among {opened}"
        return opened

    @property
    def voters_offset(self) -> int:
        return self.sets[-1][0] if self.sets else STATIC_OFFSET

    @property
    def kraft_version(self) -> int:
        return self.versions[-1][1] if self.versions else 0

    def add_voters(self, offset: int, voters: Iterable[Voter]) -> None:
        """Add a record at `offset` that names the voters."""
        assert offset >= self.voters_offset, f"the voters of {offset} come after those of {self.voters_offset}"
        if offset == self.voters_offset:
            self.sets.pop()
        self.sets.append((offset, tuple(voters)))
        assert self.voters, f"the record at {offset} leaves nobody to vote"

    def add_version(self, offset: int, kraft_version: int) -> None:
        """Add a record at `offset` that sets the level of kraft.version."""
        assert not self.versions or offset >= self.versions[-1][0], (
            f"the level of {offset} comes after {self.versions[-1]}"
        )
        self.versions = [entry for entry in self.versions if entry[0] < offset]
        self.versions.append((offset, kraft_version))

    def truncate(self, offset: int) -> None:
        """Cut the history to a log that ends at `offset`."""
        assert offset >= 0, offset
        self.sets = [entry for entry in self.sets if entry[0] < offset]
        self.versions = [entry for entry in self.versions if entry[0] < offset]
        assert self.voters_offset < offset, f"the voters are those of {self.voters_offset}, the log is cut at {offset}"

    def forget_below(self, offset: int) -> None:
        """Forget what cannot come back, as the log is not cut below `offset`: keep sets in force there and later."""
        voters = self.voters
        self.sets = _in_force(self.sets, offset)
        self.versions = _in_force(self.versions, offset)
        assert self.voters == voters, f"{voters} vote, and are forgotten below {offset}"

    def at(self, offset: int) -> tuple[tuple[Voter, ...], int]:
        """Voters and kraft.version in force at `offset`, as for a snapshot that ends there."""
        sets, versions = _before(self.sets, offset), _before(self.versions, offset)
        return (sets[-1][1] if sets else ()), (versions[-1][1] if versions else 0)


def _before(items: list, offset: int) -> list:  # type: ignore[type-arg]
    return [item for item in items if item[0] < offset]


def _in_force(items: list, offset: int) -> list:  # type: ignore[type-arg]
    return items[max(len(_before(items, offset)) - 1, 0) :]
