"""The topology of a streams group beside the topics that exist: partitions of internal topics, tasks, what is missing.

The numbers of partitions are worked out as in Apache Kafka 4.3, in this order:

1. A repartition topic without a number of its own gets the largest number among the sources of the subtopology that
   writes it. Subtopologies take turns in the order of their ids until nothing new comes to be known. A subtopology
   whose turn comes counts the sources that are known by then.
2. The topics of a copartition group get the same number: that of its source topics, which exist and have to agree, or,
   where all of them are repartition topics, the fixed number or the largest.
3. A changelog topic gets the largest number among the sources of its subtopology, which is the number of its tasks.

A topic that exists has the partitions that it has, whatever was worked out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Final

from kavka_broker.core.consumer_group.subscribed_topics import Topics
from kavka_broker.core.streams_group.statuses import Status, StatusCode
from kavka_broker.core.streams_group.topology import CopartitionGroup, InternalTopic, Subtopology, Topology
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["TASKS_MAX", "ConfiguredSubtopology", "ConfiguredTopology", "configure"]

TASKS_MAX: Final = 100_000
"""Of one group. A heartbeat of 1 MiB could name a topic of 10,000 partitions in as many subtopologies."""

NAMED_MAX: Final = 3
"""Topics that a sentence names before it only counts them."""

NO_SOURCES: Final = "No source topics found for subtopology {}"
UNKNOWN_LOOP: Final = (
    "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that cannot "
    "be resolved."
)
NEVER_WRITTEN: Final = (
    "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never "
    "used as a sink topic."
)


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology with the numbers of partitions of its internal topics. Its tasks are 0 to `tasks` - 1."""

    subtopology_id: str
    tasks: int
    source_topics: frozenset[str] = frozenset()
    repartition_source_topics: Mapping[str, InternalTopic] = field(default_factory=dict)
    repartition_sink_topics: frozenset[str] = frozenset()
    state_changelog_topics: Mapping[str, InternalTopic] = field(default_factory=dict)

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have standbys."""
        return bool(self.state_changelog_topics)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology beside the topics that exist. `subtopologies` goes by their ids, in order, and is empty where the
    problem is not that internal topics are missing. `internal_topics` are those to be created.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] = field(default_factory=dict)
    internal_topics: tuple[InternalTopic, ...] = ()
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Whether its tasks can be assigned."""
        return self.problem is None


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Work out the numbers of partitions and of tasks. Raises STREAMS_INVALID_TOPOLOGY."""
    try:
        return _configure(topology, topics)
    except _ProblemFoundError as found:
        return ConfiguredTopology(topology.epoch, problem=found.problem)


class _ProblemFoundError(Exception):
    """Ends the work on a topology: no task can be assigned."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.problem = Status(code, detail)


class _Counts:
    """Numbers of partitions: of topics that exist, else as they were worked out."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.decided: dict[str, int] = {}

    def existing(self, name: str) -> int | None:
        topic = self._topics.get(name)
        return None if topic is None else len(topic.partitions)

    def get(self, name: str) -> int | None:
        count = self.existing(name)
        return self.decided.get(name) if count is None else count

    def require(self, name: str) -> int:
        """Raises STREAMS_INVALID_TOPOLOGY."""
        count = self.get(name)
        if count is None:
            raise _invalid(NEVER_WRITTEN)
        return count


def _configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Raises BrokerError, and _ProblemFoundError."""
    ordered = topology.subtopologies
    _require_sources(ordered, topics)
    counts = _Counts(topics)
    counts.decided.update(_repartition_counts(ordered, counts))
    for subtopology in ordered:
        for group in subtopology.copartition_groups:
            _copartition(subtopology, group, counts)
    tasks = {part.subtopology_id: _task_count(part, counts) for part in ordered}
    if sum(tasks.values()) > TASKS_MAX:
        raise _invalid(f"The topology has {sum(tasks.values())} tasks; at most {TASKS_MAX} are allowed.")
    configured = {part.subtopology_id: _configured(part, tasks[part.subtopology_id], counts) for part in ordered}
    missing = _missing(configured.values(), counts)
    if not missing:
        return ConfiguredTopology(topology.epoch, configured)
    problem = Status(
        StatusCode.MISSING_INTERNAL_TOPICS,
        f"Internal topics are missing: {_summary([topic.name for topic in missing])}",
    )
    return ConfiguredTopology(topology.epoch, configured, missing, problem)


def _require_sources(subtopologies: Iterable[Subtopology], topics: Topics) -> None:
    """Raises _ProblemFoundError."""
    names = {name for part in subtopologies for name in part.source_topics if topics.get(name) is None}
    if names:
        detail = f"Source topics {_summary(sorted(names))} are missing."
        raise _ProblemFoundError(StatusCode.MISSING_SOURCE_TOPICS, detail)


