"""On which brokers the replicas of new partitions go.

Brokers stand in one ring in which the racks alternate. Leaders walk that ring, so they spread over brokers and racks
within one of each other. Each further replica goes to a rack that the partition does not have yet, as long as there is
one, and there to the broker with the fewest replicas so far. `rotation` says where to begin: callers pass the number of
partitions that exist, so that many small topics spread as one large topic does. "So far" therefore counts from a fixed
place, the beginning of a cycle of several laps around the ring, and not from the first partition of the topic: else
every small topic would begin with the same choice. A cycle ends after the lap that leaves the loads most even. Nothing
is drawn at random: the same question has the same answer, in the controller, in a replay and in a plan that an operator
shows.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

LAPS_MAX: Final = 24
POSITIONS_MAX: Final = 2_400  # working a cycle out takes about 0.1 s for a hundred brokers
RINGS_MAX: Final = 64  # brokers come and go; what was worked out for the latest rings is kept


@dataclass(frozen=True, slots=True)
class Site:
    """A broker that can take replicas, and where it stands. Brokers without a rack share the rack None."""

    broker_id: int
    rack: str | None = None


class TooFewBrokers(ValueError):
    """Too few brokers for the replicas that are wanted."""


def place(partitions: int, replication_factor: int, sites: Iterable[Site], rotation: int = 0) -> list[tuple[int, ...]]:
    """Place replicas of each partition, the preferred leader first. Raises TooFewBrokers."""
    assert partitions >= 0, partitions
    assert rotation >= 0, rotation
    ring = interleave_racks(sites)
    if not 0 < replication_factor <= len(ring):
        raise TooFewBrokers(f"{replication_factor} replicas need as many brokers; there are {len(ring)}")
    cycle = _cycle(ring, replication_factor)
    return [cycle[(rotation + index) % len(cycle)] for index in range(partitions)]


def interleave_racks(sites: Iterable[Site]) -> tuple[Site, ...]:
    """Order all brokers so that neighbours stand in different racks where possible.

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
    assert len({site.broker_id for _, _, site in places}) == len(places), "a broker stands in two places"
    return tuple(site for _, _, site in places)


@lru_cache(RINGS_MAX)
def _cycle(ring: Sequence[Site], replication_factor: int) -> tuple[tuple[int, ...], ...]:
    """Replicas at each position, until they repeat."""
    load: Counter[int] = Counter()
    placed: list[tuple[int, ...]] = []
    ends: list[tuple[int, int]] = []  # unevenness after each lap, and the lap's end
    for lap in range(max(1, min(LAPS_MAX, POSITIONS_MAX // len(ring)))):
        placed += [_replicas(ring, lap * len(ring) + start, replication_factor, load) for start in range(len(ring))]
        # The longer cycle wins at equal loads: it has more pairs of leader and follower.
        ends.append((_unevenness(ring, load), -len(placed)))
    assert all(len(set(replicas)) == replication_factor for replicas in placed), "a broker has one replica of each"
    return tuple(placed[: -min(ends)[1]])


def _unevenness(ring: Sequence[Site], load: Counter[int]) -> int:
    """The largest difference between two brokers of one rack; racks of different sizes cannot be alike."""
    racks: dict[str | None, list[int]] = {}
    for site in ring:
        racks.setdefault(site.rack, []).append(load[site.broker_id])
    return max(max(loads) - min(loads) for loads in racks.values())


def _replicas(ring: Sequence[Site], position: int, wanted: int, load: Counter[int]) -> tuple[int, ...]:
    assert 1 <= wanted <= len(ring), f"{wanted} replicas on {len(ring)} brokers"
    lap, start = divmod(position, len(ring))
    leader = ring[start]
    chosen = [leader]
    in_rack = Counter([leader.rack])
    rest = [*ring[start + 1 :], *ring[:start]]
    # A leader gets other followers with each lap: when it dies, its work goes to all of them.
    shift = lap % len(rest) if rest else 0
    rest = [*rest[shift:], *rest[:shift]]
    while len(chosen) < wanted:
        # min() keeps the first of equals, so ties go to the next broker on the ring.
        best = min(rest, key=lambda site: (in_rack[site.rack], load[site.broker_id]))
        rest.remove(best)
        chosen.append(best)
        in_rack[best.rack] += 1
    for site in chosen:
        load[site.broker_id] += 1
    return tuple(site.broker_id for site in chosen)
