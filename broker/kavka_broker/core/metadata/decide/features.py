"""Raise or lower the level of a feature for the whole cluster (KIP-584, KIP-1022).

Everybody must know a level before it is used: this controller, the other controllers, every registered broker,
fenced ones too, since they may come back. Of several changes in a request all are made or none. To lower a level
must be asked for.

Eligible leader replicas need one `min.insync.replicas` on all brokers: to turn them on writes it down for all, and
takes away what single brokers said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import BY_DEFAULT, MIN_INSYNC, Policy
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.features import (
    ELIGIBLE_LEADERS_SINCE,
    ELR_FEATURE,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_LEVELS,
    is_lossy,
    named,
)
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord

assert SUPPORTED_LEVELS.keys() >= {METADATA_VERSION, KRAFT_VERSION, ELR_FEATURE}, "a feature with rules is unknown"


class Direction(IntEnum):
    """Directions of a change, with the numbers of the protocol."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class UpdateFeature:
    """The level that a feature shall have; 0 turns it off."""

    name: str
    level: int
    direction: int = Direction.UPGRADE


def update_features(
    metadata: Metadata, commands: Sequence[UpdateFeature], policy: Policy = BY_DEFAULT
) -> Decision[None]:
    """Make the records of all changes. Raises BrokerError for the first that is refused."""
    records: list[Message] = []
    seen: set[str] = set()
    for command in commands:
        if command.name in seen:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{command.name} is named twice; name it once")
        seen.add(command.name)
        _check(metadata, command)
        if command.level == metadata.features.level(command.name):
            continue
        low, high = SUPPORTED_LEVELS.get(command.name, (0, 0))
        assert command.level == 0 or low <= command.level <= high, f"{command} was let through"
        records.append(FeatureLevelRecord(command.name, command.level))
        if command.name == ELR_FEATURE and command.level:
            records += _one_bound(metadata, policy)
    return Decision(records, None)


def _check(metadata: Metadata, command: UpdateFeature) -> None:
    now, wanted = metadata.features.level(command.name), command.level
    if command.direction not in tuple(Direction):
        raise _refused(command, f"{command.direction} is not a kind of change; 1 raises, 2 and 3 lower")
    if wanted < now and command.direction == Direction.UPGRADE:
        raise _refused(command, f"its level is {now}; ask for a downgrade to lower it")
    if wanted > now and command.direction != Direction.UPGRADE:
        raise _refused(command, f"its level is {now}; a downgrade cannot raise it")
    if command.name == METADATA_VERSION and is_lossy(now, wanted):
        raise _refused(command, f"its level is {now}; what came with that would be lost")
    if command.name == ELR_FEATURE and wanted and metadata.features.metadata_version < ELIGIBLE_LEADERS_SINCE:
        needed = named(METADATA_VERSION, ELIGIBLE_LEADERS_SINCE)
        raise _refused(command, f"needs {needed}; raise that first")
    if command.name == KRAFT_VERSION and wanted != now:
        raise _refused(command, "the version of the quorum is chosen when its log directories are formatted")
    if wanted == 0 and command.name != METADATA_VERSION and command.name in SUPPORTED_LEVELS:
        return
    for who, (low, high) in _supporters(metadata, command.name):
        if not low <= wanted <= high:
            limits = f"supports {low} to {high}" if high else "does not support this feature."
            raise _refused(command, f"{who} {limits}")


def _supporters(metadata: Metadata, name: str) -> Iterator[tuple[str, tuple[int, int]]]:
    yield "this controller", SUPPORTED_LEVELS.get(name, (0, 0))
    for broker in metadata.brokers:
        if name != KRAFT_VERSION or name in broker.features:
            yield f"broker {broker.broker_id}", broker.features.get(name, (0, 0))
    for controller in metadata.brokers.controllers():
        levels = {
            feature.name: (feature.min_supported_version, feature.max_supported_version)
            for feature in controller.features
        }
        if name != KRAFT_VERSION or name in levels:
            yield f"controller {controller.controller_id}", levels.get(name, (0, 0))


def _one_bound(metadata: Metadata, policy: Policy) -> Iterator[Message]:
    if MIN_INSYNC not in metadata.configs.all_brokers():
        yield ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC, str(policy.min_insync))
    for name in metadata.configs.resources(ResourceType.BROKER):
        if name and MIN_INSYNC in metadata.configs.of(Resource(ResourceType.BROKER, name)):
            yield ConfigRecord(ResourceType.BROKER, name, MIN_INSYNC, None)


def _refused(command: UpdateFeature, problem: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_UPDATE_VERSION, f"{command.name} {command.level}: {problem}")
