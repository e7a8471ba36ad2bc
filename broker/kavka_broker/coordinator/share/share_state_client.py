"""Asks the share coordinators of share partitions, on this broker or on others.

Many share partitions of a group go in one request to each broker. What a coordinator cannot answer now, since it loads
its log or has lost it, is asked again for a while; a write that was served twice is as one that was served once.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kavka_broker.coordinator.broker_connections import Connections
from kavka_broker.coordinator.internal_topic import InternalTopic
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.partitioning import partition_of
from kavka_broker.coordinator.share.share_coordinator import ShareCoordinator, coordinator_key
from kavka_broker.coordinator.share.share_state_requests import ANSWERS, serve
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC
from kavka_broker.core.share.share_states import SharePartitionKey, WrittenState
from kavka_broker.core.share.state_batches import StateBatch
from kavka_broker.logs import get
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import delete_share_group_state_request as deletions
from kavka_broker.protocol.messages import initialize_share_group_state_request as beginnings
from kavka_broker.protocol.messages import read_share_group_state_request as reads
from kavka_broker.protocol.messages import read_share_group_state_summary_request as summaries
from kavka_broker.protocol.messages import write_share_group_state_request as writes

log = get("coordinator")

AGAIN_MS: Final = 100
GIVE_UP_MS: Final = 5_000
PER_REQUEST_MAX: Final = 500
RESULTS_PER_TURN_MAX: Final = 500
PER_TURN_MAX: Final = 50
"""Share partitions that are asked about in one turn of the loop, where this broker coordinates them itself."""

Place = tuple[bytes, int]
"""A topic id and the index of a partition."""

RETRIED: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class InitialState(NamedTuple):
    """The beginning of a state; the start offset is -1 where the partition's leader is to choose it."""

    state_epoch: int
    start_offset: int


class Summary(NamedTuple):
    """The progress of a share partition. One without a state has epoch 0, start offset -1 and count -1."""

    error: ErrorCode
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


