"""Who gets which partitions: the assignors `uniform` and `range`.

Both spread the partitions evenly, and move as few as they can: a member keeps what it has up to its share. What they
return depends on nothing but their input, never on the order of a dict or of joins.

- uniform: the numbers of partitions of two members differ by at most one where all subscribe to the same topics.
  Where they do not, no member has two more than another that could take one of them.
- range: the same for each topic by itself. Topics with as many partitions and the same subscribers are assigned alike,
  so that a member that joins them has the same partitions of each.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import Final, NamedTuple

from kavka_broker.core.consumer_group.state import Target

__all__ = ["ASSIGNORS", "Assignor", "Subscriber"]


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it: the ids of the topics that it subscribes to, and its last target."""

    member_id: str
    topics: frozenset[bytes]
    last: Target = field(default_factory=dict)
    instance_id: str | None = None

    @property
    def rank(self) -> tuple[str, str]:
        """Its place in the order of members: that of its instance, which outlives the id, if it is static."""
        return self.instance_id or self.member_id, self.member_id


class Place(NamedTuple):
    """A partition of a topic."""

    topic_id: bytes
    partition: int


Partitions = Mapping[bytes, int]
"""How many partitions each subscribed topic has."""
Assignor = Callable[[Sequence[Subscriber], Partitions], dict[str, Target]]


def uniform(members: Sequence[Subscriber], partitions: Partitions) -> dict[str, Target]:
    """Assign all partitions evenly; returns the target of each member."""
    ordered = sorted(members, key=lambda member: member.rank)
    if len({member.topics for member in ordered}) <= 1:
        topics = ordered[0].topics if ordered else frozenset[bytes]()
        places = [Place(topic_id, index) for topic_id in sorted(topics) for index in range(partitions[topic_id])]
        shares = even_shares(places, [member.member_id for member in ordered], last_owners(ordered))
        _deal(shares.values(), _left(places, shares))
    else:
        shares = {member_id: Share(0, items) for member_id, items in _balanced(ordered, partitions).items()}
    return {member_id: _target(share.items) for member_id, share in shares.items()}


def range_(members: Sequence[Subscriber], partitions: Partitions) -> dict[str, Target]:
    """Assign each topic by itself; returns the target of each member."""
    ordered = sorted(members, key=lambda member: member.rank)
    owners = last_owners(ordered)
    alike = dict[tuple[tuple[str, ...], int], list[bytes]]()
    for topic_id in sorted(partitions):
        subscribers = tuple(member.member_id for member in ordered if topic_id in member.topics)
        if subscribers:
            alike.setdefault((subscribers, partitions[topic_id]), []).append(topic_id)
    targets: dict[str, dict[bytes, frozenset[int]]] = {member.member_id: {} for member in ordered}
    for (subscribers, count), topic_ids in alike.items():
        # All of them go by the first topic of which anything was assigned, so that they are assigned alike again.
        first = next(
            (topic for topic in topic_ids if any(Place(topic, index) in owners for index in range(count))), b""
        )
        places = [Place(first, index) for index in range(count)]
        shares = even_shares(places, subscribers, owners)
        _fill(shares.values(), _left(places, shares))
        for member_id, share in shares.items():
            indexes = frozenset(place.partition for place in share.items)
            if indexes:
                targets[member_id].update(dict.fromkeys(topic_ids, indexes))
    return dict(targets)


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_}


@dataclass(slots=True)
class Share:
    """What one member gets: as many partitions as its quota at the end."""

    quota: int
    items: list[Place]

    @property
    def room(self) -> int:
        return self.quota - len(self.items)


def last_owners(members: Sequence[Subscriber]) -> dict[Place, str]:
    """The member that has each partition by the last target, as far as it subscribes to the topic still."""
    return {
        Place(topic_id, index): member.member_id
        for member in reversed(members)
        for topic_id, indexes in member.last.items()
        if topic_id in member.topics
        for index in indexes
    }


