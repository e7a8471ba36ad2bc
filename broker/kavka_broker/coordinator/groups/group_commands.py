"""Commands on groups of the newer protocols, each worked out in its turn and, on a large group, in a thread.

What a command comes to is worked out on a copy of its group, which takes the group's place when it is carried out. The
commands on a group that come while a thread works wait for their turns; nothing else changes a group, so that what was
worked out is still right when it is carried out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from kavka_broker.coordinator.groups.group_table import G
from kavka_broker.coordinator.groups.transactional_offsets import Waiting
from kavka_broker.coordinator.shard_log import ShardLog
from kavka_broker.core.consumer_group.heartbeat import Change, Surroundings
from kavka_broker.core.group.records import KeyedRecord, batch_of
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.streams_group.heartbeat import StreamsChange
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message


class Decided(Protocol):
    """The change that a command comes to, and by how much its group grows."""

    @property
    def records(self) -> Sequence[KeyedRecord]: ...
    @property
    def growth_bytes(self) -> int: ...


C = TypeVar("C", bound=Decided)
R = TypeVar("R")
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


class Effects(Protocol[G, C]):
    """The groups that commands change, as far as they are not in the log."""

    def check_current(self, outcome: Outcome[G, C]) -> None:
        """Check again what others may have changed while a thread worked. Raises BrokerError."""

    def replace(self, outcome: Outcome[G, C]) -> None:
        """Put a group in the place of what it was: its records have been appended."""

    def follow_up(self, outcome: Outcome[G, C]) -> None:
        """Change what no record says: timers, and what this coordinator alone knows."""


class GroupCommands(Generic[G, C]):
    """Decides on commands, appends their records and then changes the groups, on the loop.

    `turns` are those of all groups, whichever protocol their members speak.
    """

    def __init__(
        self,
        groups: Effects[G, C],
        replay: Replay[G],
        group_log: ShardLog,
        turns: ExclusiveTurns,
        threads: RequestThreads,
    ) -> None:
        self._groups = groups
        self._replay = replay
        self._log = group_log
        self._turns = turns
        self._threads = threads
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
            self.check_open()
            return self._carry_out(await self._threads.run(partial(work_out, prepare(), self._replay)))

    def do_regardless(
        self, group_id: str, prepare: Callable[[], Command[G, C]], *, is_large: bool
    ) -> tuple[C, Waiting | None] | Awaitable[tuple[C, Waiting | None]]:
        """Do a command that counts even if nobody waits for its answer any more. Raises BrokerError."""
        done = self.do(group_id, prepare, is_large=is_large)
        return done if isinstance(done, tuple) else asyncio.shield(asyncio.ensure_future(done))

    def check_open(self) -> None:
        """Raises NOT_COORDINATOR where another broker serves the groups by now."""
        if self._is_closed:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)

    def _carry_out(self, outcome: Outcome[G, C]) -> tuple[C, Waiting | None]:
        """Append the records and put the group in its place; returns a future of the commit. Raises BrokerError."""
        self._groups.check_current(outcome)
        if outcome.batch is None:
            waiting = self._log.when_settled()
        else:
            self._log.append(outcome.batch)
            waiting = self._log.when_committed(outcome.group.group_id)
            self._groups.replace(outcome)
        self._groups.follow_up(outcome)
        return outcome.change, waiting


def when_done(done: R | Awaitable[R], act: Callable[[R], R]) -> R | Awaitable[R]:
    """Return what `act` makes of the result of a command, later where that comes later."""
    return _act_later(done, act) if isinstance(done, Awaitable) else act(done)


async def _act_later(done: Awaitable[R], act: Callable[[R], R]) -> R:
    return act(await done)
