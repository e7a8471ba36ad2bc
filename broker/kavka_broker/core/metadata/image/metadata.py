"""The image of the cluster's metadata: all that the records of the metadata log say, ready to be read.

Replaying the records is the only way to change it, so two images that saw the same records are equal, wherever they
are: in the controller, in a broker that follows it, in the simulator, in a test. `records()` is the same image as a
list of records, which is what a snapshot holds.

A transaction in the metadata log (records between a begin and an end) shows nothing of itself until it ends.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kavka_broker.core.metadata.image.acls import Acls
from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.core.metadata.image.configs import Configs
from kavka_broker.core.metadata.image.credentials import Credentials
from kavka_broker.core.metadata.image.delegation_tokens import DelegationTokens
from kavka_broker.core.metadata.image.features import Features
from kavka_broker.core.metadata.image.producer_ids import ProducerIds
from kavka_broker.core.metadata.image.quotas import Quotas
from kavka_broker.core.metadata.image.replay_steps import PartitionRun, Step
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.protocol.errors import InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.leader_change_message import LeaderChangeMessage
from kavka_broker.protocol.messages.metadata.abort_transaction_record import AbortTransactionRecord
from kavka_broker.protocol.messages.metadata.access_control_entry_record import AccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.begin_transaction_record import BeginTransactionRecord
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.delegation_token_record import DelegationTokenRecord
from kavka_broker.protocol.messages.metadata.end_transaction_record import EndTransactionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.no_op_record import NoOpRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.producer_ids_record import ProducerIdsRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.register_controller_record import RegisterControllerRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kavka_broker.protocol.messages.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.metadata.unfence_broker_record import UnfenceBrokerRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from kavka_broker.protocol.messages.metadata.user_scram_credential_record import UserScramCredentialRecord
from kavka_broker.protocol.messages.metadata.zk_migration_state_record import ZkMigrationStateRecord
from kavka_broker.protocol.messages.voters_record import VotersRecord

ABOUT_BROKERS: Final = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
    RegisterControllerRecord,
)
ABOUT_TOPICS: Final = (TopicRecord, PartitionRecord, PartitionChangeRecord, ClearElrRecord)
WITHOUT_EFFECT: Final = (NoOpRecord, ZkMigrationStateRecord, LeaderChangeMessage, VotersRecord)
ALIKE: Final = (*ABOUT_BROKERS, *ABOUT_TOPICS, *WITHOUT_EFFECT)
assert len(set(ALIKE)) == len(ALIKE), "a kind of record is replayed in two places"


class Metadata:
    """Everything the cluster has agreed on. `offset` is that of the last record in it, -1 before the first."""

    def __init__(self) -> None:
        self.brokers = Brokers()
        self.topics = Topics()
        self.configs = Configs()
        self.quotas = Quotas()
        self.acls = Acls()
        self.credentials = Credentials()
        self.tokens = DelegationTokens()
        self.features = Features()
        self.producer_ids = ProducerIds()
        self.offset = -1
        self.transaction: list[Message] | None = None
        self.replays = self._dispatch()

    def _dispatch(self) -> dict[type[Message], Callable[[Any], None]]:
        return {
            **dict.fromkeys(ABOUT_BROKERS, self.brokers.replay),
            **dict.fromkeys(ABOUT_TOPICS, self.topics.replay),
            **dict.fromkeys(WITHOUT_EFFECT, _nothing),
            RemoveTopicRecord: self._remove_topic,
            ConfigRecord: self.configs.replay,
            ClientQuotaRecord: self.quotas.replay,
            AccessControlEntryRecord: self.acls.replay,
            RemoveAccessControlEntryRecord: self.acls.replay,
            UserScramCredentialRecord: self.credentials.replay,
            RemoveUserScramCredentialRecord: self.credentials.replay,
            DelegationTokenRecord: self.tokens.replay,
            RemoveDelegationTokenRecord: self.tokens.replay,
            FeatureLevelRecord: self._replay_feature,
            KRaftVersionRecord: self._replay_feature,
            ProducerIdsRecord: self.producer_ids.replay,
        }

    @property
    def next_offset(self) -> int:
        """The offset of the next record. The epoch of a broker is the offset of its registration."""
        return self.offset + 1

    def replay(self, record: Message) -> None:
        """Replay the next record, which makes it true. Only this changes an image."""
        self.offset += 1
        match record:
            case BeginTransactionRecord():
                assert self.transaction is None, "a metadata transaction begins inside another"
                self.transaction = []
            case EndTransactionRecord():
                assert self.transaction is not None, "a metadata transaction ends that never began"
                records, self.transaction = self.transaction, None
                for kept in records:
                    self._apply(kept)
            case AbortTransactionRecord():
                assert self.transaction is not None, "a metadata transaction is aborted that never began"
                self.transaction = None
            case _ if self.transaction is not None:
                self.transaction.append(record)
            case _:
                self._apply(record)

    def replay_steps(self, steps: Iterable[Step]) -> None:
        """Replay records in their order, as `replay` does."""
        for step in steps:
            if isinstance(step, PartitionRun):
                self._replay_run(step)
            else:
                self.replay(step)

    def _replay_run(self, run: PartitionRun) -> None:
        self.offset += len(run.records)
        assert len(run.states) <= len(run.records), f"{len(run.states)} partitions of {len(run.records)} records"
        if self.transaction is not None:
            self.transaction += run.records
        else:
            self.topics.replay_partitions(run.topic_id, run.states)

    def _apply(self, record: Message) -> None:
        replay = self.replays.get(type(record))
        if replay is None:
            raise InvariantViolation(f"{type(record).__name__} is a metadata record that this broker does not know")
        replay(record)

    def _replay_feature(self, record: FeatureLevelRecord | KRaftVersionRecord) -> None:
        self.features.replay(record, self.offset)

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics.by_id(record.topic_id)
        assert topic is not None, f"topic id {record.topic_id.hex()} is removed and does not exist"
        self.configs.forget_topic(topic.name)
        self.topics.replay(record)

    def move_to(self, offset: int) -> None:
        """Move the image to `offset`: a snapshot was replayed that ends there, or control records were passed over."""
        self.offset = offset

    def copy(self) -> "Metadata":
        """Copy the image; the copy changes by itself, also inside a transaction.

        Both share what neither changes, so it takes as long as to copy a few dicts: 2 ms with 10,000 topics. Brokers
        and topics stand in order: a leader decides alike whatever its image was built from.
        """
        copy = Metadata()
        copy.brokers, copy.topics, copy.configs = self.brokers.copy(), self.topics.copy(), self.configs.copy()
        copy.quotas, copy.acls, copy.features = self.quotas.copy(), self.acls.copy(), self.features.copy()
        copy.producer_ids = self.producer_ids.copy()
        copy.credentials, copy.tokens = self.credentials.copy(), self.tokens.copy()
        copy.offset = self.offset
        copy.transaction = None if self.transaction is None else [*self.transaction]
        copy.replays = copy._dispatch()
        return copy

    def records(self) -> Iterator[Message]:
        """Records that make an equal image out of an empty one."""
        yield from self.features.records()
        yield from self.brokers.records()
        yield from self.configs.records()
        yield from self.topics.records()
        yield from self.quotas.records()
        yield from self.acls.records()
        yield from self.credentials.records()
        yield from self.tokens.records()
        yield from self.producer_ids.records()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metadata) and list(self.records()) == list(other.records())

    __hash__ = None  # type: ignore[assignment]


def _nothing(_: Message) -> None:
    """Ignore records that change no image: Kafka's heartbeat of the log, leader and voters, an old migration."""
