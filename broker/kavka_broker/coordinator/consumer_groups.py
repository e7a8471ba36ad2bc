"""The groups of the new protocol (KIP-848) of one partition of `__consumer_offsets`.

A command is decided (`core.consumer_group`), its records are appended, and the groups change with the append; the
answer waits until the records are committed. One without records waits too, for all that was appended before: what it
tells may rest on that. Where the append fails nothing has changed. Where it is not committed because this broker leads
no longer, the shard is closed and its groups are forgotten.

The timers are soft: a broker that takes the groups over starts each member's session again.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from typing import Final

from kavka_broker.coordinator.deleted_topics import DeletedTopics
from kavka_broker.coordinator.transactional_offsets import Waiting
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.checks import Heartbeat
from kavka_broker.core.consumer_group.heartbeat import Change
from kavka_broker.core.consumer_group.records import group_tombstones, replay
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember, MemberState
from kavka_broker.core.group.image import CONSUMER, GroupImage
from kavka_broker.core.group.records import KeyedRecord, group_tombstone
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.core.metadata.image.features import GROUP_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

FENCE_AGAIN_MS: Final = 1_000
"""Before a member is fenced again whose end could not be written."""

Append = Callable[[str, Sequence[KeyedRecord]], Waiting | None]


class TimerKind(Enum):
    """The event that a member's timer waits for."""

    SESSION = auto()  # a heartbeat
    REVOCATION = auto()  # the end of what it has to give up


