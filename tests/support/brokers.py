"""Several brokers' metadata at hand, with eligible leader replicas as a new cluster has them."""

from collections.abc import Sequence
from typing import Any

from kavka_broker.core.metadata.decide.alter_partition import Outcome, alter_partitions
from kavka_broker.core.metadata.decide.election_policy import MIN_INSYNC
from kavka_broker.core.metadata.decide.heartbeats import Heartbeat, Standing, heartbeat
from kavka_broker.core.metadata.decide.topics import CreateTopic
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.features import ELR_FEATURE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.core.partition.isr_proposal import InSyncMember, IsrChange
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from tests.support.cluster import enact, join, made, uuid

TOPIC_ID = uuid(1)


def replicated(*broker_ids: int, min_insync: int = 2, others: tuple[int, ...] = (), **configs: str) -> Metadata:
    """Topic `t` of one partition on these brokers, in this order; the brokers live."""
    metadata = Metadata()
    metadata.replay(FeatureLevelRecord(ELR_FEATURE, 1))
    metadata.replay(ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC, str(min_insync)))
    for broker_id in sorted({*broker_ids, *others}):
        join(metadata, broker_id)
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    made(metadata, CreateTopic("t", TOPIC_ID, -1, -1, {0: broker_ids}, dotted))
    return metadata


def state(metadata: Metadata, topic: str = "t", partition: int = 0) -> PartitionState:
    found = metadata.topics.get(topic)
    assert found is not None
    return found.partitions[partition]


def epoch_of(metadata: Metadata, broker_id: int) -> int:
    registration = metadata.brokers.get(broker_id)
    assert registration is not None
    return registration.epoch


def told(metadata: Metadata, broker_id: int, *, handover_seen: bool = True, **asked: Any) -> Standing:
    """A heartbeat that has seen everything, made true."""
    command = Heartbeat(broker_id, epoch_of(metadata, broker_id), metadata.offset, **asked)
    return enact(metadata, heartbeat(metadata, command, handover_seen=handover_seen))


def proposal(metadata: Metadata, *isr: int, **wrong: int) -> IsrChange:
    """What the leader of `t-0` would propose from the newest state; `wrong` says where it has another."""
    now = state(metadata)
    members = tuple(InSyncMember(one, epoch_of(metadata, one) if metadata.brokers.get(one) else 0) for one in isr)
    fields: dict[str, int] = {
        "partition": 0,
        "leader_epoch": now.leader_epoch,
        "partition_epoch": now.partition_epoch,
        **wrong,
    }
    return IsrChange(topic_id=TOPIC_ID, isr=members, **fields)


def propose(metadata: Metadata, *isr: int, **wrong: int) -> Outcome:
    """The leader proposes, and it is made true."""
    leader = state(metadata).leader
    change = proposal(metadata, *isr, **wrong)
    (outcome,) = enact(metadata, alter_partitions(metadata, leader, epoch_of(metadata, leader), [change]))
    return outcome


def changes(records: Sequence[Message]) -> list[PartitionChangeRecord]:
    """The partition changes among the records."""
    return [record for record in records if isinstance(record, PartitionChangeRecord)]