def even_shares(places: Sequence[Place], member_ids: Sequence[str], owners: Mapping[Place, str]) -> dict[str, Share]:
    """Shares that differ by at most one, in which members keep what they have. Members with most keep larger ones."""
    kept: dict[str, list[Place]] = {member_id: [] for member_id in member_ids}
    for place in places:
        owner = owners.get(place)
        if owner in kept:
            kept[owner].append(place)
    base, extra = divmod(len(places), len(kept)) if kept else (0, 0)
    by_size = sorted(kept, key=lambda member_id: -len(kept[member_id]))  # stable: ties stay in the order of members
    larger = frozenset(by_size[:extra])
    quotas = {member_id: base + (member_id in larger) for member_id in kept}
    return {member_id: Share(quotas[member_id], items[: quotas[member_id]]) for member_id, items in kept.items()}


def _left(places: Sequence[Place], shares: Mapping[str, Share]) -> list[Place]:
    taken = {place for share in shares.values() for place in share.items}
    return [place for place in places if place not in taken] if shares else []


def _deal(shares: Iterable[Share], left: Sequence[Place]) -> None:
    """Deal partitions out in turns, so that those of a topic come to different members."""
    waiting = deque(share for share in shares if share.room)
    for place in left:
        share = waiting.popleft()
        share.items.append(place)
        if share.room:
            waiting.append(share)
    assert not waiting, "a share is not full, and nothing is left"


def _fill(shares: Iterable[Share], left: Sequence[Place]) -> None:
    """Fill the shares one after the other, so that a member's partitions follow each other."""
    at = 0
    for share in shares:
        room = share.room
        share.items.extend(left[at : at + room])
        at += room
    assert at == len(left), f"{len(left)} partitions are left, and there is room for {at}"


def _balanced(members: Sequence[Subscriber], partitions: Partitions) -> dict[str, list[Place]]:
    """Assign where members subscribe to different topics: keep, give out what is free, then even out."""
    owners = last_owners(members)
    loads = dict.fromkeys((member.member_id for member in members), 0)
    held = dict[bytes, dict[str, list[int]]]()  # of each topic, what each subscriber has of it
    free = dict[bytes, list[int]]()
    for topic_id in sorted(partitions):
        held[topic_id] = {member.member_id: [] for member in members if topic_id in member.topics}
        for index in range(partitions[topic_id]):
            owner = owners.get(Place(topic_id, index))
            if owner is not None:
                held[topic_id][owner].append(index)
                loads[owner] += 1
            elif held[topic_id]:
                free.setdefault(topic_id, []).append(index)
    for topic_id in sorted(free, key=lambda topic: (len(held[topic]), topic)):
        _give_out(free[topic_id], held[topic_id], loads)
    while any(_even_out(holders, loads) for holders in held.values()):
        pass
    items: dict[str, list[Place]] = {member_id: [] for member_id in loads}
    for topic_id, holders in held.items():
        for member_id, indexes in holders.items():
            items[member_id].extend(Place(topic_id, index) for index in indexes)
    return items


def _give_out(free: Sequence[int], holders: Mapping[str, list[int]], loads: dict[str, int]) -> None:
    """Give free partitions of a topic to those of its subscribers that have least."""
    heap = [(loads[member_id], rank, member_id) for rank, member_id in enumerate(holders)]
    heapify(heap)
    for index in free:
        load, rank, member_id = heap[0]
        holders[member_id].append(index)
        loads[member_id] = load + 1
        heapreplace(heap, (load + 1, rank, member_id))


def _even_out(holders: Mapping[str, list[int]], loads: dict[str, int]) -> bool:
    """Move partitions of a topic from those that have most to those that have least; returns whether any moved.

    The sum of the squares of the loads falls with each move, so there is a last one.
    """
    has_moved = False
    while holders:
        giver = max(holders, key=lambda member_id: loads[member_id] if holders[member_id] else -1)
        taker = min(holders, key=lambda member_id: loads[member_id])
        if not holders[giver] or loads[giver] - loads[taker] < 2:
            return has_moved
        holders[taker].append(holders[giver].pop())
        loads[giver] -= 1
        loads[taker] += 1
        has_moved = True
    return has_moved


def _target(places: Iterable[Place]) -> Target:
    by_topic = dict[bytes, set[int]]()
    for topic_id, index in places:
        by_topic.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in by_topic.items()}
