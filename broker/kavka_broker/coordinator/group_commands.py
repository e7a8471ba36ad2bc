"""Commands on groups of the new protocol, each worked out in its turn and, on a large group, in a thread.

What a command comes to is worked out on a copy of its group, which takes the group's place when it is carried out. The
commands on a group that come while a thread works wait for their turns; nothing else changes a group, so that what was
worked out is still right when it is carried out.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kavka_broker.coordinator.transactional_offsets import Waiting
from kavka_broker.core.consumer_group.heartbeat import Change, Surroundings
from kavka_broker.core.consumer_group.records import replay
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group.records import KeyedRecord, batch_of
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.protocol.errors import BrokerError, ErrorCode

Heard = tuple[Change, Waiting | None]
"""What a command comes to, and a future of its commit."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command on a group as it is now. `before` are records that end what the group was."""

    group: ConsumerGroup
    decide: Callable[[ConsumerGroup], Change]
    around: Surroundings
    before: Sequence[KeyedRecord] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The batch of a command's records, None without any, and the group that has them."""

    change: Change
    batch: bytearray | None
    group: ConsumerGroup
    around: Surroundings


def work_out(command: Command) -> Outcome:
    """Decide on a command. Nothing that others see changes, so that a thread may do it. Raises BrokerError."""
    change = command.decide(command.group)
    records = [*command.before, *change.records]
    if not records:
        return Outcome(change, None, command.group, command.around)
    groups = {command.group.group_id: command.group.copy()}
    for record in change.records:
        replay(groups, record.key, record.value)
    (after,) = groups.values()
    return Outcome(change, batch_of(records, command.around.now_ms), after, command.around)


class GroupCommands:
    """Does commands; `carry_out` makes what they come to true, on the loop. Raises BrokerError, both do."""

    def __init__(self, threads: RequestThreads, carry_out: Callable[[Outcome], Heard]) -> None:
        self._threads = threads
        self._carry_out = carry_out
        self._turns = ExclusiveTurns()
        self._is_closed = False

    def close(self) -> None:
        """Refuse what waits for its turn: another broker serves the groups."""
        self._is_closed = True

    def is_at_work(self, group_id: str) -> bool:
        """Whether a command on the group is being worked out: a group that is not there yet may come of it."""
        return self._turns.is_taken(group_id)

    def do(self, group_id: str, prepare: Callable[[], Command], *, is_large: bool) -> Heard | Awaitable[Heard]:
        """Do a command, which is prepared when its turn has come; later where the group is large or others wait for it.
        Raises BrokerError.
        """
        if is_large or self._turns.is_taken(group_id):
            return self.do_in_turn(group_id, prepare)
        return self._carry_out(work_out(prepare()))

    async def do_in_turn(self, group_id: str, prepare: Callable[[], Command]) -> Heard:
        """Do a command in a thread. Raises BrokerError."""
        async with self._turns.of(group_id):
            if self._is_closed:
                raise BrokerError(ErrorCode.NOT_COORDINATOR)
            return self._carry_out(await self._threads.run(work_out, prepare()))
