"""Clients meet the faults of a test's plan, and do what they do where a broker has them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest

from kavka_pytest.brokers import Kafka, KafkaError
from kavka_pytest.external import ExternalKafka
from kavka_pytest.in_process import KafkaInProcess
from tests.support.servers import start_apache_kafka
from tests.support.waiting import until_outside

COUNT = 20
VALUES = [f"value {number}".encode() for number in range(COUNT)]


def produce_confluent(servers: str, topic: str, client_id: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "client.id": client_id, "enable.idempotence": True, "retry.backoff.ms": 10}
    )
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def consume_confluent(servers: str, topic: str, group: str) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "client.id": "reader"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    while len(found) < COUNT:
        message = consumer.poll(60)
        assert message is not None
        if not message.error():
            found.append(message.value() or b"")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def produce_kafka_python(servers: str, topic: str, client_id: str) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers, client_id=client_id, enable_idempotence=True, retry_backoff_ms=10
    )
    sent = [producer.send(topic, value) for value in VALUES]
    for one in sent:
        one.get(60)
    producer.close()


def consume_kafka_python(servers: str, topic: str, group: str) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest", client_id="reader"
    )
    found = [next(consumer).value for _ in range(COUNT)]
    consumer.commit()
    consumer.close()
    return found


def produce_aiokafka(servers: str, topic: str, client_id: str) -> None:
    async def produce() -> None:
        options = {"bootstrap_servers": servers, "client_id": client_id, "retry_backoff_ms": 10}
        async with aiokafka.AIOKafkaProducer(enable_idempotence=True, **options) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)

    asyncio.run(produce())


def consume_aiokafka(servers: str, topic: str, group: str) -> list[bytes]:
    async def consume() -> list[bytes]:
        options = {"bootstrap_servers": servers, "group_id": group, "client_id": "reader"}
        async with aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options) as consumer:
            found = [(await consumer.getone()).value for _ in range(COUNT)]
            await consumer.commit()
            return found

    return asyncio.run(consume())


Produce = Callable[[str, str, str], None]
Consume = Callable[[str, str, str], list[bytes]]
CLIENTS = pytest.mark.parametrize(
    ("produce", "consume"),
    [
        pytest.param(produce_confluent, consume_confluent, id="confluent-kafka"),
        pytest.param(produce_kafka_python, consume_kafka_python, id="kafka-python"),
        pytest.param(produce_aiokafka, consume_aiokafka, id="aiokafka"),
    ],
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with KafkaInProcess(tmp_path_factory.mktemp("broker")) as running:
        yield running


@CLIENTS
def test_records_arrive_once_whatever_becomes_of_their_answers(
    broker: Kafka, produce: Produce, consume: Consume
) -> None:
    topic = broker.topic()
    broker.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER")
    broker.faults.drop("Produce", nth=2)  # the records are written
    broker.faults.drop("Produce", after="request", nth=3)  # they are not
    produce(str(broker), topic, "writer")
    assert [one.api for one in broker.faults.played] == ["Produce"] * 3
    assert consume(str(broker), topic, f"group of {topic}") == VALUES


@CLIENTS
def test_a_consumer_gets_over_errors_of_partitions_and_of_its_coordinator(
    broker: Kafka, produce: Produce, consume: Consume
) -> None:
    topic = broker.topic()
    produce(str(broker), topic, "writer")
    for api, error in (
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("Fetch", "NOT_LEADER_OR_FOLLOWER"),
        ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("Metadata", "LEADER_NOT_AVAILABLE"),
    ):
        broker.faults.answer(api, error, client_id="reader")
    assert consume(str(broker), topic, f"group of {topic}") == VALUES
    assert broker.faults.unplayed == []


def producer_of(broker: Kafka, client_id: str) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({"bootstrap.servers": str(broker), "client.id": client_id})


def test_an_answer_is_held_back_until_the_fault_ends(broker: Kafka) -> None:
    topic, producer = broker.topic(), producer_of(broker, "slow")
    broker.faults.delay("Produce", 300_000, client_id="slow")
    producer.produce(topic, b"one")
    until_outside(lambda: producer.poll(0) or broker.faults.played, what="the answer is held back")
    assert len(producer) == 1
    broker.faults.clear()
    assert producer.flush(60) == 0


def test_a_black_hole_swallows_one_client_and_not_another(broker: Kafka) -> None:
    topic, swallowed, other = broker.topic(), producer_of(broker, "swallowed"), producer_of(broker, "other")
    broker.faults.black_hole(client_id="swallowed")
    swallowed.produce(topic, b"one")
    other.produce(topic, b"two")
    assert other.flush(60) == 0
    until_outside(lambda: broker.faults.played, what="the client has connected")
    assert {one.client_id for one in broker.faults.played} == {"swallowed"}
    assert len(swallowed) == 1
    broker.faults.clear()
    assert swallowed.flush(60) == 0


@pytest.mark.java
@pytest.mark.extended
def test_clients_lose_a_broker_that_is_cut_off_and_have_it_again(broker: Kafka) -> None:
    topic = broker.topic()
    errors: list[object] = []
    config = {"bootstrap.servers": str(broker), "message.timeout.ms": 500, "reconnect.backoff.max.ms": 100}
    producer = confluent_kafka.Producer(config)
    producer.produce(topic, b"before", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    node = broker.cut(leader_of=topic)
    producer.produce(topic, b"meanwhile", on_delivery=lambda error, _: errors.append(error and error.name()))
    assert producer.flush(60) == 0
    broker.mend(node)
    after = confluent_kafka.Producer({"bootstrap.servers": str(broker)})
    after.produce(topic, b"after", on_delivery=lambda error, _: errors.append(error))
    assert after.flush(60) == 0
    assert errors == [None, "_MSG_TIMED_OUT", None]
    with pytest.raises(KafkaError, match="there is no node 77; there are"):
        broker.cut(77)
    with pytest.raises(ValueError, match="name a node"):
        broker.cut()


def test_a_cut_ends_with_the_faults_of_the_test(broker: Kafka) -> None:
    topic = broker.topic()
    broker.cut(leader_of=topic)
    broker.faults.clear()
    produce_kafka_python(str(broker), topic, "orders")
    assert consume_kafka_python(str(broker), topic, "cut") == VALUES


def test_faults_are_played_in_front_of_apache_kafka(tmp_path: Path) -> None:
    server = start_apache_kafka(tmp_path / "apache")
    try:
        with ExternalKafka(server.bootstrap) as running:
            topic = running.topic(partitions=3)
            assert running.leader(topic, 2) == 1
            running.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER")
            running.faults.drop("Produce", nth=2)
            running.faults.answer("Fetch", "NOT_LEADER_OR_FOLLOWER", client_id="reader")
            produce_confluent(str(running), topic, "writer")
            assert sorted(consume_confluent(str(running), topic, "readers")) == sorted(VALUES)
            assert running.faults.unplayed == []
    finally:
        server.stop()
