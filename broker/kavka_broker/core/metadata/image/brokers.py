"""Brokers and controllers of the cluster: which are registered, where they listen, which may lead.

A broker registers with a new incarnation at each start. Its epoch is the offset of its registration in the metadata
log, so a later incarnation always has the greater epoch, and whatever an older one still sends is told apart from it.
A fenced broker is registered but leads nothing and stands in no ISR.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kavka_broker.core.placement import Site
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kavka_broker.protocol.messages.metadata.register_controller_record import RegisterControllerRecord
from kavka_broker.protocol.messages.metadata.unfence_broker_record import UnfenceBrokerRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from kavka_broker.protocol.uuids import ONE, ZERO

FENCE: Final = 1
UNFENCE: Final = -1

#: Stand-ins for the id of a directory: unassigned (none was told), migrating (the broker has yet to choose), lost.
UNTOLD_DIRECTORY: Final = ZERO
UNASSIGNED_DIRECTORY: Final = ONE
LOST_DIRECTORY: Final = bytes(15) + b"\x02"
#: The id of a directory where making a log failed: the replica counts for nothing, as a lost one does, but may be made
#: as soon as that works. No directory has this id, and Apache Kafka takes it for one that is not online.
UNMADE_DIRECTORY: Final = b"kavka: not made."
GIVEN_UP: Final = (LOST_DIRECTORY, UNMADE_DIRECTORY)
NOT_CHOSEN: Final = (UNTOLD_DIRECTORY, UNASSIGNED_DIRECTORY)
assert len({*GIVEN_UP, *NOT_CHOSEN}) == len(GIVEN_UP) + len(NOT_CHOSEN), "two stand-ins are one"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A broker's address, by the name of its listener."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True)
class Registration:
    """One broker as the cluster knows it."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned_directories: tuple[bytes, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether the broker may hold an in-sync replica and lead."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online(self, directory: bytes) -> bool:
        """Whether this directory is fit for use. One that is yet to be chosen is; one that is not registered is not."""
        if directory in GIVEN_UP:
            return False
        return directory in NOT_CHOSEN or not self.directories or directory in self.directories

    @property
    def takes_replicas(self) -> bool:
        """Whether it takes new replicas; a broker with all directories cordoned (KIP-1066) keeps those that it has."""
        return not self.directories or not set(self.directories) <= set(self.cordoned_directories)

    def record(self) -> RegisterBrokerRecord:
        """The record that registers this broker as it is now."""
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                BrokerEndpoint(endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol)
                for endpoint in self.endpoints.values()
            ],
            features=[BrokerFeature(name, low, high) for name, (low, high) in self.features.items()],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=list(self.cordoned_directories),
        )


class Brokers:
    """The registered brokers by id, and the controllers as they announced themselves."""

    def __init__(self) -> None:
        self._by_id: dict[int, Registration] = {}
        self._controllers: dict[int, RegisterControllerRecord] = {}
        self.generation = 0  # changes with every broker: answers built from an earlier generation are stale

    def get(self, broker_id: int) -> Registration | None:
        return self._by_id.get(broker_id)

    def __iter__(self) -> Iterator[Registration]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def alive(self) -> list[Registration]:
        """Brokers that are not fenced, by id."""
        return [self._by_id[broker_id] for broker_id in sorted(self._by_id) if not self._by_id[broker_id].fenced]

    def is_usable(self, broker_id: int) -> bool:
        registration = self._by_id.get(broker_id)
        return registration is not None and registration.usable

    def at_epoch(self, broker_id: int, epoch: int) -> Registration:
        """The registration that a request names. Raises BrokerError where the broker has another one, or none."""
        registration = self._by_id.get(broker_id)
        if registration is None:
            raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered")
        if registration.epoch != epoch:
            problem = f"broker {broker_id} is registered at epoch {registration.epoch}, not {epoch}"
            raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, problem)
        return registration

    def sites(self) -> list[Site]:
        """Brokers where new replicas can go."""
        return [
            Site(broker.broker_id, broker.rack)
            for broker in self._by_id.values()
            if broker.usable and broker.takes_replicas
        ]

    def sites_away(self) -> list[Site]:
        """Brokers where new replicas can go, but have to wait for their broker to come back."""
        return [
            Site(broker.broker_id, broker.rack)
            for broker in self._by_id.values()
            if broker.fenced and broker.takes_replicas
        ]

    def controllers(self) -> list[RegisterControllerRecord]:
        return [self._controllers[node_id] for node_id in sorted(self._controllers)]

    def knows(self, node_id: int) -> bool:
        """Whether there is a broker or a controller of this id."""
        return node_id in self._by_id or node_id in self._controllers

    def copy(self) -> "Brokers":
        copy = Brokers()
        copy._by_id = dict(sorted(self._by_id.items()))
        copy._controllers = dict(self._controllers)
        copy.generation = self.generation
        return copy

    def replay(self, record: Message) -> None:
        self.generation += 1
        match record:
            case RegisterBrokerRecord():
                former = self._by_id.get(record.broker_id)
                assert former is None or former.epoch <= record.broker_epoch, f"{former} is newer than {record}"
                self._by_id[record.broker_id] = _registration(record)
            case UnregisterBrokerRecord(broker_id, broker_epoch):
                self._at_epoch(broker_id, broker_epoch)
                del self._by_id[broker_id]
            case FenceBrokerRecord(broker_id, epoch):
                self._by_id[broker_id] = replace(self._at_epoch(broker_id, epoch), fenced=True)
            case UnfenceBrokerRecord(broker_id, epoch):
                self._by_id[broker_id] = replace(self._at_epoch(broker_id, epoch), fenced=False)
            case BrokerRegistrationChangeRecord():
                self._change(record)
            case RegisterControllerRecord():
                self._controllers[record.controller_id] = record
            case _:
                raise AssertionError(f"{record} is not about brokers")

    def _change(self, record: BrokerRegistrationChangeRecord) -> None:
        registration = self._at_epoch(record.broker_id, record.broker_epoch)
        if record.fenced:
            assert record.fenced in (FENCE, UNFENCE), record.fenced
            registration = replace(registration, fenced=record.fenced == FENCE)
        if record.in_controlled_shutdown:
            registration = replace(registration, in_controlled_shutdown=True)
        if record.log_dirs:
            registration = replace(registration, directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            registration = replace(registration, cordoned_directories=tuple(record.cordoned_log_dirs))
        self._by_id[record.broker_id] = registration

    def _at_epoch(self, broker_id: int, epoch: int) -> Registration:
        registration = self._by_id.get(broker_id)
        assert registration is not None, f"broker {broker_id} changes and was never registered"
        assert registration.epoch == epoch, f"broker {broker_id} is at epoch {registration.epoch}, not {epoch}"
        return registration

    def records(self) -> Iterator[Message]:
        yield from self.controllers()
        for broker_id in sorted(self._by_id):
            yield self._by_id[broker_id].record()


def _registration(record: RegisterBrokerRecord) -> Registration:
    assert record.broker_epoch >= 0, f"broker {record.broker_id} registers at offset {record.broker_epoch}"
    assert record.broker_id >= 0, f"a broker of id {record.broker_id} registers"
    return Registration(
        broker_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints={
            endpoint.name: Endpoint(endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in record.end_points
        },
        features={
            feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in record.features
        },
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        directories=tuple(record.log_dirs),
        cordoned_directories=tuple(record.cordoned_log_dirs or ()),
    )
