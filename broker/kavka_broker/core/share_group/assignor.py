"""Who gets which partitions of a share group: the assignor `simple`.

Several members share a partition where there are more of them than partitions. What it promises, for the partitions of
one set of topics and the members that subscribe to it:

- each partition is with the same number of members, the least for which every member can have one;
- the numbers of partitions of two members differ by at most one;
- members keep what they have as far as that allows.

Members that subscribe to different topics get each topic by itself, as in Apache Kafka. What is returned depends on
nothing but the input, never on the order of a dict or of joins.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kavka_broker.core.consumer_group.assignors import Place, Subscriber
from kavka_broker.core.share_group.state import Target

__all__ = ["Assignable", "simple"]

Assignable = Mapping[bytes, frozenset[int]]
"""The partitions that may be assigned, by topic id."""


def simple(members: Sequence[Subscriber], partitions: Assignable) -> dict[str, Target]:
    """Assign all partitions; returns the target of each member."""
    ordered = sorted(members, key=lambda member: member.member_id)
    held: dict[str, list[Place]] = {member.member_id: [] for member in ordered}
    pools: list[tuple[list[Subscriber], list[bytes]]]
    if len({member.topics for member in ordered}) <= 1:
        pools = [(ordered, sorted(ordered[0].topics) if ordered else [])]
    else:
        pools = [([member for member in ordered if topic in member.topics], [topic]) for topic in sorted(partitions)]
    for subscribers, topic_ids in pools:
        places = [Place(topic_id, index) for topic_id in topic_ids for index in sorted(partitions.get(topic_id, ()))]
        for member_id, share in _share_out(subscribers, places).items():
            held[member_id] += share
    return {member_id: _target(places) for member_id, places in held.items()}


Held = dict[str, set[Place]]
"""What each member has, in the order of members."""


def _share_out(members: Sequence[Subscriber], places: Sequence[Place]) -> Held:
    """Share the partitions among members that subscribe to all of them."""
    if not members or not places:
        return {}
    known, sharing = frozenset(places), -(-len(members) // len(places))
    held = {member.member_id: known.intersection(_last(member)) for member in members}
    quotas = _quotas(held, sharing * len(places))
    kept = {member_id: set(share) for member_id, share in held.items()}
    counts = _trim(kept, quotas, sharing, places)
    _deal(kept, quotas, counts, sharing)
    return kept


def _last(member: Subscriber) -> Iterator[Place]:
    return (Place(topic_id, index) for topic_id, indexes in member.last.items() for index in indexes)


def _quotas(held: Mapping[str, Collection[Place]], total: int) -> dict[str, int]:
    """How many partitions each member is to have. Members with most keep larger ones; ties go in their order."""
    base, extra = divmod(total, len(held))
    by_size = sorted(held, key=lambda member_id: -len(held[member_id]))
    larger = frozenset(by_size[:extra])
    return {member_id: base + (member_id in larger) for member_id in held}


def _trim(kept: Held, quotas: Mapping[str, int], sharing: int, places: Sequence[Place]) -> dict[Place, int]:
    """Take away what is too much for a member, and members that are too many for a partition. Returns how many members
    each partition has left.
    """
    counts = dict.fromkeys(places, 0)
    for share in kept.values():
        for place in share:
            counts[place] += 1
    for member_id, share in kept.items():
        excess = len(share) - quotas[member_id]
        if excess > 0:
            for place in sorted(share, key=lambda place: (-counts[place], place))[:excess]:
                share.remove(place)
                counts[place] -= 1
    for share in reversed(kept.values()):
        for place in sorted(place for place in share if counts[place] > sharing):
            share.remove(place)
            counts[place] -= 1
    return counts


def _deal(kept: Held, quotas: Mapping[str, int], counts: Mapping[Place, int], sharing: int) -> None:
    """Fill the members up, so that every partition has as many as it is to have."""
    waiting = deque(member_id for member_id, share in kept.items() if len(share) < quotas[member_id])
    for place, count in counts.items():
        for _ in range(sharing - count):
            member_id = _taker(waiting, kept, place)
            if len(kept[member_id]) == quotas[member_id]:
                waiting.remove(member_id)
    assert not waiting, f"{len(waiting)} members lack partitions, and none is left"


def _taker(waiting: deque[str], kept: Held, place: Place) -> str:
    """Give a partition to one more member; returns the waiting member that has one more by it.

    Where all that wait have it already, a member that has its share takes it, and gives one of its own for it. There is
    such a member, and one that those that wait do not have: its share is as large as theirs, and lacks this one.
    """
    for _ in range(len(waiting)):
        member_id = waiting[0]
        waiting.rotate(-1)
        if place not in kept[member_id]:
            kept[member_id].add(place)
            return member_id
    member_id = waiting[0]
    for other in kept.values():
        if place not in other and (spare := other - kept[member_id]):
            given = min(spare)
            other.remove(given)
            other.add(place)
            kept[member_id].add(given)
            return member_id
    raise AssertionError(f"no member can take {place}")


def _target(places: Iterable[Place]) -> Target:
    by_topic = dict[bytes, set[int]]()
    for topic_id, index in places:
        by_topic.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in sorted(by_topic.items())}
