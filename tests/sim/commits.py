"""What groups may be told: each committed offset is a register, and each partition has one owner in one generation.

| anomaly | meaning |
|---|---|
| lost-commit | a member was told an offset that a later acknowledged commit had replaced, or that nobody committed |
| fenced-commit | a commit of a generation was taken after a member of a later one had its assignment |
| fenced-commit | or one of a static member, after another had its place |
| two-owners | two members of one generation have the same partition |
| generation-back | an assignment of an old generation, after a member of a later one had its own |
| member-lost | a member was told that it is in a generation, and its leader was not |
| passed-over | a commit covers a record that no member of the group has read |
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.sim.history import Place, place_text

NOTHING = -1

#: In which a coordinator has its groups in mind: its process, and the epoch in which it leads their partition.
Term = tuple[str, int]


@dataclass(slots=True)
class Attempt:
    """A commit of `offset`, or the deletion of what was committed. `ended` is None while its fate is unknown."""

    offset: int
    began: float
    generation: int = -1
    member_id: str = ""
    ended: float | None = None
    is_refused: bool = False


@dataclass(slots=True)
class Register:
    """The committed offset of one group and partition: what was written, by whom and when."""

    place: Place
    attempts: list[Attempt] = field(default_factory=list)
    may_expire: bool = False
    told: int = NOTHING  # to the member that asked last: an unanswered commit may have been taken

    @property
    def last(self) -> int:
        """What was acknowledged last."""
        ended = [attempt for attempt in self.attempts if attempt.ended is not None]
        return max(ended, key=lambda attempt: attempt.ended or 0.0).offset if ended else NOTHING

    def write(self, offset: int, now: float, generation: int = -1, member_id: str = "") -> Attempt:
        self.attempts.append(Attempt(offset, now, generation, member_id))
        return self.attempts[-1]

    def objection(self, told: int, asked: float) -> str | None:
        """Why a reader that asked at this time cannot be told this."""
        done = [attempt for attempt in self.attempts if attempt.ended is not None and attempt.ended < asked]
        # Whatever began after this one was done has replaced it.
        newest = max((attempt.began for attempt in done), default=-1.0)
        possible = [
            attempt
            for attempt in self.attempts
            if not attempt.is_refused and (attempt.ended is None or attempt.ended >= newest)
        ]
        if told == NOTHING and (not done or self.may_expire):
            return None
        if any(attempt.offset == told for attempt in possible):
            return None
        return f"{place_text(self.place)}: {told}, where {self.last} was acknowledged last"


class GroupRecord:
    """One group as its members have seen it, all together."""

    def __init__(self, group_id: str, *, may_expire: bool = False) -> None:
        self.group_id = group_id
        self.problems: list[str] = []
        self._registers: dict[Place, Register] = {}
        self._may_expire = may_expire
        self._owners: dict[tuple[int, Place], str] = {}
        self._assigned: list[tuple[float, int]] = []  # when a member heard of its assignment, and the generation
        self._holders: dict[str, list[tuple[float, str]]] = {}  # of an instance: since when, and which member
        # By leader, generation and the coordinator's term: who has heard of it, and who is in it, as its leader knows.
        self._joined: dict[tuple[str, int, Term], dict[str, None]] = {}
        self._members: dict[tuple[str, int, Term], list[str]] = {}
        self._read: dict[Place, set[int]] = {}
        self._covered: dict[Place, int] = {}
        self.forgettings: Callable[[], int] = int  # how often a coordinator has forgotten anything that had expired
        self._forgettings = 0  # of these, when the newest generation began
        self.generations = self.commits = self.fenced = self.taken_over = 0

    def register(self, place: Place) -> Register:
        if place not in self._registers:
            self._registers[place] = Register(place, may_expire=self._may_expire)
        return self._registers[place]

    def newest_generation(self, at: float) -> int:
        """The newest whose assignment had reached a member by then."""
        return max((generation for when, generation in self._assigned if when < at), default=-1)

    def assigned(self, owner: str, generation: int, places: list[Place], asked: float, now: float) -> None:
        newest = self.newest_generation(asked)
        is_amiss = generation < newest or any(self._owners.get((generation, place), owner) != owner for place in places)
        if is_amiss and self._may_be_forgotten:
            self._owners, self._assigned, newest = {}, [], -1
        if generation < newest:
            self.problems.append(f"generation-back: {owner} is in {generation}, after somebody was in {newest}")
        if generation > self.newest_generation(now + 1):
            self._assigned.append((now, generation))
            self._forgettings = self.forgettings()
            self.generations += 1
        for place in places:
            known = self._owners.setdefault((generation, place), owner)
            if known != owner:
                self.problems.append(f"two-owners: {known} and {owner} have {place_text(place)} in {generation}")

    def joined(self, member_id: str, leader_id: str, generation: int, members: list[str], term: Term) -> None:
        """A member without a static id is in a generation; `members` are all, if it is the leader. A generation is
        written when its leader has assigned: if the coordinator's term ends before, the next has one of that number.
        """
        key = leader_id, generation, term
        self._joined.setdefault(key, {})[member_id] = None
        if members:
            self._members[key] = members
        if key in self._members:
            lost = [joiner for joiner in self._joined.pop(key) if joiner not in self._members[key]]
            self.problems += [
                f"member-lost: {joiner} has joined {generation}, its leader does not hear of it" for joiner in lost
            ]

    @property
    def _may_be_forgotten(self) -> bool:
        """Whether the coordinator may have dropped the group since its last generation, for it was empty and had no
        offsets (any more, by a clock that may have been set): its generations start over then, as in Apache Kafka.
        """
        return self._may_expire and self.forgettings() > self._forgettings

    def holds(self, instance: str, member_id: str, now: float) -> None:
        """Note that a static member has its assignment: the member that had its place before is fenced."""
        self._holders.setdefault(instance, []).append((now, member_id))

    def _is_replaced(self, instance: str | None, attempt: Attempt) -> bool:
        """Whether another member had taken the place before this commit was sent."""
        holders = [holder for when, holder in self._holders.get(instance or "", ()) if when < attempt.began]
        return bool(holders) and attempt.member_id in holders and holders[-1] != attempt.member_id

    def told(self, who: str, place: Place, offset: int, asked: float) -> None:
        """A member asked for what is committed."""
        self.taken_over += offset > 0
        objection = self.register(place).objection(offset, asked)
        self.register(place).told = offset
        if objection is not None:
            self.problems.append(f"lost-commit: {who} was told {objection}")

    def has_read(self, place: Place, offsets: list[int]) -> None:
        self._read.setdefault(place, set()).update(offsets)

    def committed(self, who: str, place: Place, attempt: Attempt, now: float, instance: str | None = None) -> None:
        """The commit was acknowledged."""
        attempt.ended = now
        self.commits += 1
        newest = self.newest_generation(attempt.began)
        if attempt.generation < newest:
            self.problems.append(f"fenced-commit: {who} of generation {attempt.generation}, in {newest}")
        if self._is_replaced(instance, attempt):
            self.problems.append(f"fenced-commit: {who}, whose place another member has taken")
        read, start = self._read.get(place, set()), self._covered.get(place, 0)
        missed = [offset for offset in range(start, attempt.offset) if offset not in read]
        if missed:
            self.problems.append(
                f"passed-over: {place_text(place)}: {who} committed {attempt.offset}, not {missed[:3]}"
            )
        self._covered[place] = max(start, attempt.offset)
