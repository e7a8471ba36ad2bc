"""The groups of the new protocol (KIP-848) of one partition of `__consumer_offsets`.

A command is decided (`core.consumer_group`), its records are appended, and a group that has them takes the place of the
former; the answer waits until the records are committed. One without records waits too, for all that was appended
before: what it tells may rest on that. Where the append fails nothing has changed. Where it is not committed because
this broker leads no longer, the shard is closed and its groups are forgotten.
"""

from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kavka_broker.coordinator.groups.arrivals import Arrivals
from kavka_broker.coordinator.groups.classic_groups import SESSION_COST, ClassicGroups
from kavka_broker.coordinator.groups.consumer_fencing import ConsumerFencing
from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.expression_upkeep import ExpressionUpkeep
from kavka_broker.coordinator.groups.group_commands import Command, GroupCommands, Heard, Outcome, when_done
from kavka_broker.coordinator.groups.group_table import GroupTable
from kavka_broker.coordinator.groups.member_timers import TimerKind
from kavka_broker.coordinator.groups.topic_expressions import Rights, TopicExpressions
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.consumer_group import classic_snapshot
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.classic_snapshot import snapshot_of
from kavka_broker.core.consumer_group.gathering import gathers
from kavka_broker.core.consumer_group.heartbeat import Change, Surroundings
from kavka_broker.core.consumer_group.records import KEYS, group_tombstones, replay
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.consumer_group.upgrade import check_upgrade, upgrade
from kavka_broker.core.group.image import CONSUMER, GroupImage
from kavka_broker.core.group.records import batch_of, group_tombstone
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.core.metadata.image.features import GROUP_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.logs import get
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message

log = get("coordinator")

ConsumerCommand = Command[ConsumerGroup, Change]
ConsumerCommands = GroupCommands[ConsumerGroup, Change]
ConsumerOutcome = Outcome[ConsumerGroup, Change]


