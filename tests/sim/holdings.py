"""What members of a consumer group (KIP-848) may have: a partition is never with two of them at once.

A member has a partition from the answer that assigns it until it gives it up, is fenced, or has been silent for its
session by its own clock. A coordinator that has been replaced and does not know it may still answer: its word gives no
member anything here, and no session lasts longer for it (commits to it fail, as they cannot be committed).

| anomaly | meaning |
|---|---|
| two-members | a partition is with two members at once (K4), as they see it |
| two-owners | the coordinator has it assigned to two members, or has two of them as its target |
| epoch-back | the epoch of a member, or of its group, falls |
| epoch-ahead | a member is in an epoch before its target is computed, or a target before the group's epoch |
| epoch-still | the group's epoch stays where a member subscribes to other topics |
| target-lost | a target has fewer partitions than before, in the same epoch |
| epoch-lost | the next coordinator is behind an epoch that a member has been told |
| stale-commit | a commit of an epoch that its member had left was taken, and another got the partition from it since |
| refused-commit | one was refused for its epoch, though its member had the partition since then (KIP-1251) |
| lost-commit | a member was told an offset that a later acknowledged commit had replaced, or that nobody committed |
| unbalanced | at the end members have more than their share, or a partition nobody has |
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kavka_broker.core.consumer_group.state import ConsumerGroup
from tests.sim.commits import NOTHING, Attempt, Register

Held = tuple[bytes, int]
"""A partition: the id of its topic, and its index."""


def held_text(held: Held) -> str:
    return f"{held[0].hex()[:8]}-{held[1]}"


@dataclass(slots=True)
class Claim:
    """What one member has, and how long that counts if it hears nothing more."""

    places: frozenset[Held] = frozenset()
    counted: frozenset[Held] = frozenset()  # those of them that a coordinator has confirmed whose word counts
    until: float = -1.0
    revokes_until: float = float("inf")  # of a member that is to give something up, and is fenced if it does not

    def counts(self, now: float) -> bool:
        return now < min(self.until, self.revokes_until)


@dataclass(slots=True)
class Seen:
    """A group as a coordinator had it when it was looked at last."""

    shard: Any
    end_offset: int = -1
    epoch: int = -1
    assignment_epoch: int = -1
    topics: dict[str, frozenset[str]] = field(default_factory=dict)  # that each member subscribes to
    targets: int = 0  # partitions in all targets


class Holdings:
    """One group as its members see it, all together."""

    def __init__(self, *, may_expire: bool = False) -> None:
        self.problems: list[str] = []
        self.objected: Callable[[str], None] = lambda problem: None  # told of each problem
        self.forgettings: Callable[[], int] = int  # how often a coordinator has forgotten anything that had expired
        self._forgettings = 0
        self._may_expire = may_expire
        self._claims: dict[str, Claim] = {}
        self._taken: dict[Held, list[tuple[float, str]]] = {}  # when a member got it, and which
        self._own_taken: dict[tuple[str, Held], float] = {}  # when each got it last, though the word may not count
        self._registers: dict[Held, Register] = {}
        self._told_epoch = 0
        self.may_begin_anew = False  # groups change their protocol
        self.heartbeats = self.assignments = self.given_up = self.commits = self.refused = self.late_taken = (
            self.succeeded
        ) = 0

    def object(self, problem: str) -> None:
        self.problems.append(problem)
        self.objected(problem)

    # --- partitions ---------------------------------------------------------------------------------------------

    def has(self, who: str, places: Iterable[Held], now: float, until: float | None) -> None:
        """A member has these, until then if it hears no more; None where the coordinator's word does not count."""
        claim = self._claims.setdefault(who, Claim())
        former, claim.places = claim.places, frozenset(places)
        self._own_taken.update(dict.fromkeys(((who, place) for place in claim.places - former), now))
        if until is None:
            return
        before, claim.counted, claim.until = claim.counted, claim.places, max(claim.until, until)
        for place in sorted(claim.counted - before):
            self._taken.setdefault(place, []).append((now, who))
            self.assignments += 1
        for other, theirs in self._claims.items():
            common = claim.counted & theirs.counted
            if other != who and common and theirs.counts(now) and claim.counts(now):
                self.object(f"two-members: {held_text(min(common))} is with {other} and {who}")

    def is_to_revoke(self, who: str, until: float) -> None:
        """A member has to give something up by then: it is fenced otherwise."""
        claim = self._claims.setdefault(who, Claim())
        claim.revokes_until = min(claim.revokes_until, until)

    def gives_up(self, who: str, places: Iterable[Held]) -> None:
        """A member has nothing to do with these any more; it may have some of them still."""
        claim = self._claims.setdefault(who, Claim())
        self.given_up += len(claim.places.intersection(places))
        claim.places, claim.counted = claim.places.difference(places), claim.counted.difference(places)
        claim.revokes_until = float("inf")

    def forgets(self, who: str) -> None:
        """A member has nothing any more: it is fenced, has left, or is gone."""
        self._claims.pop(who, None)

    def told_epoch(self, epoch: int) -> None:
        """A member was told that it is in this epoch."""
        self._told_epoch = max(self._told_epoch, epoch)
        self._forgettings = self.forgettings()

    # --- the coordinator ----------------------------------------------------------------------------------------

    def look(self, group: ConsumerGroup | None, generation: int | None, seen: Seen, *, is_first: bool) -> None:
        """Look at the group after a step of its coordinator; `is_first`: it has just read the log. A classic group that
        has members is in a `generation`.
        """
        if self.forgettings() > self._forgettings:
            self._told_epoch = 0  # the group may have been forgotten, and begin again
        if group is None and generation is not None:
            self._look_at_classic(generation, seen, is_first=is_first)
            return
        self._begin_anew(group, seen, is_first=is_first)
        if is_first and (0 if group is None else group.epoch) < self._told_epoch:
            what = "no group" if group is None else f"epoch {group.epoch}"
            self.object(f"epoch-lost: a member was in {self._told_epoch}, and the log has {what}")
        if group is None:
            seen.epoch = seen.assignment_epoch = -1
            return
        if group.epoch < seen.epoch or group.assignment_epoch < seen.assignment_epoch:
            now, before = (group.epoch, group.assignment_epoch), (seen.epoch, seen.assignment_epoch)
            self.object(f"epoch-back: the group is in {now}, and was in {before}")
        topics = {member.member_id: member.topics for member in group.members.values()}
        targets = sum(len(indexes) for target in group.targets.values() for indexes in target.values())
        if seen.targets > targets and (group.epoch, group.assignment_epoch) == (seen.epoch, seen.assignment_epoch):
            self.object(
                f"target-lost: of {seen.targets} partitions {targets} have a target, in epoch {group.epoch} still"
            )
        for member_id in sorted(topics.keys() & seen.topics.keys()) if group.epoch == seen.epoch else ():
            if topics[member_id] != seen.topics[member_id]:
                self.object(f"epoch-still: {member_id} subscribes to other topics, and the group is in {group.epoch}")
        seen.epoch, seen.assignment_epoch = group.epoch, group.assignment_epoch
        seen.topics, seen.targets = topics, targets
        for problem in amiss_in(group):
            self.object(problem)
        self._begin_anew(group, seen, is_first=False)

    def _begin_anew(self, group: ConsumerGroup | None, seen: Seen, *, is_first: bool) -> None:
        """Forget epochs of a group without members, which may become one of the other protocol."""
        if self.may_begin_anew and not is_first and (group is None or not group.members):
            self.is_empty(seen)

    def is_empty(self, seen: Seen) -> None:
        """The group has no members: it may become one of the other protocol, and begin again with its epochs."""
        self._told_epoch = 0
        seen.epoch = seen.assignment_epoch = -1

    def _look_at_classic(self, generation: int, seen: Seen, *, is_first: bool) -> None:
        if is_first and generation < self._told_epoch:
            self.object(f"epoch-lost: a member was in {self._told_epoch}, and the log has generation {generation}")
        if generation < seen.epoch:
            self.object(f"epoch-back: the group is in generation {generation}, and was in {seen.epoch}")
        seen.epoch = seen.assignment_epoch = generation
        seen.topics, seen.targets = {}, 0

    # --- offsets ------------------------------------------------------------------------------------------------

    def register(self, place: Held) -> Register:
        if place not in self._registers:
            self._registers[place] = Register((place[0].hex()[:8], place[1]), may_expire=self._may_expire)
        return self._registers[place]

    def told(self, who: str, place: Held, offset: int, asked: float) -> None:
        """A member asked for what is committed."""
        self.late_taken += offset > NOTHING
        objection = self.register(place).objection(offset, asked)
        if objection is not None:
            self.object(f"lost-commit: {who} was told {objection}")

    def committed(self, who: str, place: Held, attempt: Attempt, now: float, *, is_left: bool) -> None:
        """A commit was acknowledged; `is_left`: its member knew that it was in a later epoch."""
        attempt.ended = now
        self.commits += 1
        newest = self._taken.get(place, [(0.0, who)])[-1]
        own = self._own_taken.get((who, place), -1.0)
        if is_left and newest[1] != who and own < newest[0] < attempt.began:
            what = f"{who} committed {held_text(place)} in {attempt.generation}, {newest[1]} has it"
            self.object(f"stale-commit: {what}")


