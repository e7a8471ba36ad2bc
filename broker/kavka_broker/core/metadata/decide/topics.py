"""Create, delete and grow topics: what each comes to, or why not.

A command looks at an image and answers with records; the image itself is not touched. A request may hold many topics,
and each stands alone: one that is refused does not keep the others from being made.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.topic import check_topic_config
from kavka_broker.core.config.topic_bounds import PARTITIONS_PER_REQUEST_MAX
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.brokers import UNASSIGNED_DIRECTORY, Brokers
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import HASHED, check_new_name
from kavka_broker.core.metadata.image.topics import PartitionState, Topic
from kavka_broker.core.placement import TooFewBrokers, place
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord

UNSET: Final = -1

Assignments = Mapping[int, Sequence[int]]  # partition -> brokers
#: Takes a number of partitions from a quota, ahead of their records. Raises THROTTLING_QUOTA_EXCEEDED.
Take = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic to create. Counts of -1 ask for the broker's default."""

    name: str
    topic_id: bytes
    partitions: int = UNSET
    replication_factor: int = UNSET
    assignments: Assignments = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Defaults:
    """Counts for a topic that does not give its own."""

    partitions: int = 1
    replication_factor: int = 1


def defaults_of(config: BrokerConfig) -> Defaults:
    """Defaults in the file of this broker."""
    return Defaults(config["num.partitions"], config["default.replication.factor"])


@dataclass(frozen=True, slots=True)
class Created:
    """A topic that exists once the records are committed."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]

    def __post_init__(self) -> None:
        assert self.partitions >= 1, self
        assert self.replication_factor >= 1, self


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """More partitions for a topic: `count` is the new total."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def freely(_: int) -> None:
    """Take partitions from no quota."""


def create_topics(
    metadata: Metadata, commands: Sequence[CreateTopic], defaults: Defaults, take: Take = freely
) -> Decision[list[Created | BrokerError]]:
    """Create each topic, or refuse it with an error."""
    refused = _too_many(commands, defaults)
    records: list[Message] = []
    results: list[Created | BrokerError] = []
    rotation = metadata.topics.partition_count
    for command in commands:
        try:
            if refused is not None:
                raise refused
            made, created = _create(metadata, command, defaults, rotation)
            take(created.partitions)
        except BrokerError as refusal:
            results.append(refusal.as_value())
        else:
            records += made
            assert created.partitions <= PARTITIONS_PER_REQUEST_MAX, created
            rotation += created.partitions
            results.append(created)
    assert len(results) == len(commands), f"{len(results)} outcomes of {len(commands)} topics"
    return Decision(records, results)


def delete_topic(topic: Topic, take: Take = freely) -> Decision[None]:
    """Delete a topic; its configs go with it. Raises BrokerError."""
    take(len(topic.partitions))
    return Decision([RemoveTopicRecord(topic.topic_id)], None)


def _too_many(commands: Sequence[CreateTopic], defaults: Defaults) -> BrokerError | None:
    """Refuse topics that have too many partitions for one request."""
    wanted = sum(wanted_partitions(command.partitions, command.assignments, defaults) for command in commands)
    return too_many_partitions(wanted) if wanted > PARTITIONS_PER_REQUEST_MAX else None


def grow_topics(
    metadata: Metadata, commands: Sequence[GrowTopic], made_before: int = 0, take: Take = freely
) -> Decision[list[BrokerError | None]]:
    """Add partitions to each topic, or refuse it; `made_before` were made by the same request."""
    records: list[Message] = []
    results: list[BrokerError | None] = []
    rotation = metadata.topics.partition_count
    for command in commands:
        try:
            made = _grow(metadata, command, rotation, made_before + len(records))
            take(len(made))
        except BrokerError as refusal:
            results.append(refusal.as_value())
        else:
            records += made
            rotation += len(made)
            results.append(None)
    assert len(results) == len(commands), f"{len(results)} outcomes of {len(commands)} topics"
    return Decision(records, results)


