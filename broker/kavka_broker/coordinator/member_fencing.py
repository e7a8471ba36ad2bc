"""Ends members of consumer groups that were not heard of in time, or have not given up in time what they had to."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from kavka_broker.coordinator.group_commands import Command, GroupCommands, Heard
from kavka_broker.coordinator.group_log import GroupLog
from kavka_broker.coordinator.member_timers import MemberTimers, TimerKind
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember, MemberState
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

FENCE_AGAIN_MS: Final = 1_000
"""Before a member is fenced again whose end could not be written."""


class MemberFencing:
    """Has the timers of all members."""

    def __init__(
        self,
        existing: Callable[[str], ConsumerGroup],
        settings: Callable[[str], ConsumerGroupSettings],
        around: Callable[[], rules.Surroundings],
        commands: GroupCommands[ConsumerGroup, rules.Change],
        is_large: Callable[[str], bool],
        group_log: GroupLog,
        pacing: Pacing,
    ) -> None:
        self.timers = MemberTimers(pacing.timers, self._expired)
        self._existing = existing
        self._settings = settings
        self._around = around
        self._commands = commands
        self._is_large = is_large
        self._log = group_log

    def expect(self, group: ConsumerGroup, member: ConsumerMember, session_ms: int) -> None:
        """Start the session of a member that is known from the log, or from its classic group."""
        if member.classic is not None:
            session_ms = member.classic.session_timeout_ms
        self.timers.start(group.group_id, TimerKind.SESSION, member.member_id, session_ms)
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            self.expect_revocation(group.group_id, member)

    def expect_revocation(self, group_id: str, member: ConsumerMember) -> None:
        delay_ms = member.rebalance_timeout_ms
        self.timers.start(group_id, TimerKind.REVOCATION, member.member_id, delay_ms, member.epoch)

    def _expired(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> None:
        def fencing() -> Command[ConsumerGroup, rules.Change]:
            """Raises BrokerError where the member was heard of while others had their turns, or has gone."""
            group = self._existing(group_id)
            member = group.members.get(member_id)
            is_overdue = self.timers.is_overdue(group_id, kind, member_id)
            if member is None or not is_overdue or not is_due(member, kind, epoch):
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
            around = self._around()
            decide = partial(rules.fence, members=[member], settings=self._settings(group_id), around=around)
            return Command(group, decide, around)

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
        """Try again where the end could not be written; there is nothing to do where nothing is due."""
        if not self.timers.is_overdue(group_id, kind, member_id):
            return
        if self._log.is_closed or error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            self.timers.stop(group_id, kind, member_id)
            return
        log.warning("member.not_fenced", group=group_id, member=member_id, reason=str(error))
        self.timers.start(group_id, kind, member_id, FENCE_AGAIN_MS, epoch)


def is_due(member: ConsumerMember, kind: TimerKind, epoch: int | None) -> bool:
    """Whether the member is still to be ended for what the timer was started for."""
    match kind:
        case TimerKind.SESSION:
            return True
        case TimerKind.REVOCATION:
            return member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch == epoch
    return member.classic is not None