def amiss_in(group: ConsumerGroup) -> Iterator[str]:
    """What a coordinator may never have in mind."""
    owners: dict[Held, str] = {}
    for member in group.members.values():
        for owned in (member.assigned, member.revoking):
            for place in ((topic_id, index) for topic_id, indexes in owned.items() for index in indexes):
                owner = owners.setdefault(place, member.member_id)
                if owner != member.member_id:
                    yield f"two-owners: {held_text(place)} is assigned to {owner} and {member.member_id}"
        if member.epoch > group.assignment_epoch:
            epochs = f"{member.epoch}, and the target is of {group.assignment_epoch}"
            yield f"epoch-ahead: {member.member_id} is in {epochs}"
    if group.assignment_epoch > group.epoch:
        yield f"epoch-ahead: the target is of {group.assignment_epoch}, and the group in {group.epoch}"
    targets: dict[Held, str] = {}
    for member_id, target in group.targets.items():
        for place in ((topic_id, index) for topic_id, indexes in target.items() for index in indexes):
            owner = targets.setdefault(place, member_id)
            if owner != member_id:
                yield f"two-owners: {held_text(place)} is to be with {owner} and {member_id}"


# --- the end ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Share:
    """What one member has when all is quiet, of the topics that it subscribes to."""

    who: str
    topics: Mapping[bytes, int]  # how many partitions each has
    places: frozenset[Held]
    epoch: int = 0


