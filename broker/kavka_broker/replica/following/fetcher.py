"""Keeps the replicas of this broker up with one leader: one task, one connection, one fetch for all its partitions.

    fetch ──> the leader waits until it has something ──> append, cut, move watermarks ──> fetch

A fetch says where each log ends, so it is the acknowledgement of the one before. While nothing happens it waits at the
leader. A partition that joins meanwhile (its leadership has just moved there) must not wait with it: a second fetch,
which names the newcomer, is sent behind the first, and a leader that sees it answers the first at once.

What goes wrong is retried after a pause that doubles from a few milliseconds up to `replica.fetch.backoff.ms`: right
after an election one of the two brokers often has not heard of it yet, and the next try tens of milliseconds later
succeeds.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kavka_broker.core.partition.follower import Resume
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.loop.timers import Timers
from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse, PartitionData
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.replica.following.fetched_batches import Next, begin, resume_between, take, take_overtaken
from kavka_broker.replica.following.session import NEVER_SENT, Followed, FollowerSession, Key, fetch_request
from kavka_broker.replica.following.truncation import go_on
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.log import Log

log = get("replica")

BACKOFF_MS: Final = 20.0
IN_FLIGHT_MAX: Final = 2
THROTTLE_PAUSE_MS: Final = 500.0
#: Partitions of an answer that are taken in one turn of the loop.
TAKEN_PER_TURN_MAX: Final = 64
EARLIEST: Final = -2
LATEST: Final = -1


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Kafka's `replica.fetch.*`, and the follower that asks."""

    node_id: int
    broker_epoch: Callable[[], int]
    wait_ms_max: int = 500
    bytes_min: int = 1
    bytes_max: int = 10_485_760
    partition_bytes_max: int = 1_048_576
    backoff_ms_max: int = 1_000
    timeout_ms: int = 30_000
    throttle_pause_ms: float = THROTTLE_PAUSE_MS
    # Takes a throttled partition and the bytes fetched of it; returns whether to pause, as the rate is exceeded.
    took: Callable[[Partition, int], bool] = lambda partition, size_bytes: False
    # Whether the partition is throttled, and the rate still exceeded.
    held_back: Callable[[Partition], bool] = lambda partition: False
    # The sync to wait for before the first records of a new log; None where there is nothing to wait for.
    when_secured: Callable[[Log], "asyncio.Future[None] | None"] = lambda log: None


class Asked(NamedTuple):
    """A fetch on its way."""

    answer: "asyncio.Future[FetchResponse]"
    is_incremental: bool
    number: int


Parts = Iterator[tuple[Followed, PartitionData]]  # of an answer


