"""The streams groups (KIP-1071) of one partition of `__consumer_offsets`.

Commands are decided (`core.streams_group`), written and answered as those of consumer groups are (`consumer_groups`).
The delay before a group's first target, the epoch of endpoints and a request to shut the application down are known
here alone: the next coordinator begins without them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from kavka_broker.coordinator.groups.classic_groups import SESSION_COST, ClassicGroups
from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.group_commands import Command, GroupCommands, Outcome, StreamsHeard, when_done
from kavka_broker.coordinator.groups.group_table import GroupTable
from kavka_broker.coordinator.groups.member_fencing import MemberFencing
from kavka_broker.coordinator.groups.member_timers import TimerKind
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.consumer_group.heartbeat import Surroundings
from kavka_broker.core.group.image import STREAMS, GroupImage
from kavka_broker.core.group.records import batch_of, group_tombstone
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.core.metadata.image.features import STREAMS_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.streams_group import heartbeat as rules
from kavka_broker.core.streams_group.checks import StreamsHeartbeat
from kavka_broker.core.streams_group.heartbeat import StreamsChange
from kavka_broker.core.streams_group.records import group_tombstones, replay
from kavka_broker.core.streams_group.settings import StreamsGroupSettings
from kavka_broker.core.streams_group.state import MemberState, StreamsGroup, StreamsMember
from kavka_broker.logs import get
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.tasks import watch
from kavka_broker.loop.timers import Timer
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

StreamsCommand = Command[StreamsGroup, StreamsChange]
StreamsOutcome = Outcome[StreamsGroup, StreamsChange]


class StreamsGroups(GroupTable[StreamsGroup]):
    """Serves the groups in `image.streams_groups`."""

    def __init__(
        self,
        image: GroupImage,
        topics: DeletedTopics,
        settings: GroupSettings,
        group_log: ShardLog,
        turns: ExclusiveTurns,
        classics: ClassicGroups,
        pacing: Pacing,
    ) -> None:
        super().__init__(STREAMS, image.streams_groups, image)
        self.on_rebalance: Callable[[], None] = lambda: None  # called when an epoch of a group begins
        self._topics = topics
        self._settings = settings
        self._log = group_log
        self._classics = classics
        self._clock = pacing.clock
        self._after = pacing.timers.after
        self._delays: dict[str, Timer] = {}  # of groups whose first target waits
        self._commands: GroupCommands[StreamsGroup, StreamsChange] = GroupCommands(
            self, replay, group_log, turns, pacing.threads
        )
        self._fencing: MemberFencing[StreamsGroup, StreamsChange] = MemberFencing(
            self._ending, self._commands, self._is_large, group_log, pacing
        )
        self._timers = self._fencing.timers

    def is_changing(self, group_id: str) -> bool:
        """Whether a command on the group is being worked out: a group that is not there yet may come of it."""
        return self._commands.is_at_work(group_id)

    def expect_members(self) -> Iterator[int]:
        """Start the members' sessions once the log has been read. A member a step; yields how much each counts."""
        for group in self.loaded():
            session_ms = self._settings.streams(group.group_id).session_timeout_ms
            for member in group.members.values():
                self._timers.start(group.group_id, TimerKind.SESSION, member.member_id, session_ms)
                if member.state is MemberState.UNREVOKED_TASKS:
                    self._expect_revocation(group.group_id, member)
                yield SESSION_COST
            yield 1

    def close(self) -> None:
        """Forget the groups: another broker serves them."""
        self._commands.close()
        self._timers.close()
        for delay in self._delays.values():
            delay.cancel()
        self._delays.clear()
        self.clear()

    # --- members ------------------------------------------------------------------------------------------------

    def heartbeat(
        self, beat: StreamsHeartbeat, settings: StreamsGroupSettings
    ) -> StreamsHeard | Awaitable[StreamsHeard]:
        """Hear a member: what it is to be told, and a future of the commit; both later where the group is large, or
        others wait for it. Raises BrokerError.
        """
        if beat.leaves:
            return self._leave(beat)
        group = self._groups.get(beat.group_id)
        is_steady = group is not None and rules.is_steady(group, beat, settings, self._topics.changes)
        is_large = not is_steady and rules.is_large(group or StreamsGroup(beat.group_id), self._topics.topics, beat)
        outcome = self._commands.do(beat.group_id, partial(self._hearing, beat, settings), is_large=is_large)
        return when_done(outcome, partial(self._heard, beat.group_id, settings))

    def _leave(self, beat: StreamsHeartbeat) -> StreamsHeard | Awaitable[StreamsHeard]:
        """End a member, even if nobody waits for its answer any more. Raises BrokerError."""

        def leaving() -> StreamsCommand:
            return Command(self.existing(beat.group_id), partial(rules.leave, beat=beat), self._around())

        return self._commands.do_regardless(beat.group_id, leaving, is_large=self._is_large(beat.group_id))

    def _heard(self, group_id: str, settings: StreamsGroupSettings, heard: StreamsHeard) -> StreamsHeard:
        self._timers.start(group_id, TimerKind.SESSION, heard[0].member_id, settings.session_timeout_ms)
        return heard

    def _hearing(self, beat: StreamsHeartbeat, settings: StreamsGroupSettings) -> StreamsCommand:
        """Raises BrokerError."""
        around, is_delayed = self._around(), beat.group_id in self._delays
        decide = partial(rules.heartbeat, beat=beat, settings=settings, around=around, is_delayed=is_delayed)
        if beat.group_id in self._groups or not beat.joins:
            return Command(self.existing(beat.group_id, "Streams group"), decide, around)
        classic = self._former(beat.group_id)
        before = [group_tombstone(beat.group_id)] if classic is not None and classic.generation else ()
        return Command(StreamsGroup(beat.group_id), decide, around, before)

    def _former(self, group_id: str) -> ClassicGroup | None:
        """The classic group without members whose place a streams group takes, if there is one. Raises BrokerError."""
        classic = self._image.groups.get(group_id)
        if classic is None and self._image.find(group_id) is None:
            self._image.check_room(group_id)
        elif classic is None or classic.state is not GroupState.EMPTY:
            self.existing(group_id)
        return classic

    def _around(self) -> Surroundings:
        now_ms = self._clock.now_ms()
        return Surroundings(self._topics.topics, self._topics.changes, now_ms, room_bytes=self.room_bytes)

    # --- groups -------------------------------------------------------------------------------------------------

    def end(self, group: StreamsGroup) -> None:
        """Forget a group whose tombstones are in the log."""
        self._timers.stop_all(group.group_id)
        self._stop_delay(group.group_id)
        self.remove(group.group_id)

    def make_classic(self, group_id: str) -> None:
        """Make room for a group of the classic protocol, of a streams group without members. Raises BrokerError: one
        with members stays what it is.
        """
        group = self._groups.get(group_id)
        if group is not None and group.members:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group is not None and self.is_changing(group_id):
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"group {group_id} is being changed")
        if group is not None:
            self._log.append(batch_of(group_tombstones(group), self._clock.now_ms()))
            self.end(group)

    # --- effects ------------------------------------------------------------------------------------------------

    def _is_large(self, group_id: str) -> bool:
        return rules.is_large(self._groups.get(group_id) or StreamsGroup(group_id), self._topics.topics)

    def check_current(self, outcome: StreamsOutcome) -> None:
        """Check again that there is room. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        self.check_room(outcome.change.growth_bytes)

    def replace(self, outcome: StreamsOutcome) -> None:
        """Put a group in the place of what it was, which may be a classic group without members."""
        classic = self._image.groups.get(outcome.group.group_id)
        self.put(outcome.group)
        if classic is not None:
            self._classics.bury(classic, ErrorCode.UNKNOWN_MEMBER_ID)

    def follow_up(self, outcome: StreamsOutcome) -> None:
        """Set the timers, and note what is known here alone."""
        group, change = outcome.group, outcome.change
        if change.has_moved:
            self.on_rebalance()
        if change.configured is not None:
            group.configured, group.topics_seen = change.configured, change.topics_seen
        group.endpoint_epoch = change.endpoint_epoch
        group.shutdown_by = change.shutdown_by if group.members else None
        change.group = group
        self._set_timers(group, change)

    def _set_timers(self, group: StreamsGroup, change: StreamsChange) -> None:
        for member_id in change.ended:
            self._timers.stop_member(group.group_id, member_id)
        if change.revokes_ms is None:
            self._timers.stop(group.group_id, TimerKind.REVOCATION, change.member_id)
        elif change.revokes_ms >= 0:
            self._expect_revocation(group.group_id, group.members[change.member_id])
        if change.delay_ms is not None and group.group_id not in self._delays:
            self._delays[group.group_id] = self._after(change.delay_ms, self._assign, group.group_id)

    def _expect_revocation(self, group_id: str, member: StreamsMember) -> None:
        delay_ms = member.rebalance_timeout_ms
        self._timers.start(group_id, TimerKind.REVOCATION, member.member_id, delay_ms, member.epoch)

    def _ending(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> StreamsCommand:
        """Raises BrokerError."""
        group = self.existing(group_id)
        member = group.members.get(member_id)
        is_revoking = member is not None and member.state is MemberState.UNREVOKED_TASKS and member.epoch == epoch
        if member is None or not (kind is TimerKind.SESSION or is_revoking):
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        return Command(group, partial(rules.fence, member=member), self._around())

    # --- the first target ---------------------------------------------------------------------------------------

    def _stop_delay(self, group_id: str) -> None:
        delay = self._delays.pop(group_id, None)
        if delay is not None:
            delay.cancel()

    def _assign(self, group_id: str) -> None:
        """Compute the target of a group whose delay has passed. Its members hear of it as they heartbeat."""
        self._delays.pop(group_id, None)
        work = self._assign_now(group_id)
        watch(asyncio.get_running_loop().create_task(work, name="assign tasks"))

    async def _assign_now(self, group_id: str) -> None:
        def assigning() -> StreamsCommand:
            around = self._around()
            settings = self._settings.streams(group_id)
            decide = partial(rules.assign_delayed, settings=settings, around=around)
            return Command(self.existing(group_id), decide, around)

        try:
            outcome = self._commands.do(group_id, assigning, is_large=self._is_large(group_id))
            if not isinstance(outcome, tuple):
                await outcome
        except BrokerError as error:
            # Otherwise the next heartbeat computes the target.
            if not self._log.is_closed and error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                log.warning("tasks.not_assigned", group=group_id, reason=str(error))


def is_served(config: BrokerConfig, metadata: Metadata) -> bool:
    """Whether streams groups may be made."""
    is_allowed = STREAMS in config["group.coordinator.rebalance.protocols"]
    return is_allowed and metadata.features.level(STREAMS_VERSION) >= 1
