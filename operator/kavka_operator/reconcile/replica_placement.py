"""Where replicas go when a topic is to have more or fewer of them, or when racks and brokers have changed.

What is there stays where it is, as far as that goes: moving records costs disks and networks something, and nobody
asked for it. A further replica goes to a rack that the partition has none in yet, as long as there is one, and there to
the broker with the fewest replicas of the topic. Of too many, the one goes whose rack has another, then the one on the
broker with most. The preferred leader stays what it is, so that leaders remain as they were spread.

Only who asks for it has a right number of replicas moved: over racks, until a partition is on as many as there can be;
over brokers, until none has two replicas of the topic more than another, without a partition losing a rack by it.
Each such step makes a sum smaller, so they end, and where they have ended they do nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

Replicas = tuple[int, ...]
Racks = Mapping[int, str | None]

PASSES_MAX = 8
"""How often a look goes over all replicas of a topic to even them out."""


def spread(
    assignment: Mapping[int, Replicas],
    factor: int,
    racks: Racks,
    *,
    over_racks: bool = False,
    over_brokers: bool = False,
) -> dict[int, Replicas]:
    """The partitions that have to change, with their new replicas. `racks` are the brokers that there are."""
    assert 0 < factor <= len(racks), "the caller has counted the brokers"
    wanted = {index: list(replicas) for index, replicas in sorted(assignment.items())}
    load = Counter(broker for replicas in wanted.values() for broker in replicas)
    for index, replicas in wanted.items():
        _count(replicas, factor, index, load, racks)
        if over_racks:
            _over_racks(replicas, index, load, racks)
    if over_brokers:
        _balance(wanted, load, racks)
        _balance_leaders(wanted, racks)
    return {index: tuple(replicas) for index, replicas in wanted.items() if tuple(replicas) != assignment[index]}


def _count(wanted: list[int], factor: int, index: int, load: Counter[int], racks: Racks) -> None:
    """Add or take replicas until there are `factor`."""
    while len(wanted) < factor:
        wanted.append(_best(wanted, index, load, racks))
        load[wanted[-1]] += 1
    while len(wanted) > factor:
        gone = _most_dispensable(wanted, load, racks)
        wanted.remove(gone)
        load[gone] -= 1


def _over_racks(wanted: list[int], index: int, load: Counter[int], racks: Racks) -> None:
    """Move replicas until no rack has two while another has none."""
    while len(_racks_of(wanted, racks)) < min(len(wanted), len(set(racks.values()))):
        gone = _most_dispensable(wanted, load, racks)
        rest = [broker for broker in wanted if broker != gone]
        _put(wanted, gone, _best(rest, index, load, racks), load)


def _balance(wanted: Mapping[int, list[int]], load: Counter[int], racks: Racks) -> None:
    """Move replicas from brokers with many to brokers with few; what `PASSES_MAX` leave over, the next look moves."""
    for _ in range(PASSES_MAX):
        if not _ease(wanted, load, racks):
            return


def _ease(wanted: Mapping[int, list[int]], load: Counter[int], racks: Racks) -> bool:
    """Look at each replica once, those of the broker with most first, and move what eases; whether any was moved."""
    held = {broker: iter([replicas for replicas in wanted.values() if broker in replicas]) for broker in sorted(racks)}
    has_moved = False
    while held:
        many = max(held, key=lambda broker: load[broker])
        replicas = next(held[many], None)
        if replicas is None or load[many] - min(load[broker] for broker in racks) < 2:
            del held[many]
        elif many in replicas and (few := _relief(replicas, many, load, racks)) is not None:
            _put(replicas, many, few, load)
            has_moved = True
    return has_moved


def _relief(replicas: Sequence[int], many: int, load: Counter[int], racks: Racks) -> int | None:
    """The broker with the fewest replicas that can take one from another; None where none is eased by it."""
    for few in sorted(racks, key=lambda broker: (load[broker], broker)):
        if load[many] - load[few] < 2:
            return None
        if few not in replicas and _keeps_racks(replicas, many, few, racks):
            return few
    return None


def _keeps_racks(replicas: Sequence[int], gone: int, new: int, racks: Racks) -> bool:
    after = [new if broker == gone else broker for broker in replicas]
    return len(_racks_of(after, racks)) >= len(_racks_of(replicas, racks))


def _balance_leaders(wanted: Mapping[int, list[int]], racks: Racks) -> None:
    """Change the order of replicas until no broker is preferred by two partitions more than another that could lead."""
    leads = Counter(replicas[0] for replicas in wanted.values() if replicas)
    is_settled = False
    while not is_settled:
        is_settled = True
        for replicas in wanted.values():
            first, least = replicas[0], min((broker for broker in replicas if broker in racks), key=lambda b: leads[b])
            if leads[first] - leads[least] > 1:
                place = replicas.index(least)
                replicas[0], replicas[place] = least, first
                leads[first] -= 1
                leads[least] += 1
                is_settled = False


def _put(replicas: list[int], gone: int, new: int, load: Counter[int]) -> None:
    replicas[replicas.index(gone)] = new
    load[gone] -= 1
    load[new] += 1


def _racks_of(replicas: Sequence[int], racks: Racks) -> set[str | None]:
    return {racks[broker] for broker in replicas if broker in racks}


def _best(there: Sequence[int], index: int, load: Counter[int], racks: Racks) -> int:
    in_rack = Counter(racks.get(broker) for broker in there)
    ring = sorted(racks)
    turn = index % len(ring)  # brokers that are equal are taken in turn, each partition beginning one further
    rest = [broker for broker in [*ring[turn:], *ring[:turn]] if broker not in there]
    return min(rest, key=lambda broker: (in_rack[racks[broker]], load[broker]))


def _most_dispensable(there: Sequence[int], load: Counter[int], racks: Racks) -> int:
    in_rack = Counter(racks.get(broker) for broker in there)
    return max(reversed(there[1:] or there), key=lambda broker: (in_rack[racks.get(broker)], load[broker]))
