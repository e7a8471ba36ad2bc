"""What the expressions of groups match, kept up to date in the background (KIP-848).

They are matched again when topics have come or gone, and after a while, as rights may have changed; by the rights of
the member that was heard of last. Each is taken by a command of its own: all of a group in one batch could be more than
the log takes.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.group_commands import Command, GroupCommands
from kavka_broker.coordinator.groups.topic_expressions import Rights, TopicExpressions
from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.core.consumer_group import heartbeat as rules
from kavka_broker.core.consumer_group.heartbeat import Change, Surroundings
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

AGAIN_MS = 10_000
"""Before a group's expressions are matched again of which one could not be taken."""

Matched = Mapping[str, frozenset[str]]
Around = Callable[[Matched | None, int], Surroundings]
"""What a command finds: with what expressions match, as of this number of changes of topics."""


class ExpressionUpkeep:
    """Matches the expressions of `groups` again, when they are due."""

    def __init__(
        self,
        groups: Mapping[str, ConsumerGroup],
        topics: DeletedTopics,
        expressions: TopicExpressions,
        commands: GroupCommands[ConsumerGroup, Change],
        around: Around,
        pacing: Pacing,
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._expressions = expressions
        self._commands = commands
        self._around = around
        self._clock = pacing.clock
        self._timers = pacing.timers
        self.at_work = set[str]()  # groups whose expressions are being matched, or could not be taken just now

    def look(self, group: ConsumerGroup, refresh_interval_ms: int, may_describe: Rights) -> None:
        """Begin to match the expressions of a group where that is due."""
        group_id, topics_seen = group.group_id, self._topics.changes
        if group_id in self.at_work:
            return
        if rules.is_match_due(group, topics_seen, self._clock.now_ms(), refresh_interval_ms):
            self.at_work.add(group_id)
            work = self._match_all(group_id, list(group.expressed), topics_seen, may_describe)
            watch(asyncio.get_running_loop().create_task(work, name="match expressions"))

    async def _match_all(self, group_id: str, regexes: Sequence[str], topics_seen: int, may_describe: Rights) -> None:
        try:
            for regex in regexes:
                await self._take(group_id, regex, topics_seen, await self._readable(group_id, regex, may_describe))
            if group_id in self._groups:
                await self._commands.do_in_turn(group_id, partial(self._command, group_id, topics_seen, None))
        except BrokerError as error:
            log.warning("expressions.not_matched", group=group_id, reason=str(error))
            self._timers.after(AGAIN_MS, self.at_work.discard, group_id)
        else:
            self.at_work.discard(group_id)

    async def _readable(self, group_id: str, regex: str, may_describe: Rights) -> frozenset[str]:
        """Return what an expression of the log matches: nothing where this broker cannot read it."""
        try:
            return await self._expressions.match(regex, may_describe)
        except BrokerError as error:
            log.warning("expression.not_read", group=group_id, reason=str(error))
            return frozenset()

    async def _take(self, group_id: str, regex: str, topics_seen: int, topics: frozenset[str]) -> None:
        """Raises BrokerError."""
        group = self._groups.get(group_id)
        if group is not None and regex in group.expressed and group.matched.get(regex) != topics:
            command = partial(self._command, group_id, topics_seen, {regex: topics})
            await self._commands.do_in_turn(group_id, command)

    def _command(self, group_id: str, topics_seen: int, matched: Matched | None) -> Command[ConsumerGroup, Change]:
        """The command that takes what expressions match; None where all have been taken. Raises BrokerError."""
        group, around = self._groups.get(group_id), self._around(matched, topics_seen)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        return Command(group, all_taken if matched is None else partial(rules.match, around=around), around)


def all_taken(group: ConsumerGroup) -> Change:
    """The change of a group whose expressions have all been matched."""
    return Change(has_matched_all=group.expressed.keys() <= group.matched.keys())
