"""confluent-kafka (librdkafka): produce, consume in a group, commit, resume; idempotence, codecs, administration."""

import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from tests.conformance.clients.records import COUNT, FIRST_PART, PARTITIONS, RECORDS, Pair, assert_resumed
from tests.support.messages import pair_of
from tests.support.servers import Server, is_apache_kafka

SECONDS_MAX = 60.0


def create(server: Server, topic: str, partitions: int = PARTITIONS) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(SECONDS_MAX)
    return admin


def produce(server: Server, topic: str, **settings: object) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "acks": "all", **settings})
    failures: list[object] = []
    for key, value in RECORDS:
        producer.produce(topic, value, key, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(SECONDS_MAX) == 0
    assert not failures


def consume(server: Server, topic: str, group: str, count: int) -> list[Pair]:
    """Read some records as a member of the group, and commit exactly those."""
    settings = {"bootstrap.servers": server.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False, "enable.auto.offset.store": False})
    consumer.subscribe([topic])
    seen: list[Pair] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} records after {SECONDS_MAX:g} s"
        message = consumer.poll(1.0)
        if message is not None:
            assert message.error() is None
            seen.append(pair_of(message))
            consumer.store_offsets(message)
    consumer.commit(asynchronous=False)
    consumer.close()
    return seen


def test_produce_consume_commit_resume(server: Server, name: str) -> None:
    create(server, name)
    produce(server, name)
    first = consume(server, name, name, FIRST_PART)
    assert_resumed(first, consume(server, name, name, COUNT - FIRST_PART))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs_go_through_unchanged(server: Server, name: str, codec: str) -> None:
    create(server, name)
    produce(server, name, **{"compression.type": codec})
    assert sorted(consume(server, name, name, COUNT)) == sorted(RECORDS)


def test_an_idempotent_producer_writes_each_record_once(server: Server, name: str) -> None:
    create(server, name, 1)
    produce(server, name, **{"enable.idempotence": True, "max.in.flight.requests.per.connection": 5})
    assert consume(server, name, name, COUNT) == RECORDS


def test_two_members_share_the_partitions(server: Server, name: str) -> None:
    create(server, name, 4)
    settings = {"bootstrap.servers": server.bootstrap, "group.id": name}
    members = [confluent_kafka.Consumer(settings) for _ in range(2)]
    for member in members:
        member.subscribe([name])
    deadline = time.monotonic() + SECONDS_MAX
    while [len(member.assignment()) for member in members] != [2, 2]:
        assert time.monotonic() < deadline, "two members, four partitions: two each"
        for member in members:
            member.poll(0.1)
    owned = [(part.topic, part.partition) for member in members for part in member.assignment()]
    assert sorted(owned) == [(name, number) for number in range(4)]
    for member in members:
        member.close()


def test_topics_are_described_grown_configured_and_deleted(server: Server, name: str) -> None:
    admin = create(server, name, 1)
    resource = ConfigResource(ResourceType.TOPIC, name)
    admin.create_partitions([NewPartitions(name, 3)])[name].result(SECONDS_MAX)
    assert len(admin.list_topics(name, SECONDS_MAX).topics[name].partitions) == 3
    resource.add_incremental_config(
        confluent_kafka.admin.ConfigEntry(
            "retention.ms", "60000", incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET
        )
    )
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)
    described = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name)])
    values = next(iter(described.values())).result(SECONDS_MAX)
    assert values["retention.ms"].value == "60000"
    admin.delete_topics([name])[name].result(SECONDS_MAX)
    assert name not in admin.list_topics(timeout=SECONDS_MAX).topics


def test_records_can_be_deleted_and_offsets_listed(server: Server, name: str) -> None:
    admin = create(server, name, 1)
    produce(server, name)
    partition = confluent_kafka.TopicPartition(name, 0, 50)
    assert admin.delete_records([partition])[partition].result(SECONDS_MAX).low_watermark == 50
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": name})
    assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition(name, 0), SECONDS_MAX) == (50, COUNT)
    consumer.close()


def test_groups_are_listed_described_and_deleted(server: Server, name: str) -> None:
    admin = create(server, name)
    produce(server, name)
    consume(server, name, name, COUNT)
    listed = admin.list_consumer_groups().result(SECONDS_MAX)
    assert name in {group.group_id for group in listed.valid}
    described = admin.describe_consumer_groups([name])[name].result(SECONDS_MAX)
    assert (described.state.name, described.members) == ("EMPTY", [])
    admin.delete_consumer_groups([name])[name].result(SECONDS_MAX)
    assert name not in {group.group_id for group in admin.list_consumer_groups().result(SECONDS_MAX).valid}


def test_a_topic_is_created_by_its_first_record(server: Server, name: str) -> None:
    produce(server, name)
    assert sorted(consume(server, name, name, COUNT)) == sorted(RECORDS)


@pytest.mark.skipif(is_apache_kafka(), reason="Apache Kafka coordinates transactions")
def test_a_transactional_producer_is_told_that_there_is_no_coordinator(server: Server, name: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "transactional.id": name})
    with pytest.raises(confluent_kafka.KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED") as told:
        producer.init_transactions(SECONDS_MAX)
    assert not told.value.args[0].retriable()
