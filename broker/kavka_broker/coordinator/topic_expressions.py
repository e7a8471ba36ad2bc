"""Which topics a regular expression of a consumer group's member matches (KIP-848).

An expression has to match the whole name, and counts for topics alone that the member may DESCRIBE. Matching one with
10,000 names takes a tenth of a second: a thread does it, an expression a turn, so that nobody waits for all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.core.client_names import shortened
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.core.patterns import Pattern, PatternError
from kavka_broker.logs import get
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode

NAMES_PER_TURN = 500
"""Whose rights are looked at in one turn."""

log = get("coordinator")

Rights = Callable[[str], bool] | None
"""Whether a topic may be described; None where every one may."""

Take = Callable[[Mapping[str, frozenset[str]]], Awaitable[object]]
"""Takes the topics of each expression. Raises BrokerError."""


class TopicExpressions:
    """Matches expressions with the topics that there are."""

    def __init__(self, topics: Topics, pacing: Pacing) -> None:
        self._topics = topics
        self._threads = pacing.threads
        self._slices = pacing.slices
        self._at_work = set[str]()  # groups whose expressions are being matched again

    async def match(self, regexes: Iterable[str], may_describe: Rights) -> dict[str, frozenset[str]]:
        """Return the topics of each expression. Raises INVALID_REGULAR_EXPRESSION."""
        names = [topic.name for topic in self._topics]
        return {
            regex: frozenset(await self._visible(await self._threads.run(matching, regex, names), may_describe))
            for regex in regexes
        }

    def match_again(self, group_id: str, regexes: Sequence[str], may_describe: Rights, take: Take) -> None:
        """Match all expressions of a group in the background, unless that is under way, and have them taken."""
        if group_id in self._at_work:
            return
        self._at_work.add(group_id)
        work = self._match_all(group_id, regexes, may_describe, take)
        watch(asyncio.get_running_loop().create_task(work, name="match expressions"))

    async def _match_all(self, group_id: str, regexes: Sequence[str], may_describe: Rights, take: Take) -> None:
        try:
            await take({regex: await self._readable(group_id, regex, may_describe) for regex in regexes})
        except BrokerError as error:
            log.warning("expressions.not_matched", group=group_id, reason=str(error))
        finally:
            self._at_work.discard(group_id)

    async def _readable(self, group_id: str, regex: str, may_describe: Rights) -> frozenset[str]:
        """Return what an expression of the log matches: nothing where this broker cannot read it."""
        try:
            return (await self.match([regex], may_describe))[regex]
        except BrokerError as error:
            log.warning("expression.not_read", group=group_id, reason=str(error))
            return frozenset()

    async def _visible(self, names: list[str], may_describe: Rights) -> list[str]:
        if may_describe is None:
            return names
        visible: list[str] = []
        async for some in self._slices.in_turns(names, NAMES_PER_TURN):
            visible += filter(may_describe, some)
        return visible


def matching(regex: str, names: list[str]) -> list[str]:
    """Raises INVALID_REGULAR_EXPRESSION."""
    try:
        pattern = Pattern.compile(regex, is_of_java=False)
    except PatternError as error:
        problem = f"SubscribedTopicRegex `{shortened(regex)}` is not a valid regular expression: it {error}."
        raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, problem) from None
    return [name for name in names if pattern.matches(name)]
