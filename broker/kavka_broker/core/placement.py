"""On which brokers the replicas of new partitions go.

Brokers stand in one ring in which the racks alternate. Leaders walk that ring, so they spread over brokers and racks
within one of each other. Each further replica goes to a rack that the partition does not have yet, as long as there is
one, and there to the broker with the fewest replicas so far. `rotation` says where on the ring to begin: callers pass
the number of partitions that exist, so that many small topics spread as one large topic does. Nothing is drawn at
random: the same question has the same answer, in the controller, in a replay and in a plan that an operator shows.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """A broker that can take replicas, and where it stands. Brokers without a rack share the rack None."""

    broker_id: int
    rack: str | None = None


class TooFewBrokers(ValueError):
    """More replicas are wanted than there are brokers to hold them."""


def place(partitions: int, replication_factor: int, sites: Iterable[Site], rotation: int = 0) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first."""
    ring = interleave_racks(sites)
    if not 0 < replication_factor <= len(ring):
        raise TooFewBrokers(f"{replication_factor} replicas need as many brokers; there are {len(ring)}")
    load: Counter[int] = Counter()
    return [_replicas(ring, (rotation + index) % len(ring), replication_factor, load) for index in range(partitions)]


def interleave_racks(sites: Iterable[Site]) -> tuple[Site, ...]:
    """All brokers, in an order in which neighbours stand in different racks as far as that goes.

    Each rack spreads its brokers evenly over the ring, so a large rack stands in every other place, not at the end.
    """
    racks: dict[str | None, list[Site]] = {}
    for site in sorted(sites, key=lambda site: site.broker_id):
        racks.setdefault(site.rack, []).append(site)
    places = [
        ((index + 0.5) / len(rack), number, site)
        for number, rack in enumerate(sorted(racks.values(), key=lambda rack: (-len(rack), rack[0].broker_id)))
        for index, site in enumerate(rack)
    ]
    places.sort(key=lambda place: place[:2])
    return tuple(site for _, _, site in places)


def _replicas(ring: Sequence[Site], start: int, wanted: int, load: Counter[int]) -> tuple[int, ...]:
    leader = ring[start]
    chosen = [leader]
    in_rack = Counter([leader.rack])
    rest = [*ring[start + 1 :], *ring[:start]]
    while len(chosen) < wanted:
        # min() keeps the first of equals, so ties go to the next broker on the ring.
        best = min(rest, key=lambda site: (in_rack[site.rack], load[site.broker_id]))
        rest.remove(best)
        chosen.append(best)
        in_rack[best.rack] += 1
    for site in chosen:
        load[site.broker_id] += 1
    return tuple(site.broker_id for site in chosen)
