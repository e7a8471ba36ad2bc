"""A topic's part of a Metadata answer is made once, and again when the topic or a broker has changed."""

from collections.abc import Generator

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import Topic
from kavka_broker.loop.slices import Cost, at_once
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata_response import MetadataResponseTopic
from kavka_broker.request.topic_answers import KEPT_PER_TOPIC_MAX, TopicAnswers
from tests.support.cluster import cluster, uuid


def topic_of(metadata: Metadata, name: str = "t") -> Topic:
    topic = metadata.topics.get(name)
    assert topic is not None
    return topic


def begun(answers: TopicAnswers, metadata: Metadata, listener: str) -> Generator[None, None, MetadataResponseTopic]:
    return answers.answer(metadata, topic_of(metadata), listener, Cost())


def answered(answers: TopicAnswers, metadata: Metadata, listener: str = "PLAINTEXT") -> MetadataResponseTopic:
    return at_once(begun(answers, metadata, listener))


def test_a_topic_answer_is_made_once_for_each_listener() -> None:
    answers, metadata = TopicAnswers(), cluster(1, topics={"t": 1})
    assert answered(answers, metadata) is answered(answers, metadata)
    assert answered(answers, metadata, "OTHER") is not answered(answers, metadata)


def test_a_topic_answer_is_made_again_when_the_topic_has_changed() -> None:
    answers, metadata = TopicAnswers(), cluster(1, topics={"t": 1})
    before = answered(answers, metadata)
    metadata.replay(PartitionChangeRecord(0, topic_of(metadata).topic_id, leader=1))
    after = answered(answers, metadata)
    assert after.partitions[0].leader_epoch == before.partitions[0].leader_epoch + 1


def test_a_topic_answer_is_made_again_when_a_broker_has_changed() -> None:
    answers, metadata = TopicAnswers(), cluster(1, topics={"t": 1})
    before = answered(answers, metadata)
    (broker,) = metadata.brokers
    metadata.replay(FenceBrokerRecord(broker.broker_id, broker.epoch))
    assert answered(answers, metadata).partitions[0].offline_replicas != before.partitions[0].offline_replicas


def test_an_answer_made_while_the_topic_changes_is_not_kept() -> None:
    answers, metadata = TopicAnswers(), cluster(1, topics={"t": 1})
    topic = topic_of(metadata)
    for index in range(1, 5_000):
        metadata.replay(PartitionRecord(index, topic.topic_id, [1], [1], [], [], 1, 0, 0, 0, [uuid(1)]))
    work = begun(answers, metadata, "PLAINTEXT")
    next(work)  # a slice is over, the answer is not
    metadata.replay(PartitionChangeRecord(0, topic.topic_id, leader=1))
    for _ in work:
        pass
    assert not len(answers)


def test_answers_of_the_former_image_are_not_used_for_a_loaded_one() -> None:
    answers = TopicAnswers()
    first, second = cluster(1, topics={"t": 1}), cluster(1, topics={"t": 1})
    assert answered(answers, first) is not answered(answers, second)


def test_the_number_of_kept_answers_follows_the_number_of_topics() -> None:
    answers, metadata = TopicAnswers(), cluster(1, topics={"t": 1})
    for number in range(10):
        answered(answers, metadata, f"L{number}")
    assert len(answers) == KEPT_PER_TOPIC_MAX
