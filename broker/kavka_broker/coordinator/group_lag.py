"""Measures how far the groups of this broker are behind, for its metrics, now and then and beside all requests.

Committed offsets are known to a group's coordinator alone, ends of partitions to their leaders. So the coordinator asks
the leaders for the ends (ListOffsets, at both isolation levels), and remembers when they were where. For records that
are older than that, it asks once which offsets had which timestamps. What no leader tells is not known, and has no lag.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kavka_broker.coordinator.connections import Connections
from kavka_broker.coordinator.group_coordinator import GroupCoordinator
from kavka_broker.coordinator.shard import Shard
from kavka_broker.core.group.lag import Ends, EndSamples, GroupTopicLag, Place, Shown, lag_of
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.loop.slices import Cost, Slices, Work
from kavka_broker.loop.tasks import watch
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.seams import Clock
from kavka_broker.storage.time_search import find_by_timestamp

log = get("coordinator")

SERIES_MAX: Final = 500
"""Groups and topics whose lag is shown, with four series each."""
PARTITIONS_MAX: Final = 20_000
"""Partitions that are asked for; a group on others has no lag that is known."""
PARTITIONS_PER_REQUEST: Final = 500
SEEDS_PER_ROUND_MAX: Final = 1_000
AGES_MS: Final = tuple(minutes * 60_000 for minutes in (1, 10, 60, 360, 1440, 3 * 1440, 7 * 1440))
"""How long ago the records were written that are looked for by their timestamp."""
ASK_MS_MAX: Final = 10_000
ROUNDS_SHOWN: Final = 4
"""Rounds after which figures are too old to be shown, where no newer ones came."""
LATEST: Final = -1
OFFSET_COST: Final = 2  # of a slice
GROUP_COST: Final = 5

Found = dict[Place, int]


class Figures(NamedTuple):
    """The lags that one round has found, and when it did."""

    measured_ms: float
    lags: Sequence[GroupTopicLag] = ()
    omitted: int = 0


class GroupLag:
    """Measures lag every `interval_ms`, in a task of its own, from `start` to `stop`."""

    def __init__(
        self,
        node_id: int,
        groups: GroupCoordinator,
        replicas: ReplicaManager,
        metadata: Metadata,
        connections: Connections,
        clock: Clock,
        interval_ms: int,
    ) -> None:
        self._node_id = node_id
        self._groups = groups
        self._replicas = replicas
        self._metadata = metadata
        self._connections = connections
        self._clock = clock
        self._interval_ms = interval_ms
        self._slices = Slices()
        self._samples: dict[Place, EndSamples] = {}
        self._figures: Figures | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, crash: Callable[[BaseException], None]) -> None:
        task = asyncio.get_running_loop().create_task(self._repeat(), name="group lag")
        self._task = watch(task, crash)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._connections.close()

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
        places = await self._slices.whole(self._places())
        ends = await self._ends_of(places)
        began_ms = self._clock.monotonic_ms()
        await self._slices.whole(self._remember(places, ends))
        figures, old = await self._slices.whole(self._judge(ends))
        if old:
            await self._seed(old)
            figures, _ = await self._slices.whole(self._judge(ends))
        self._figures = figures._replace(measured_ms=began_ms)

    def _places(self) -> Work[set[Place]]:
        """The partitions of which groups have committed offsets."""
        places, cost = set[Place](), Cost()
        for shard in list(self._groups.shards()):
            for group_id in shard.image.groups_with_offsets():
                for topic, partitions in list(shard.image.offsets(group_id).items()):
                    places.update((topic, index) for index in partitions)
                    if cost.add(len(partitions)):
                        yield
                if len(places) > PARTITIONS_MAX:
                    return places
        return places

    def _remember(self, places: set[Place], ends: Mapping[Place, Ends]) -> Work[None]:
        """Keep when the ends were where, of the partitions that groups read."""
        cost, now_ms = Cost(), self._clock.now_ms()
        for place in list(self._samples):
            if place not in places:
                del self._samples[place]
            if cost.add(1):
                yield
        for place, both in ends.items():
            self._samples.setdefault(place, EndSamples()).add(now_ms, both.high_watermark)
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
                    lag, unknown = lag_of(name, committed, ends, self._samples, now_ms)
                    if lag.records[0] is not None:
                        shown.add(lag, has_members=has_members)
                    old.update(unknown[: SEEDS_PER_ROUND_MAX - len(old)])
                    if cost.add(GROUP_COST + OFFSET_COST * len(committed)):
                        yield
        return Figures(0, shown.lags, shown.omitted), old

    # --- what leaders tell --------------------------------------------------------------------------------------

    async def _ends_of(self, places: Iterable[Place]) -> dict[Place, Ends]:
        """The ends of the partitions whose leaders tell both; of those of an own one at the same moment."""
        by_leader = self._by_leader(places)
        found = self._own_ends(by_leader.pop(self._node_id, []))
        # The high watermark first: asked later, it could be behind records that the other answer has not counted.
        committed, stable = [await self._ask_all(by_leader, LATEST, level) for level in (0, 1)]
        for place, high_watermark in committed.items():
            if place in stable:
                found[place] = Ends(high_watermark, min(high_watermark, stable[place]))
        return found

    def _own_ends(self, places: Iterable[Place]) -> dict[Place, Ends]:
        found: dict[Place, Ends] = {}
        for place in places:
            partition = self._replicas.get(*place)
            if partition is not None and is_leading(partition):
                found[place] = Ends(partition.high_watermark, partition.last_stable_offset)
        return found

    async def _seed(self, places: Iterable[Place]) -> None:
        """Learn from the timestamps of records what the ends were before they were sampled."""
        by_leader, now_ms = self._by_leader(places), self._clock.now_ms()
        own = by_leader.pop(self._node_id, [])
        earlier: dict[Place, list[tuple[int, int]]] = {}
        for age_ms in AGES_MS:
            at_ms = now_ms - age_ms
            told = await self._ask_all(by_leader, at_ms, 0)
            told |= await self._slices.whole(self._own_by_time(own, at_ms))
            for place, offset in told.items():
                earlier.setdefault(place, []).append((at_ms, offset))
        for place, moments in earlier.items():
            if (samples := self._samples.get(place)) is not None and len(samples):
                newest = samples.end
                # No record is as new as that: the end was where it is.
                samples.seed([(at_ms, newest if offset < 0 else offset) for at_ms, offset in moments])

    def _own_by_time(self, places: Sequence[Place], at_ms: int) -> Work[Found]:
        found, cost = Found(), Cost()
        for place in places:
            partition = self._replicas.get(*place)
            if partition is not None and partition.is_leader:
                try:
                    hit = yield from find_by_timestamp(partition.log, at_ms, cost)
                except BrokerError as problem:
                    log.debug("lag.not_told", partition=str(partition), reason=str(problem))
                else:
                    found[place] = -1 if hit is None else hit[0]
            if cost.add(GROUP_COST):
                yield
        return found

    def _by_leader(self, places: Iterable[Place]) -> dict[int, list[Place]]:
        by_leader: dict[int, list[Place]] = {}
        for place in places:
            topic = self._metadata.topics.get(place[0])
            state = None if topic is None else topic.partitions.get(place[1])
            if state is not None and state.leader >= 0:
                by_leader.setdefault(state.leader, []).append(place)
        return by_leader

    async def _ask_all(self, by_leader: Mapping[int, Sequence[Place]], timestamp: int, level: int) -> Found:
        """The offsets that leaders tell; of a leader that cannot be reached, none."""
        answers = await asyncio.gather(
            *(self._ask(leader, places, timestamp, level) for leader, places in by_leader.items())
        )
        return {place: offset for answer in answers for place, offset in answer.items()}

    async def _ask(self, leader: int, places: Sequence[Place], timestamp: int, level: int) -> Found:
        found, peer = Found(), self._connections.to(leader)
        if peer is None:
            return found
        try:
            for start in range(0, len(places), PARTITIONS_PER_REQUEST):
                request = request_of(places[start : start + PARTITIONS_PER_REQUEST], timestamp, level)
                answer = await peer.ask(request, ListOffsetsResponse, timeout_ms=ASK_MS_MAX)
                for topic in answer.topics:
                    for told in topic.partitions:
                        if not told.error_code:
                            found[topic.name, told.partition_index] = told.offset
        except (Unreachable, BrokerError) as problem:
            log.debug("lag.not_told", broker=leader, reason=str(problem))
        return found


def request_of(places: Iterable[Place], timestamp: int, level: int) -> ListOffsetsRequest:
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in places:
        by_topic.setdefault(topic, []).append(ListOffsetsPartition(index, -1, timestamp))
    return ListOffsetsRequest(-1, level, [ListOffsetsTopic(name, asked) for name, asked in by_topic.items()])


def is_leading(partition: Partition) -> bool:
    """Whether the partition is led here, by a leader that knows what is committed."""
    leadership = partition.leadership
    return leadership is not None and leadership.start_offset <= partition.high_watermark


def is_with_members(shard: Shard, group_id: str) -> bool:
    group = shard.image.groups.get(group_id)
    return group is not None and bool(group.members)
