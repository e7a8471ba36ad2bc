"""Whether a chain is as its node wrote it, where it is not, and up to where that is proved.

A chain is read once, entry by entry, in bounded memory. Every damage is told, not only the first: after each, reading
goes on from what is there.

Entries are proved by the good heads behind them. Heads are a duty: what stands behind the last one is vouched for by
nothing until the next one comes, which takes a minute, or until the node's next chain names where this one ended. Where
a tail is older than two intervals of heads, or there is no good head at all, the chain is UNSIGNED.

- Without a key: every change by somebody who does not compute the hashes of all later entries again. A head counts by
  its hash alone.
- With the keys: every change before the last signed head, whoever computed what, unless that person has the key.
- Of one chain alone, never: entries cut off the end, and events that the node did not write. `trail_check` looks at all
  chains together, and sees cut ends and chains that are missing.

A head of another cluster proves nothing here, whatever key has signed it (FOREIGN). One that names no cluster, as an
older node wrote it, proves that a holder of the key wrote the chain, and not where: `cluster` of the verdict is empty
then.

The beginning may have been deleted by the retention of the topic; `is_whole` says that it was not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kavka_broker.core.audit.chain import HEAD_MS, NO_HASH, SIGNED, Entry, Kind
from kavka_broker.core.audit.chain_ends import End
from kavka_broker.core.audit.heads import TrailCluster, read_head
from kavka_broker.core.audit.keys import HmacKey, VerifyingKey, key_named

INTERVALS_MAX: Final = 2
"""Intervals of heads for which an entry may wait for the head that proves it."""
DAMAGES_MAX: Final = 50
"""Damages of a chain that are told one by one; of others the number."""
RANGES_MAX: Final = 1_000
"""Missing ranges, and entries that came too early, of which a chain knows whether they come elsewhere."""
UNKNOWN_KEYS_MAX: Final = 4
"""Ids of keys that are named as not given."""


class Fault(StrEnum):
    """The kind of a damage."""

    FLIPPED = "flipped"  # the entry does not have its hash
    REWRITTEN = "rewritten"  # hashes were computed again, and do not join here
    DROPPED = "dropped"  # the entry is missing
    SWAPPED = "swapped"  # an entry stands where another one belongs, which comes elsewhere
    ADDED = "added"  # the entry is there a second time, is of another chain, or follows the end
    UNSIGNED = "unsigned"  # the signature of a head is not that of its key
    TRUNCATED = "truncated"  # the chain went further than this
    LATE = "late"  # the first entries are missing, and retention has not deleted them
    MISSING = "missing"  # the node's chain before this one is not there
    UNNAMED = "unnamed"  # the node's next chain does not know this one
    FOREIGN = "foreign"  # a head names another cluster


class State(StrEnum):
    """What is said of a chain in one word: what the exit code and the metric say too."""

    SOUND = "sound"
    UNSIGNED = "unsigned"  # nothing is wrong that could be seen, and nothing vouches for a part of it
    DAMAGED = "damaged"


class Signature(StrEnum):
    """What the signature of a head shows."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"  # it is by a key that was not given


