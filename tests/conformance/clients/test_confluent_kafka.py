"""confluent-kafka (librdkafka): produce, consume in a group, commit, resume; idempotence, codecs, administration."""

import time

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from tests.conformance.clients.records import COUNT, FIRST_PART, PARTITIONS, RECORDS, Pair, assert_resumed
from tests.support.messages import pair_of
from tests.support.servers import Server

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


PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def consume(server: Server, topic: str, group: str, count: int, protocol: str = "classic") -> list[Pair]:
    """Read some records as a member of the group, and commit exactly those."""
    settings = {"bootstrap.servers": server.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    settings["group.protocol"] = protocol
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


@PROTOCOLS
def test_a_subscription_by_an_expression(server: Server, name: str, protocol: str) -> None:
    """librdkafka matches it itself in the classic protocol, and has the broker match it in the new one."""
    for topic in (name, f"{name}-more", f"not-{name}"):
        create(server, topic)
        produce(server, topic)
    seen = consume(server, f"^{name}(-.*)?", name, 2 * COUNT, protocol)
    assert sorted(seen) == sorted(RECORDS * 2)


@PROTOCOLS
def test_produce_consume_commit_resume(server: Server, name: str, protocol: str) -> None:
    create(server, name)
    produce(server, name)
    first = consume(server, name, name, FIRST_PART, protocol)
    assert_resumed(first, consume(server, name, name, COUNT - FIRST_PART, protocol))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs_go_through_unchanged(server: Server, name: str, codec: str) -> None:
    create(server, name)
    produce(server, name, **{"compression.type": codec})
    assert sorted(consume(server, name, name, COUNT)) == sorted(RECORDS)


def test_an_idempotent_producer_writes_each_record_once(server: Server, name: str) -> None:
    create(server, name, 1)
    produce(server, name, **{"enable.idempotence": True, "max.in.flight.requests.per.connection": 5})
    assert consume(server, name, name, COUNT) == RECORDS


@PROTOCOLS
def test_two_members_share_the_partitions(server: Server, name: str, protocol: str) -> None:
    create(server, name, 4)
    settings = {"bootstrap.servers": server.bootstrap, "group.id": name, "group.protocol": protocol}
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


@PROTOCOLS
def test_groups_are_listed_described_and_deleted(server: Server, name: str, protocol: str) -> None:
    admin = create(server, name)
    produce(server, name)
    consume(server, name, name, COUNT, protocol)
    listed = admin.list_consumer_groups().result(SECONDS_MAX)
    assert name in {group.group_id for group in listed.valid}
    described = admin.describe_consumer_groups([name])[name].result(SECONDS_MAX)
    assert (described.state.name, described.members) == ("EMPTY", [])
    admin.delete_consumer_groups([name])[name].result(SECONDS_MAX)
    assert name not in {group.group_id for group in admin.list_consumer_groups().result(SECONDS_MAX).valid}


def test_a_topic_is_created_by_its_first_record(server: Server, name: str) -> None:
    produce(server, name)
    assert sorted(consume(server, name, name, COUNT)) == sorted(RECORDS)


def transactional(server: Server, name: str) -> confluent_kafka.Producer:
    """A producer that has taken the transactional id over."""
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "transactional.id": name})
    producer.init_transactions(SECONDS_MAX)
    return producer


def committed(server: Server, name: str, count: int) -> tuple[list[bytes | None], confluent_kafka.Consumer]:
    """The first values that a reader of committed records gets, and that reader."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([name])
    found = [message.value() for message in consumer.consume(count, SECONDS_MAX)]
    return found, consumer


def test_transactions_are_committed_and_aborted(server: Server, name: str) -> None:
    create(server, name)
    producer = transactional(server, name)
    for number in range(4):
        producer.begin_transaction()
        producer.produce(name, str(number).encode())
        if number % 2:
            producer.flush(SECONDS_MAX)
            producer.abort_transaction(SECONDS_MAX)
        else:
            producer.commit_transaction(SECONDS_MAX)
    found, consumer = committed(server, name, 2)
    assert {*found} == {b"0", b"2"}
    consumer.close()


def test_offsets_are_committed_with_their_transaction(server: Server, name: str) -> None:
    create(server, name)
    producer = transactional(server, name)
    producer.begin_transaction()
    producer.produce(name, b"in", partition=0)
    producer.commit_transaction(SECONDS_MAX)
    _, consumer = committed(server, name, 1)
    (position,) = (one for one in consumer.position(consumer.assignment()) if one.offset > 0)
    for commits in (False, True):
        producer.begin_transaction()
        producer.produce(name, b"out")
        producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), SECONDS_MAX)
        if commits:
            producer.commit_transaction(SECONDS_MAX)
        else:
            producer.abort_transaction(SECONDS_MAX)
        (told,) = consumer.committed([confluent_kafka.TopicPartition(name, position.partition)], SECONDS_MAX)
        assert told.offset == (position.offset if commits else confluent_kafka.OFFSET_INVALID)
    consumer.close()


def test_the_next_producer_of_an_id_fences_the_last(server: Server, name: str) -> None:
    create(server, name)
    first = transactional(server, name)
    first.begin_transaction()
    first.produce(name, b"first")
    first.flush(SECONDS_MAX)
    second = transactional(server, name)
    with pytest.raises(confluent_kafka.KafkaException, match=r"FENCED|INVALID_PRODUCER_EPOCH"):
        first.commit_transaction(SECONDS_MAX)
    second.begin_transaction()
    second.produce(name, b"second")
    second.commit_transaction(SECONDS_MAX)
    found, consumer = committed(server, name, 1)
    assert found == [b"second"]
    consumer.close()