class ConsumerGroups(GroupTable[ConsumerGroup]):
    """Serves the groups in `image.consumer_groups`."""

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
        super().__init__(CONSUMER, image.consumer_groups, image)
        self._topics = topics
        self._settings = settings
        self._log = group_log
        self._classics = classics
        self._clock = pacing.clock
        self._slices = pacing.slices
        self.commands: ConsumerCommands = GroupCommands(self, replay_consumers, group_log, turns, pacing.threads)
        self._arrivals = Arrivals(pacing.timers)
        self._fencing = ConsumerFencing(
            self.existing, settings.consumer, self.around, self.commands, self.is_large, group_log, pacing
        )
        self.timers = self._fencing.timers
        self._expressions = TopicExpressions(topics.topics, pacing)
        self.upkeep = ExpressionUpkeep(self._groups, topics, self._expressions, self.commands, self.around, pacing)

    def is_changing(self, group_id: str) -> bool:
        """Whether a command on the group is being worked out: a group that is not there yet may come of it."""
        return self.commands.is_at_work(group_id)

    def expect_members(self) -> Iterator[int]:
        """Start the members' sessions once the log has been read. A member a step; yields how much each counts."""
        for group in self.loaded():
            session_ms = self._settings.consumer(group.group_id).session_timeout_ms
            for member in group.members.values():
                self._fencing.expect(group, member, session_ms)
                yield SESSION_COST
            yield 1

    def close(self) -> None:
        """Forget the groups: another broker serves them."""
        self.commands.close()
        self._arrivals.close()
        self.timers.close()
        self.clear()

    # --- members ------------------------------------------------------------------------------------------------

    def heartbeat(
        self, beat: Heartbeat, settings: ConsumerGroupSettings, may_describe: Rights = None
    ) -> Heard | Awaitable[Heard]:
        """Hear a member: what it is to be told, and a future of the commit; both later where the group is large, others
        wait for it, or an expression is new, which matches what the member `may_describe`. Raises BrokerError.
        """
        if beat.leaves:
            leaving = partial(self._leaving, replace(beat, topics=None, owned=None))
            return self.commands.do_regardless(beat.group_id, leaving, is_large=self.is_large(beat.group_id))
        if self._begins(beat) and gathers(settings):
            return self._hear_arrival(beat, settings, may_describe)
        return self._hear(beat, settings, may_describe)

    def _begins(self, beat: Heartbeat) -> bool:
        """Whether the member joins a group that has no members, of either protocol, and is no group of another kind."""
        group, classic = self._groups.get(beat.group_id), self._image.groups.get(beat.group_id)
        has_members = (group is not None and group.members) or (classic is not None and not is_unused(classic))
        return beat.joins and not has_members and not self._is_of_another_kind(beat.group_id)

    def _is_of_another_kind(self, group_id: str) -> bool:
        return group_id in self._image.share_groups or group_id in self._image.streams_groups

    async def _hear_arrival(self, beat: Heartbeat, settings: ConsumerGroupSettings, may_describe: Rights) -> Heard:
        """Hear the member once others have had a moment to come too, for whom the first assignment then waits."""
        is_joint = await self._arrivals.arrive(beat.group_id, beat.member_id)
        self.commands.check_open()
        heard = self._hear(beat, settings, may_describe, is_joint=is_joint)
        return heard if isinstance(heard, tuple) else await heard

    def _hear(
        self, beat: Heartbeat, settings: ConsumerGroupSettings, may_describe: Rights, *, is_joint: bool = False
    ) -> Heard | Awaitable[Heard]:
        group = self._groups.get(beat.group_id)
        if beat.regex and (group is None or beat.regex not in group.matched):
            return self._hear_expression(beat, settings, may_describe, is_joint=is_joint)
        seen = self._topics.changes
        is_steady = group is not None and (rules.is_steady(group, beat, seen) or rules.is_step(group, beat, seen))
        classic = self._image.groups.get(beat.group_id)
        is_large = not is_steady and (
            self.is_large(beat.group_id, beat.topics or (), beat.owned_count)
            or (beat.joins and classic is not None and classic_snapshot.is_large(classic))
        )
        hearing = partial(self._hearing, beat, settings, is_joint=is_joint)
        outcome = self.commands.do(beat.group_id, hearing, is_large=is_large)
        return when_done(outcome, partial(self._heard, beat.group_id, settings, may_describe))

    async def _hear_expression(
        self, beat: Heartbeat, settings: ConsumerGroupSettings, may_describe: Rights, *, is_joint: bool
    ) -> Heard:
        """Hear a member with an expression that is new to the group."""
        assert beat.regex
        topics_seen = self._topics.changes  # topics that come meanwhile are not among those that it matches
        matched = {beat.regex: await self._expressions.match(beat.regex, may_describe)}
        hearing = partial(self._hearing, beat, settings, matched, topics_seen, is_joint=is_joint)
        heard = await self.commands.do_in_turn(beat.group_id, hearing)
        return self._heard(beat.group_id, settings, may_describe, heard)

    def _heard(self, group_id: str, settings: ConsumerGroupSettings, may_describe: Rights, heard: Heard) -> Heard:
        change, _ = heard
        self.timers.start(group_id, TimerKind.SESSION, change.member_id, settings.session_timeout_ms)
        for kind in (TimerKind.JOIN, TimerKind.SYNC):  # the member may have spoken the classic protocol until now
            self.timers.stop(group_id, kind, change.member_id)
        self.upkeep.look(self._groups[group_id], settings.regex_refresh_interval_ms, may_describe)
        return heard

    def around(self, matched: Mapping[str, frozenset[str]] | None = None, topics_seen: int = -1) -> Surroundings:
        return Surroundings(
            self._topics.topics,
            self._topics.changes if topics_seen < 0 else topics_seen,
            self._clock.now_ms(),
            matched or {},
            self.room_bytes,
            self._log.batch_bytes_max,
        )

    def _hearing(
        self,
        beat: Heartbeat,
        settings: ConsumerGroupSettings,
        matched: Mapping[str, frozenset[str]] | None = None,
        topics_seen: int = -1,
        *,
        is_joint: bool = False,
    ) -> ConsumerCommand:
        """Raises BrokerError."""
        known, around = self._groups.get(beat.group_id), self.around(matched, topics_seen)
        around = replace(around, is_joint=is_joint)
        decide = partial(rules.heartbeat, beat=beat, settings=settings, around=around)
        if known is not None:
            return Command(known, decide, around)
        classic = self._former(beat, settings)
        before = [group_tombstone(beat.group_id)] if classic is not None and classic.generation else ()
        if classic is not None and not is_unused(classic):
            decide = partial(upgrade, classic=snapshot_of(classic), beat=beat, settings=settings, around=around)
        return Command(ConsumerGroup(beat.group_id), decide, around, before)

    def _leaving(self, beat: Heartbeat) -> ConsumerCommand:
        """Raises BrokerError."""
        group, around = self.existing(beat.group_id), self.around()
        settings = self._settings.consumer(beat.group_id)
        return Command(group, partial(rules.leave, beat=beat, settings=settings, around=around), around)

    def _former(self, beat: Heartbeat, settings: ConsumerGroupSettings) -> ClassicGroup | None:
        """The classic group whose place the group takes that the member joins, if there is one. Raises BrokerError."""
        classic = self._image.groups.get(beat.group_id)
        if not beat.joins or self._is_of_another_kind(beat.group_id):
            self.existing(beat.group_id, "Consumer group")
        if classic is None:
            self._image.check_room(beat.group_id)
        elif not is_unused(classic):
            check_upgrade(classic, settings)
        return classic

    # --- groups -------------------------------------------------------------------------------------------------

    def end(self, group: ConsumerGroup) -> None:
        """Forget a group whose tombstones are in the log."""
        self.timers.stop_all(group.group_id)
        self.remove(group.group_id)

    def make_classic(self, group_id: str) -> None:
        """Make room for a group of the classic protocol, of a consumer group without members. Raises BrokerError, also
        where it may have members in a moment, or none any more.
        """
        group, classic = self._groups.get(group_id), self._image.groups.get(group_id)
        if self.is_changing(group_id) and (classic is None or is_unused(classic)):
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"group {group_id} is being changed")
        if group is not None:
            assert not group.members, f"{group_id} has {list(group.members)}"
            self._log.append(batch_of(group_tombstones(group), self._clock.now_ms()))
            self.end(group)

    # --- effects ------------------------------------------------------------------------------------------------

    def is_large(self, group_id: str, more: Collection[str] = (), owned: int = 0) -> bool:
        group = self._groups.get(group_id)
        return rules.is_large(group or ConsumerGroup(group_id), self._topics.topics, more, owned)

    def check_current(self, outcome: ConsumerOutcome) -> None:
        """Check again what others may have changed while a thread worked: whether there is room, and whether a classic
        group is as it was when its consumer group was worked out. Raises COORDINATOR_LOAD_IN_PROGRESS, so that the
        member comes again.
        """
        group_id, upgraded = outcome.group.group_id, outcome.change.upgraded
        classic = self._image.groups.get(group_id)
        if upgraded is not None and (classic is None or snapshot_of(classic) != upgraded):
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"group {group_id} has changed meanwhile")
        self.check_room(outcome.change.growth_bytes)

    def replace(self, outcome: ConsumerOutcome) -> None:
        """Put a group in the place of what it was, in either protocol."""
        group, change = outcome.group, outcome.change
        if change.classic is None:
            self._upgrade_to(group)
        else:
            self._downgrade_to(change.classic, group, rebalances=change.has_to_rebalance)

    def follow_up(self, outcome: ConsumerOutcome) -> None:
        """Set the timers, and note what the group has seen of topics. A classic group has neither."""
        group, change = outcome.group, outcome.change
        if change.classic is not None:
            return
        if change.gathering is not None or change.has_computed:
            group.gathering = change.gathering
        if change.topics_seen >= 0:
            group.topics_seen = change.topics_seen
        if change.has_matched_all:
            group.matched_seen, group.matched_at_ms = outcome.around.topics_seen, outcome.around.now_ms
        for member_id in change.ended:
            self.timers.stop_member(group.group_id, member_id)
        if change.revokes_ms is None:
            self.timers.stop(group.group_id, TimerKind.REVOCATION, change.member_id)
        elif change.revokes_ms >= 0:
            self._fencing.expect_revocation(group.group_id, group.members[change.member_id])

    def _upgrade_to(self, group: ConsumerGroup) -> None:
        classic = self._image.groups.get(group.group_id)
        self.put(group)
        if classic is None:
            return
        self._classics.bury(classic, ErrorCode.REBALANCE_IN_PROGRESS)
        if classic.members:
            self._slices.run_aside(self._expect_former(group.group_id, list(classic.members)))
            log.info("group.upgraded", group=group.group_id, members=len(classic.members))

    def _expect_former(self, group_id: str, members: Sequence[str]) -> Work[None]:
        """Start the sessions of members of the classic group that a group was, but of those that leave meanwhile."""
        cost = Cost()
        for member_id in members:
            group = self._groups.get(group_id)
            member = None if group is None else group.members.get(member_id)
            if group is not None and member is not None and member.classic is not None:
                self._fencing.expect(group, member, member.classic.session_timeout_ms)
            if cost.add(SESSION_COST):
                yield

    def _downgrade_to(self, classic: ClassicGroup, group: ConsumerGroup, *, rebalances: bool) -> None:
        self.end(group)
        self._classics.adopt(classic, rebalances=rebalances)
        log.info("group.downgraded", group=group.group_id, members=len(classic.members))


def replay_consumers(groups: dict[str, ConsumerGroup], key: Message, value: Message | None) -> None:
    """Change the groups as a record of a command says, which may be that of the classic group that takes its place."""
    if isinstance(key, KEYS):
        replay(groups, key, value)


def is_served(config: BrokerConfig, metadata: Metadata) -> bool:
    """Whether groups of the new protocol may be made."""
    is_allowed = CONSUMER in config["group.coordinator.rebalance.protocols"]
    return is_allowed and metadata.features.level(GROUP_VERSION) >= 1


def is_unused(group: ClassicGroup) -> bool:
    """Whether a classic group is only a name with offsets. A client that was given an id may join it all the same."""
    return group.state is GroupState.EMPTY
