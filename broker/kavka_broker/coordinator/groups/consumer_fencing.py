"""Which members of consumer groups end for their silence, and when."""

from collections.abc import Callable
from functools import partial

from kavka_broker.coordinator.groups.group_commands import Command, GroupCommands
from kavka_broker.coordinator.groups.member_fencing import MemberFencing
from kavka_broker.coordinator.groups.member_timers import TimerKind
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember, MemberState
from kavka_broker.protocol.errors import BrokerError, ErrorCode


class ConsumerFencing(MemberFencing[ConsumerGroup, rules.Change]):
    """Has the timers of all members."""

    def __init__(
        self,
        existing: Callable[[str], ConsumerGroup],
        settings: Callable[[str], ConsumerGroupSettings],
        around: Callable[[], rules.Surroundings],
        commands: GroupCommands[ConsumerGroup, rules.Change],
        is_large: Callable[[str], bool],
        group_log: ShardLog,
        pacing: Pacing,
    ) -> None:
        super().__init__(self._ending, commands, is_large, group_log, pacing)
        self._existing = existing
        self._settings = settings
        self._around = around

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

    def _ending(
        self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None
    ) -> Command[ConsumerGroup, rules.Change]:
        """Raises BrokerError."""
        group = self._existing(group_id)
        member = group.members.get(member_id)
        if member is None or not is_due(member, kind, epoch):
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        around = self._around()
        decide = partial(rules.fence, members=[member], settings=self._settings(group_id), around=around)
        return Command(group, decide, around)


def is_due(member: ConsumerMember, kind: TimerKind, epoch: int | None) -> bool:
    """Whether the member is still to be ended for what the timer was started for."""
    match kind:
        case TimerKind.SESSION:
            return True
        case TimerKind.REVOCATION:
            return member.state is MemberState.UNREVOKED_PARTITIONS and member.epoch == epoch
    return member.classic is not None
