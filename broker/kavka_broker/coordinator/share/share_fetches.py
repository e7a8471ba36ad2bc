"""The share partitions whose partitions this broker leads, and the sessions of the members that fetch from them.

A share partition is read when the first member fetches from it, and forgotten with its leadership, or when its group
has no session here any more: an administrator may then have moved it to another offset. A session ends by its last
request, or with its connection; what its member has acquired is available again then.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, NamedTuple, TypeVar

from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.share.share_counts import CountsByTopic
from kavka_broker.coordinator.share.share_leader import NOTHING, Fetched, InFlight, ShareLeader
from kavka_broker.coordinator.share.share_state_client import Place, ShareStateClient
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.share.sessions import FINAL_EPOCH, SessionKey, ShareSession, ShareSessions
from kavka_broker.core.share.share_partition import Acquisition
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.logs import get
from kavka_broker.loop.slices import Cost, Work, sliced
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.purgatory import FetchWaiter

log = get("coordinator")

SHARE_PARTITIONS_MAX: Final = 20_000
"""Share partitions that one broker serves."""
FETCH_COST: Final = 250
"""The cost of a share partition with records, of a slice."""
PLACE_COST: Final = 12
REFUSED_MAX: Final = 1_000
"""Partitions of one answer that have an error: a session may name very many that are not there. The others come first
next time.
"""
LOAD_AGAIN_MS: Final = 200
"""Between the first two attempts to read a share partition; the pause doubles up to one of the next."""
PASSING_AGAIN_MS: Final = 1_000
REFUSED_AGAIN_MS: Final = 10_000

K = TypeVar("K")
L = TypeVar("L")
Refuses = Callable[[str], ErrorCode | None]


class ShareFetch(NamedTuple):
    """The wish of a member: how much, for how long it waits, and what it may read."""

    session: ShareSession
    records_max: int
    is_strict: bool
    bytes_min: int
    bytes_max: int
    wait_ms: int
    refuses: Refuses | None = None


class Outcome:
    """The result of a pass over the partitions of a session, by partition."""

    __slots__ = ("fetched", "is_loading", "is_unfinished", "refused", "size_bytes")

    def __init__(self) -> None:
        self.fetched: dict[Place, tuple[str, Fetched]] = {}
        self.refused: dict[Place, BrokerError] = {}
        self.size_bytes = 0
        self.is_unfinished = False  # whether the next look may find something though nothing comes
        self.is_loading = False  # whether a share partition is being read

    @property
    def is_full_of_errors(self) -> bool:
        return len(self.refused) >= REFUSED_MAX

    @property
    def is_an_answer(self) -> bool:
        """Whether the member is to have this now. An error waits for share partitions that are being read: the member
        would ask again at once, and find them read no sooner.
        """
        return bool(self.fetched) or self.is_full_of_errors or (bool(self.refused) and not self.is_loading)

    @property
    def served(self) -> Iterable[Place]:
        """The partitions behind which the others come first next time."""
        return [*self.fetched, *self.refused] if self.is_full_of_errors else list(self.fetched)


class ShareFetches:
    """Serves share fetches and acknowledgements."""

    def __init__(
        self,
        metadata: Metadata,
        replicas: ReplicaManager,
        states: ShareStateClient,
        settings: Callable[[str], ShareGroupSettings],
        pacing: Pacing,
        sessions_max: int,
    ) -> None:
        self.sessions = ShareSessions(sessions_max)
        self.counts = CountsByTopic()
        self.in_flight = InFlight()
        self._metadata = metadata
        self._partitions = replicas.partitions
        self._states = states
        self._settings = settings
        self._pacing = pacing
        self._clock = pacing.clock
        self._timers = pacing.timers
        self._slices = pacing.slices
        self._left: deque[ShareSession] = deque()  # sessions that have ended, whose records are yet to be released
        self._leaders: dict[tuple[str, Place], ShareLeader] = {}
        self._of_place: dict[Place, dict[str, ShareLeader]] = {}
        self._of_group: dict[str, dict[Place, ShareLeader]] = {}
        self._loads: dict[ShareLeader, asyncio.Task[None]] = {}
        self._problems: dict[ShareLeader, BrokerError] = {}  # why they could not be read
        replicas.leadership_listeners.append(self.leadership)

    def close(self) -> None:
        """Stop, with this broker."""
        for leader in list(self._leaders.values()):
            self._forget(leader)

    def leadership(self, partition: Partition, is_leader: bool) -> None:
        """Forget the share partitions of a partition that this broker leads no longer."""
        if not is_leader:
            place = (bytes(partition.topic_id), partition.index)
            for leader in list(self._of_place.get(place, {}).values()):
                self._forget(leader)

    def settings(self, group_id: str) -> ShareGroupSettings:
        """Return the settings of a group."""
        return self._settings(group_id)

    @property
    def share_partitions(self) -> Iterable[ShareLeader]:
        """The share partitions that are served, in the order of their first fetches."""
        return self._leaders.values()

    # --- sessions -----------------------------------------------------------------------------------------------

    def open(self, key: SessionKey, places: Iterable[Place], on_lost: list[Callable[[], None]] | None) -> ShareSession:
        """Open the session of a share fetch, busy until that is answered. It ends with its connection, which calls
        `on_lost`. Raises BrokerError.
        """
        if (before := self.sessions.by_key.get(key)) is not None:
            self.leave(before)
        session = self.sessions.open(key, places)
        session.is_busy = True
        if on_lost is not None:
            end = partial(self.leave, session)
            on_lost.append(end)
            session.on_close = partial(_remove, on_lost, end)
        return session

    def resume(
        self, key: SessionKey, epoch: int, added: Collection[Place] = (), forgotten: Collection[Place] = ()
    ) -> Work[ShareSession]:
        """Go on with a session, busy until its request is answered. Raises BrokerError."""
        session = self.sessions.resume(key, epoch)
        if epoch == FINAL_EPOCH:
            return session
        session.is_busy = True
        try:
            yield from sliced(self.sessions.alter(session, added, forgotten), Cost())
        except BaseException:
            session.epoch, session.is_busy = epoch, False
            raise
        return session

    def leave(self, session: ShareSession) -> None:
        """End a session: its member's records are available again."""
        if self.sessions.by_key.get(session.key) is not session:
            return
        self.sessions.close(session)
        session.on_close()
        self._left.append(session)
        if len(self._left) == 1:  # otherwise the work for those before goes on with this one
            self._slices.run_aside(self._release_left())

    def _release_left(self) -> Work[None]:
        """Release what members held whose sessions have ended, a slice at a time: one connection may end very many."""
        cost = Cost()
        while self._left:
            session = self._left[0]
            group_id, member_id = session.key
            of_group = self._of_group.get(group_id, {})
            for place in list(session.acquired_from):
                if (leader := of_group.get(place)) is not None:
                    leader.release(member_id)
                if cost.add(FETCH_COST):
                    yield
            if not self.sessions.has(group_id):
                for leader in list(of_group.values()):
                    if not self.sessions.has(group_id):
                        self._retire(leader)
                    if cost.add(PLACE_COST):
                        yield
            self._left.popleft()
            if cost.add(1):
                yield

    def _retire(self, leader: ShareLeader) -> None:
        leader.is_retiring = True
        if leader.is_idle:
            self._forget(leader)

    def _forget(self, leader: ShareLeader) -> None:
        leader.close()
        if (task := self._loads.pop(leader, None)) is not None:
            task.cancel()
        self._problems.pop(leader, None)
        key = (leader.group_id, leader.place)
        if self._leaders.get(key) is leader:
            del self._leaders[key]
            _discard(self._of_group, leader.group_id, leader.place)
            if leader.group_id not in self._of_group:
                self.counts.forget(leader.group_id)
            _discard(self._of_place, leader.place, leader.group_id)

    # --- acknowledgements ---------------------------------------------------------------------------------------

    def acknowledged_at(self, key: SessionKey, place: Place, refuses: Refuses | None) -> ShareLeader:
        """Return the share partition that takes what a member says of its records. Raises BrokerError."""
        self._lead(place, refuses)
        leader = self._leaders.get((key.group_id, place))
        if leader is None or leader.window is None:
            # Another broker, or another run of this one, has given these records out: they are not acquired here.
            raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "The records are not acquired from this broker.")
        return leader

    # --- fetches ------------------------------------------------------------------------------------------------

    async def fetch(self, wanted: ShareFetch) -> Outcome:
        """Acquire records for a member, and wait for some where there are none."""
        deadline_ms = self._clock.monotonic_ms() + wanted.wait_ms
        while True:
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return await self._slices.whole(self._read(wanted, is_last=True))
            waiter = FetchWaiter([], max(1, wanted.bytes_min), left_ms, self._timers)
            try:
                # What comes from now on wakes the member, so nothing is missed between the look and the wait.
                await self._slices.whole(self._watch(wanted, waiter))
                outcome = await self._slices.whole(self._read(wanted, is_last=False))
                if outcome.is_an_answer or not self._is_open(wanted.session):
                    return outcome
                if outcome.is_unfinished:
                    await self._slices.turn()
                    continue
                await waiter.future
            finally:
                waiter.give_up()

    def _is_open(self, session: ShareSession) -> bool:
        return self.sessions.by_key.get(session.key) is session

    def _watch(self, wanted: ShareFetch, waiter: FetchWaiter) -> Work[None]:
        """Have the partitions wake the member; those that are new here are being read from now on."""
        cost = Cost()
        for place in list(wanted.session.places):
            if not self._is_open(wanted.session):
                return
            try:
                self._leader(wanted.session.key.group_id, place, wanted.refuses)
            except BrokerError:
                continue  # the look that follows tells the member
            leader = self._leaders[wanted.session.key.group_id, place]
            waiter.watch(leader.waiters)
            waiter.watch(leader.partition.watched(stable_only=leader.is_committed_only))
            if cost.add(PLACE_COST):
                yield

    def _read(self, wanted: ShareFetch, *, is_last: bool) -> Work[Outcome]:
        """Acquire records of the session's partitions, each of which may come first."""
        outcome, cost, session = Outcome(), Cost(), wanted.session
        if wanted.bytes_min > 1 and not is_last:
            readable_bytes = yield from self._readable_bytes(wanted, cost)
            if readable_bytes < wanted.bytes_min:
                return outcome
        room = wanted.records_max
        for place in list(session.places):
            if not self._is_open(session):
                return outcome  # the connection has ended: nothing is acquired for it any more
            try:
                topic, fetched = self._fetch(wanted, place, room, outcome)
                self._tell_problem(session, place, outcome, is_last=is_last)
            except BrokerError as error:
                outcome.refused[place] = error.as_value()
                topic, fetched = "", NOTHING
            outcome.is_unfinished |= fetched.is_unfinished
            if fetched.acquired:
                outcome.fetched[place] = topic, fetched
                outcome.size_bytes += fetched.size_bytes
                room -= sum(part.last_offset - part.first_offset + 1 for part in fetched.acquired)
            if cost.add(FETCH_COST if fetched.acquired or fetched.is_unfinished else PLACE_COST):
                yield
            if room <= 0 or outcome.size_bytes >= wanted.bytes_max or outcome.is_full_of_errors:
                break
        for place in outcome.served:
            session.served(place)
        return outcome

    def _readable_bytes(self, wanted: ShareFetch, cost: Cost) -> Work[int]:
        size_bytes = 0
        for place in list(wanted.session.places):
            if not self._is_open(wanted.session):
                break
            try:
                leader = self._leader(wanted.session.key.group_id, place, wanted.refuses)
                size_bytes += 0 if leader is None else leader.readable_bytes(wanted.bytes_max)
            except BrokerError:
                return wanted.bytes_min  # the member is to hear of it
            if cost.add(PLACE_COST):
                yield
            if size_bytes >= wanted.bytes_min:
                break
        return size_bytes

    def _fetch(self, wanted: ShareFetch, place: Place, room: int, outcome: Outcome) -> tuple[str, Fetched]:
        """Raises BrokerError."""
        key = wanted.session.key
        leader = self._leader(key.group_id, place, wanted.refuses)
        outcome.is_loading |= leader is None
        if leader is None or place not in wanted.session.places:  # another request may have taken it out meanwhile
            return "", NOTHING
        now_ms = self._clock.monotonic_ms()
        acquisition = Acquisition(key.member_id, room, leader.limits, now_ms, is_strict=wanted.is_strict)
        bytes_max = wanted.bytes_max - outcome.size_bytes
        fetched = leader.fetch(acquisition, bytes_max, at_least_one=not outcome.size_bytes)
        if fetched.acquired:  # at once: the session may end before the next slice, and releases them then
            wanted.session.acquires(place)
        return leader.partition.topic, fetched

    # --- share partitions ---------------------------------------------------------------------------------------

    def _lead(self, place: Place, refuses: Refuses | None) -> Partition:
        """Return the partition, led by this broker. Raises BrokerError."""
        topic = self._metadata.topics.by_id(place[0])
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        if refuses is not None and (code := refuses(topic.name)) is not None:
            raise BrokerError(code)
        return self._partitions.leader(topic.name, place[1])

    def _leader(self, group_id: str, place: Place, refuses: Refuses | None) -> ShareLeader | None:
        """Return the share partition; None while it is being read. Raises BrokerError."""
        if not self.sessions.has(group_id):  # a share partition goes with the last session: none would end this one
            raise BrokerError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        partition = self._lead(place, refuses)
        leader = self._leaders.get((group_id, place))
        if leader is not None and leader.partition is not partition:
            self._forget(leader)
            leader = None
        if leader is None:
            leader = self._begin(group_id, partition)
        leader.is_retiring = False
        if leader.window is not None:
            return leader
        if leader not in self._loads:
            self._load_soon(leader)
        return None

    def _tell_problem(self, session: ShareSession, place: Place, outcome: Outcome, *, is_last: bool) -> None:
        """Tell a member, once it has waited, why a share partition cannot be read."""
        leader = self._leaders.get((session.key.group_id, place))
        if is_last and leader is not None and leader in self._problems:
            outcome.refused[place] = self._problems[leader]

    def _begin(self, group_id: str, partition: Partition) -> ShareLeader:
        """Raises BrokerError."""
        if len(self._leaders) >= SHARE_PARTITIONS_MAX:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{SHARE_PARTITIONS_MAX} share partitions are served")
        if (others := self._of_group.get(group_id)) is not None:
            group_id = next(iter(others.values())).group_id  # one copy of a long name is enough
        leader = ShareLeader(
            group_id,
            partition,
            self._states,
            partial(self._settings, group_id),
            self._pacing,
            self._forget,
        )
        leader.counts, leader.in_flight = self.counts.of(group_id, partition.topic), self.in_flight
        self._leaders[group_id, leader.place] = leader
        self._of_group.setdefault(group_id, {})[leader.place] = leader
        self._of_place.setdefault(leader.place, {})[group_id] = leader
        return leader

    def _load_soon(self, leader: ShareLeader) -> None:
        task = asyncio.get_running_loop().create_task(self._load(leader), name=f"load share partition {leader}")
        self._loads[leader] = watch(task)

    async def _load(self, leader: ShareLeader) -> None:
        """Read a share partition, again and again until it is read or given up."""
        pause_ms = LOAD_AGAIN_MS
        while not leader.is_closed:
            try:
                await leader.load()
            except BrokerError as error:
                tell = log.info if pause_ms == LOAD_AGAIN_MS else log.debug
                tell("share_partition.not_loaded", partition=str(leader), reason=str(error))
                if error.code not in PASSING:
                    self._problems[leader] = BrokerError(UNREAD.get(error.code, error.code), error.message)
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = pause_after(pause_ms, error.code)
            else:
                break
        if not leader.is_closed:
            del self._loads[leader]
            self._problems.pop(leader, None)
            for waiter in list(leader.waiters):
                waiter.interrupt()


PASSING: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
"""Errors of a load that members are not told of: they wait for records."""
UNREAD: Final = {
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.INVALID_REQUEST: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error of a load as a member is told of it, as by Apache Kafka: its client knows few of them."""


def pause_after(pause_ms: int, code: ErrorCode) -> int:
    """Return the pause before the next attempt to read a share partition, after one that failed with this code."""
    return min(2 * pause_ms, PASSING_AGAIN_MS if code in PASSING else REFUSED_AGAIN_MS)


def _discard(index: dict[K, dict[L, ShareLeader]], key: K, inner: L) -> None:
    """Take a share partition out of an index."""
    found = index[key]
    del found[inner]
    if not found:
        del index[key]


def _remove(listeners: list[Callable[[], None]], listener: Callable[[], None]) -> None:
    if listener in listeners:
        listeners.remove(listener)
