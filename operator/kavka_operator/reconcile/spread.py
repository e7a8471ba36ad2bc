"""Where replicas go when a topic is to have more or fewer of them.

What is there stays where it is, as far as that goes: moving records costs disks and networks something, and nobody
asked for it. A further replica goes to a rack that the partition has none in yet, as long as there is one, and there to
the broker with the fewest replicas of the topic. Of too many, the one goes whose rack has another, then the one on the
broker with most. The preferred leader stays what it is, so that leaders remain as they were spread.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

Replicas = tuple[int, ...]


def spread(assignment: Mapping[int, Replicas], factor: int, racks: Mapping[int, str | None]) -> dict[int, Replicas]:
    """The partitions that have to change, with their new replicas. `racks` are the brokers that there are."""
    assert 0 < factor <= len(racks), "the caller has counted the brokers"
    load = Counter(broker for replicas in assignment.values() for broker in replicas)
    changed = {}
    for index, replicas in sorted(assignment.items()):
        if len(replicas) == factor:
            continue
        wanted = list(replicas)
        while len(wanted) < factor:
            wanted.append(_best(wanted, index, load, racks))
            load[wanted[-1]] += 1
        while len(wanted) > factor:
            gone = _most_dispensable(wanted, load, racks)
            wanted.remove(gone)
            load[gone] -= 1
        changed[index] = tuple(wanted)
    return changed


def _best(there: Sequence[int], index: int, load: Counter[int], racks: Mapping[int, str | None]) -> int:
    in_rack = Counter(racks.get(broker) for broker in there)
    ring = sorted(racks)
    turn = index % len(ring)  # brokers that are equal are taken in turn, each partition beginning one further
    rest = [broker for broker in [*ring[turn:], *ring[:turn]] if broker not in there]
    return min(rest, key=lambda broker: (in_rack[racks[broker]], load[broker]))


def _most_dispensable(there: Sequence[int], load: Counter[int], racks: Mapping[int, str | None]) -> int:
    in_rack = Counter(racks.get(broker) for broker in there)
    return max(reversed(there[1:]), key=lambda broker: (in_rack[racks.get(broker)], load[broker]))
