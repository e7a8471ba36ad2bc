"""The image: every record of Kafka 4.3 is understood, transactions show only when they end."""

import importlib
import pkgutil

import pytest

import kavka_broker.protocol.messages.metadata as records_package
from kavka_broker.controller.metadata_batches import metadata_batch, read_batch
from kavka_broker.core.metadata.decide.producer_ids import BLOCK_SIZE, PRODUCER_ID_MAX, Block, allocate
from kavka_broker.core.metadata.image.brokers import UNTOLD_DIRECTORY
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.features import level_in
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.producer_ids import ProducerIds
from kavka_broker.core.metadata.image.topics import PartitionState, changed
from kavka_broker.protocol.errors import BrokerError, InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.abort_transaction_record import AbortTransactionRecord
from kavka_broker.protocol.messages.metadata.access_control_entry_record import AccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.begin_transaction_record import BeginTransactionRecord
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord, EntityData
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.delegation_token_record import DelegationTokenRecord
from kavka_broker.protocol.messages.metadata.end_transaction_record import EndTransactionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.no_op_record import NoOpRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.producer_ids_record import ProducerIdsRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.metadata.user_scram_credential_record import UserScramCredentialRecord
from kavka_broker.protocol.records.record import read_records
from tests.support.cluster import cluster, enact, uuid

TRANSACTIONAL = {"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"}


def record_kinds() -> list[type[Message]]:
    kinds = []
    for module in pkgutil.iter_modules(records_package.__path__):
        loaded = importlib.import_module(f"{records_package.__name__}.{module.name}")
        kinds += [
            value
            for value in vars(loaded).values()
            if isinstance(value, type) and getattr(value, "KIND", "") == "metadata"
        ]
    return kinds


def test_every_record_of_kafka_is_known() -> None:
    kinds = record_kinds()
    assert len(kinds) == 26
    unknown = {kind.__name__ for kind in kinds} - {kind.__name__ for kind in Metadata().replays} - TRANSACTIONAL
    assert not unknown


def test_what_is_no_metadata_record_is_refused_by_name() -> None:
    with pytest.raises(InvariantViolation, match="ApiVersionsRequest"):
        Metadata().replay(ApiVersionsRequest())


def test_a_transaction_shows_nothing_before_it_ends() -> None:
    metadata = Metadata()
    metadata.replay(BeginTransactionRecord("a"))
    metadata.replay(TopicRecord("t", uuid(1)))
    assert metadata.topics.get("t") is None
    metadata.replay(EndTransactionRecord())
    assert metadata.topics.get("t") is not None
    assert metadata.offset == 2


def test_an_aborted_transaction_never_was() -> None:
    metadata = Metadata()
    for record in (BeginTransactionRecord("a"), TopicRecord("t", uuid(1)), AbortTransactionRecord("no")):
        metadata.replay(record)
    assert metadata.topics.get("t") is None
    metadata.replay(TopicRecord("t", uuid(1)))
    assert metadata.topics.get("t") is not None


def test_marks_of_time_change_nothing_but_the_offset() -> None:
    metadata = cluster(1, topics={"t": 1})
    before = list(metadata.records())
    metadata.replay(NoOpRecord())
    assert list(metadata.records()) == before


def test_feature_levels_are_finalised_and_withdrawn() -> None:
    metadata = Metadata()
    metadata.replay(FeatureLevelRecord("metadata.version", 30))
    metadata.replay(FeatureLevelRecord("group.version", 1))
    metadata.replay(FeatureLevelRecord("group.version", 0))
    metadata.replay(KRaftVersionRecord(0, 1))
    assert metadata.features.levels == {"metadata.version": 30, "kraft.version": 1}
    assert metadata.features.epoch == 3
    # kraft.version is a control record of the log, so a snapshot's records do not repeat it.
    assert list(metadata.features.records()) == [FeatureLevelRecord("metadata.version", 30)]


@pytest.mark.parametrize(
    ("name", "level", "words"),
    [
        ("metadata.version", 30, ()),
        ("metadata.version", 21, ()),
        (
            "metadata.version",
            20,
            ("20 (3.8-IV0)", "21 (3.9-IV0) to metadata.version 30", "upgrade --release-version 3.9"),
        ),
        ("metadata.version", 31, ("metadata.version 31", "to metadata.version 30 (4.3-IV0)", "start a newer version")),
        ("share.version", 2, ("share.version 2", "start a newer version")),
    ],
)
def test_a_level_that_cannot_be_served_is_named_with_what_to_do(name: str, level: int, words: tuple[str, ...]) -> None:
    metadata = Metadata()
    metadata.replay(FeatureLevelRecord(name, level))
    unsupported = metadata.features.unsupported()
    assert bool(unsupported) is bool(words)
    assert all(word in unsupported[0] for word in words)


