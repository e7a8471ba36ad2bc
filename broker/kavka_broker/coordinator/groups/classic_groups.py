"""The groups of the classic protocol of one partition of `__consumer_offsets`.

A command changes its group and lists effects (`core.group`), and `_run` carries them out: answers, timers, records.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from kavka_broker.coordinator.append_errors import answered
from kavka_broker.coordinator.groups.offset_expiration import GROUP_IN_OFFSETS
from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.coordinator.led_partition import LedPartition
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.core.consumer_group.settings import MEMBERS_BYTES_MAX, has_room_for
from kavka_broker.core.group import membership
from kavka_broker.core.group.effects import Effects, Persist, Respond, Start, Stop, TimerName
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.join import Join, forget_ids, growth_bytes, join
from kavka_broker.core.group.persistence import size_bytes_min
from kavka_broker.core.group.rebalance import complete_if_joined, keep_alive, prepare
from kavka_broker.core.group.records import KeyedRecord, group_record
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import MEMBER_BYTES, ClassicGroup
from kavka_broker.core.group.sync import Sync, persisted, sync
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.loop.timers import Timer
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse

SESSION_COST: Final = 3
SESSIONS_PER_STEP: Final = 50
IDS_FORGOTTEN_MAX: Final = 300
"""By one join, in two or three milliseconds. Members of groups that may go on without them count as ids."""

Append = Callable[[str, Sequence[KeyedRecord]], Waiting | None]
"""Appends records of a group; returns a future of the commit. Raises BrokerError."""


class ClassicGroups:
    """Serves the groups in `image.groups`."""

    def __init__(
        self,
        image: GroupImage,
        settings: GroupSettings,
        partition: LedPartition,
        append: Append,
        pacing: Pacing,
    ) -> None:
        self._image = image
        self._settings = settings
        self._partition = partition
        self._append = append
        self._clock = pacing.clock
        self._timers = pacing.timers
        self._slices = pacing.slices
        self.running: dict[str, dict[TimerName, Timer]] = {}

    @property
    def room_bytes(self) -> int:
        """Bytes that the groups may grow by."""
        return MEMBERS_BYTES_MAX - self._image.classic_bytes

    def expect_members(self) -> Iterator[int]:
        """Start the members' sessions once the log has been read. Some members of a group a step; yields how much each
        step counts, in offsets looked at.
        """
        for group in list(self._image.groups.values()):
            members = list(group.members.values())
            for first in range(0, len(members), SESSIONS_PER_STEP):
                effects, some = Effects(), members[first : first + SESSIONS_PER_STEP]
                membership.start_sessions(some, effects)
                self._run(group, effects)
                yield SESSION_COST * len(some)
            self._image.count(group)
            yield GROUP_IN_OFFSETS

    def adopt(self, group: ClassicGroup, *, rebalances: bool) -> None:
        """Serve a group that was a consumer group until now."""
        self._image.groups[group.group_id] = group
        self._image.count(group)
        if rebalances:
            effects = Effects()
            prepare(group, self._settings, self._clock.now_ms(), effects)
            self._run(group, effects)
        self._slices.run_aside(self._start_sessions(group))

    def _start_sessions(self, group: ClassicGroup) -> Work[None]:
        """Start the sessions of a group's members, but of those that leave while others have their turns."""
        cost = Cost()
        for member in list(group.members.values()):
            if self._image.groups.get(group.group_id) is not group:
                return
            if group.members.get(member.member_id) is member:
                effects = Effects()
                keep_alive(member, effects)
                self._run(group, effects)
            if cost.add(SESSION_COST):
                yield

    # --- members ------------------------------------------------------------------------------------------------

    def join(self, group_id: str, command: Join) -> None:
        """Raises BrokerError."""
        group = self._image.groups.get(group_id)
        effects = Effects()
        if group is None and command.member_id:
            response = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=command.member_id)
            effects.answer(command.token, response)
        if group is None:
            self._image.check_room(group_id)
            group = self._image.groups[group_id] = ClassicGroup(group_id)
        if not effects:
            growth = growth_bytes(group, command)
            if self._make_room(group, growth):
                has_space = has_room_for(growth, self.room_bytes)
                join(group, command, self._settings, self._clock.now_ms(), effects, has_space=has_space)
            else:
                code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                effects.answer(command.token, JoinGroupResponse(error_code=code, member_id=command.member_id))
        self._run(group, effects)
        self._image.forget_trace(group)

    def _make_room(self, joined: ClassicGroup, growth: int) -> bool:
        """Forget ids that nobody has joined with where a member finds no room beside them, first those of the groups
        that were given one the longest ago. So many at a time: False where the member is to come again for more.
        """
        if has_room_for(growth, self.room_bytes) or growth > MEMBERS_BYTES_MAX:
            return True
        left = IDS_FORGOTTEN_MAX
        for group_id in list(islice(self._image.with_ids, IDS_FORGOTTEN_MAX)):
            group = self._image.groups[group_id]
            if growth <= self.room_bytes:
                return True
            if left <= 0:
                return False
            if group is joined:
                continue
            effects = Effects()
            enough = 1 + (growth - self.room_bytes) // MEMBER_BYTES
            left -= forget_ids(group, min(left, enough), effects) + len(group.members)
            complete_if_joined(group, self._clock.now_ms(), effects)
            self._run(group, effects)
            self._image.forget_trace(group)
        with_ids = self._image.with_ids
        return growth <= self.room_bytes or len(with_ids) <= (joined.group_id in with_ids)

    def sync(self, group_id: str, command: Sync) -> None:
        group = self._image.groups.get(group_id)
        effects = Effects()
        if group is None:
            command_answer = SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            answer(Respond(command.token, command_answer))
            return
        sync(group, command, self._clock.now_ms(), effects)
        self._run(group, effects)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        group = self._image.groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        effects = Effects()
        error = membership.heartbeat(group, generation, member_id, instance_id, effects)
        self._run(group, effects)
        return error

    def keep_alive(self, group: ClassicGroup, member_id: str) -> None:
        """Start the session of a member again, which has committed."""
        effects = Effects()
        keep_alive(group.members[member_id], effects)
        self._run(group, effects)

    def leave(self, group_id: str, departures: Sequence[membership.Departure]) -> list[ErrorCode]:
        """The error of each departure."""
        group = self._image.groups.get(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(departures)
        effects = Effects()
        now_ms = self._clock.now_ms()
        errors = [membership.leave(group, departure, self._settings, now_ms, effects) for departure in departures]
        self._run(group, effects)
        self._image.forget_trace(group)
        return errors

    def bury(self, group: ClassicGroup, error: ErrorCode) -> None:
        """End a group here, and tell `error` to the members that wait."""
        effects = Effects()
        membership.bury(group, error, self._clock.now_ms(), effects)
        self._run(group, effects)
        self._image.drop_classic(group.group_id)
        for timer in self.running.pop(group.group_id, {}).values():
            timer.cancel()

    # --- effects ------------------------------------------------------------------------------------------------

    def _run(self, group: ClassicGroup, effects: Effects) -> None:
        """Carry out the group's effects. A record that is committed at once adds effects."""
        for effect in effects:
            match effect:
                case Respond():
                    answer(effect)
                case Start(timer, delay_ms):
                    self._start(group, timer, delay_ms)
                case Stop(timer):
                    self._stop(group, timer)
                case Persist():
                    self._persist(group, effect, effects)
        self._image.count(group)

    def _start(self, group: ClassicGroup, name: TimerName, delay_ms: int) -> None:
        timers = self.running.setdefault(group.group_id, {})
        running = timers.get(name)
        if running is not None:
            running.cancel()
        timers[name] = self._timers.after(delay_ms, self._expired, group, name)

    def _stop(self, group: ClassicGroup, name: TimerName) -> None:
        timers = self.running.get(group.group_id)
        running = None if timers is None else timers.pop(name, None)
        if running is not None:
            running.cancel()
            self._forget_timers(group)

    def _expired(self, group: ClassicGroup, name: TimerName) -> None:
        self.running[group.group_id].pop(name, None)
        self._forget_timers(group)
        effects = Effects()
        membership.expired(group, name, self._settings, self._clock.now_ms(), effects)
        self._run(group, effects)
        self._image.forget_trace(group)

    def _forget_timers(self, group: ClassicGroup) -> None:
        # A group that was only named by a request must leave nothing in memory.
        if not self.running[group.group_id]:
            del self.running[group.group_id]

    def _persist(self, group: ClassicGroup, effect: Persist, effects: Effects) -> None:
        try:
            self._check_size(effect.value)
            self._check_room(group, effect.value)
            waiting = self._append(group.group_id, [group_record(group.group_id, effect.value)])
        except BrokerError as error:
            self._persisted(group, effect.ticket, error.code, effects)
            return
        if waiting is None:
            self._persisted(group, effect.ticket, ErrorCode.NONE, effects)
        else:
            waiting.add_done_callback(partial(self._persisted_later, group, effect.ticket))

    def _check_size(self, value: GroupMetadataValue) -> None:
        """Raises BrokerError for a record that the log would refuse, before many megabytes are built."""
        bytes_max = self._partition.log.config.max_message_bytes
        if size_bytes_min(value) > bytes_max:
            problem = f"the group's record has more than {bytes_max} bytes (max.message.bytes)"
            raise answered(BrokerError(ErrorCode.MESSAGE_TOO_LARGE, problem))

    def _check_room(self, group: ClassicGroup, value: GroupMetadataValue) -> None:
        """Raises COORDINATOR_NOT_AVAILABLE for assignments that find no room, so that the members come again."""
        growth = sum(len(member.assignment) for member in value.members)
        growth -= sum(len(member.assignment) for member in group.members.values())
        if not has_room_for(growth, self.room_bytes):
            problem = f"other groups of the partition take the {MEMBERS_BYTES_MAX} bytes that members may take"
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, problem)

    def _persisted_later(self, group: ClassicGroup, ticket: int, waiting: Waiting) -> None:
        effects = Effects()
        self._persisted(group, ticket, waiting.result(), effects)
        self._run(group, effects)

    def _persisted(self, group: ClassicGroup, ticket: int, error: ErrorCode, effects: Effects) -> None:
        persisted(group, ticket, error, self._settings, self._clock.now_ms(), effects)


def answer(effect: Respond) -> None:
    """Answer a request, whose connection may be gone."""
    token = effect.token
    assert isinstance(token, asyncio.Future)
    future: asyncio.Future[Message] = token
    if not future.done():
        future.set_result(effect.response)
