"""The groups of the new protocol (KIP-848) of one partition of `__consumer_offsets`.

A command is decided (`core.consumer_group`), its records are appended, and a group that has them takes the place of the
former; the answer waits until the records are committed. One without records waits too, for all that was appended
before: what it tells may rest on that. Where the append fails nothing has changed. Where it is not committed because
this broker leads no longer, the shard is closed and its groups are forgotten.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kavka_broker.coordinator.deleted_topics import DeletedTopics
from kavka_broker.coordinator.expression_upkeep import ExpressionUpkeep
from kavka_broker.coordinator.group_commands import Command, GroupCommands, Heard, Outcome
from kavka_broker.coordinator.group_log import GroupLog
from kavka_broker.coordinator.member_timers import MemberTimers, TimerKind
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.topic_expressions import Rights, TopicExpressions
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.heartbeat import Change, Surroundings
from kavka_broker.core.consumer_group.records import group_tombstones, replay
from kavka_broker.core.consumer_group.settings import MEMBERS_BYTES_MAX, ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember, MemberState
from kavka_broker.core.group.image import CONSUMER, GroupImage
from kavka_broker.core.group.records import KeyedRecord, batch_of, group_tombstone
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.core.metadata.image.features import GROUP_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

ConsumerCommand = Command[ConsumerGroup, Change]
ConsumerCommands = GroupCommands[ConsumerGroup, Change]

FENCE_AGAIN_MS: Final = 1_000
"""Before a member is fenced again whose end could not be written."""


class ConsumerGroups:
    """Serves the groups in `image.consumer_groups`."""

    def __init__(
        self,
        image: GroupImage,
        topics: DeletedTopics,
        settings: GroupSettings,
        group_log: GroupLog,
        turns: ExclusiveTurns,
        pacing: Pacing,
    ) -> None:
        self._groups = image.consumer_groups
        self._image = image
        self._topics = topics
        self._settings = settings
        self._log = group_log
        self._clock = pacing.clock
        self._timers = MemberTimers(pacing.timers, self._expired)
        self._commands: ConsumerCommands = GroupCommands(pacing.threads, turns, replay, self._carry_out)
        self._expressions = TopicExpressions(topics.topics, pacing)
        self._upkeep = ExpressionUpkeep(self._groups, topics, self._expressions, self._commands, self._around, pacing)
        self._size_bytes = 0  # of all members

    def get(self, group_id: str) -> ConsumerGroup | None:
        return self._groups.get(group_id)

    def is_changing(self, group_id: str) -> bool:
        """Whether a command on the group is being worked out: a group that is not there yet may come of it."""
        return self._commands.is_at_work(group_id)

    def expect_members(self) -> Iterator[int]:
        """Start the members' sessions once the log has been read. A group a step; yields how many members it has."""
        for group in list(self._groups.values()):
            self._size_bytes += group.size_bytes
            session_ms = self._settings.consumer(group.group_id).session_timeout_ms
            for member in group.members.values():
                self._timers.start(group.group_id, TimerKind.SESSION, member.member_id, session_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._expect_revocation(group.group_id, member)
            yield 1 + len(group.members)

    def close(self) -> None:
        """Forget the groups: another broker serves them."""
        self._commands.close()
        self._timers.close()
        self._groups.clear()

    # --- members ------------------------------------------------------------------------------------------------

    def heartbeat(
        self, beat: Heartbeat, settings: ConsumerGroupSettings, may_describe: Rights = None
    ) -> Heard | Awaitable[Heard]:
        """Hear a member: what it is to be told, and a future of the commit; both later where the group is large, others
        wait for it, or an expression is new, which matches what the member `may_describe`. Raises BrokerError.
        """
        if beat.leaves:
            return self._whatever_comes(beat.group_id, partial(self._leaving, replace(beat, topics=None, owned=None)))
        group = self._groups.get(beat.group_id)
        if beat.regex and (group is None or beat.regex not in group.matched):
            return self._hear_expression(beat, settings, may_describe)
        is_steady = group is not None and rules.is_steady(group, beat, self._topics.changes)
        is_large = not is_steady and self._is_large(beat.group_id, beat.topics or (), beat.owned_count)
        outcome = self._commands.do(beat.group_id, partial(self._hearing, beat, settings), is_large=is_large)
        if not isinstance(outcome, tuple):
            return self._heard_later(beat.group_id, outcome, settings, may_describe)
        return self._heard(beat.group_id, outcome, settings, may_describe)

    def _whatever_comes(self, group_id: str, prepare: Callable[[], ConsumerCommand]) -> Heard | Awaitable[Heard]:
        """Do a command that counts even if nobody waits for its answer any more. Raises BrokerError."""
        outcome = self._commands.do(group_id, prepare, is_large=self._is_large(group_id))
        if isinstance(outcome, tuple):
            return outcome
        return asyncio.shield(asyncio.ensure_future(outcome))

    async def _hear_expression(self, beat: Heartbeat, settings: ConsumerGroupSettings, may_describe: Rights) -> Heard:
        """Hear a member with an expression that is new to the group."""
        assert beat.regex
        topics_seen = self._topics.changes  # topics that come meanwhile are not among those that it matches
        matched = {beat.regex: await self._expressions.match(beat.regex, may_describe)}
        hearing = partial(self._hearing, beat, settings, matched, topics_seen)
        outcome = self._commands.do_in_turn(beat.group_id, hearing)
        return await self._heard_later(beat.group_id, outcome, settings, may_describe)

    async def _heard_later(
        self, group_id: str, outcome: Awaitable[Heard], settings: ConsumerGroupSettings, may_describe: Rights
    ) -> Heard:
        return self._heard(group_id, await outcome, settings, may_describe)

    def _heard(self, group_id: str, heard: Heard, settings: ConsumerGroupSettings, may_describe: Rights) -> Heard:
        change, _ = heard
        self._timers.start(group_id, TimerKind.SESSION, change.member_id, settings.session_timeout_ms)
        self._upkeep.look(self._groups[group_id], settings.regex_refresh_interval_ms, may_describe)
        return heard

    def _around(self, matched: Mapping[str, frozenset[str]] | None = None, topics_seen: int = -1) -> Surroundings:
        return Surroundings(
            self._topics.topics,
            self._topics.changes if topics_seen < 0 else topics_seen,
            self._clock.now_ms(),
            matched or {},
            MEMBERS_BYTES_MAX - self._size_bytes,
        )

    def _hearing(
        self,
        beat: Heartbeat,
        settings: ConsumerGroupSettings,
        matched: Mapping[str, frozenset[str]] | None = None,
        topics_seen: int = -1,
    ) -> ConsumerCommand:
        """Raises BrokerError."""
        known, around = self._groups.get(beat.group_id), self._around(matched, topics_seen)
        group, before = (known, ()) if known is not None else self._new(beat)
        return Command(group, partial(rules.heartbeat, beat=beat, settings=settings, around=around), around, before)

    def _leaving(self, beat: Heartbeat) -> ConsumerCommand:
        """Raises BrokerError."""
        group = self.existing(beat.group_id)
        decide = partial(rules.leave, beat=beat, topics=self._topics.topics)
        return Command(group, decide, self._around())

    async def remove(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        """Remove a static member as an operator wishes, by LeaveGroup; members leave by a heartbeat."""
        if member_id or instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID

        def removing() -> ConsumerCommand:
            decide = partial(rules.remove, instance_id=instance_id, topics=self._topics.topics)
            return Command(self.existing(group_id), decide, self._around())

        try:
            outcome = self._whatever_comes(group_id, removing)
            _, committed = outcome if isinstance(outcome, tuple) else await outcome
        except BrokerError as error:
            return ErrorCode.UNKNOWN_MEMBER_ID if error.code is ErrorCode.GROUP_ID_NOT_FOUND else error.code
        return ErrorCode.NONE if committed is None else await committed

    def existing(self, group_id: str, kind: str = "Group") -> ConsumerGroup:
        """Raises GROUP_ID_NOT_FOUND. `kind` is what Apache Kafka calls the group where a member of it is lost."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        if self._image.find(group_id) is not None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")

    def _new(self, beat: Heartbeat) -> tuple[ConsumerGroup, Sequence[KeyedRecord]]:
        """A group to join, and the records that end what it was. Raises BrokerError."""
        classic = self._image.groups.get(beat.group_id)
        is_other = beat.group_id in self._image.share_groups
        if not beat.joins or is_other or (classic is not None and not is_unused(classic)):
            self.existing(beat.group_id, "Consumer group")
        if classic is None:
            self._image.check_room(beat.group_id)
            return ConsumerGroup(beat.group_id), ()
        return ConsumerGroup(beat.group_id), [group_tombstone(beat.group_id)] if classic.generation else ()

    # --- groups -------------------------------------------------------------------------------------------------

    def end(self, group: ConsumerGroup) -> None:
        """Forget a group whose tombstones are in the log."""
        assert not group.members, f"{group.group_id} ends with {list(group.members)}"
        self._timers.stop_all(group.group_id)
        if self._groups.pop(group.group_id, None) is not None:
            self._size_bytes -= group.size_bytes

    def make_classic(self, group_id: str) -> bool:
        """Make room for a group of the classic protocol; returns False where this one has members. Raises BrokerError,
        also where it may have members in a moment, or none any more.
        """
        group = self._groups.get(group_id)
        if group is not None and group.members:
            return False
        if self.is_changing(group_id):
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"group {group_id} is being changed")
        if group is None:
            return True
        self._log.append(batch_of(group_tombstones(group), self._clock.now_ms()))
        self.end(group)
        return True

    # --- effects ------------------------------------------------------------------------------------------------

    def _is_large(self, group_id: str, more: Collection[str] = (), owned: int = 0) -> bool:
        group = self._groups.get(group_id)
        return rules.is_large(group or ConsumerGroup(group_id), self._topics.topics, more, owned)

    def _carry_out(self, outcome: Outcome[ConsumerGroup, Change]) -> Heard:
        """Append the records and put the group in its place, then set the timers. Raises BrokerError."""
        group, change = outcome.group, outcome.change
        if outcome.batch is None:
            waiting = self._log.when_settled()
        else:
            self._log.append(outcome.batch)
            waiting = self._log.when_committed(group.group_id)
            self._put(group)
        if change.topics_seen >= 0:
            group.topics_seen = change.topics_seen
        if change.has_matched_all:
            group.matched_seen, group.matched_at_ms = outcome.around.topics_seen, outcome.around.now_ms
        for member_id in change.ended:
            self._timers.stop(group.group_id, TimerKind.SESSION, member_id)
            self._timers.stop(group.group_id, TimerKind.REVOCATION, member_id)
        if change.revokes_ms is None:
            self._timers.stop(group.group_id, TimerKind.REVOCATION, change.member_id)
        elif change.revokes_ms >= 0:
            self._expect_revocation(group.group_id, group.members[change.member_id])
        return change, waiting

    def _put(self, group: ConsumerGroup) -> None:
        """Put a group in the place of what it was, in either protocol."""
        former = self._groups.get(group.group_id)
        self._size_bytes += group.size_bytes - (0 if former is None else former.size_bytes)
        self._image.groups.pop(group.group_id, None)
        self._groups[group.group_id] = group

    def _expect_revocation(self, group_id: str, member: ConsumerMember) -> None:
        self._timers.start(group_id, TimerKind.REVOCATION, member.member_id, member.rebalance_timeout_ms, member.epoch)

    def _expired(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> None:
        """End a member that was not heard of in time, or that has not given up in time what it had to."""

        def fencing() -> ConsumerCommand:
            """Raises BrokerError where the member was heard of while others had their turns, or has gone."""
            group = self.existing(group_id)
            member = group.members.get(member_id)
            is_heard = self._timers.is_running(group_id, kind, member_id)
            if member is None or is_heard or not is_due(member, kind, epoch):
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
            decide = partial(rules.fence, member=member, topics=self._topics.topics)
            return Command(group, decide, self._around())

        try:
            outcome = self._commands.do(group_id, fencing, is_large=self._is_large(group_id))
        except BrokerError as error:
            self._not_fenced(group_id, kind, member_id, epoch, error)
            return
        if isinstance(outcome, tuple):
            log.info("member.fenced", group=group_id, member=member_id, reason=kind.name.lower())
        else:
            work = self._fence_later(outcome, group_id, kind, member_id, epoch)
            watch(asyncio.get_running_loop().create_task(work, name="fence a member"))

    async def _fence_later(
        self, outcome: Awaitable[Heard], group_id: str, kind: TimerKind, member_id: str, epoch: int | None
    ) -> None:
        try:
            await outcome
        except BrokerError as error:
            self._not_fenced(group_id, kind, member_id, epoch, error)
        else:
            log.info("member.fenced", group=group_id, member=member_id, reason=kind.name.lower())

    def _not_fenced(
        self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None, error: BrokerError
    ) -> None:
        """Try again where the end could not be written; there is nothing to do where nothing was due."""
        if self._log.is_closed or error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            return
        log.warning("member.not_fenced", group=group_id, member=member_id, reason=str(error))
        self._timers.start(group_id, kind, member_id, FENCE_AGAIN_MS, epoch)


def is_due(member: ConsumerMember, kind: TimerKind, epoch: int | None) -> bool:
    """Whether the member is still to be ended for what the timer was started for."""
    return kind is TimerKind.SESSION or (member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch == epoch)


def is_served(config: BrokerConfig, metadata: Metadata) -> bool:
    """Whether groups of the new protocol may be made."""
    is_allowed = CONSUMER in config["group.coordinator.rebalance.protocols"]
    return is_allowed and metadata.features.level(GROUP_VERSION) >= 1


def is_unused(group: ClassicGroup) -> bool:
    """Whether a classic group is only a name with offsets: nobody is in it, or about to be."""
    return group.state is GroupState.EMPTY and not group.members and not group.pending and not group.writes_pending