@pytest.mark.parametrize(("level", "versions"), [(21, [3, 1, 1, 2]), (25, [3, 2, 2, 2]), (30, [4, 2, 2, 3])])
def test_records_are_written_as_the_level_says(level: int, versions: list[int]) -> None:
    metadata = cluster(1)
    records: list[Message] = [
        *(broker.record() for broker in metadata.brokers),
        PartitionRecord(),
        PartitionChangeRecord(),
        BrokerRegistrationChangeRecord(1),
    ]
    batch = metadata_batch(records, base_offset=0, leader_epoch=1, now_ms=0, metadata_version=level)
    assert [record.value[2] for record in read_records(batch) if record.value] == versions
    (snapshot, *_) = [one for _, one in read_batch(memoryview(batch))]
    metadata.replay(snapshot)
    assert [broker.record() for broker in metadata.brokers] == records[:1]


def test_blocks_of_producer_ids_follow_each_other() -> None:
    metadata = cluster(1)
    first = enact(metadata, allocate(metadata.producer_ids, 1, 0))
    second = enact(metadata, allocate(metadata.producer_ids, 1, 0))
    assert (first.first, second.first) == (0, BLOCK_SIZE)
    with pytest.raises(AssertionError, match="given out twice"):
        metadata.replay(ProducerIdsRecord(1, 0, BLOCK_SIZE))


def test_records_that_no_broker_acts_on_are_kept_whole() -> None:
    metadata = Metadata()
    credential = UserScramCredentialRecord("bob", 1, b"salt", b"stored", b"server", 4096)
    metadata.replay(credential)
    assert list(metadata.records()) == [credential]
    assert metadata.credentials.iterations() == {"bob": {1: 4096}}
    metadata.replay(RemoveUserScramCredentialRecord("bob", 1))
    assert not list(metadata.records())


def test_a_change_of_a_partition_leaves_other_fields() -> None:
    metadata = cluster(1, topics={"t": 1})
    topic = metadata.topics.get("t")
    assert topic is not None
    before = topic.partitions[0]
    after = changed(before, PartitionChangeRecord(0, topic.topic_id, eligible_leader_replicas=[2]))
    assert after == before._replace(elr=(2,), partition_epoch=1)
    assert changed(after, PartitionChangeRecord(0, topic.topic_id, leader=1)).leader_epoch == 1


@pytest.mark.parametrize("name", ["t", ""])
def test_eligible_leaders_are_cleared_of_one_topic_or_of_all(name: str) -> None:
    metadata = cluster(1, topics={"t": 1, "u": 1})
    for topic in metadata.topics:
        metadata.replay(PartitionChangeRecord(0, topic.topic_id, eligible_leader_replicas=[2], last_known_elr=[3]))
    metadata.replay(ClearElrRecord(name))
    cleared = [topic.name for topic in metadata.topics if not topic.partitions[0].elr]
    assert cleared == ([name] if name else ["t", "u"])


def test_a_change_of_a_topic_is_counted() -> None:
    metadata = cluster(1, topics={"t": 1})
    topic = metadata.topics.get("t")
    assert topic is not None
    before = topic.changes
    metadata.replay(PartitionChangeRecord(0, topic.topic_id, leader=1))
    assert topic.changes == before + 1


def test_the_last_block_of_producer_ids_is_given_and_none_after_it() -> None:
    producer_ids = ProducerIds()
    producer_ids.replay(ProducerIdsRecord(1, 0, PRODUCER_ID_MAX - BLOCK_SIZE))
    assert allocate(producer_ids, 1, 0).response == Block(PRODUCER_ID_MAX - BLOCK_SIZE, BLOCK_SIZE)
    producer_ids.replay(ProducerIdsRecord(1, 0, PRODUCER_ID_MAX - BLOCK_SIZE + 1))
    with pytest.raises(BrokerError, match="every producer id"):
        allocate(producer_ids, 1, 0)


