"""Whether a whole trail is as its nodes wrote it: every chain by itself, and what chains say of each other.

Records come by partition and offset, and are read once. What is kept grows with the number of chains, not of entries.

- A node's chain names where its chain before ended: one that is missing, was cut, or goes on where its node did not, is
  seen there. What is named so is proved by the signature of the one that names it.
- Heads come once a minute. Where another chain of the partition has added heads for more than two intervals since the
  last head of a chain, that chain is over, and what stands behind its last head waits for no head any more. No hash
  covers the order of records, so the times of heads, which are signed, show it too (`trail_clocks`).
- Retention deletes the oldest records of a partition. Chains that were written then begin late, and no others: each of
  them has an entry before the others have added heads for two intervals, and within an interval, by its own time, of
  the first entries of others; and all of them together lack no more entries than there are offsets before the first
  record.
- A chain whose heads name another cluster than the trail's proves nothing: neither itself, nor how time has passed, nor
  what other chains there are. One that names none, as older nodes wrote them, is of this cluster where a later chain of
  its node, which is of it, names its end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from kavka_broker.core.audit.chain import Entry
from kavka_broker.core.audit.heads import TrailCluster
from kavka_broker.core.audit.keys import VerifyingKey
from kavka_broker.core.audit.trail_clocks import Clock, Clocks
from kavka_broker.core.audit.verification import INTERVALS_MAX, ChainCheck, Fault, Verdict

CHAINS_MAX: Final = 20_000
"""Chains of a trail, some kilobytes each. Each start of a node makes one."""


class TooManyChainsError(Exception):
    """A trail has more chains than are judged at once."""


@dataclass(slots=True)
class Partition:
    """What heads of a partition tell of the time that has passed: in each round no chain adds a second one."""

    log_start: int
    lacking: int = 0  # entries before the first ones of its chains
    round: int = 0
    clocks: Clocks = field(default_factory=Clocks)
    _seen: set[str] = field(default_factory=set)

    def take_head(self, source: str) -> None:
        """Count a head."""
        if source in self._seen:
            self.round += 1
            self._seen.clear()
        self._seen.add(source)


@dataclass(slots=True)
class Reading:
    """A chain that is being read, the partition in which it stands, the time of its first entry, the round of its last
    head, and what its heads tell of the clock of its node.
    """

    check: ChainCheck
    partition: Partition
    first_ms: int
    head_round: int
    clock: Clock
    is_late: bool = False  # and the check knows

    @property
    def is_over(self) -> bool:
        """Whether other chains have had heads for so long that none of this one is under way."""
        place, head_ms = self.partition, self.check.head_ms
        is_over = place.round - self.head_round > INTERVALS_MAX
        return is_over or (head_ms is not None and place.clocks.are_long_after(head_ms, self.clock))

    @property
    def began_late(self) -> bool:
        """Whether the first entries are missing, although those of the same time in other chains are there."""
        is_cut = bool(self.partition.log_start and self.check.first_sequence)
        return is_cut and self.partition.clocks.began_before(self.first_ms, self.clock)


class TrailCheck:
    """Reads a trail. `keys` are all keys that nodes have signed with; without any, signatures are not looked at.
    `trail` is the cluster whose trail it has to be.
    """

    def __init__(self, keys: Sequence[VerifyingKey] = (), trail: TrailCluster | None = None) -> None:
        self._keys = keys
        self._trail = TrailCluster() if trail is None else trail
        self._partitions: dict[int, Partition] = {}
        self._chains: dict[str, Reading] = {}

    def add(self, partition: int, log_start: int, entry: Entry) -> None:
        """Take the next entry of a partition, whose first record has the offset `log_start`. Raises
        TooManyChainsError.
        """
        self.add_hashed(partition, log_start, entry, has_its_hash=entry.hash == entry.expected_hash())

    def add_hashed(self, partition: int, log_start: int, entry: Entry, *, has_its_hash: bool) -> None:
        """Take the next entry of a partition, of which it is known whether it has the hash of its fields: then its
        value is asked for only where the entry is a head. Raises TooManyChainsError.
        """
        place = self._partitions.setdefault(partition, Partition(log_start))
        chain = self._chains.get(entry.source) or self._begin(place, entry)
        heads = chain.check.heads
        chain.check.add_hashed(entry, has_its_hash=has_its_hash)
        if chain.check.heads > heads:
            place.take_head(entry.source)
            chain.head_round = place.round
            place.clocks.take_head(node_of(entry.source), chain.check.head_ms or 0, chain.clock)

    def extend(self, last: Entry) -> bool:
        """Take the run of events of a chain that ends with `last`, as `ChainCheck.extend` does."""
        return self._chains[last.source].check.extend(last)

    def _begin(self, place: Partition, entry: Entry) -> Reading:
        if len(self._chains) >= CHAINS_MAX:
            raise TooManyChainsError(f"more than {CHAINS_MAX} chains; shorten the retention of the topic")
        check = ChainCheck(entry.source, self._keys, is_whole=not place.log_start, trail=self._trail)
        self._chains[entry.source] = chain = Reading(check, place, entry.time_ms, place.round, Clock())
        if place.log_start and entry.sequence:
            place.lacking += entry.sequence
            if place.lacking > place.log_start or place.round > INTERVALS_MAX:
                check.tell(Fault.LATE, 0)
                chain.is_late = True
        return chain

    def verdicts(self) -> dict[str, Verdict]:
        """Return what was found, by chain, in the order in which chains were found. Nothing can be added any more."""
        for source, chain in self._chains.items():
            chain.check.end()
            chain.check.is_over = chain.is_over
            if chain.check.heads and not chain.check.damages_total:
                chain.partition.clocks.take_first(node_of(source), chain.first_ms)
        for chain in self._chains.values():
            if chain.began_late and not chain.is_late:
                chain.check.tell(Fault.LATE, 0, 0)
        was_cut = any(partition.log_start for partition in self._partitions.values())
        proved = list[tuple[ChainCheck, ChainCheck]]()
        for checks in self._by_node():
            known = {end.source for check in checks for end in check.before}
            # A node that knows no certain end has lost what it knew, and only what it has tried since is on its disk.
            knowing = [any(end.is_certain for end in check.before) for check in checks]
            for place, check in enumerate(checks):
                proved += self._look_back(check, is_first=not place, was_cut=was_cut)
                for stranger in reversed(checks[:place]):
                    if stranger.source in known or not knowing[place]:
                        break
                    stranger.tell(Fault.UNNAMED, stranger.first_sequence)
        for check, former in reversed(proved):  # by the last chain of a node also what that proves of earlier ones
            former.cluster = former.cluster or check.cluster
        return {source: chain.check.verdict() for source, chain in self._chains.items()}

    def _by_node(self) -> Iterator[list[ChainCheck]]:
        """Give the chains of each node, without those of other clusters, in the order in which they were found."""
        found: dict[str, list[ChainCheck]] = {}
        for source, chain in self._chains.items():
            if not chain.check.is_foreign:
                found.setdefault(node_of(source), []).append(chain.check)
        return iter(found.values())

    def _look_back(
        self, check: ChainCheck, *, is_first: bool, was_cut: bool
    ) -> Iterator[tuple[ChainCheck, ChainCheck]]:
        """Compare what a chain says of those before it with what is there; gives it with each that it proves. Retention
        may have deleted what came before the first chain of a node that is there.
        """
        for source, group in groupby(check.before, key=lambda end: end.source):
            ends = list(group)
            if source in self._chains:
                if self._chains[source].check.named(ends):
                    yield check, self._chains[source].check
            elif any(end.is_certain for end in ends) and not (was_cut and is_first):
                check.tell(Fault.MISSING, 0, 0, source)


def node_of(source: str) -> str:
    """Return the id of the node whose chain this is."""
    return source.partition("-")[0]