def _repartition_counts(ordered: Sequence[Subtopology], counts: _Counts) -> dict[str, int]:
    """The numbers of partitions of repartition topics, by name. Raises STREAMS_INVALID_TOPOLOGY."""
    fixed = {topic.name: topic.partitions for part in ordered for topic in part.repartition_source_topics}
    known = {name: count for name, count in fixed.items() if count}
    _take_turns(ordered, known, counts)
    if any(name not in known for part in ordered for name in part.repartition_sink_topics):
        raise _invalid(UNKNOWN_LOOP)
    if any(topic.name not in known for part in ordered for topic in part.repartition_source_topics):
        raise _invalid(NEVER_WRITTEN)
    return known


def _take_turns(ordered: Sequence[Subtopology], known: dict[str, int], counts: _Counts) -> None:
    """Let each subtopology give its sinks the largest number among its sources.

    A turn is (round, place in the order). A subtopology has part, the first in which any of its sources is known.
    """
    readers = dict[str, list[int]]()
    for at, part in enumerate(ordered):
        for topic in part.repartition_source_topics:
            readers.setdefault(topic.name, []).append(at)
    has_turn = {at for at, part in enumerate(ordered) if part.source_topics or _largest(part, known, counts)}
    turns = [(0, at) for at in sorted(has_turn)]  # in order, so that it is a heap
    while turns:
        round_, at = heappop(turns)
        largest = _largest(ordered[at], known, counts)
        for name in ordered[at].repartition_sink_topics:
            if name in known:
                continue
            known[name] = largest
            for reader in readers.get(name, ()):
                if reader not in has_turn:
                    has_turn.add(reader)
                    heappush(turns, (round_ if reader > at else round_ + 1, reader))


def _largest(subtopology: Subtopology, known: Mapping[str, int], counts: _Counts) -> int:
    """The largest number of partitions among the sources that are known; 0 without any."""
    found = [counts.existing(name) or 0 for name in subtopology.source_topics]
    found += [known.get(topic.name, 0) for topic in subtopology.repartition_source_topics]
    return max(found, default=0)


def _copartition(subtopology: Subtopology, group: CopartitionGroup, counts: _Counts) -> None:
    """Give the topics of a group the same number of partitions. Raises BrokerError, and _ProblemFoundError."""
    repartition = [subtopology.repartition_source_topics[at] for at in group.repartition_source_topics]
    internal = {topic.name: topic for topic in repartition}
    external = {subtopology.source_topics[at] for at in group.source_topics} - internal.keys()
    fixed = {name: counts.require(name) for name, topic in internal.items() if topic.partitions}
    flexible = {name: counts.require(name) for name in internal.keys() - fixed.keys()}
    if external:
        count = _same({name: counts.require(name) for name in external})
    elif fixed:
        count = _same(fixed, told=fixed | flexible)
    elif flexible:
        count = max(flexible.values())
    else:
        return
    for name, found in sorted(fixed.items()):
        if found != count:
            detail = (
                f"Number of partitions [{found}] of repartition topic [{name}] doesn't match number of partitions "
                f"[{count}] of the source topic."
            )
            raise _ProblemFoundError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    counts.decided.update(dict.fromkeys(internal, count))


def _same(found: Mapping[str, int], told: Mapping[str, int] | None = None) -> int:
    """The number of partitions that all topics have. Raises _ProblemFoundError."""
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    listed = ", ".join(f"{name}={count}" for name, count in sorted((told or found).items()))
    detail = f"Following topics do not have the same number of partitions: [{{{listed}}}]"
    raise _ProblemFoundError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)


def _task_count(subtopology: Subtopology, counts: _Counts) -> int:
    """Raises STREAMS_INVALID_TOPOLOGY."""
    names = [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]
    if not names:
        raise _invalid(NO_SOURCES.format(subtopology.subtopology_id))
    return max(map(counts.require, names))


def _configured(subtopology: Subtopology, tasks: int, counts: _Counts) -> ConfiguredSubtopology:
    repartition = {
        topic.name: topic if topic.partitions else replace(topic, partitions=counts.decided[topic.name])
        for topic in sorted(subtopology.repartition_source_topics, key=lambda topic: topic.name)
    }
    changelogs = {
        topic.name: replace(topic, partitions=tasks)
        for topic in sorted(subtopology.state_changelog_topics, key=lambda topic: topic.name)
    }
    return ConfiguredSubtopology(
        subtopology.subtopology_id,
        tasks,
        frozenset(subtopology.source_topics),
        repartition,
        frozenset(subtopology.repartition_sink_topics),
        changelogs,
    )


def _missing(configured: Iterable[ConfiguredSubtopology], counts: _Counts) -> tuple[InternalTopic, ...]:
    """The internal topics that do not exist, by name. Raises _ProblemFoundError for one with other partitions."""
    expected = dict[str, InternalTopic]()
    for part in configured:
        expected.update(part.repartition_source_topics)
        expected.update(part.state_changelog_topics)
    missing = list[InternalTopic]()
    for name, topic in sorted(expected.items()):
        found = counts.existing(name)
        if found is None:
            missing.append(topic)
        elif found != topic.partitions:
            detail = (
                f"Existing topic {name} has different number of partitions: expected {topic.partitions}, found {found}"
            )
            raise _ProblemFoundError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return tuple(missing)


def _summary(names: list[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} additional topics" if more > 0 else "")


def _invalid(problem: str) -> BrokerError:
    return BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, problem)