def test_a_snapshot_says_first_how_to_read_the_rest() -> None:
    metadata = Metadata()
    for name, level in (("group.version", 1), ("metadata.version", 30), ("share.version", 1)):
        metadata.replay(FeatureLevelRecord(name, level))
    assert [record.name for record in metadata.features.records()] == [
        "metadata.version",
        "group.version",
        "share.version",
    ]
    assert level_in(list(metadata.records()), 21) == 30
    assert level_in([FeatureLevelRecord("group.version", 1)], 21) == 21


def test_a_copy_has_all_and_changes_alone() -> None:
    metadata = cluster(1, topics={"a.b": 2, "c": 3})
    kept = AccessControlEntryRecord(id=uuid(5), resource_name="t", principal="User:a", host="*")
    metadata.replay(kept)
    metadata.replay(ConfigRecord(ResourceType.TOPIC, "c", "retention.ms", "5"))
    copy = metadata.copy()
    assert copy == metadata
    assert (copy.topics.partition_count, copy.offset, copy.brokers.generation) == (
        5,
        metadata.offset,
        metadata.brokers.generation,
    )
    copy.replay(RemoveTopicRecord(uuid(0)))
    copy.replay(RemoveAccessControlEntryRecord(uuid(5)))
    assert (copy.topics.partition_count, metadata.topics.partition_count) == (3, 5)
    assert (copy.topics.colliding("a_b"), metadata.topics.colliding("a_b")) == (None, "a.b")
    assert copy != metadata
    assert [record for record in metadata.records() if isinstance(record, AccessControlEntryRecord)] == [kept]


@pytest.mark.parametrize(
    ("part", "record"),
    [
        ("features", FeatureLevelRecord("group.version", 1)),
        ("configs", ConfigRecord(ResourceType.TOPIC, "c", "retention.ms", "5")),
        ("acls", AccessControlEntryRecord(id=uuid(5), resource_name="t", principal="User:a", host="*")),
        ("producer_ids", ProducerIdsRecord(1, 0, 1000)),
        ("topics", TopicRecord("new", uuid(9))),
        ("quotas", ClientQuotaRecord([EntityData("user", "a")], "producer_byte_rate", 5.0)),
    ],
)
def test_a_part_is_equal_to_what_says_the_same(part: str, record: Message) -> None:
    one, other = cluster(1, topics={"c": 1}), cluster(1, topics={"c": 1})
    assert getattr(one, part) == getattr(other, part)
    other.replay(record)
    assert getattr(one, part) != getattr(other, part)
    assert getattr(one, part) != part
    one.replay(record)
    assert getattr(one, part) == getattr(other, part)


def test_a_name_that_looks_like_one_that_went_is_still_taken() -> None:
    metadata = Metadata()
    metadata.replay(TopicRecord("a.b", uuid(1)))
    metadata.replay(TopicRecord("a_b", uuid(2)))
    metadata.replay(RemoveTopicRecord(uuid(1)))
    assert metadata.topics.colliding("a.b") == "a_b"
    metadata.replay(RemoveTopicRecord(uuid(2)))
    assert metadata.topics.colliding("a.b") is None
    assert not metadata.topics.merged_names, "what looks like names that went would pile up"


def test_a_replicas_place_is_untold_where_there_is_no_replica_or_no_word() -> None:
    told = PartitionState((1, 2), (1,), 1, directories=(uuid(5), uuid(6)))
    assert [told.directory_of(broker_id) for broker_id in (1, 2, 3)] == [uuid(5), uuid(6), UNTOLD_DIRECTORY]
    assert told._replace(directories=()).directory_of(1) == UNTOLD_DIRECTORY


def test_an_image_begins_before_every_offset_and_a_copy_stands_where_it_was_made() -> None:
    metadata = Metadata()
    assert (metadata.offset, metadata.features.epoch, metadata.brokers.generation) == (-1, -1, 0)
    metadata.replay(NoOpRecord())
    metadata.replay(FeatureLevelRecord("group.version", 1))
    assert metadata.copy().features.epoch == 1


def test_a_token_is_kept_until_it_is_removed() -> None:
    metadata, token = Metadata(), DelegationTokenRecord(owner="User:a", requester="User:a", token_id="t")
    metadata.replay(token)
    assert list(metadata.tokens.records()) == [token]
    metadata.replay(RemoveDelegationTokenRecord("t"))
    assert list(metadata.tokens.records()) == []
