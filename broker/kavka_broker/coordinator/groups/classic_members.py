"""Members of the classic protocol in consumer groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup of such a group.

A group may become a classic one while a command on it waits for its turn: the command goes there then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from kavka_broker.coordinator.groups.classic_groups import answer
from kavka_broker.coordinator.groups.consumer_groups import ConsumerCommand, ConsumerGroups
from kavka_broker.coordinator.groups.group_commands import Command, Heard
from kavka_broker.coordinator.groups.member_timers import TimerKind
from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.core.consumer_group import classic_members as rules
from kavka_broker.core.consumer_group.downgrade import framed_assignment
from kavka_broker.core.consumer_group.heartbeat import Change, fence
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember
from kavka_broker.core.group.effects import Respond
from kavka_broker.core.group.embedded_protocol import CONSUMER_PROTOCOL_TYPE
from kavka_broker.core.group.join import Join
from kavka_broker.core.group.membership import Departure
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.sync import Sync
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse

METADATA_BYTES_MAX: Final = 2_048
"""Of the protocols of a member that joins on the loop: to read hundreds of names takes a millisecond."""
PARTITIONS_MAX: Final = 2_000
"""Of an assignment that is encoded on the loop."""
DEPARTURES_MAX: Final = 100
"""Members that leave together in a step of the loop, which takes three milliseconds then."""

Errors = list[ErrorCode]


class ClassicMembers:
    """Serves members of the classic protocol in the groups of `consumers`."""

    def __init__(self, consumers: ConsumerGroups, settings: GroupSettings, group_log: ShardLog, pacing: Pacing) -> None:
        self._consumers = consumers
        self._settings = settings
        self._log = group_log
        self._clock = pacing.clock
        self._threads = pacing.threads
        self.partitions_max = PARTITIONS_MAX
        self.departures_max = DEPARTURES_MAX

    # --- JoinGroup ----------------------------------------------------------------------------------------------

    def join(self, group_id: str, command: Join, again: Callable[[str, Join], None]) -> bool:
        """Let the member join; returns False where the group has no members, or is a classic one. `again` takes the
        join where it is that when the join's turn comes.
        """
        group = self._consumers.get(group_id)
        if group is None or not group.members:
            return False
        try:
            self._check_first(group, command)
            is_large = _said_bytes(command) > METADATA_BYTES_MAX or self._consumers.is_large(group_id)
            joining = partial(self._joining, group_id, command)
            outcome = self._consumers.commands.do(group_id, joining, is_large=is_large)
        except BrokerError as error:
            self._refuse(command, error)
            return True
        if isinstance(outcome, tuple):
            self._joined(group_id, command, *outcome)
        else:
            work = self._join_later(group_id, command, outcome, again)
            watch(asyncio.get_running_loop().create_task(work, name="join a consumer group"))
        return True

    def _check_first(self, group: ConsumerGroup, command: Join) -> None:
        """Raises BrokerError for a member that may not join, or has to come again with an id."""
        least_ms, most_ms = self._settings.session_timeout_min_ms, self._settings.session_timeout_max_ms
        if not least_ms <= command.session_timeout_ms <= most_ms:
            raise BrokerError(ErrorCode.INVALID_SESSION_TIMEOUT)
        rules.check_join(group, command, self._settings.consumer(group.group_id))
        if _said_bytes(command) > self._log.batch_bytes_max:
            raise BrokerError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "the member's record would not fit into max.message.bytes"
            )
        if command.needs_known_id and not command.member_id and command.instance_id is None:
            raise BrokerError(ErrorCode.MEMBER_ID_REQUIRED)

    def _joining(self, group_id: str, command: Join) -> ConsumerCommand:
        """Raises BrokerError, GROUP_ID_NOT_FOUND where the group is to be joined as a classic one."""
        group, around = self._consumers.existing(group_id), self._consumers.around()
        if not group.members:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        settings = self._settings.consumer(group_id)
        return Command(group, partial(rules.join, command=command, settings=settings, around=around), around)

    async def _join_later(
        self, group_id: str, command: Join, outcome: Awaitable[Heard], again: Callable[[str, Join], None]
    ) -> None:
        try:
            self._joined(group_id, command, *await outcome)
        except BrokerError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                self._refuse(command, error)
                return
            try:
                again(group_id, command)
            except BrokerError as refusal:
                self._refuse(command, refusal)

    def _joined(self, group_id: str, command: Join, change: Change, waiting: Waiting | None) -> None:
        if change.classic is None:
            timers, member_id = self._consumers.timers, change.member_id
            timers.stop(group_id, TimerKind.JOIN, member_id)
            timers.start(group_id, TimerKind.SESSION, member_id, command.session_timeout_ms)
            timers.start(group_id, TimerKind.SYNC, member_id, command.rebalance_timeout_ms)
        response = JoinGroupResponse(
            generation_id=change.epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=command.protocols[0][0],
            member_id=change.member_id,
        )

        def respond(code: ErrorCode) -> None:
            answer(Respond(command.token, JoinGroupResponse(error_code=code) if code else response))

        when_committed(waiting, respond)

    def _refuse(self, command: Join, error: BrokerError) -> None:
        ids = {
            ErrorCode.INVALID_SESSION_TIMEOUT: command.member_id,
            ErrorCode.MEMBER_ID_REQUIRED: command.new_member_id,
        }
        response = JoinGroupResponse(error_code=error.code, member_id=ids.get(error.code, ""))
        answer(Respond(command.token, response))

    # --- SyncGroup and Heartbeat --------------------------------------------------------------------------------

    def sync(self, group_id: str, command: Sync) -> bool:
        """Tell the member what it has; returns False where the group is a classic one."""
        group = self._consumers.get(group_id)
        if group is None:
            return False
        try:
            member = rules.classic_member_of(group, command.member_id, command.instance_id, command.generation)
            self._check_sync(group, member, command)
            waiting = self._log.when_settled()
        except BrokerError as error:
            answer(Respond(command.token, SyncGroupResponse(error_code=error.code)))
            return True
        self._consumers.timers.stop(group_id, TimerKind.SYNC, member.member_id)
        self._keep_alive(group_id, member)
        if sum(map(len, member.assigned.values())) > self.partitions_max:
            work = self._assign_later(command, member, waiting)
            watch(asyncio.get_running_loop().create_task(work, name="tell a large assignment"))
        else:
            self._assign(command, self._assignment_of(member), waiting)
        return True

    def _check_sync(self, group: ConsumerGroup, member: ConsumerMember, command: Sync) -> None:
        """Raises BrokerError."""
        try:
            rules.check_sync(group, member, command.protocol_type, command.protocol_name)
        except BrokerError as error:
            if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
                self._expect_join(group.group_id, member)
            raise

    def _assignment_of(self, member: ConsumerMember) -> bytes:
        assert member.classic is not None, f"{member.member_id} speaks the new protocol"
        topics = self._consumers.around().topics
        return framed_assignment([member.assigned], topics, member.classic.protocols[0][1])

    async def _assign_later(self, command: Sync, member: ConsumerMember, waiting: Waiting | None) -> None:
        self._assign(command, await self._threads.run(self._assignment_of, member), waiting)

    def _assign(self, command: Sync, assignment: bytes, waiting: Waiting | None) -> None:
        response = SyncGroupResponse(
            protocol_type=command.protocol_type, protocol_name=command.protocol_name, assignment=assignment
        )

        def respond(code: ErrorCode) -> None:
            answer(Respond(command.token, SyncGroupResponse(error_code=code) if code else response))

        when_committed(waiting, respond)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        """Start the member's session again; the answer says whether it has to join again."""
        group = self._consumers.get(group_id)
        assert group is not None, f"{group_id} is no consumer group"
        try:
            member = rules.classic_member_of(group, member_id, instance_id, generation)
        except BrokerError as error:
            return error.code
        self._keep_alive(group_id, member)
        if not rules.has_to_rejoin(group, member, self._settings.consumer(group_id), self._clock.now_ms()):
            return ErrorCode.NONE
        self._expect_join(group_id, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _keep_alive(self, group_id: str, member: ConsumerMember) -> None:
        assert member.classic is not None, f"{member.member_id} speaks the new protocol"
        session_ms = member.classic.session_timeout_ms
        self._consumers.timers.start(group_id, TimerKind.SESSION, member.member_id, session_ms)

    def _expect_join(self, group_id: str, member: ConsumerMember) -> None:
        delay_ms = member.rebalance_timeout_ms
        self._consumers.timers.start_if_absent(group_id, TimerKind.JOIN, member.member_id, delay_ms)

    # --- LeaveGroup ---------------------------------------------------------------------------------------------

    async def leave(
        self,
        group_id: str,
        departures: Sequence[Departure],
        again: Callable[[str, Sequence[Departure]], Errors | Awaitable[Errors]],
    ) -> Errors:
        """Let members of either protocol leave, all in one step: the error of each departure. `again` takes them where
        the group is a classic one when their turn comes.
        """
        errors: Errors = []
        try:
            outcome = self._consumers.commands.do(
                group_id,
                partial(self._leaving, group_id, departures, errors),
                is_large=len(departures) > self.departures_max or self._consumers.is_large(group_id),
            )
            # The members leave even if their answer is not waited for any more.
            _, committed = (
                outcome if isinstance(outcome, tuple) else await asyncio.shield(asyncio.ensure_future(outcome))
            )
            code = ErrorCode.NONE if committed is None else await committed
        except BrokerError as error:
            code = error.code
            if code is ErrorCode.GROUP_ID_NOT_FOUND:
                left = again(group_id, departures)
                return left if isinstance(left, list) else await left
        errors = errors or [ErrorCode.NONE] * len(departures)
        return [error or code for error in errors]

    def _leaving(self, group_id: str, departures: Sequence[Departure], errors: Errors) -> ConsumerCommand:
        """Raises BrokerError. `errors` has that of each departure then."""
        group, around = self._consumers.existing(group_id), self._consumers.around()
        members = dict[str, ConsumerMember]()
        for departure in departures:
            try:
                member = rules.leaving(group, departure.member_id, departure.instance_id)
                members[member.member_id] = member
                errors.append(ErrorCode.NONE)
            except BrokerError as error:
                errors.append(error.code)
        if not members:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, "none of them is a member")
        settings = self._settings.consumer(group_id)
        decide = partial(fence, members=list(members.values()), settings=settings, around=around)
        return Command(group, decide, around)


def _said_bytes(command: Join) -> int:
    """The bytes of all protocols, which the member's record has."""
    return sum(len(name) + len(metadata) for name, metadata in command.protocols)


def when_committed(waiting: Waiting | None, respond: Callable[[ErrorCode], None]) -> None:
    """Call `respond` with the error of the commit once it is there."""
    if waiting is None:
        respond(ErrorCode.NONE)
    else:
        waiting.add_done_callback(lambda done: respond(done.result()))
