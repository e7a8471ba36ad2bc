"""Asks the leaders of partitions for offsets (ListOffsets): the broker's own replicas, and other brokers.

What no leader tells is left out of an answer.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kavka_broker.coordinator.broker_connections import Connections
from kavka_broker.core.group.lag import Ends, Place
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.loop.slices import Cost, Slices, Work
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.replica.hosting.hosted_partitions import HostedPartitions
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.time_search import find_by_timestamp

log = get("coordinator")

PARTITIONS_PER_REQUEST: Final = 500
ASK_MS_MAX: Final = 10_000
LATEST: Final = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NONE_SINCE: Final = -1
PLACE_COST: Final = 5  # of a slice

Offsets = dict[Place, int]


class LeaderOffsets:
    """Offsets of partitions, by their leaders."""

    def __init__(
        self,
        node_id: int,
        partitions: HostedPartitions,
        metadata: Metadata,
        connections: Connections,
        slices: Slices,
        per_request: int = PARTITIONS_PER_REQUEST,
    ) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._metadata = metadata
        self._connections = connections
        self.slices = slices
        self._per_request = per_request

    def close(self) -> None:
        self._connections.close()

    async def ends(self, places: Iterable[Place]) -> dict[Place, Ends]:
        """Return the ends of the partitions whose leaders tell both."""
        by_leader = await self.slices.whole(self._by_leader(places))
        found = await self.slices.whole(self._own_ends(by_leader.pop(self._node_id, [])))
        # The high watermark first: asked later, it could be behind records that the other answer has not counted.
        high_watermarks = await self._ask_all(by_leader, LATEST, READ_UNCOMMITTED)
        stable = await self._ask_all(by_leader, LATEST, READ_COMMITTED)
        for place, end in high_watermarks.items():
            if place in stable:
                found[place] = Ends(end, min(end, stable[place]))
        return found

    async def first_since(self, places: Iterable[Place], at_ms: int) -> Offsets:
        """Return the offset of the first record of that time or later; `NONE_SINCE` where there is none."""
        by_leader = await self.slices.whole(self._by_leader(places))
        own = by_leader.pop(self._node_id, [])
        found = await self._ask_all(by_leader, at_ms, READ_UNCOMMITTED)
        return found | await self.slices.whole(self._own_since(own, at_ms))

    def _by_leader(self, places: Iterable[Place]) -> Work[dict[int, list[Place]]]:
        by_leader, cost = dict[int, list[Place]](), Cost()
        for place in places:
            topic = self._metadata.topics.get(place[0])
            state = None if topic is None else topic.partitions.get(place[1])
            if state is not None and state.leader >= 0:
                by_leader.setdefault(state.leader, []).append(place)
            if cost.add(1):
                yield
        return by_leader

    def _own_ends(self, places: Iterable[Place]) -> Work[dict[Place, Ends]]:
        found, cost = dict[Place, Ends](), Cost()
        for place in places:
            partition = self._partitions.get(*place)
            if partition is not None and is_leading(partition):
                found[place] = Ends(partition.high_watermark, partition.last_stable_offset)
            if cost.add(PLACE_COST):
                yield
        return found

    def _own_since(self, places: Sequence[Place], at_ms: int) -> Work[Offsets]:
        found, cost = Offsets(), Cost()
        for place in places:
            partition = self._partitions.get(*place)
            if partition is not None and is_leading(partition):
                try:
                    hit = yield from find_by_timestamp(partition.log, at_ms, cost)
                except BrokerError as problem:
                    log.debug("offsets.not_told", partition=str(partition), reason=str(problem))
                else:
                    found[place] = NONE_SINCE if hit is None else hit[0]
            if cost.add(PLACE_COST):
                yield
        return found

    async def _ask_all(self, by_leader: Mapping[int, Sequence[Place]], timestamp: int, level: int) -> Offsets:
        """Ask all leaders at once."""
        answers = await asyncio.gather(
            *(self._ask(leader, places, timestamp, level) for leader, places in by_leader.items())
        )
        return {place: offset for answer in answers for place, offset in answer.items()}

    async def _ask(self, leader: int, places: Sequence[Place], timestamp: int, level: int) -> Offsets:
        found, peer = Offsets(), self._connections.to(leader)
        if peer is None:
            return found
        try:
            for start in range(0, len(places), self._per_request):
                request = request_of(places[start : start + self._per_request], timestamp, level)
                answer = await peer.ask(request, ListOffsetsResponse, timeout_ms=ASK_MS_MAX)
                for topic in answer.topics:
                    for told in topic.partitions:
                        if not told.error_code:
                            found[topic.name, told.partition_index] = told.offset
        except (Unreachable, BrokerError) as problem:
            log.debug("offsets.not_told", broker=leader, reason=str(problem))
        return found


def request_of(places: Iterable[Place], timestamp: int, level: int) -> ListOffsetsRequest:
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in places:
        by_topic.setdefault(topic, []).append(ListOffsetsPartition(index, -1, timestamp))
    return ListOffsetsRequest(-1, level, [ListOffsetsTopic(name, asked) for name, asked in by_topic.items()])


def is_leading(partition: Partition) -> bool:
    """Return whether the partition is led here, by a leader that knows what is committed."""
    leadership = partition.leadership
    return leadership is not None and leadership.start_offset <= partition.high_watermark
