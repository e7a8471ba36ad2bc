"""What a heartbeat asks for, and what a broker may do next.

    fenced       -- caught up, and does not want to be fenced --> unfenced
    unfenced     -- wants to be fenced, or its session ended  --> fenced
    unfenced     -- wants to stop, and holds something        --> in controlled shutdown: others lead
    in shutdown  -- all others have seen that                 --> fenced, and may stop
    unfenced     -- wants to stop, and no other lives         --> fenced, and may stop
    fenced       -- wants to stop, and all have seen that     --> may stop

A broker is caught up when its image holds its own registration: then it holds everything that was decided about it
before, and leads nothing by an old word. It stays in controlled shutdown until the others know of the new leaders, so
that it can still tell clients that it leads no longer. There is no way back from there but another registration.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.election_policy import BY_DEFAULT, Policy
from kavka_broker.core.metadata.decide.leadership import take_up, withdraw
from kavka_broker.core.metadata.image.brokers import FENCE, UNFENCE, Registration
from kavka_broker.core.metadata.image.features import CORDONED_SINCE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)

IN_CONTROLLED_SHUTDOWN: Final = 1


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A broker's heartbeat. `metadata_offset` is that of the last record in its image."""

    broker_id: int
    broker_epoch: int
    metadata_offset: int
    wants_fence: bool = False
    wants_shutdown: bool = False
    offline_directories: tuple[bytes, ...] = ()
    cordoned_directories: tuple[bytes, ...] | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The state that the broker is told."""

    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool = False

    def __post_init__(self) -> None:
        assert self.is_fenced or not self.should_shut_down, "only a fenced broker may stop"


def heartbeat(
    metadata: Metadata, command: Heartbeat, policy: Policy = BY_DEFAULT, *, handover_seen: bool = True
) -> Decision[Standing]:
    """Decide on a heartbeat. `handover_seen`: every other broker has seen the new leaders. Raises BrokerError."""
    broker = metadata.brokers.at_epoch(command.broker_id, command.broker_epoch)
    is_caught_up = command.metadata_offset >= broker.epoch
    records: Sequence[Message] = _directories(metadata, broker, command, policy)
    if records:  # the rest waits for the next heartbeat
        return Decision(records, Standing(is_caught_up, broker.fenced))
    if not set(broker.directories) - set(command.offline_directories):
        records = fence(metadata, broker.broker_id, broker.epoch, policy).records
        return Decision(records, Standing(is_caught_up, is_fenced=True, should_shut_down=command.wants_shutdown))
    if broker.fenced:
        return _of_fenced(metadata, broker, command, policy, handover_seen=handover_seen)
    if command.wants_shutdown and _must_hand_over(metadata, broker, command, handover_seen=handover_seen):
        records = [] if broker.in_controlled_shutdown else _shutdown(metadata, broker, policy)
        return Decision(records, Standing(is_caught_up, is_fenced=False))
    if command.wants_fence or command.wants_shutdown:
        records = fence(metadata, broker.broker_id, broker.epoch, policy).records
        return Decision(records, Standing(is_caught_up, is_fenced=True, should_shut_down=command.wants_shutdown))
    return Decision([], Standing(is_caught_up, is_fenced=False))


def fence(metadata: Metadata, broker_id: int, broker_epoch: int, policy: Policy = BY_DEFAULT) -> Decision[bool]:
    """Fence this incarnation of a broker, unless it is fenced or replaced by another. Returns whether it did."""
    broker = metadata.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch or broker.fenced:
        return Decision([], False)
    records: list[Message] = [*withdraw(metadata, broker_id, policy)]
    records.append(BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=FENCE))
    return Decision(records, True)


def leave(metadata: Metadata, broker_id: int, policy: Policy = BY_DEFAULT) -> Decision[bool]:
    """Fence a broker that stops, whatever its epoch."""
    broker = metadata.brokers.get(broker_id)
    return Decision([], False) if broker is None else fence(metadata, broker_id, broker.epoch, policy)


def _of_fenced(
    metadata: Metadata, broker: Registration, command: Heartbeat, policy: Policy, *, handover_seen: bool
) -> Decision[Standing]:
    assert broker.fenced, f"broker {broker.broker_id} is not fenced"
    is_caught_up = command.metadata_offset >= broker.epoch
    if command.wants_shutdown or command.wants_fence or not is_caught_up or broker.in_controlled_shutdown:
        may_stop = command.wants_shutdown and (handover_seen or not broker.in_controlled_shutdown)
        return Decision([], Standing(is_caught_up, is_fenced=True, should_shut_down=may_stop))
    records: list[Message] = [BrokerRegistrationChangeRecord(broker.broker_id, broker.epoch, fenced=UNFENCE)]
    records += take_up(metadata, broker.broker_id, policy)
    return Decision(records, Standing(is_caught_up, is_fenced=False))


def _must_hand_over(metadata: Metadata, broker: Registration, command: Heartbeat, *, handover_seen: bool) -> bool:
    assert not broker.fenced, f"broker {broker.broker_id} is fenced and holds nothing"
    if command.wants_fence or len(metadata.brokers.alive()) == 1:
        return False  # no other broker is there to see the handover
    if broker.in_controlled_shutdown:
        return not handover_seen
    return any(
        broker.broker_id == state.leader or broker.broker_id in state.isr
        for topic in metadata.topics
        for state in topic.partitions.values()
    )


def _shutdown(metadata: Metadata, broker: Registration, policy: Policy) -> Sequence[Message]:
    assert broker.usable, f"broker {broker.broker_id} is fenced or stops already"
    change = BrokerRegistrationChangeRecord(
        broker.broker_id, broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
    )
    return [change, *withdraw(metadata, broker.broker_id, policy)]


def _directories(metadata: Metadata, broker: Registration, command: Heartbeat, policy: Policy) -> Sequence[Message]:
    """Directories that failed take their replicas out of every ISR; cordoned ones take no new replicas (KIP-1066).

    A broker without any directory left is not changed but fenced.
    """
    failed = set(broker.directories) & set(command.offline_directories)
    if failed == set(broker.directories):
        failed = set()
    cordoned = command.cordoned_directories
    if metadata.features.metadata_version < CORDONED_SINCE:
        cordoned = None  # this metadata.version has no record for cordoned directories
    if cordoned is not None and set(cordoned) == set(broker.cordoned_directories):
        cordoned = None
    if not failed and cordoned is None:
        return []
    assert not failed or failed < set(broker.directories), f"broker {broker.broker_id} has no directory left"
    records: list[Message] = []
    if failed:
        records += withdraw(metadata, broker.broker_id, policy, directories=failed)
    records.append(
        BrokerRegistrationChangeRecord(
            broker.broker_id,
            broker.epoch,
            log_dirs=[directory for directory in broker.directories if directory not in failed] if failed else [],
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )
    )
    return records
