"""The share groups (KIP-932) of one partition of `__consumer_offsets`.

Commands are decided (`core.share_group`), written and answered as those of consumer groups are (`consumer_groups`).
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial

from kavka_broker.coordinator.groups.classic_groups import SESSION_COST
from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.group_commands import Command, GroupCommands, Outcome, ShareHeard, when_done
from kavka_broker.coordinator.groups.group_table import GroupTable
from kavka_broker.coordinator.groups.member_fencing import MemberFencing
from kavka_broker.coordinator.groups.member_timers import TimerKind
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.core.consumer_group.heartbeat import Surroundings
from kavka_broker.core.consumer_group.subscribed_topics import Topics
from kavka_broker.core.group.image import SHARE, GroupImage
from kavka_broker.core.group.records import batch_of
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.metadata.image.features import SHARE_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.share_group import administration
from kavka_broker.core.share_group import heartbeat as rules
from kavka_broker.core.share_group.checks import ShareHeartbeat
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.share_group.records import group_tombstones, replay
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.share_group.state import ShareGroup
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.protocol.errors import BrokerError, ErrorCode

Decide = Callable[[ShareGroup], ShareChange]
ShareCommand = Command[ShareGroup, ShareChange]
ShareOutcome = Outcome[ShareGroup, ShareChange]


class ShareGroups(GroupTable[ShareGroup]):
    """Serves the groups in `image.share_groups`. `initialize` is called with the partitions that a member waits for."""

    def __init__(
        self,
        image: GroupImage,
        topics: DeletedTopics,
        settings: GroupSettings,
        group_log: ShardLog,
        turns: ExclusiveTurns,
        pacing: Pacing,
    ) -> None:
        super().__init__(SHARE, image.share_groups, image)
        self.initialize: Callable[[str, ShareChange], None] = lambda _, __: None
        self._topics = topics
        self._settings = settings
        self._log = group_log
        self._clock = pacing.clock
        self._commands: GroupCommands[ShareGroup, ShareChange] = GroupCommands(
            self, replay, group_log, turns, pacing.threads
        )
        self._timers = MemberFencing(self._ending, self._commands, self._is_large, group_log, pacing).timers

    @property
    def topics(self) -> Topics:
        return self._topics.topics

    def refuse(self, group_id: str) -> None:
        """Raises GROUP_ID_NOT_FOUND where the group is a share group, for what only consumer groups do."""
        if group_id in self._groups:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def expect_members(self) -> Iterator[int]:
        """Start the members' sessions once the log has been read. A member a step; yields how much each counts.

        What the former coordinator was initializing may still be on its way: it is asked for again after a while.
        """
        for group in self.loaded():
            if group.states is not None:
                group.tried_at_ms = dict.fromkeys(group.states.initializing, self._clock.now_ms())
            session_ms = self._settings.share(group.group_id).session_timeout_ms
            for member_id in group.members:
                self._timers.start(group.group_id, TimerKind.SESSION, member_id, session_ms)
                yield SESSION_COST
            yield 1

    def close(self) -> None:
        """Forget the groups: another broker serves them."""
        self._commands.close()
        self._timers.close()
        self.clear()

    # --- members ------------------------------------------------------------------------------------------------

    def heartbeat(self, beat: ShareHeartbeat, settings: ShareGroupSettings) -> ShareHeard | Awaitable[ShareHeard]:
        """Hear a member: what it is to be told, and a future of the commit; both later where the group is large, or
        others wait for it. Raises BrokerError.
        """
        if beat.leaves:
            return self._leave(replace(beat, topics=None))
        group = self._groups.get(beat.group_id)
        is_steady = group is not None and rules.is_steady(group, beat, self._topics.changes)
        is_large = not is_steady and rules.is_large(
            group or ShareGroup(beat.group_id), self._topics.topics, beat.topics or ()
        )
        outcome = self._commands.do(beat.group_id, partial(self._hearing, beat, settings), is_large=is_large)
        return when_done(outcome, partial(self._heard, beat.group_id, settings))

    def _leave(self, beat: ShareHeartbeat) -> ShareHeard | Awaitable[ShareHeard]:
        """End a member, even if nobody waits for its answer any more. Raises BrokerError."""

        def leaving() -> ShareCommand:
            decide = partial(rules.leave, beat=beat, topics=self._topics.topics)
            return Command(self.existing(beat.group_id), decide, self._around())

        return self._commands.do_regardless(beat.group_id, leaving, is_large=self._is_large(beat.group_id))

    def _heard(self, group_id: str, settings: ShareGroupSettings, heard: ShareHeard) -> ShareHeard:
        change, _ = heard
        self._timers.start(group_id, TimerKind.SESSION, change.member_id, settings.session_timeout_ms)
        if change.initialize:
            self.initialize(group_id, change)
        return heard

    def _hearing(self, beat: ShareHeartbeat, settings: ShareGroupSettings) -> ShareCommand:
        """Raises BrokerError."""
        group = self._or_new(beat.group_id) if beat.joins else self.existing(beat.group_id, "Share group")
        around = self._around()
        return Command(group, partial(rules.heartbeat, beat=beat, settings=settings, around=around), around)

    def _or_new(self, group_id: str) -> ShareGroup:
        """Raises BrokerError."""
        if group_id in self._groups or self._image.find(group_id) is not None:
            return self.existing(group_id)
        self._image.check_room(group_id)
        return ShareGroup(group_id)

    def _around(self) -> Surroundings:
        now_ms = self._clock.now_ms()
        return Surroundings(self._topics.topics, self._topics.changes, now_ms, room_bytes=self.room_bytes)

    # --- groups -------------------------------------------------------------------------------------------------

    async def change(self, group_id: str, decide: Decide, *, may_create: bool = False) -> ShareChange:
        """Change a group; returns what it came to, once that and all before it is committed. Raises BrokerError."""

        def changing() -> ShareCommand:
            group = self._or_new(group_id) if may_create else self.existing(group_id)
            return Command(group, decide, self._around())

        outcome = self._commands.do(group_id, changing, is_large=self._is_large(group_id))
        change, waiting = outcome if isinstance(outcome, tuple) else await outcome
        error = ErrorCode.NONE if waiting is None else await waiting
        if error is not ErrorCode.NONE:
            raise BrokerError(error)
        return change

    async def end(self, group_id: str) -> None:
        """Delete a group without members; returns when that is committed. Raises BrokerError."""
        group = self.existing(group_id)
        administration.require_empty(group)
        if self._commands.is_at_work(group_id):
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP, "the group is being changed")
        self._log.append(batch_of(group_tombstones(group), self._clock.now_ms()))
        self._forget(group)
        waiting = self._log.when_committed(group_id)
        error = ErrorCode.NONE if waiting is None else await waiting
        if error is not ErrorCode.NONE:
            raise BrokerError(error)

    def _forget(self, group: ShareGroup) -> None:
        self._timers.stop_all(group.group_id)
        self.remove(group.group_id)

    # --- effects ------------------------------------------------------------------------------------------------

    def _is_large(self, group_id: str) -> bool:
        return rules.is_large(self._groups.get(group_id) or ShareGroup(group_id), self._topics.topics)

    def check_current(self, outcome: ShareOutcome) -> None:
        """Check again that there is room. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        self.check_room(outcome.change.growth_bytes)

    def replace(self, outcome: ShareOutcome) -> None:
        """Put a group in the place of what it was, which may be the name that an offset has been committed under while
        the first member's heartbeat was worked out.
        """
        self._image.drop_classic(outcome.group.group_id)
        self.put(outcome.group)

    def follow_up(self, outcome: ShareOutcome) -> None:
        """Note which partitions are being initialized, and stop the timers of members that have ended."""
        group, change = outcome.group, outcome.change
        if change.topics_seen >= 0:
            group.topics_seen = change.topics_seen
        group.is_settled = change.is_settled
        if change.initialize:
            tried = group.tried_at_ms | dict.fromkeys(change.initialize, outcome.around.now_ms)
            waiting_for = group.states.initializing if group.states is not None else {}
            # Others need not be remembered: topics that come and go would be many.
            group.tried_at_ms = {topic_id: at_ms for topic_id, at_ms in tried.items() if topic_id in waiting_for}
        for member_id in change.ended:
            self._timers.stop(group.group_id, TimerKind.SESSION, member_id)

    def _ending(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> ShareCommand:
        """Raises BrokerError."""
        group = self.existing(group_id)
        member = group.members.get(member_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        return Command(group, partial(rules.fence, member=member, topics=self._topics.topics), self._around())


def is_served(metadata: Metadata) -> bool:
    """Whether the cluster has share groups."""
    return metadata.features.level(SHARE_VERSION) >= 1