class ConsumerGroups:
    """Serves the groups in `image.consumer_groups`. `append` writes records of a group, and without any waits for those
    before; it raises BrokerError.
    """

    def __init__(
        self,
        image: GroupImage,
        topics: DeletedTopics,
        settings: GroupSettings,
        append: Append,
        check_room: Callable[[str], None],
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._groups = image.consumer_groups
        self._image = image
        self._topics = topics
        self._settings = settings
        self._append = append
        self._check_room = check_room
        self._clock = clock
        self._timers = timers
        self._running: dict[str, dict[tuple[TimerKind, str], Timer]] = {}

    def get(self, group_id: str) -> ConsumerGroup | None:
        return self._groups.get(group_id)

    def expect_members(self) -> Iterator[int]:
        """Start the members' sessions once the log has been read. A group a step; yields how many members it has."""
        for group in list(self._groups.values()):
            for member in group.members.values():
                self._start(group.group_id, TimerKind.SESSION, member.member_id, self._session_ms(group.group_id))
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._expect_revocation(group.group_id, member)
            yield 1 + len(group.members)

    def close(self) -> None:
        """Forget the groups: another broker serves them."""
        for group_id in list(self._running):
            self._stop_all(group_id)
        self._groups.clear()

    # --- members ------------------------------------------------------------------------------------------------

    def heartbeat(self, beat: Heartbeat) -> tuple[Change, Waiting | None]:
        """Hear a member: what it is to be told, and a future of the commit. Raises BrokerError."""
        known = self._groups.get(beat.group_id)
        if beat.leaves:
            group = self.existing(beat.group_id)
            change = rules.leave(group, beat, self._topics.topics)
            return change, self._carry_out(group, change, ())
        group, before = (known, ()) if known is not None else self._new(beat)
        change = rules.heartbeat(
            group,
            beat,
            self._settings.consumer(beat.group_id),
            self._topics.topics,
            self._topics.changes,
            self._clock.now_ms(),
        )
        waiting = self._carry_out(group, change, before)
        if change.topics_seen >= 0:
            self._groups[beat.group_id].topics_seen = change.topics_seen
        self._start(beat.group_id, TimerKind.SESSION, change.member_id, self._session_ms(beat.group_id))
        return change, waiting

    def remove(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        """Remove a static member as an operator wishes, by LeaveGroup; members leave by a heartbeat."""
        group = self._groups.get(group_id)
        if group is None or member_id or instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        try:
            self._carry_out(group, rules.remove(group, instance_id, self._topics.topics), ())
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    def existing(self, group_id: str, kind: str = "Group") -> ConsumerGroup:
        """Raises GROUP_ID_NOT_FOUND. `kind` is what Apache Kafka calls the group where a member of it is lost."""
        group = self._groups.get(group_id)
        if group is not None:
            return group
        if group_id in self._image.groups:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")

    def _new(self, beat: Heartbeat) -> tuple[ConsumerGroup, Sequence[KeyedRecord]]:
        """A group to join, and the records that end what it was. Raises BrokerError."""
        classic = self._image.groups.get(beat.group_id)
        if not beat.joins or (classic is not None and not is_unused(classic)):
            self.existing(beat.group_id, "Consumer group")
        if classic is None:
            self._check_room(beat.group_id)
            return ConsumerGroup(beat.group_id), ()
        return ConsumerGroup(beat.group_id), [group_tombstone(beat.group_id)] if classic.generation else ()

    # --- groups -------------------------------------------------------------------------------------------------

    def end(self, group: ConsumerGroup) -> None:
        """Forget a group whose tombstones are in the log."""
        self._stop_all(group.group_id)
        self._groups.pop(group.group_id, None)

    def make_classic(self, group_id: str) -> bool:
        """Make room for a group of the classic protocol; returns False where this one has members. Raises
        BrokerError.
        """
        group = self._groups.get(group_id)
        if group is None:
            return True
        if group.members:
            return False
        self._append(group_id, group_tombstones(group))
        self.end(group)
        return True

    # --- effects ------------------------------------------------------------------------------------------------

    def _carry_out(self, group: ConsumerGroup, change: Change, before: Sequence[KeyedRecord]) -> Waiting | None:
        """Append and replay the records, then set the timers. Raises BrokerError."""
        records = [*before, *change.records]
        waiting = self._append(group.group_id, records)
        if before or change.records:
            self._image.groups.pop(group.group_id, None)
        for record in change.records:
            replay(self._groups, record.key, record.value)
        for member_id in change.ended:
            self._stop(group.group_id, TimerKind.SESSION, member_id)
            self._stop(group.group_id, TimerKind.REVOCATION, member_id)
        if change.revokes_ms is None:
            self._stop(group.group_id, TimerKind.REVOCATION, change.member_id)
        elif change.revokes_ms >= 0:
            self._expect_revocation(group.group_id, self._groups[group.group_id].members[change.member_id])
        return waiting

    def _session_ms(self, group_id: str) -> int:
        return self._settings.consumer(group_id).session_timeout_ms

    def _expect_revocation(self, group_id: str, member: ConsumerMember) -> None:
        self._start(group_id, TimerKind.REVOCATION, member.member_id, member.rebalance_timeout_ms, member.epoch)

    def _start(self, group_id: str, kind: TimerKind, member_id: str, delay_ms: int, epoch: int | None = None) -> None:
        timers = self._running.setdefault(group_id, {})
        running = timers.pop((kind, member_id), None)
        if running is not None:
            running.cancel()
        timers[kind, member_id] = self._timers.after(delay_ms, self._expired, group_id, kind, member_id, epoch)

    def _stop(self, group_id: str, kind: TimerKind, member_id: str) -> None:
        timers = self._running.get(group_id, {})
        running = timers.pop((kind, member_id), None)
        if running is not None:
            running.cancel()
        if not timers:
            self._running.pop(group_id, None)

    def _stop_all(self, group_id: str) -> None:
        for timer in self._running.pop(group_id, {}).values():
            timer.cancel()

    def _expired(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> None:
        """End a member that was not heard of in time, or that has not given up in time what it had to."""
        self._running.get(group_id, {}).pop((kind, member_id), None)
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.epoch):
            return
        try:
            self._carry_out(group, rules.fence(group, member, self._topics.topics), ())
        except BrokerError as error:
            log.warning("member.not_fenced", group=group_id, member=member_id, reason=str(error))
            self._start(group_id, kind, member_id, FENCE_AGAIN_MS, epoch)
            return
        log.info("member.fenced", group=group_id, member=member_id, reason=kind.name.lower())


def is_served(config: BrokerConfig, metadata: Metadata) -> bool:
    """Whether groups of the new protocol may be made."""
    is_allowed = CONSUMER in config["group.coordinator.rebalance.protocols"]
    return is_allowed and metadata.features.level(GROUP_VERSION) >= 1


def is_unused(group: ClassicGroup) -> bool:
    """Whether a classic group is only a name with offsets: nobody is in it, or about to be."""
    return group.state is GroupState.EMPTY and not group.members and not group.pending and not group.writes_pending