@dataclass(slots=True)
class Damage:
    """A damage of a chain. `sequence` is the place; `index` counts the entries of the chain read before it."""

    fault: Fault
    sequence: int
    index: int
    chain: str = ""  # the other one, of MISSING
    cluster: str = ""  # the other one, of FOREIGN


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in one chain."""

    state: State
    entries: int  # that stand in their place
    events: int
    lost: int  # events that the node itself says it has lost
    proved: int  # entries that a good head, or the node's next chain, vouches for: without keys by hashes alone
    proved_sequence: int  # the last of them, or -1
    proved_ms: int  # when that was written
    tail: int  # entries behind the last good head, and not proved
    is_ended: bool
    damages: Sequence[Damage] = ()
    damages_total: int = 0
    unknown_keys: Sequence[str] = ()  # ids of keys that were not given, which have signed heads
    cluster: str = ""  # that its heads, or the node's next chain, name
    is_unnamed: bool = False  # it has a good head, and nothing names its cluster
    lacks_cluster: bool = False  # which it has to name

    @property
    def damage(self) -> Damage | None:
        """The first damage."""
        return self.damages[0] if self.damages else None


def verify(
    entries: Iterable[Entry], keys: Sequence[VerifyingKey] = (), *, is_whole: bool = True, sequence_min: int = -1
) -> Verdict:
    """Return what the entries of one chain show by themselves, in the order in which they were read.

    `sequence_min` is the highest sequence that is known to have been written, or -1.
    """
    check: ChainCheck | None = None
    for entry in entries:
        check = check or ChainCheck(entry.source, keys, is_whole=is_whole)
        check.add(entry)
    check = check or ChainCheck("", keys, is_whole=is_whole)
    check.end()
    reached = -1 if check.last is None else check.last.sequence
    if reached < sequence_min and not check.damages_total:
        check.tell(Fault.TRUNCATED, reached + 1)
    return check.verdict()


def signature_of(head: Entry, keys: Sequence[VerifyingKey]) -> Signature:
    """Return what the signature of a head shows by these keys."""
    if not head.signature:
        return Signature.BAD
    if head.key_id:
        key = key_named(keys, head.key_id)
        if key is None:
            return Signature.UNKNOWN
        return Signature.GOOD if key.verifies(head.hash, head.signature) else Signature.BAD
    secrets = (key for key in keys if isinstance(key, HmacKey))  # heads named no key once
    return Signature.GOOD if any(key.verifies(head.hash, head.signature) for key in secrets) else Signature.BAD


@dataclass(slots=True)
class Gap:
    """Sequences that were missing where they belong, less those that came later."""

    ranges: list[tuple[int, int]]  # each with the first and the last
    damage: Damage


@dataclass(slots=True)
class ChainCheck:
    """Reads one chain. What it keeps does not grow with the number of entries."""

    source: str
    keys: Sequence[VerifyingKey] = ()
    is_whole: bool = True
    trail: TrailCluster = field(default_factory=TrailCluster)
    cluster: str = ""  # that a good head names, or the node's next chain, which is of that cluster
    is_foreign: bool = False
    first_sequence: int = 0
    last: Entry | None = None
    before: tuple[End, ...] = ()  # the ends that a good first head names
    heads: int = 0  # good ones
    damages_total: int = 0
    is_over: bool = False  # the tail waits for a head for too long, as heads of others show
    _damages: list[Damage] = field(default_factory=list)
    _read: int = 0
    _entries: int = 0
    _events: int = 0
    _lost: int = 0
    _proved: int = 0
    _proved_entry: Entry | None = None
    _tail: int = 0  # entries since the last good head
    _unproved: int = 0  # entries that no later head can vouch for, as the chain is broken behind them
    _head_ms: int | None = None
    _tail_ms: int = 0  # of the newest entry of the tail
    _expected: int = 0
    _previous: bytes = NO_HASH
    _newest: int = -1  # the sequence of the entry read last, wherever that belongs
    _last_index: int = -1  # of `last`
    _flipped: int = 0  # entries without their hashes since the last good one, each of which may have a place
    _ahead: tuple[int, Entry] | None = (
        None  # an entry that is too early, with its index, until the next one explains it
    )
    _gaps: list[Gap] = field(default_factory=list)
    _early: dict[int, Damage] = field(default_factory=dict)  # by the sequences of entries that came too early
    _unknown_keys: list[str] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Take the next entry."""
        self.add_hashed(entry, has_its_hash=entry.hash == entry.expected_hash())

    def add_hashed(self, entry: Entry, *, has_its_hash: bool) -> None:
        """Take the next entry, of which it is known whether it has the hash of its fields."""
        index = self._read
        self._read += 1
        self._newest = entry.sequence
        if entry.source != self.source:
            self.tell(Fault.ADDED, self._expected, index)
            return
        if index == 0 and not self.is_whole:
            self._expected, self._previous, self.first_sequence = entry.sequence, entry.previous, entry.sequence
        if not has_its_hash or (entry.signature and entry.kind not in SIGNED):
            # No hash covers a signature, and only heads have one.
            self.tell(Fault.FLIPPED, self._expected + self._flipped, index)
            self._flipped += 1
        elif self._is_ended:
            self.tell(Fault.ADDED, self._expected, index)
        else:
            self._place(index, entry)

    def resume(self, last: Entry) -> None:
        """Go on behind the entry that was accepted last when the chain was read before. Nothing was added yet."""
        assert not self._read, "a chain is resumed before it is read"
        assert last.source == self.source, last.source
        self._read, self._last_index = 1, 0
        self._newest, self._expected, self._previous = last.sequence, last.sequence + 1, last.hash
        self.last = last

    def extend(self, last: Entry) -> bool:
        """Take the run of events that follows the entry read last and ends with `last`; False, and nothing is taken,
        where they have to be added one by one.

        The entry read last is an event itself. Each one of the run has its hash and no signature, no losses, the next
        sequence and the hash of the one before, and a time that is not before its.
        """
        newest = self._read - 1
        assert 0 <= self._newest < last.sequence, "a run follows an entry"
        if self._ahead is not None and self._ahead[0] == newest:
            _, entry = self._ahead
            self._ahead = None
            self._miss(newest, entry.sequence - 1)
            self._accept(newest, entry, joins=False)
        if self._last_index == newest:
            self._accept_run(last)
        elif self._is_ended or last.sequence < self._expected:
            self._refuse_run(last)
        else:
            return False  # some of the run are late, and the others may join what is there or not
        self._newest = last.sequence
        return True

    def end(self) -> None:
        """Take that no entry follows."""
        if self._ahead is not None:
            index, entry = self._ahead
            self._ahead = None
            self._miss(index, entry.sequence - 1)
            self._accept(index, entry, joins=False)
        for sequence, damage in self._early.items():
            if sequence >= self._expected:
                damage.fault = Fault.SWAPPED

    def tell(self, fault: Fault, sequence: int, index: int | None = None, chain: str = "") -> Damage:
        """Note a damage."""
        damage = Damage(fault, sequence, self._read if index is None else index, chain)
        self.damages_total += 1
        if len(self._damages) < DAMAGES_MAX:
            self._damages.append(damage)
        return damage

    def named(self, ends: Sequence[End]) -> bool:
        """Take where the node's next chain says that this one ended: that is proved, or shows what was cut or added.
        Returns whether it is proved.
        """
        last = self.last
        if last is None:
            return False
        if any((end.sequence, end.hash) == (last.sequence, last.hash) for end in ends):
            self._prove(last)
            return True
        if last.sequence < min(end.sequence for end in ends):
            self.tell(Fault.TRUNCATED, last.sequence + 1)
        elif last.sequence > (highest := max(end.sequence for end in ends)):
            self.tell(Fault.ADDED, highest + 1)
        else:
            self.tell(Fault.REWRITTEN, last.sequence)
        return False

    def verdict(self) -> Verdict:
        """Return what was found."""
        proved = self._proved_entry
        return Verdict(
            self._state(),
            self._entries,
            self._events,
            self._lost,
            self._proved,
            -1 if proved is None else proved.sequence,
            0 if proved is None else proved.time_ms,
            self._tail + self._unproved,
            self._is_ended,
            self._damages,
            self.damages_total,
            self._unknown_keys,
            self.cluster,
            self._is_unnamed,
            self._lacks_cluster,
        )

    @property
    def head_ms(self) -> int | None:
        """When the last good head was written; None where there is none."""
        return self._head_ms

    @property
    def _is_unnamed(self) -> bool:
        return bool(self._proved and not self.cluster)

    @property
    def _lacks_cluster(self) -> bool:
        return self.trail.is_required and self._is_unnamed

    @property
    def _is_ended(self) -> bool:
        return self.last is not None and self.last.kind is Kind.END

    def _state(self) -> State:
        if self.damages_total:
            return State.DAMAGED
        if self._lacks_cluster:
            return State.UNSIGNED
        if not self.keys or not self._tail + self._unproved:
            return State.SOUND
        is_late = self._head_ms is None or self._tail_ms - self._head_ms > INTERVALS_MAX * HEAD_MS
        return State.UNSIGNED if is_late or self.is_over or self._unproved else State.SOUND

    def _place(self, index: int, entry: Entry) -> None:
        """Find out how an entry stands to the ones before it."""
        ahead = entry.sequence - self._expected
        if ahead < 0:
            self._come_late(index, entry.sequence)
        elif ahead <= self._flipped:
            self._displace()
            self._accept(index, entry, joins=ahead == 0)
        elif self._ahead is not None and entry.previous == self._ahead[1].hash:
            first, before = self._ahead
            self._ahead = None
            self._miss(first, before.sequence - 1)
            self._accept(first, before, joins=False)
            self._accept(index, entry, joins=True)
        else:
            self._displace()
            self._ahead = (index, entry)

    def _come_late(self, index: int, sequence: int) -> None:
        """Take an entry whose place has been passed: it was missing there, or is there twice."""
        for gap in self._gaps:
            for place, (first, last) in enumerate(gap.ranges):
                if first <= sequence <= last:
                    rest = ((first, sequence - 1), (sequence + 1, last))
                    gap.ranges[place : place + 1] = [found for found in rest if found[0] <= found[1]]
                    gap.damage.fault = Fault.SWAPPED
                    return
        self.tell(Fault.ADDED, self._expected, index)

    def _displace(self) -> None:
        """Take that the entry which came too early stands where it does not belong."""
        if self._ahead is None:
            return
        index, entry = self._ahead
        self._ahead = None
        damage = self.tell(Fault.ADDED, self._expected, index)
        if len(self._early) < RANGES_MAX:
            self._early[entry.sequence] = damage

    def _miss(self, index: int, last: int) -> None:
        """Take that the entries up to `last` are missing here."""
        ranges, first = list[tuple[int, int]](), self._expected + self._flipped
        for sequence in sorted(found for found in self._early if first <= found <= last):
            self._early.pop(sequence).fault = Fault.SWAPPED
            ranges.append((first, sequence - 1))
            first = sequence + 1
        ranges = [found for found in (*ranges, (first, last)) if found[0] <= found[1]]
        if ranges:
            damage = self.tell(Fault.DROPPED, ranges[0][0], index)
            if len(self._gaps) < RANGES_MAX:
                self._gaps.append(Gap(ranges, damage))

    def _accept(self, index: int, entry: Entry, *, joins: bool) -> None:
        """Take an entry that stands in its place; `joins` where the one before it is there."""
        if joins and entry.previous != self._previous:
            self.tell(Fault.REWRITTEN, entry.sequence, index)
            joins = False
        if not joins:
            self._unproved, self._tail = self._unproved + self._tail, 0
        self._early.pop(entry.sequence, None)
        self._entries += 1
        self._events += entry.kind is Kind.EVENT
        self._lost += entry.lost
        self._tail_ms = entry.time_ms if not self._tail else max(self._tail_ms, entry.time_ms)
        self._tail += 1
        self._expected, self._previous, self._flipped, self.last = entry.sequence + 1, entry.hash, 0, entry
        self._last_index = index
        if entry.kind in SIGNED:
            self._take_head(index, entry)

    def _accept_run(self, last: Entry) -> None:
        """Take the events behind the entry accepted last, up to `last`."""
        count = last.sequence - self._newest
        for sequence in [found for found in self._early if self._newest < found <= last.sequence]:
            del self._early[sequence]
        self._read += count
        self._entries += count
        self._events += count
        self._tail_ms = max(self._tail_ms, last.time_ms)
        self._tail += count
        self._expected, self._previous, self.last = last.sequence + 1, last.hash, last
        self._last_index = self._read - 1

    def _refuse_run(self, last: Entry) -> None:
        """Take the events behind an entry that was not accepted, up to `last`: none of them is accepted either."""
        for sequence in range(self._newest + 1, last.sequence + 1):
            if self._is_ended:
                self.tell(Fault.ADDED, self._expected, self._read)
            else:
                self._come_late(self._read, sequence)
            self._read += 1

    def _take_head(self, index: int, head: Entry) -> None:
        shown = signature_of(head, self.keys) if self.keys else Signature.GOOD
        if shown is Signature.BAD:
            self.tell(Fault.UNSIGNED, head.sequence, index)
        elif shown is Signature.UNKNOWN:
            if head.key_id not in self._unknown_keys and len(self._unknown_keys) < UNKNOWN_KEYS_MAX:
                self._unknown_keys.append(head.key_id)
        else:
            self._take_good_head(index, head)

    def _take_good_head(self, index: int, head: Entry) -> None:
        try:
            cluster, before = read_head(head.value, is_first=head.sequence == 0)
        except ValueError:
            self.tell(Fault.FLIPPED, head.sequence, index)
            return
        if cluster and not self.trail.is_named_by(cluster):
            if not self.is_foreign:
                self.tell(Fault.FOREIGN, head.sequence, index).cluster = cluster
            self.is_foreign = True
            return
        self.cluster = cluster or self.cluster
        self.before = before or self.before
        self.heads += 1
        self._head_ms = head.time_ms
        self._prove(head)

    def _prove(self, entry: Entry) -> None:
        self._proved, self._tail, self._proved_entry = self._proved + self._tail, 0, entry
