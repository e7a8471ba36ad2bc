"""A broker comes and goes, and with it what it leads.

A new incarnation replaces the one before it at once: the old process is gone, or it would still hold the lock of the
directory. Whatever it led gets a new leader epoch even where the leader stays the same, because a broker that crashed
may have lost the end of a log, and followers and consumers find that out by the epoch (KIP-101, KIP-320).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.brokers import FENCE, UNFENCE, Endpoint, Registration
from kavka_broker.core.metadata.image import Metadata
from kavka_broker.core.metadata.topics import NO_LEADER, PartitionState
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord

Usable = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Register:
    """A broker as it introduces itself."""

    broker_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    directories: tuple[bytes, ...]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rack: str | None = None


def register(metadata: Metadata, command: Register) -> Decision[int]:
    """Register a broker, unfenced. The answer is its epoch: the offset of its registration."""
    epoch = metadata.next_offset
    registration = Registration(
        broker_id=command.broker_id,
        epoch=epoch,
        incarnation_id=command.incarnation_id,
        endpoints={endpoint.name: endpoint for endpoint in command.endpoints},
        features=dict(sorted(command.features.items())),
        rack=command.rack,
        directories=command.directories,
    )

    def usable(broker_id: int) -> bool:
        return broker_id == command.broker_id or metadata.brokers.is_usable(broker_id)

    records: list[Message] = [
        registration.record(),
        BrokerRegistrationChangeRecord(command.broker_id, epoch, fenced=UNFENCE),
    ]
    records += _elections(metadata, usable, led_by=command.broker_id)
    return Decision(records, epoch)


def leave(metadata: Metadata, broker_id: int) -> Decision[None]:
    """Fence a broker that stops, and give what it led to others where there are others."""
    registration = metadata.brokers.get(broker_id)
    if registration is None or registration.fenced:
        return Decision([], None)

    def usable(other: int) -> bool:
        return other != broker_id and metadata.brokers.is_usable(other)

    records: list[Message] = list(_departures(metadata, usable, broker_id))
    records.append(BrokerRegistrationChangeRecord(broker_id, registration.epoch, fenced=FENCE))
    return Decision(records, None)


def elect(state: PartitionState, usable: Usable) -> int:
    """Who leads: the first replica in sync, else the first eligible (KIP-966), else who led last, else nobody."""
    for candidates in (state.isr, state.elr):
        for broker_id in state.replicas:
            if broker_id in candidates and usable(broker_id):
                return broker_id
    if not state.isr and not state.elr and len(state.last_known_elr) == 1 and usable(state.last_known_elr[0]):
        return state.last_known_elr[0]
    return NO_LEADER


def _elections(metadata: Metadata, usable: Usable, led_by: int) -> Iterator[PartitionChangeRecord]:
    for topic in metadata.topics:
        for partition, state in topic.partitions.items():
            if state.leader not in (led_by, NO_LEADER):
                continue
            leader = elect(state, usable)
            if leader == NO_LEADER == state.leader:
                continue
            change = PartitionChangeRecord(partition, topic.topic_id, leader=leader)
            if leader != NO_LEADER and leader not in state.isr:
                change.isr = [leader]
                change.eligible_leader_replicas = [one for one in state.elr if one != leader]
                change.last_known_elr = []
            yield change


def _departures(metadata: Metadata, usable: Usable, broker_id: int) -> Iterator[PartitionChangeRecord]:
    for topic in metadata.topics:
        for partition, state in topic.partitions.items():
            if broker_id not in state.isr and state.leader != broker_id:
                continue
            change = PartitionChangeRecord(partition, topic.topic_id)
            remaining = [one for one in state.isr if one != broker_id]
            if remaining:
                change.isr = remaining
            if state.leader == broker_id:
                # The last in-sync replica stays in the ISR: only it has every acknowledged record.
                change.leader = elect(state._replace(isr=tuple(remaining)), usable)
            if change.isr is not None or state.leader == broker_id:
                yield change
