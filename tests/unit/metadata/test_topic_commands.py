"""Creating, growing and deleting topics: what comes of it, and every reason why not, with Kafka's codes."""

from collections.abc import Mapping

import pytest

from kavka_broker.core.config.topic_bounds import PARTITIONS_PER_REQUEST_MAX
from kavka_broker.core.metadata.decide.heartbeats import leave
from kavka_broker.core.metadata.decide.topics import (
    Created,
    CreateTopic,
    Defaults,
    GrowTopic,
    create_topics,
    delete_topic,
    grow_topics,
)
from kavka_broker.core.metadata.image.brokers import FENCE, UNASSIGNED_DIRECTORY
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from tests.support.cluster import cluster, create, directory_of, enact, made, uuid


def refused(command: CreateTopic, *broker_ids: int, topics: Mapping[str, int] | None = None) -> ErrorCode:
    result = create(cluster(*(broker_ids or (1, 2, 3)), topics=topics), command)
    assert isinstance(result, BrokerError)
    assert result.message
    return result.code


def test_a_topic_is_its_name_its_configs_and_its_partitions() -> None:
    command = CreateTopic("t", uuid(1), 2, 1, configs={"retention.ms": "5"})
    decision = create_topics(cluster(1), [command], Defaults())
    assert [type(record) for record in decision.records] == [
        TopicRecord,
        ConfigRecord,
        PartitionRecord,
        PartitionRecord,
    ]
    assert decision.response == [Created("t", uuid(1), 2, 1, {"retention.ms": "5"})]


def test_a_new_partition_is_led_by_its_first_replica_and_wholly_in_sync() -> None:
    metadata = cluster(1, 2, 3)
    made(metadata, CreateTopic("t", uuid(1), 1, 3))
    topic = metadata.topics.get("t")
    assert topic is not None
    state = topic.partitions[0]
    assert state.leader == state.replicas[0]
    assert sorted(state.isr) == [1, 2, 3]
    assert (state.leader_epoch, state.partition_epoch) == (0, 0)
    assert state.directories == tuple(directory_of(replica) for replica in state.replicas)


def test_a_default_of_no_replicas_is_refused_where_it_is_asked_for() -> None:
    [refusal] = create_topics(cluster(1), [CreateTopic("t", uuid(1))], Defaults(replication_factor=0)).response
    assert isinstance(refusal, BrokerError)
    assert refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_unset_counts_are_the_brokers_defaults() -> None:
    decision = create_topics(cluster(1, 2), [CreateTopic("t", uuid(1))], Defaults(partitions=3, replication_factor=2))
    assert decision.response == [Created("t", uuid(1), 3, 2, {})]


def test_a_broker_with_several_directories_chooses_later() -> None:
    metadata = cluster(1)
    registration = metadata.brokers.get(1)
    assert registration is not None
    metadata.replay(BrokerRegistrationChangeRecord(1, registration.epoch, log_dirs=[uuid(1), uuid(2)]))
    made(metadata, CreateTopic("t", uuid(1), 1, 1))
    topic = metadata.topics.get("t")
    assert topic is not None
    assert topic.partitions[0].directories == (UNASSIGNED_DIRECTORY,)


