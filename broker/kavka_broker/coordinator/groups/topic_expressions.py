"""Which topics a regular expression of a consumer group's member matches (KIP-848).

An expression has to match the whole name, and counts for topics alone that the member may DESCRIBE. Matching one with
10,000 names takes a tenth of a second, and seconds with the worst: a thread does it, some names a turn, so that others'
commands come in between.
"""

from collections.abc import Callable, Sequence

from kavka_broker.coordinator.pacing import Pacing
from kavka_broker.core.client_names import shortened
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.core.regular_expressions import Pattern, PatternError
from kavka_broker.protocol.errors import BrokerError, ErrorCode

NAMES_PER_TURN = 500
"""That are matched, or whose rights are looked at, in one turn."""

Rights = Callable[[str], bool] | None
"""Whether a topic may be described; None where every one may."""


class TopicExpressions:
    """Matches expressions with the topics that there are."""

    def __init__(self, topics: Topics, pacing: Pacing) -> None:
        self._topics = topics
        self._threads = pacing.threads
        self._slices = pacing.slices

    async def match(self, regex: str, may_describe: Rights) -> frozenset[str]:
        """Return the topics of an expression. Raises INVALID_REGULAR_EXPRESSION."""
        names = [topic.name for topic in self._topics]
        pattern = await self._threads.run(compiled, regex)
        matching: list[str] = []
        for start in range(0, len(names), NAMES_PER_TURN):
            matching += await self._threads.run(matching_of, pattern, names[start : start + NAMES_PER_TURN])
        return frozenset(await self._visible(matching, may_describe))

    async def _visible(self, names: list[str], may_describe: Rights) -> list[str]:
        if may_describe is None:
            return names
        visible: list[str] = []
        async for some in self._slices.in_turns(names, NAMES_PER_TURN):
            visible += filter(may_describe, some)
        return visible


def compiled(regex: str) -> Pattern:
    """Raises INVALID_REGULAR_EXPRESSION."""
    try:
        return Pattern.compile(regex, is_of_java=False)
    except PatternError as error:
        problem = f"SubscribedTopicRegex `{shortened(regex)}` is not a valid regular expression: it {error}."
        raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, problem) from None


def matching_of(pattern: Pattern, names: Sequence[str]) -> list[str]:
    return [name for name in names if pattern.matches(name)]