def _create(
    metadata: Metadata, command: CreateTopic, defaults: Defaults, rotation: int
) -> tuple[list[Message], Created]:
    check_new_name(command.name, metadata.topics)
    configs = _checked_configs(command)
    assignments = _assignments(metadata.brokers, command, defaults, rotation)
    records: list[Message] = [TopicRecord(command.name, command.topic_id)]
    records += [ConfigRecord(ResourceType.TOPIC, command.name, name, value) for name, value in configs.items()]
    for partition, replicas in enumerate(assignments):
        state = new_partition(metadata.brokers, replicas, partition)
        records.append(state.record(command.topic_id, partition))
    created = Created(command.name, command.topic_id, len(assignments), len(assignments[0]), configs)
    assert len(records) == 1 + len(configs) + created.partitions, f"{len(records)} records make {created}"
    return records, created


def _checked_configs(command: CreateTopic) -> dict[str, str]:
    configs = {}
    for name, value in command.configs.items():
        if value is None:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"{name}: has no value; leave it out for the default")
        definition = TOPIC_KEYS.get(name)
        configs[name] = value if definition is None else definition.without_duplicates(value)
    try:
        check_topic_config(configs)
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return configs


def _assignments(brokers: Brokers, command: CreateTopic, defaults: Defaults, rotation: int) -> Sequence[Sequence[int]]:
    if command.assignments:
        return _manual(brokers, command)
    partitions, factor = command.partitions, command.replication_factor
    if factor != UNSET and factor < 1:
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, f"{factor} replicas: write 1 or more, or -1")
    if partitions != UNSET and partitions < 1:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions: write 1 or more, or -1")
    partitions = defaults.partitions if partitions == UNSET else partitions
    if factor == UNSET and (factor := defaults.replication_factor) < 1:
        problem = f"default.replication.factor is {factor}: say how many replicas"
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    return _placed(brokers, partitions, factor, rotation)


def _placed(brokers: Brokers, partitions: int, factor: int, rotation: int) -> Sequence[Sequence[int]]:
    """Place replicas on live brokers; where these are too few, the last go to registered brokers that are offline."""
    sites, away = brokers.sites(), brokers.sites_away()
    if not sites:
        raise BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"every broker is fenced or shutting down{_cordoned(brokers)}; start one",
        )
    assert partitions >= 1, partitions
    here = min(factor, len(sites)) if len(sites) + len(away) >= factor else factor
    try:
        placed = place(partitions, here, sites, rotation)
        if here == factor:
            return placed
        rest = place(partitions, factor - here, away, rotation)
    except TooFewBrokers:
        problem = f"{factor} replicas need as many brokers; there are {len(sites) + len(away)}{_cordoned(brokers)}"
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, problem) from None
    return [(*first, *last) for first, last in zip(placed, rest, strict=True)]


def _cordoned(brokers: Brokers) -> str:
    count = sum(not broker.takes_replicas for broker in brokers)
    return f", and {count} whose log directories are all cordoned" if count else ""


def _manual(brokers: Brokers, command: CreateTopic) -> list[Sequence[int]]:
    if command.replication_factor != UNSET or command.partitions != UNSET:
        problem = "brokers are named by hand, so the number of partitions and of replicas must be -1"
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
    assignments = command.assignments
    if sorted(assignments) != list(range(len(assignments))):
        raise _bad_assignment(f"partitions are {sorted(assignments)}; number them 0, 1, 2 and so on")
    first = len(assignments[0])
    for partition in range(len(assignments)):
        check_assignment(brokers, assignments[partition], partition, first)
    return [assignments[partition] for partition in range(len(assignments))]


def check_assignment(brokers: Brokers, replicas: Sequence[int], partition: int, factor: int) -> None:
    """Check that a partition can begin on these brokers. Raises BrokerError."""
    check_replicas(brokers, replicas, partition)
    if len(replicas) != factor:
        raise _bad_assignment(f"partition {partition} has {len(replicas)} replicas where others have {factor}")
    if not any(map(brokers.is_usable, replicas)):
        raise _bad_assignment(f"partition {partition} is only on brokers that are fenced or shutting down")


