"""Ends members that were not heard of in time, or have not given up in time what they had to."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Generic

from kavka_broker.coordinator.groups.group_commands import C, Command, GroupCommands
from kavka_broker.coordinator.groups.group_table import G
from kavka_broker.coordinator.groups.member_timers import MemberTimers, TimerKind
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

FENCE_AGAIN_MS: Final = 1_000
"""Before a member is fenced again whose end could not be written."""


class MemberFencing(Generic[G, C]):
    """Has the timers of all members. `fence` prepares the end of a member, and raises UNKNOWN_MEMBER_ID where the
    member has gone, or what its timer was started for is not due any more.
    """

    def __init__(
        self,
        fence: Callable[[str, TimerKind, str, int | None], Command[G, C]],
        commands: GroupCommands[G, C],
        is_large: Callable[[str], bool],
        group_log: ShardLog,
        pacing: Pacing,
    ) -> None:
        self.timers = MemberTimers(pacing.timers, self._expired)
        self._fence = fence
        self._commands = commands
        self._is_large = is_large
        self._log = group_log

    def _fencing(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> Command[G, C]:
        """Raises BrokerError, also where the member was heard of while others had their turns."""
        if not self.timers.is_overdue(group_id, kind, member_id):
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self._fence(group_id, kind, member_id, epoch)

    def _expired(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> None:
        fencing = partial(self._fencing, group_id, kind, member_id, epoch)
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
        self, outcome: Awaitable[Any], group_id: str, kind: TimerKind, member_id: str, epoch: int | None
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