def unassigned(shares: list[Share]) -> Iterator[str]:
    """Partitions that have no member, or two, or one that does not subscribe to them."""
    owners: dict[Held, list[str]] = {
        (topic_id, index): [] for share in shares for topic_id, count in share.topics.items() for index in range(count)
    }
    for share in shares:
        for place in sorted(share.places):
            if place[0] not in share.topics:
                yield f"{share.who} has {held_text(place)}, and does not subscribe to it"
            owners.setdefault(place, []).append(share.who)
    for place, names in owners.items():
        if len(names) != 1:
            yield f"{held_text(place)} is with {', '.join(names) or 'nobody'}"


def unbalanced(shares: list[Share], assignor: str) -> Iterator[str]:
    """Where the spread is wider than the assignor says (`core.consumer_group.assignors`)."""
    topics = sorted({topic_id for share in shares for topic_id in share.topics})
    if assignor == "range":
        for topic_id in topics:
            counts = sorted(
                sum(place[0] == topic_id for place in share.places) for share in shares if topic_id in share.topics
            )
            if counts[-1] - counts[0] > 1:
                yield f"members have {counts} partitions of {topic_id.hex()[:8]}"
        return
    for more in shares:
        for less in shares:
            could = [place for place in more.places if place[0] in less.topics]
            if could and len(more.places) - len(less.places) > 1:
                yield f"{more.who} has {len(more.places)} partitions, and {less.who} {len(less.places)}"


def in_one_epoch(shares: list[Share]) -> bool:
    return all(first.epoch == second.epoch for first, second in pairwise(shares))