def test_many_small_topics_spread_their_leaders_as_one_large_topic_does() -> None:
    metadata = cluster(1, 2, 3)
    for number in range(9):
        made(metadata, CreateTopic(f"t{number}", uuid(number), 1, 1))
    leaders = [topic.partitions[0].leader for topic in metadata.topics]
    assert sorted(leaders) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_topics_of_one_request_stand_each_for_itself() -> None:
    commands = [CreateTopic("a", uuid(1), 1, 1), CreateTopic("b", uuid(2), 1, 9), CreateTopic("c", uuid(3), 1, 1)]
    decision = create_topics(cluster(1), commands, Defaults())
    assert [isinstance(result, Created) for result in decision.response] == [True, False, True]
    assert [record.name for record in decision.records if isinstance(record, TopicRecord)] == ["a", "c"]


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "ä", "a/b", "a\n"])
def test_a_name_must_be_a_directory_and_a_metric(name: str) -> None:
    assert refused(CreateTopic(name, uuid(1), 1, 1)) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_longest_name_is_taken() -> None:
    made(cluster(1), CreateTopic("a" * 249, uuid(1), 1, 1))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateTopic("there", uuid(9), 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreateTopic("a_b", uuid(9), 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreateTopic("__cluster_metadata", uuid(9), 1, 1), ErrorCode.INVALID_REQUEST),
        (CreateTopic("t", uuid(9), 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreateTopic("t", uuid(9), -2, 1), ErrorCode.INVALID_PARTITIONS),
        (CreateTopic("t", uuid(9), 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreateTopic("t", uuid(9), 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreateTopic("t", uuid(9), 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreateTopic("t", uuid(9), PARTITIONS_PER_REQUEST_MAX + 1, 1), ErrorCode.POLICY_VIOLATION),
        (CreateTopic("t", uuid(9), 1, 1, configs={"nope": "1"}), ErrorCode.INVALID_CONFIG),
        (CreateTopic("t", uuid(9), 1, 1, configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (CreateTopic("t", uuid(9), 1, 1, configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (CreateTopic("t", uuid(9), 1, -1, {0: (1,)}), ErrorCode.INVALID_REQUEST),
        (CreateTopic("t", uuid(9), -1, 1, {0: (1,)}), ErrorCode.INVALID_REQUEST),
        (CreateTopic("t", uuid(9), -1, -1, {1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreateTopic("t", uuid(9), -1, -1, {0: (1, 1)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreateTopic("t", uuid(9), -1, -1, {0: (7,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreateTopic("t", uuid(9), -1, -1, {0: ()}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreateTopic("t", uuid(9), -1, -1, {0: (1,), 1: (1, 2)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_refusals_have_kafkas_codes(command: CreateTopic, code: ErrorCode) -> None:
    assert refused(command, topics={"there": 1, "a.b": 1}) is code


def test_a_fenced_broker_gets_a_replica_only_where_the_others_are_too_few() -> None:
    # As Apache Kafka: a topic can be made while a broker restarts. It begins without that one in sync.
    metadata = cluster(1, 2, 3)
    enact(metadata, leave(metadata, 2))
    made(metadata, CreateTopic("s", uuid(0), 4, 2))
    made(metadata, CreateTopic("t", uuid(1), 4, 3))
    few, all_of_them = metadata.topics.get("s"), metadata.topics.get("t")
    assert few is not None
    assert all_of_them is not None
    assert {broker for state in few.partitions.values() for broker in state.replicas} == {1, 3}
    for state in all_of_them.partitions.values():
        assert (set(state.replicas), set(state.isr)) == ({1, 2, 3}, {1, 3})
    assert isinstance(create(metadata, CreateTopic("u", uuid(2), 1, 4)), BrokerError)


def test_where_every_broker_is_fenced_nothing_is_placed() -> None:
    metadata = cluster(1)
    enact(metadata, leave(metadata, 1))
    assert isinstance(create(metadata, CreateTopic("t", uuid(1), 1, 1)), BrokerError)


def test_brokers_named_by_hand_may_be_fenced_except_one() -> None:
    metadata = cluster(1, 2)
    enact(metadata, leave(metadata, 2))
    made(metadata, CreateTopic("u", uuid(2), -1, -1, {0: (2, 1)}))
    topic = metadata.topics.get("u")
    assert topic is not None
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (1, (1,))


def test_a_partition_only_on_fenced_brokers_is_refused() -> None:
    metadata = cluster(1, 2)
    registration = metadata.brokers.get(2)
    assert registration is not None
    metadata.replay(BrokerRegistrationChangeRecord(2, registration.epoch, fenced=FENCE))
    result = create(metadata, CreateTopic("t", uuid(1), -1, -1, {0: (2,)}))
    assert isinstance(result, BrokerError)
    assert result.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def grow(command: GrowTopic) -> BrokerError | None:
    (result,) = grow_topics(cluster(1, 2, topics={"t": 2}), [command]).response
    return result


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_a_topic_in_which_groups_are_found_by_hash_does_not_grow(name: str) -> None:
    metadata = cluster(1, topics={name: 4})
    (refusal,) = grow_topics(metadata, [GrowTopic(name, 8)]).response
    assert refusal is not None
    assert refusal.code is ErrorCode.INVALID_PARTITIONS
    assert "keeps its 4 partitions" in str(refusal)


def test_a_topic_grows_at_its_end() -> None:
    metadata = cluster(1, 2, topics={"t": 2})
    assert enact(metadata, grow_topics(metadata, [GrowTopic("t", 4, [(2,), (1,)])])) == [None]
    topic = metadata.topics.get("t")
    assert topic is not None
    assert {index: state.leader for index, state in topic.partitions.items() if index > 1} == {2: 2, 3: 1}
    assert metadata.topics.partition_count == 4


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (GrowTopic("t", 2), ErrorCode.INVALID_PARTITIONS),
        (GrowTopic("t", 1), ErrorCode.INVALID_PARTITIONS),
        (GrowTopic("t", -1), ErrorCode.INVALID_PARTITIONS),
        (GrowTopic("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (GrowTopic("t", 4, [(1,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (GrowTopic("t", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (GrowTopic("t", 3, [(1, 2)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (GrowTopic("t", 3, [(7,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (GrowTopic("t", 20_000), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_growth_is_refused_with_kafkas_codes(command: GrowTopic, code: ErrorCode) -> None:
    refusal = grow(command)
    assert refusal is not None
    assert refusal.code is code


def test_a_deleted_topic_takes_its_configs_with_it() -> None:
    metadata = cluster(1)
    made(metadata, CreateTopic("t", uuid(1), 3, 1, configs={"retention.ms": "5"}))
    topic = metadata.topics.get("t")
    assert topic is not None
    enact(metadata, delete_topic(topic))
    assert metadata.topics.get("t") is None
    assert metadata.topics.by_id(uuid(1)) is None
    assert not metadata.configs.topic("t")
    assert metadata.topics.partition_count == 0
    made(metadata, CreateTopic("t", uuid(2), 1, 1))


def test_a_name_is_free_again_when_the_topic_it_collided_with_is_gone() -> None:
    metadata = cluster(1, topics={"a.b": 1})
    topic = metadata.topics.get("a.b")
    assert topic is not None
    enact(metadata, delete_topic(topic))
    made(metadata, CreateTopic("a_b", uuid(5), 1, 1))


@pytest.mark.parametrize("count", [2 + PARTITIONS_PER_REQUEST_MAX + 1, 2**31 - 1])
def test_too_many_new_partitions_are_refused_before_any_is_placed(count: int) -> None:
    """2**31 - 1 of them, once placed, would take all memory."""
    metadata = cluster(1, 2, topics={"t": 2})
    (refusal,) = grow_topics(metadata, [GrowTopic("t", count)]).response
    assert refusal is not None
    assert refusal.code is ErrorCode.POLICY_VIOLATION


def test_the_bound_counts_all_topics_of_a_request() -> None:
    metadata = cluster(1, topics={"t": 1, "u": 1})
    half = PARTITIONS_PER_REQUEST_MAX // 2 + 2
    first, second = grow_topics(metadata, [GrowTopic("t", half), GrowTopic("u", half)]).response
    assert first is None
    assert second is not None
    assert second.code is ErrorCode.POLICY_VIOLATION


def test_too_many_partitions_of_new_topics_are_refused_before_any_is_placed() -> None:
    wanted = CreateTopic("t", uuid(9), 2**31 - 1, 1)
    assert refused(wanted) is ErrorCode.POLICY_VIOLATION


def test_as_many_new_partitions_as_a_request_may_have_are_placed() -> None:
    created = create(cluster(1, 2, 3), CreateTopic("t", uuid(9), PARTITIONS_PER_REQUEST_MAX, 1))
    assert isinstance(created, Created)
    assert created.partitions == PARTITIONS_PER_REQUEST_MAX
    assert refused(CreateTopic("t", uuid(9), PARTITIONS_PER_REQUEST_MAX + 1, 1)) is ErrorCode.POLICY_VIOLATION


def test_the_leaders_of_topics_of_one_request_spread() -> None:
    metadata = cluster(1, 2, 3)
    commands = [CreateTopic(f"t{number}", uuid(number), 1, 1) for number in range(3)]
    enact(metadata, create_topics(metadata, commands, Defaults()))
    assert {topic.partitions[0].leader for topic in metadata.topics} == {1, 2, 3}


def test_the_leaders_of_what_topics_of_one_request_grow_by_spread() -> None:
    metadata = cluster(1, 2, 3, topics={"t": 1, "u": 1, "v": 1})
    records = grow_topics(metadata, [GrowTopic(name, 2) for name in "tuv"]).records
    assert sorted(record.leader for record in records if isinstance(record, PartitionRecord)) == [1, 2, 3]


def test_a_topic_without_replicas_is_refused_before_any_is_placed() -> None:
    refusal = create(cluster(1), CreateTopic("t", uuid(1), 1, 0))
    assert isinstance(refusal, BrokerError)
    assert refusal.message == "0 replicas: write 1 or more, or -1"
