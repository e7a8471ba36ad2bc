"""Alter configs one key at a time (KIP-339): set, delete, add to a list, take from a list; or replace them all.

What comes out is checked whole before a record is written, so two keys that cannot stand together never do. What says
the same as before writes nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kavka_broker.core.config.broker import KEYS, definition_of
from kavka_broker.core.config.cordoned import KEY as CORDONED
from kavka_broker.core.config.definition import ConfigError, ConfigType, Definition, Mode, render, split_list
from kavka_broker.core.config.dynamic import check_altered, check_group
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.topic import check_topic_config
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from kavka_broker.core.config.unserved_configs import check_promises
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import MIN_INSYNC
from kavka_broker.core.metadata.decide.partition_change import difference
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.features import CORDONED_SINCE, ELR_FEATURE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topic_names import problem_with
from kavka_broker.core.metadata.image.topics import Topic
from kavka_broker.core.telemetry.subscription import SUBSCRIPTIONS_MAX, subscription
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord

#: How keys of one listener begin, which are each broker's own, also where nobody here knows them.
OF_ONE_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.")

#: Why a resource of a type needs a name.
NAMELESS: Final[Mapping[int, str]] = {
    ResourceType.TOPIC: "a topic needs a name; what all topics share is altered on the brokers",
    ResourceType.GROUP: "a group needs a name; groups have no common default to alter",
    ResourceType.CLIENT_METRICS: "a subscription to client metrics needs a name; they have no common default to alter",
}


class Operation(IntEnum):
    """Operations on a config, with the numbers of the protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one key of one resource. `value` is ignored in a DELETE."""

    name: str
    operation: int
    value: str | None = None


def alter_configs(metadata: Metadata, resource: Resource, changes: Sequence[Change]) -> Decision[None]:
    """Make the records of all changes of one resource. Raises BrokerError where one change is refused."""
    _check_resource(metadata, resource)
    names = [change.name for change in changes]
    _check_once(names)
    before = metadata.configs.of(resource)
    after = dict(before)
    for change in changes:
        _apply(after, change, resource)
    _check_outcome(metadata, resource, after, names)
    _check_min_insync(metadata, resource, names, after)
    changed = [name for name in names if before.get(name) != after.get(name)]
    records: list[Message] = [ConfigRecord(resource.type, resource.name, name, after.get(name)) for name in changed]
    assert len(records) <= len(changes), f"{len(records)} records of {len(changes)} changes"
    return Decision([*records, *_forget_eligible(metadata, resource, changed, after)], None)


def replace_configs(metadata: Metadata, resource: Resource, said: Sequence[tuple[str, str | None]]) -> Decision[None]:
    """Make the records after which a resource has these configs and no others. Raises BrokerError."""
    if missing := [name for name, value in said if value is None]:
        raise _request(f"{', '.join(missing)}: has no value; leave the key out for its default")
    _check_once([name for name, _ in said])
    values = {name: value for name, value in said if value is not None}
    if resource.type == ResourceType.TOPIC and resource.name:  # values are judged first, as in Kafka
        _check_outcome(metadata, resource, values, ())
    dropped = [Change(name, Operation.DELETE) for name in metadata.configs.of(resource) if name not in values]
    changes = [Change(name, Operation.SET, value) for name, value in values.items()]
    return alter_configs(metadata, resource, [*dropped, *changes])


def _check_once(names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _request(f"{', '.join(twice)}: named twice in one request; send each key once")


def _check_resource(metadata: Metadata, resource: Resource) -> None:
    match resource.type:
        case kind if kind in NAMELESS and not resource.name:
            raise _request(NAMELESS[kind])
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS:
            return
        case ResourceType.TOPIC:
            if (problem := problem_with(resource.name)) is not None:
                raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
            if metadata.topics.get(resource.name) is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{resource.name}'")
        case ResourceType.BROKER:
            if resource.name and not (resource.name.isascii() and resource.name.isdigit()):
                raise _request(f'"{resource.name}" is not a broker; write its id, or nothing for all brokers')
            if resource.name and not metadata.brokers.knows(int(resource.name)):
                raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no node {resource.name}")
        case other:
            raise _request(f"resources of type {other} have no configs that can be altered here")


def _apply(values: dict[str, str], change: Change, resource: Resource) -> None:
    if change.operation not in tuple(Operation):
        words = "0 sets, 1 deletes, 2 appends, 3 subtracts"
        raise _request(f"{change.name}: {change.operation} is not an operation; {words}")
    if change.operation == Operation.DELETE:
        values.pop(change.name, None)
        return
    if change.value is None:
        raise _request(f"{change.name}: has no value; delete the key for its default")
    definition = _definitions(resource).get(change.name)
    if change.operation == Operation.SET:
        values[change.name] = change.value if definition is None else definition.without_duplicates(change.value)
        return
    if definition is None or definition.type is not ConfigType.LIST:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f"{change.name}: is not a list that can be appended to; set it instead"
        )
    # Invariant: a list that was set to nothing is empty; only a key that was not set has its default.
    text = values[change.name] if change.name in values else render(definition.default) or ""
    items = list(dict.fromkeys(split_list(text)))
    for item in map(str.strip, change.value.split(",")):
        if change.operation == Operation.APPEND and item not in items:
            items.append(item)
        elif change.operation == Operation.SUBTRACT and item in items:
            items.remove(item)
    if change.operation == Operation.APPEND and "" in items and len(items) > 1:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f'{change.name}: "{change.value}" has an empty item; write items like a,b'
        )
    values[change.name] = ",".join(items)


def _definitions(resource: Resource) -> Mapping[str, Definition]:
    match resource.type:
        case ResourceType.TOPIC:
            return TOPIC_KEYS
        case ResourceType.GROUP:
            return GROUP_KEYS
        case ResourceType.CLIENT_METRICS:
            return {}  # as in Kafka, which lets none of their lists be appended to
    return KEYS


def _check_outcome(metadata: Metadata, resource: Resource, values: Mapping[str, str], changed: Sequence[str]) -> None:
    try:
        match resource.type:
            case ResourceType.TOPIC:
                check_topic_config(values)
            case ResourceType.GROUP:
                check_group(values)
            case ResourceType.CLIENT_METRICS:
                subscription(resource.name, values)
                _check_room(metadata, resource)
            case ResourceType.BROKER:
                _check_broker(metadata, resource, values, changed)
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None


def _check_room(metadata: Metadata, resource: Resource) -> None:
    """Check that one subscription more may be. Raises BrokerError (POLICY_VIOLATION)."""
    is_new = not metadata.configs.of(resource)
    if is_new and len(metadata.configs.resources(resource.type)) >= SUBSCRIPTIONS_MAX:
        problem = f"there are {SUBSCRIPTIONS_MAX} subscriptions to client metrics, which is the most; delete one"
        raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)


def _check_min_insync(metadata: Metadata, resource: Resource, changed: Sequence[str], after: Mapping[str, str]) -> None:
    """Check the bound on in-sync replicas: with eligible leader replicas (KIP-966) all brokers need the same one."""
    if MIN_INSYNC not in changed or resource.type != ResourceType.BROKER or not metadata.features.level(ELR_FEATURE):
        return
    if resource.name:
        problem = "cannot differ between brokers while eligible leader replicas are in use; alter it for all brokers"
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"{MIN_INSYNC}: {problem}")
    if MIN_INSYNC not in after:
        problem = "cannot be left out for all brokers while eligible leader replicas are in use; set it"
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"{MIN_INSYNC}: {problem}")


def _forget_eligible(
    metadata: Metadata, resource: Resource, changed: Sequence[str], after: Mapping[str, str]
) -> Iterator[Message]:
    """Clear the eligible replicas, counted by the old bound; with another they are counted again (KIP-966).

    A topic that says for itself what was so already keeps them: the same bound counts the same.
    """
    if MIN_INSYNC not in changed or not metadata.features.level(ELR_FEATURE):
        return
    match resource:
        case Resource(ResourceType.TOPIC, name):
            common = metadata.configs.all_brokers().get(MIN_INSYNC)
            is_same = metadata.configs.topic(name).get(MIN_INSYNC, common) == after.get(MIN_INSYNC, common)
            topics = [topic] if (topic := metadata.topics.get(name)) is not None and not is_same else []
        case Resource(ResourceType.BROKER, ""):
            topics = [topic for topic in metadata.topics if MIN_INSYNC not in metadata.configs.topic(topic.name)]
        case _:
            topics = []
    for topic in topics:
        yield from _cleared(topic)


def _cleared(topic: Topic) -> Iterator[Message]:
    """Records that clear. Without an ISR the eligible replicas stay: nothing was written since they were counted."""
    counted = {index: state for index, state in topic.partitions.items() if state.elr or state.last_known_elr}
    if counted and all(state.isr for state in counted.values()):
        yield ClearElrRecord(topic.name)
        return
    for index, state in counted.items():
        change = difference(topic.topic_id, index, state, state._replace(elr=(), last_known_elr=()))
        if state.isr and change is not None:
            yield change


def _check_broker(metadata: Metadata, resource: Resource, values: Mapping[str, str], changed: Sequence[str]) -> None:
    """Check a broker's configs. Raises BrokerError (INVALID_REQUEST), as the broker that was asked does in Kafka."""
    common = metadata.configs.all_brokers() if resource.name else {}
    said, before = {**common, **values}, {**common, **metadata.configs.of(resource)}
    for name in changed:
        if name not in values:
            continue
        try:
            check_promises({name: values[name]})
            definition = definition_of(name)
            if definition is not None:  # otherwise, as in Kafka, a plugin of some broker may know the key
                _check_mode(definition, every_broker=not resource.name)
                _check_level(metadata, name, values[name])
                check_altered(name, values[name], said, before)
            elif not resource.name and OF_ONE_LISTENER.match(name):
                raise ConfigError(name, "is of one listener; alter it for each broker")
        except ConfigError as error:
            raise _request(str(error)) from None


def _check_level(metadata: Metadata, name: str, value: str) -> None:
    level = metadata.features.metadata_version
    if name == CORDONED and value and level < CORDONED_SINCE:
        raise ConfigError(name, f"metadata.version {level} cannot keep it; raise it to {CORDONED_SINCE} or more")


def _check_mode(definition: Definition, *, every_broker: bool) -> None:
    match definition.mode:
        case Mode.READ_ONLY:
            raise ConfigError(definition.name, "is read when a broker starts; write it into the broker's file")
        case Mode.PER_BROKER if every_broker:
            raise ConfigError(definition.name, "belongs to one broker; alter it there")


def _request(problem: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, problem)
