"""Commands on groups of the newer protocols, each worked out in its turn and, on a large group, in a thread.

What a command comes to is worked out on a copy of its group, which takes the group's place when it is carried out. The
commands on a group that come while a thread works wait for their turns; nothing else changes a group, so that what was
worked out is still right when it is carried out.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.core.consumer_group.heartbeat import Change, Surroundings
from kavka_broker.core.group.records import KeyedRecord, batch_of
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.streams_group.heartbeat import StreamsChange
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message


class Group(Protocol):
    """A group that is replaced by changed copies of it."""

    @property
    def group_id(self) -> str: ...
    def copy(self) -> Self: ...


class Decided(Protocol):
    """The change that a command comes to."""

    @property
    def records(self) -> Sequence[KeyedRecord]: ...


G = TypeVar("G", bound=Group)
C = TypeVar("C", bound=Decided)
Replay = Callable[[dict[str, G], Message, Message | None], None]

Heard = tuple[Change, Waiting | None]
ShareHeard = tuple[ShareChange, Waiting | None]
StreamsHeard = tuple[StreamsChange, Waiting | None]
"""What a command comes to, and a future of its commit."""


@dataclass(frozen=True, slots=True)
class Command(Generic[G, C]):
    """A command on a group as it is now. `before` are records that end what the group was."""

    group: G
    decide: Callable[[G], C]
    around: Surroundings
    before: Sequence[KeyedRecord] = ()


@dataclass(frozen=True, slots=True)
class Outcome(Generic[G, C]):
    """The batch of a command's records, None without any, and the group that has them."""

    change: C
    batch: bytearray | None
    group: G
    around: Surroundings


def work_out(command: Command[G, C], replay: Replay[G]) -> Outcome[G, C]:
    """Decide on a command. Nothing that others see changes, so that a thread may do it. Raises BrokerError."""
    change = command.decide(command.group)
    records = [*command.before, *change.records]
    if not records:
        return Outcome(change, None, command.group, command.around)
    groups = {command.group.group_id: command.group.copy()}
    for record in change.records:
        replay(groups, record.key, record.value)
    after = groups.get(command.group.group_id, command.group)  # the group itself where it ends
    return Outcome(change, batch_of(records, command.around.now_ms), after, command.around)


def require_room(around: Surroundings, growth_bytes: int) -> None:
    """Check again that a change has the room that it takes: others may have taken it while a thread worked. Raises
    COORDINATOR_LOAD_IN_PROGRESS, so that the member comes again.
    """
    if not around.has_room(growth_bytes):
        raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "other groups have taken the room meanwhile")


class GroupCommands(Generic[G, C]):
    """Does commands; `carry_out` makes what they come to true, on the loop. Raises BrokerError, both do.

    `turns` are those of all groups, whichever protocol their members speak.
    """

    def __init__(
        self,
        threads: RequestThreads,
        turns: ExclusiveTurns,
        replay: Replay[G],
        carry_out: Callable[[Outcome[G, C]], tuple[C, Waiting | None]],
    ) -> None:
        self._threads = threads
        self._turns = turns
        self._replay = replay
        self._carry_out = carry_out
        self._is_closed = False

    def close(self) -> None:
        """Refuse what waits for its turn: another broker serves the groups."""
        self._is_closed = True

    def is_at_work(self, group_id: str) -> bool:
        """Whether a command on the group is being worked out: a group that is not there yet may come of it."""
        return self._turns.is_taken(group_id)

    def do(
        self, group_id: str, prepare: Callable[[], Command[G, C]], *, is_large: bool
    ) -> tuple[C, Waiting | None] | Awaitable[tuple[C, Waiting | None]]:
        """Do a command, which is prepared when its turn has come; later where the group is large or others wait for it.
        Raises BrokerError.
        """
        if is_large or self._turns.is_taken(group_id):
            return self.do_in_turn(group_id, prepare)
        return self._carry_out(work_out(prepare(), self._replay))

    async def do_in_turn(self, group_id: str, prepare: Callable[[], Command[G, C]]) -> tuple[C, Waiting | None]:
        """Do a command in a thread. Raises BrokerError."""
        async with self._turns.of(group_id):
            if self._is_closed:
                raise BrokerError(ErrorCode.NOT_COORDINATOR)
            return self._carry_out(await self._threads.run(partial(work_out, prepare(), self._replay)))
