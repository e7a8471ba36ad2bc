"""Images as wholes: copies are equal, and one that becomes another tells what changed."""

from kavka_broker.controller.image_replacement import become
from kavka_broker.core.metadata.decide.topics import CreateTopic
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.begin_transaction_record import BeginTransactionRecord
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord, EntityData
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.end_transaction_record import EndTransactionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from tests.support.cluster import cluster, join, made, uuid

TOPIC, BROKER = 2, 4


def limit(user: str, value: float) -> ClientQuotaRecord:
    return ClientQuotaRecord([EntityData("user", user)], "producer_byte_rate", value, remove=False)


def filled() -> Metadata:
    image = cluster(1, 2, topics={"a": 3, "b": 1})
    for record in (
        FeatureLevelRecord("metadata.version", 30),
        ConfigRecord(TOPIC, "a", "retention.ms", "1"),
        ConfigRecord(BROKER, "", "log.retention.ms", "2"),
        limit("alice", 1.0),
    ):
        image.replay(record)
    return image


def test_a_copy_is_equal_and_independent() -> None:
    image = filled()
    copy = image.copy()
    assert copy == image
    assert (copy.offset, copy.features.epoch) == (image.offset, image.features.epoch)
    made(copy, CreateTopic("c", uuid(9), 1, 1))
    assert image.topics.get("c") is None


def test_a_copy_made_during_a_transaction_continues_it() -> None:
    image = Metadata()
    for record in (BeginTransactionRecord("half"), TopicRecord("t", uuid(1))):
        image.replay(record)
    copy = image.copy()
    copy.replay(EndTransactionRecord())
    assert [*copy.topics.names()] == ["t"]
    assert image.transaction == [TopicRecord("t", uuid(1))]


def test_an_image_becomes_another_in_place() -> None:
    image, other = filled(), cluster(1, 3, topics={"a": 2, "c": 1})
    other.replay(limit("bob", 2.0))
    topics, configs = image.topics, image.configs
    generation = image.brokers.generation
    wanted, offset = list(other.records()), other.offset
    become(image, other)
    assert image.topics is topics
    assert image.configs is configs
    assert list(image.records()) == wanted
    assert image.offset == offset
    assert image.brokers.generation > generation
    join(image, 4)  # and it goes on from there


def test_deletions_are_published_before_additions() -> None:
    image = filled()
    gone = image.topics.get("b")
    assert gone is not None
    leaver = image.brokers.get(2)
    assert leaver is not None
    other = cluster(1, topics={"a": 3})
    told = become(image, other)
    expected: list[Message] = [
        RemoveTopicRecord(gone.topic_id),
        UnregisterBrokerRecord(2, leaver.epoch),
        ConfigRecord(TOPIC, "a", "retention.ms", None),
        ConfigRecord(BROKER, "", "log.retention.ms", None),
        ClientQuotaRecord([EntityData("user", "alice")], "producer_byte_rate", 0.0, remove=True),
    ]
    removed = [record for record in told if isinstance(record, RemoveTopicRecord)]
    assert gone.topic_id in [record.topic_id for record in removed]
    assert [record for record in told if record in expected] == expected
    assert told[-len(list(image.records())) :] == list(image.records())
