"""A broker registers, and is taken out of the cluster.

A registration begins fenced: the broker leads nothing until it has replayed its own registration and asked for more
(`heartbeats`). Its epoch is the offset of the registration in the log, so whatever an earlier incarnation still
sends is told apart.

A second process under the same id is refused while the first is unfenced or still heard of, unless it names one of
the first's directories: a directory is locked by the process that uses it, so one of the two is gone. Which one, the
order in which two registrations arrive does not say: the network may deliver what a process sent long after it was
killed. So a registration is refused, whatever it names, as long as the connection stands by which the present
incarnation is heard. A process that was killed has lost it, and its successor comes back at once, where Apache Kafka
refuses it until the old session has ended.

The broker says which epoch its logs were closed in. Where that is not the one of the registration before, it stopped
uncleanly: its logs may lack their ends, and it is no longer an eligible leader of anything (KIP-966).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import BY_DEFAULT, Policy
from kavka_broker.core.metadata.decide.leadership import forfeit, withdraw
from kavka_broker.core.metadata.image.brokers import NOT_CHOSEN, Endpoint, Registration
from kavka_broker.core.metadata.image.features import ELR_FEATURE, KRAFT_VERSION, METADATA_VERSION, RELEASES, named
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.register_controller_record import RegisterControllerRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from kavka_broker.protocol.uuids import to_text

UNKNOWN_EPOCH: Final = -1
RESERVED_DIRECTORIES: Final = 100
assert all(int.from_bytes(stand_in) < RESERVED_DIRECTORIES for stand_in in NOT_CHOSEN), "a broker may take a stand-in"


class Presence(Enum):
    """What the controller knows of the process of a registration."""

    SILENT = auto()  # no sign of life, or none for a whole session
    HEARD = auto()  # a sign of life within its session, but its connection was lost or is not known yet
    CONNECTED = auto()  # the connection by which it was heard still stands


@dataclass(frozen=True, slots=True)
class Register:
    """A broker as it registers. `previous_epoch` is the one in which its logs were closed cleanly, or -1."""

    broker_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    directories: tuple[bytes, ...]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rack: str | None = None
    previous_epoch: int = UNKNOWN_EPOCH


def register(
    metadata: Metadata, command: Register, policy: Policy = BY_DEFAULT, *, present: Presence = Presence.SILENT
) -> Decision[int]:
    """Register a broker, fenced; answers its epoch. `present`: the state of its former process. Raises BrokerError."""
    before = metadata.brokers.get(command.broker_id)
    _check_directories(metadata, command)
    assert before is None or before.epoch < metadata.next_offset, f"{before} was registered behind the log's end"
    _check_features(metadata, command)
    registration = Registration(
        broker_id=command.broker_id,
        epoch=metadata.next_offset,
        incarnation_id=command.incarnation_id,
        endpoints={endpoint.name: endpoint for endpoint in command.endpoints},
        features=dict(sorted(command.features.items())),
        rack=command.rack,
        directories=command.directories,
    )
    assert not registration.usable, "a registration begins fenced"
    if before is None:
        return Decision([registration.record()], registration.epoch)
    if before.incarnation_id == command.incarnation_id:
        return _again(before, registration)
    _check_replaces(before, command, present)
    return Decision([registration.record(), *_replaced(metadata, before, command, policy)], registration.epoch)


def unregister(metadata: Metadata, broker_id: int, policy: Policy = BY_DEFAULT) -> Decision[None]:
    """Forget a broker. Its replicas stay assigned to it, and are found if it comes back. Raises BrokerError."""
    registration = metadata.brokers.get(broker_id)
    if registration is None:
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    records: list[Message] = [*forfeit(metadata, broker_id, policy)]
    records.append(UnregisterBrokerRecord(broker_id, registration.epoch))
    return Decision(records, None)


def register_controller(metadata: Metadata, record: RegisterControllerRecord) -> Decision[None]:
    """Remember where a controller listens and what it supports; an equal record is not written. Raises BrokerError."""
    for name, level in metadata.features.levels.items():
        supported = {feature.name: feature for feature in record.features}.get(name)
        if supported is not None and not supported.min_supported_version <= level <= supported.max_supported_version:
            raise _unsupported(
                f"controller {record.controller_id}",
                name,
                level,
                (supported.min_supported_version, supported.max_supported_version),
            )
    return Decision([] if record in metadata.brokers.controllers() else [record], None)


def _again(before: Registration, registration: Registration) -> Decision[int]:
    """Register the same process once more: it lost the answer, or has something to add. Its epoch stays."""
    assert before.broker_id == registration.broker_id, f"{registration.broker_id} is not {before.broker_id}"
    assert before.incarnation_id == registration.incarnation_id, f"broker {before.broker_id} is another process"
    now = replace(
        registration,
        epoch=before.epoch,
        fenced=before.fenced,
        in_controlled_shutdown=before.in_controlled_shutdown,
        cordoned_directories=before.cordoned_directories,
    )
    return Decision([] if now == before else [now.record()], before.epoch)


def _replaced(metadata: Metadata, before: Registration, command: Register, policy: Policy) -> Iterator[Message]:
    """Give up what the former incarnation held. A directory that did not come back took its replicas along."""
    assert before.incarnation_id != command.incarnation_id, f"broker {before.broker_id} takes its own place"
    if not metadata.features.level(ELR_FEATURE):
        yield from withdraw(metadata, command.broker_id, policy)
        return
    clean = before.epoch == command.previous_epoch
    kept = (*command.directories, *NOT_CHOSEN) if clean else ()
    yield from withdraw(metadata, command.broker_id, policy, directories=kept)
    yield from forfeit(metadata, command.broker_id, policy, kept=kept)


def _check_replaces(before: Registration, command: Register, present: Presence) -> None:
    assert before.broker_id == command.broker_id, f"{command.broker_id} takes the place of {before.broker_id}"
    shares = bool(set(before.directories) & set(command.directories))
    is_gone = before.fenced and present is Presence.SILENT
    if present is not Presence.CONNECTED and (shares or is_gone):
        return
    problem = (
        f"broker {command.broker_id} runs already, with incarnation {to_text(before.incarnation_id)} at epoch "
        f"{before.epoch} and {'the same' if shares else 'other'} directories; stop it, or give this one another node.id"
    )
    raise BrokerError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, problem)


def _check_directories(metadata: Metadata, command: Register) -> None:
    who = f"broker {command.broker_id}"
    if not command.directories:
        raise _refused(f"{who} names no log directory")
    if len(set(command.directories)) < len(command.directories):
        raise _refused(f"{who} names a log directory twice")
    for directory in command.directories:
        if int.from_bytes(directory) < RESERVED_DIRECTORIES:
            raise _refused(f"{who} names the directory id {to_text(directory)}, which is reserved")
    for other in metadata.brokers:
        if other.broker_id == command.broker_id:
            continue
        for directory in set(command.directories) & set(other.directories):
            problem = f"{who} names the directory {to_text(directory)}, which belongs to broker {other.broker_id}"
            raise _refused(f"{problem}; was the directory copied?")


def _check_features(metadata: Metadata, command: Register) -> None:
    for name, level in metadata.features.levels.items():
        supported = command.features.get(name)
        if supported is None and name == KRAFT_VERSION:
            continue  # a level of the quorum alone, which older brokers do not name
        low, high = supported or (0, 0)
        if not low <= level <= high:
            raise _unsupported(f"broker {command.broker_id}", name, level, (low, high))


def _unsupported(who: str, name: str, level: int, supported: tuple[int, int]) -> BrokerError:
    problem = f"the cluster uses {named(name, level)}; {who} supports {supported[0]} to {supported[1]}"
    if level < supported[0] and name == METADATA_VERSION:
        release = RELEASES.get(supported[0], str(supported[0])).partition("-")[0]
        problem += f"; raise it: kafka-features.sh --bootstrap-server HOST:PORT upgrade --release-version {release}"
    return BrokerError(ErrorCode.UNSUPPORTED_VERSION, problem)


def _refused(problem: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REGISTRATION, problem)