class ReadState(NamedTuple):
    """The state as a new leader of the partition takes it over."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch]


class Kind(NamedTuple):
    """A kind of request, and the class of what it says of a topic."""

    request: Any
    topic: Any


INITIALIZE: Final = Kind(beginnings.InitializeShareGroupStateRequest, beginnings.InitializeStateData)
READ: Final = Kind(reads.ReadShareGroupStateRequest, reads.ReadStateData)
WRITE: Final = Kind(writes.WriteShareGroupStateRequest, writes.WriteStateData)
DELETE: Final = Kind(deletions.DeleteShareGroupStateRequest, deletions.DeleteStateData)
SUMMARIZE: Final = Kind(summaries.ReadShareGroupStateSummaryRequest, summaries.ReadStateSummaryData)


class ShareStateClient:
    """Asks the share coordinators; `here` is that of this broker."""

    def __init__(
        self,
        node_id: int,
        metadata: Metadata,
        here: ShareCoordinator,
        connections: Connections,
        topic: InternalTopic,
        pacing: Pacing,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._here = here
        self._connections = connections
        self._topic = topic
        self._clock, self._slices = pacing.clock, pacing.slices

    def close(self) -> None:
        """Close all connections to coordinators."""
        self._connections.close()

    async def initialize(self, group_id: str, places: Mapping[Place, InitialState]) -> dict[Place, ErrorCode]:
        """Begin states, again where there are some. Returns what became of each."""
        asked = {
            place: beginnings.PartitionData(place[1], state.state_epoch, state.start_offset)
            async for some in self._slices.in_turns(places.items(), RESULTS_PER_TURN_MAX)
            for place, state in some
        }
        return await self._errors(await self._ask(INITIALIZE, group_id, asked))

    async def delete(self, group_id: str, places: Collection[Place]) -> dict[Place, ErrorCode]:
        """Forget states. Returns what became of each."""
        in_turns = self._slices.in_turns(places, RESULTS_PER_TURN_MAX)
        asked = {place: deletions.PartitionData(place[1]) async for some in in_turns for place in some}
        return await self._errors(await self._ask(DELETE, group_id, asked))

    async def read_summary(self, group_id: str, places: Collection[Place]) -> dict[Place, Summary]:
        """Return how far share partitions are."""
        in_turns = self._slices.in_turns(places, RESULTS_PER_TURN_MAX)
        asked = {place: summaries.PartitionData(place[1], -1) async for some in in_turns for place in some}
        results = await self._ask(SUMMARIZE, group_id, asked)
        return {
            place: Summary(
                ErrorCode(result.error_code),
                result.state_epoch,
                result.leader_epoch,
                result.start_offset,
                result.delivery_complete_count,
            )
            if not isinstance(result, ErrorCode)
            else Summary(result, 0, 0, -1, -1)
            async for some in self._slices.in_turns(results.items(), RESULTS_PER_TURN_MAX)
            for place, result in some
        }

    async def read(self, group_id: str, place: Place, leader_epoch: int) -> ReadState:
        """Return a state for the leader of this epoch; leaders before it write no more. Raises BrokerError."""
        result = await self._ask_one(READ, group_id, place, reads.PartitionData(place[1], leader_epoch))
        batches = [
            StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
            async for some in self._slices.in_turns(result.state_batches, RESULTS_PER_TURN_MAX)
            for b in some
        ]
        return ReadState(result.state_epoch, result.start_offset, batches)

    async def write(self, group_id: str, place: Place, state: WrittenState) -> None:
        """Write down what the partition's leader has decided. Raises BrokerError."""
        batches = [writes.StateBatch(*batch) for batch in state.batches]
        asked = writes.PartitionData(place[1], *state[:4], batches)
        await self._ask_one(WRITE, group_id, place, asked)

    async def _errors(self, results: Mapping[Place, Any]) -> dict[Place, ErrorCode]:
        return {
            place: result if isinstance(result, ErrorCode) else ErrorCode(result.error_code)
            async for some in self._slices.in_turns(results.items(), RESULTS_PER_TURN_MAX)
            for place, result in some
        }

    async def _ask_one(self, kind: Kind, group_id: str, place: Place, asked: Any) -> Any:
        """Raises BrokerError."""
        result = (await self._ask(kind, group_id, {place: asked}))[place]
        if isinstance(result, ErrorCode):
            raise BrokerError(result)
        if result.error_code:
            raise BrokerError(ErrorCode(result.error_code), result.error_message or "")
        return result

    async def _ask(self, kind: Kind, group_id: str, asked: Mapping[Place, Any]) -> dict[Place, Any]:
        """Return the result for each place; an ErrorCode where no coordinator has given one in time."""
        deadline_ms = self._clock.monotonic_ms() + GIVE_UP_MS
        results: dict[Place, Any] = {}
        left = dict(asked)
        if self._metadata.topics.get(SHARE_STATE_TOPIC) is None:
            try:
                await self._topic.create()
            except BrokerError:  # the topic says why in the log, and the next question tries again
                return dict.fromkeys(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        while True:
            told = await self._ask_once(kind, group_id, left)
            async for some in self._slices.in_turns(told.items(), RESULTS_PER_TURN_MAX):
                for place, result in some:
                    results[place] = result
                    code = result if isinstance(result, ErrorCode) else result.error_code
                    if code not in RETRIED:
                        del left[place]
            if not left or self._clock.monotonic_ms() >= deadline_ms:
                return results
            await asyncio.sleep(AGAIN_MS / 1000)

    async def _ask_once(self, kind: Kind, group_id: str, asked: Mapping[Place, Any]) -> dict[Place, Any]:
        by_leader: dict[int, list[Place]] = {}
        async for some in self._slices.in_turns(asked, PER_TURN_MAX):
            for place in some:
                by_leader.setdefault(self._leader_of(group_id, place), []).append(place)
        results: dict[Place, Any] = dict.fromkeys(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        # At the same time: a broker that does not answer holds up its own share partitions alone.
        asking = (self._ask_broker(kind, group_id, leader, places, asked) for leader, places in by_leader.items())
        for told in await asyncio.gather(*asking):
            results |= told
        return results

    async def _ask_broker(
        self, kind: Kind, group_id: str, broker: int, places: Sequence[Place], asked: Mapping[Place, Any]
    ) -> dict[Place, Any]:
        """Return what a broker answers to requests for these places, until it does not answer one."""
        results: dict[Place, Any] = {}
        size = PER_TURN_MAX if broker == self._node_id else PER_REQUEST_MAX
        for start in range(0, len(places), size):
            told = await self._ask_leader(broker, _request(kind, group_id, places[start : start + size], asked))
            if not told:
                break
            results |= told
            await self._slices.turn()
        return results

    def _leader_of(self, group_id: str, place: Place) -> int:
        """Return the broker of the share partition's coordinator; -1 where there is none."""
        topic = self._metadata.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            return -1
        index = partition_of(coordinator_key(SharePartitionKey(group_id, *place)), len(topic.partitions))
        return topic.partitions[index].leader

    async def _ask_leader(self, leader: int, request: Message) -> dict[Place, Any]:
        if leader == self._node_id:
            answer = await serve(request, self._here, self._slices)
        else:
            peer = self._connections.to(leader)
            if peer is None:
                return {}
            try:
                answer = await peer.ask(request, ANSWERS[type(request)].whole, timeout_ms=GIVE_UP_MS)
            except Unreachable as problem:
                log.info("share_coordinator.not_reached", broker=leader, reason=str(problem))
                return {}
        whole: Any = answer
        return {
            (bytes(topic.topic_id), result.partition): result for topic in whole.results for result in topic.partitions
        }


def _request(kind: Kind, group_id: str, places: Sequence[Place], asked: Mapping[Place, Any]) -> Message:
    topics: dict[bytes, list[Any]] = {}
    for place in places:
        topics.setdefault(place[0], []).append(asked[place])
    request: Message = kind.request(group_id, [kind.topic(topic_id, some) for topic_id, some in topics.items()])
    return request