class Fetcher:
    """Fetches all partitions that follow one leader at one address."""

    def __init__(
        self,
        leader_id: int,
        peer: Peer,
        settings: FetchSettings,
        clock: Clock,
        timers: Timers,
        crash: Callable[[BaseException], None],
    ) -> None:
        self.leader_id = leader_id
        self._peer = peer
        self._settings = settings
        self._clock = clock
        self._timers = timers
        self._crash = crash
        self._session = FollowerSession(settings.partition_bytes_max)
        self._followed: dict[Key, Followed] = {}
        self._awake: dict[Key, Followed] = {}  # the followed partitions that are fetched now
        self._changed: dict[Key, Followed] = {}  # the partitions to be named in the next fetch
        self._given_up: dict[Key, Followed] = {}  # partitions that the leader may forget
        self._looking_up: dict[Key, Followed] = {}
        self._asked: deque[Asked] = deque()
        self._untaken: Parts | None = None  # partitions of the answer that did not fit into its turn
        self._failures = 0
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._followed)

    def __iter__(self) -> Iterator[Partition]:
        return (followed.partition for followed in self._followed.values())

    # --- partitions come and go ---------------------------------------------------------------------------------

    def add(self, partition: Partition) -> None:
        """Follow `partition` from now on, at its present leader epoch."""
        followed = Followed(partition)
        self._followed[followed.key] = followed
        self._begin(followed)
        if self._task is None:
            task = asyncio.get_running_loop().create_task(self._run(), name=f"fetcher {self.leader_id}")
            self._task = watch(task, self._crash)

    def _begin(self, followed: Followed) -> None:
        if self._followed.get(followed.key) is not followed:
            return
        try:
            begin(followed.partition)
        except BrokerError as error:
            log.error("partition.not_followed", partition=str(followed.partition), reason=str(error))
            # A full disk may have room later.
            self._timers.after(self._pause_ms(followed.failures), self._begin, followed)
            followed.failures += 1
        else:
            self._wake_up(followed)

    def renew(self, partition: Partition) -> None:
        """Take over another leader epoch of the same leader."""
        self.remove(partition)
        self.add(partition)

    def remove(self, partition: Partition) -> None:
        followed = self._followed.pop((partition.topic_id, partition.index), None)
        if followed is not None:
            self._looking_up.pop(followed.key, None)
            self._put_to_sleep(followed)

    async def stop(self) -> None:
        task, self._task = self._task, None
        for known in (self._followed, self._awake, self._changed, self._looking_up):
            known.clear()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._peer.close()

    def _wake_up(self, followed: Followed) -> None:
        try:
            go_on(followed.partition)
        except BrokerError as error:
            self._not_taken(followed, error)
            return
        log = followed.partition.log
        synced = followed.partition.when_synced(log.log_end_offset - 1) or self._settings.when_secured(log)
        if synced is not None:  # the next fetch says where the log ends, or brings the first records of a new log
            followed.is_asleep = True
            synced.add_done_callback(lambda _: self._synced(followed, synced))
            return
        followed.is_asleep = False
        followed.sent_offset = NEVER_SENT
        self._given_up.pop(followed.key, None)
        self._awake[followed.key] = self._changed[followed.key] = followed
        self._poke()

    def _synced(self, followed: Followed, synced: "asyncio.Future[None]") -> None:
        if not synced.cancelled():
            synced.exception()  # an append from its time as leader failed: the waiting clients get that error
        if followed.is_asleep and self._followed.get(followed.key) is followed:
            self._wake_up(followed)

    def _put_to_sleep(self, followed: Followed) -> None:
        followed.is_asleep = True
        self._changed.pop(followed.key, None)
        if self._awake.pop(followed.key, None) is not None:
            self._given_up[followed.key] = followed

    def _poke(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # --- the loop -----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                if self._untaken is not None:
                    await self._take_rest(self._untaken)
                self._ask()
                if self._asked and self._asked[0].answer.done():
                    await self._take_answer(self._asked.popleft())
                    continue
                self._wake = asyncio.get_running_loop().create_future()
                await self._wake
        finally:
            for asked in self._asked:
                asked.answer.cancel()

    def _came(self, answer: "asyncio.Future[FetchResponse]") -> None:
        """Take an answer in the turn in which it came, and ask again: a producer waits for that; the task would have
        its turn later. A long or failed answer is left to the task.
        """
        is_idle = self._wake is not None and not self._wake.done()
        if not is_idle or not self._asked or self._asked[0].answer is not answer or not is_good(answer):
            self._poke()
            return
        asked, response = self._asked.popleft(), answer.result()
        self._session.answered(response, was_incremental=asked.is_incremental)
        parts = self._parts(asked, response)
        try:
            if self._take_some(parts) and not self._looking_up:
                self._ask()
                if self._asked and self._asked[0].answer.done():
                    self._poke()  # a later answer came first, and nothing else would look at it
                return
        except Exception as error:  # noqa: BLE001 - as where the task fails
            self._crash(error)
        self._untaken = parts
        self._poke()

    def _ask(self) -> None:
        """Send the next fetch, if there is something to fetch and nothing forbids it."""
        if not self._awake or (self._asked and not self._may_hurry()):
            return
        settings, session = self._settings, self._session
        request = fetch_request(
            settings.node_id,
            settings.broker_epoch(),
            wait_ms=settings.wait_ms_max,
            bytes_min=settings.bytes_min,
            bytes_max=settings.bytes_max,
        )
        is_incremental = session.is_incremental
        session.fill(request, self._awake.values(), self._changed.values(), self._given_up.values())
        self._changed.clear()
        self._given_up.clear()
        answer = self._send(request)
        self._asked.append(Asked(answer, is_incremental, session.fetches))
        answer.add_done_callback(self._came)

    def _may_hurry(self) -> bool:
        """Whether a second fetch may follow the fetch that waits at the leader: only to name new partitions."""
        return (
            len(self._asked) < IN_FLIGHT_MAX
            and self._session.is_incremental
            and self._asked[0].is_incremental
            and any(followed.sent_offset == NEVER_SENT for followed in self._changed.values())
        )

    def _send(self, request: FetchRequest) -> "asyncio.Future[FetchResponse]":
        timeout_ms = self._settings.timeout_ms
        return asyncio.ensure_future(self._peer.ask(request, FetchResponse, timeout_ms=timeout_ms))

    async def _take_answer(self, asked: Asked) -> None:
        try:
            response = asked.answer.result()
        except Unreachable as problem:
            await self._unreachable(problem)
            return
        if not self._session.answered(response, was_incremental=asked.is_incremental):
            log.info("fetch_session.ended", leader=self.leader_id, error=ErrorCode(response.error_code).name)
            await self._pause()
            return
        await self._take_rest(self._parts(asked, response))

    def _parts(self, asked: Asked, response: FetchResponse) -> Parts:
        for topic in response.responses:
            for data in topic.partitions:
                # Partitions are looked up each time: the followed ones may change while others have their turn.
                followed = self._followed.get((topic.topic_id, data.partition_index))
                # A later fetch may have asked for the new partition already, at another epoch or offset.
                if followed is not None and asked.number >= followed.sent_in:
                    yield followed, data

    def _take_some(self, parts: Parts) -> bool:
        """Take as many partitions as fit into a turn; returns whether that was all."""
        self._failures = taken = 0
        for followed, data in parts:
            taken += self._take_and_count(followed, data)
            if taken >= TAKEN_PER_TURN_MAX:
                return False
        return True

    async def _take_rest(self, parts: Parts) -> None:
        self._untaken = None
        is_all = self._take_some(parts)
        while not is_all:
            await asyncio.sleep(0)
            is_all = self._take_some(parts)
        if self._looking_up:
            await self._look_up()

    async def _unreachable(self, problem: Unreachable) -> None:
        self._session.lost()
        if self._failures:
            log.debug("leader.not_reached", leader=self.leader_id, reason=str(problem), partitions=len(self))
        else:
            log.warning("leader.not_reached", leader=self.leader_id, reason=str(problem), partitions=len(self))
        await self._pause()

    async def _pause(self) -> None:
        """Forget every request under way, and fetch again after a pause."""
        for asked in self._asked:
            asked.answer.cancel()
        self._asked.clear()
        await asyncio.sleep(self._pause_ms(self._failures) / 1000)
        self._failures += 1

    def _pause_ms(self, failures: int) -> float:
        return min(BACKOFF_MS * 2.0 ** min(failures, 10), self._settings.backoff_ms_max)

    # --- one partition ------------------------------------------------------------------------------------------

    def _take_and_count(self, followed: Followed, data: PartitionData) -> int:
        """Take a partition's data; returns its share of a turn of the loop. A cut writes files: a whole turn."""
        if followed.is_overtaken:
            take_overtaken(followed.partition, data)
            return 1
        log, cut_before = followed.partition.log, followed.partition.log.truncations
        self._take(followed, data, self._clock.now_ms())
        return 1 if log.truncations == cut_before else TAKEN_PER_TURN_MAX

    def _take(self, followed: Followed, data: PartitionData, now_ms: int) -> None:
        partition = followed.partition
        if not followed.is_current or followed.is_asleep or followed.sent_offset != partition.log.log_end_offset:
            return  # an answer to a fetch from before a change: the right position is asked for again
        before = (partition.log.log_end_offset, partition.log.log_start_offset)
        match take(partition, data, now_ms):
            case Next.FETCH:
                followed.failures = 0
                has_diverged = data.diverging_epoch.end_offset >= 0
                if has_diverged or before != (partition.log.log_end_offset, partition.log.log_start_offset):
                    self._changed[followed.key] = followed
                if partition.log.durability.awaits_sync:
                    self._put_to_sleep(followed)
                    self._wake_up(followed)
                if data.records and self._settings.took(partition, len(data.records)):
                    self._hold_back()
            case Next.LOOK_UP:
                self._looking_up[followed.key] = followed
            case Next.LATER:
                self._sleep(followed)
            case Next.NEVER:
                self._put_to_sleep(followed)

    def _sleep(self, followed: Followed) -> None:
        self._sleep_for(followed, self._pause_ms(followed.failures))
        followed.failures += 1

    def _sleep_for(self, followed: Followed, pause_ms: float) -> None:
        self._put_to_sleep(followed)
        self._timers.after(pause_ms, self._resume, followed)

    def _hold_back(self) -> None:
        """Pause all throttled replicas: the rate is exceeded."""
        for followed in list(self._awake.values()):
            if self._settings.held_back(followed.partition):
                self._sleep_for(followed, self._settings.throttle_pause_ms)

    def _resume(self, followed: Followed) -> None:
        if self._followed.get(followed.key) is not followed:
            return
        if self._settings.held_back(followed.partition):
            self._timers.after(self._settings.throttle_pause_ms, self._resume, followed)
        else:
            self._wake_up(followed)

    # --- out of range -------------------------------------------------------------------------------------------

    async def _look_up(self) -> None:
        """Ask the leader where the logs that are out of range begin and end."""
        lost, self._looking_up = self._looking_up, {}
        try:
            starts = await self._offsets(lost, EARLIEST)
            ends = await self._offsets(lost, LATEST)
        except Unreachable as problem:
            await self._unreachable(problem)
            self._looking_up.update(
                (key, lagging) for key, lagging in lost.items() if self._followed.get(key) is lagging
            )
            return
        for key, followed in lost.items():
            await asyncio.sleep(0)  # emptying a log takes a whole turn
            place = (followed.partition.topic, key[1])
            if self._followed.get(key) is not followed or not followed.is_current:
                continue
            if place in starts and place in ends:
                await self._resume_between(followed, starts[place], ends[place])
            else:
                self._sleep(followed)

    async def _resume_between(self, followed: Followed, leader_start: int, leader_end: int) -> None:
        try:
            how = resume_between(followed.partition, leader_start, leader_end)
            if how is Resume.GO_ON:
                for _ in followed.partition.log.reader.doubt_epochs():
                    await asyncio.sleep(0)
        except BrokerError as error:
            self._not_taken(followed, error)
            return
        if self._followed.get(followed.key) is not followed:
            return
        if how is Resume.GO_ON:
            self._sleep(followed)  # back off, otherwise two brokers that disagree would retry in a tight loop
        else:
            self._put_to_sleep(followed)
            self._wake_up(followed)

    def _not_taken(self, followed: Followed, error: BrokerError) -> None:
        log.error("fetch.not_taken", partition=str(followed.partition), reason=str(error))
        if self._followed.get(followed.key) is followed:
            self._sleep(followed)

    async def _offsets(self, lost: dict[Key, Followed], timestamp: int) -> dict[tuple[str, int], int]:
        request = ListOffsetsRequest(
            self._settings.node_id,
            topics=[
                ListOffsetsTopic(
                    lagging.partition.topic, [ListOffsetsPartition(key[1], lagging.leader_epoch, timestamp)]
                )
                for key, lagging in lost.items()
            ],
        )
        answer = await self._peer.ask(request, ListOffsetsResponse, timeout_ms=self._settings.timeout_ms)
        return {
            (topic.name, found.partition_index): found.offset
            for topic in answer.topics
            for found in topic.partitions
            if found.error_code == ErrorCode.NONE
        }


def is_good(answer: "asyncio.Future[FetchResponse]") -> bool:
    """Whether the answer carries partitions instead of an error."""
    return not answer.cancelled() and answer.exception() is None and answer.result().error_code == ErrorCode.NONE