def check_replicas(brokers: Brokers, replicas: Sequence[int], partition: int, held_by: Sequence[int] = ()) -> None:
    """Check that these brokers can hold a partition, which some of them hold already. Raises BrokerError."""
    if not replicas:
        raise _bad_assignment(f"partition {partition} has no brokers")
    if len(set(replicas)) < len(replicas):
        raise _bad_assignment(f"partition {partition} names a broker twice: {list(replicas)}")
    for broker_id in replicas:
        registration = brokers.get(broker_id)
        if registration is None:
            raise _bad_assignment(f"partition {partition} names broker {broker_id}, which is not registered")
        if broker_id not in held_by and not registration.takes_replicas:
            problem = f"names broker {broker_id}, whose log directories are all cordoned; see cordoned.log.dirs"
            raise _bad_assignment(f"partition {partition} {problem}")


def new_partition(brokers: Brokers, replicas: Sequence[int], partition: int) -> PartitionState:
    """A partition as it begins: every usable replica in sync, the first of them leads."""
    isr = tuple(filter(brokers.is_usable, replicas))
    assert isr, f"partition {partition} would begin without an in-sync replica"
    assert len(set(replicas)) == len(replicas), f"partition {partition} would begin twice on a broker: {replicas}"
    assert all(brokers.get(replica) is not None for replica in replicas), (
        f"partition {partition} on unknown ones: {replicas}"
    )
    return PartitionState(
        replicas=tuple(replicas),
        isr=isr,
        leader=isr[0],
        directories=tuple(directory_for(brokers, broker_id) for broker_id in replicas),
    )


def directory_for(brokers: Brokers, broker_id: int) -> bytes:
    """The directory of a new replica: a broker with one has no choice; a broker with several assigns it later."""
    registration = brokers.get(broker_id)
    if registration is not None and len(registration.directories) == 1:
        return registration.directories[0]
    return UNASSIGNED_DIRECTORY


def _grow(metadata: Metadata, command: GrowTopic, rotation: int, made_before: int) -> list[Message]:
    topic = metadata.topics.get(command.name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{command.name}'")
    now, count = len(topic.partitions), command.count
    if count == now:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"'{topic.name}' has {now} partitions already")
    if count < now:
        problem = f"'{topic.name}' has {now} partitions and cannot shrink to {count}; create another topic instead"
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, problem)
    if topic.name in HASHED:
        problem = f"'{topic.name}' keeps its {now} partitions: with more, its keys would be looked for elsewhere"
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, problem)
    more, factor = count - now, topic.replication_factor
    assert more >= 1, more
    assert factor >= 1, f"topic {topic.name} has no replicas"
    if made_before + more > PARTITIONS_PER_REQUEST_MAX:
        raise too_many_partitions(made_before + more)
    if command.assignments is None:
        assignments = _placed(metadata.brokers, more, factor, rotation)
    else:
        assignments = command.assignments
        if len(assignments) != more:
            raise _bad_assignment(f"{more} partitions are new and {len(assignments)} have brokers named")
        for index, replicas in enumerate(assignments):
            check_assignment(metadata.brokers, replicas, now + index, factor)
    assert len(assignments) == more, f"{len(assignments)} partitions are placed, and {more} are new"
    return [
        new_partition(metadata.brokers, replicas, partition).record(topic.topic_id, partition)
        for partition, replicas in enumerate(assignments, now)
    ]


def wanted_partitions(partitions: int, assignments: Sized, defaults: Defaults) -> int:
    """Partitions that the topic would have at most; an assignment names each, a number is one or `UNSET`."""
    if assignments:
        return len(assignments)
    return defaults.partitions if partitions == UNSET else max(partitions, 0)


def too_many_partitions(wanted: int) -> BrokerError:
    """The error for more partitions than one request can make."""
    problem = f"{wanted} partitions in one request; {PARTITIONS_PER_REQUEST_MAX} are allowed, ask in smaller parts"
    return BrokerError(ErrorCode.POLICY_VIOLATION, problem)


def _bad_assignment(problem: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
