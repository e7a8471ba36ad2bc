"""Measures how far the groups of this broker are behind, for its metrics, now and then and beside all requests.

Committed offsets are known to a group's coordinator alone, ends of partitions to their leaders. So the coordinator asks
the leaders for the ends (ListOffsets, at both isolation levels), and remembers when they were where. For records that
are older than that, it asks once which offsets had which timestamps. What no leader tells is not known, and has no lag.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from kavka_broker.coordinator.groups.group_coordinator import GroupCoordinator
from kavka_broker.coordinator.groups.group_shard import Shard
from kavka_broker.coordinator.groups.leader_offsets import LeaderOffsets
from kavka_broker.core.group.lag import Ends, EndSamples, GroupTopicLag, Place, Shown, lag_of
from kavka_broker.interfaces import Clock
from kavka_broker.loop.slices import Cost, Slices, Work
from kavka_broker.loop.tasks import watch

SERIES_MAX: Final = 500
"""Groups and topics whose lag is shown, with four series each."""
PARTITIONS_MAX: Final = 20_000
"""Partitions that are asked for; a group on others has no lag that is known."""
SEEDS_PER_ROUND_MAX: Final = 1_000
AGES_MS: Final = tuple(minutes * 60_000 for minutes in (1, 10, 60, 360, 1440, 3 * 1440, 7 * 1440))
"""How long ago the records were written that are looked for by their timestamp."""
ROUNDS_SHOWN: Final = 4
"""Rounds after which figures are too old to be shown, where no newer ones came."""
OFFSET_COST: Final = 2  # of a slice
GROUP_COST: Final = 5


class Figures(NamedTuple):
    """The lags that one round has found, and when it did."""

    measured_ms: float
    lags: Sequence[GroupTopicLag] = ()
    omitted: int = 0


class GroupLag:
    """Measures lag every `interval_ms`, in a task of its own, from `start` to `stop`."""

    def __init__(
        self,
        groups: GroupCoordinator,
        leaders: LeaderOffsets,
        clock: Clock,
        slices: Slices,
        interval_ms: int,
    ) -> None:
        self._groups = groups
        self.leaders = leaders
        self._clock = clock
        self._interval_ms = interval_ms
        self.slices = slices
        self.samples: dict[Place, EndSamples] = {}
        self._figures: Figures | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, crash: Callable[[BaseException], None]) -> None:
        task = asyncio.get_running_loop().create_task(self._repeat(), name="group lag")
        self._task = watch(task, crash)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.leaders.close()

    @property
    def figures(self) -> Figures | None:
        """The newest figures, of groups that are still coordinated here; None where there are none, or they are old."""
        found = self._figures
        if found is None or self.age_ms(found) > ROUNDS_SHOWN * self._interval_ms:
            return None
        served = {shard.partition.index for shard in self._groups.shards()}
        return found._replace(lags=[lag for lag in found.lags if lag.shard in served])

    def age_ms(self, figures: Figures) -> float:
        return self._clock.monotonic_ms() - figures.measured_ms

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self._interval_ms / 1000)
            await self.measure()

    async def measure(self) -> None:
        """Do one round."""
        places = await self.slices.whole(self._places())
        ends = await self.leaders.ends(places)
        began_ms = self._clock.monotonic_ms()
        await self.slices.whole(self._remember(places, ends))
        figures, old = await self.slices.whole(self._judge(ends))
        if old:
            await self._seed(sorted(old))
            figures, _ = await self.slices.whole(self._judge(ends))
        self._figures = figures._replace(measured_ms=began_ms)

    def _places(self) -> Work[dict[Place, None]]:
        """The partitions of which groups have committed offsets, in an order that is the same on any machine."""
        places, cost = dict[Place, None](), Cost()
        for shard in list(self._groups.shards()):
            for group_id in shard.image.groups_with_offsets():
                for topic, partitions in list(shard.image.offsets(group_id).items()):
                    places.update(((topic, index), None) for index in partitions)
                    if cost.add(len(partitions)):
                        yield
                if len(places) > PARTITIONS_MAX:
                    return places
        return places

    def _remember(self, places: Collection[Place], ends: Mapping[Place, Ends]) -> Work[None]:
        """Keep when the ends were where, of the partitions that groups read."""
        cost, now_ms = Cost(), self._clock.now_ms()
        for place in list(self.samples):
            if place not in places:
                del self.samples[place]
            if cost.add(1):
                yield
        for place, both in ends.items():
            self.samples.setdefault(place, EndSamples()).add(now_ms, both.high_watermark)
            if cost.add(GROUP_COST):
                yield

    def _judge(self, ends: Mapping[Place, Ends]) -> Work[tuple[Figures, set[Place]]]:
        """The lags, and the partitions with unread records of which it is not known when they were written."""
        before = frozenset((lag.group, lag.topic) for lag in (self._figures.lags if self._figures else ()))
        shown, old, cost, now_ms = Shown(before, SERIES_MAX), set[Place](), Cost(), self._clock.now_ms()
        for shard in list(self._groups.shards()):
            for group_id in shard.image.groups_with_offsets():
                has_members = is_with_members(shard, group_id)
                for topic, partitions in list(shard.image.offsets(group_id).items()):
                    committed = {index: value.offset for index, value in partitions.items()}
                    name = shard.partition.index, group_id, topic
                    lag, unknown = lag_of(name, committed, ends, self.samples, now_ms)
                    if lag.records[0] is not None:
                        shown.add(lag, has_members=has_members)
                    old.update(unknown[: SEEDS_PER_ROUND_MAX - len(old)])
                    if cost.add(GROUP_COST + OFFSET_COST * len(committed)):
                        yield
        return Figures(0, shown.lags, shown.omitted), old

    async def _seed(self, places: Sequence[Place]) -> None:
        """Learn from the timestamps of records what the ends were before they were sampled."""
        now_ms = self._clock.now_ms()
        earlier: dict[Place, list[tuple[int, int]]] = {}
        for age_ms in AGES_MS:
            at_ms = now_ms - age_ms
            for place, offset in (await self.leaders.first_since(places, at_ms)).items():
                earlier.setdefault(place, []).append((at_ms, offset))
        for place, moments in earlier.items():
            if (samples := self.samples.get(place)) is not None and len(samples):
                # Where no record is as new as that, the end was where it is.
                samples.seed([(at_ms, samples.end if offset < 0 else offset) for at_ms, offset in moments])


def is_with_members(shard: Shard, group_id: str) -> bool:
    group = shard.image.find(group_id)
    return group is not None and bool(group.members)
