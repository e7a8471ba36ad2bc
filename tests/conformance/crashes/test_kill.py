"""A broker that is killed keeps what it acknowledged, and its clients go on by themselves when it is back."""

from collections.abc import Callable

import confluent_kafka

from tests.conformance.clients.records import Pair
from tests.support.committed import committed
from tests.support.messages import pair_of, place_of, polled
from tests.support.servers import Server
from tests.support.topics import create_topic

SECONDS_MAX = 90.0
RECORDS_BEFORE = 2_000
RECORDS_AFTER = 1_000
ROUNDS = 3


class Acknowledged:
    """A producer that remembers which of its records were acknowledged, by partition and offset."""

    def __init__(self, server: Server, topic: str) -> None:
        settings = {"bootstrap.servers": server.bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 1}
        self._producer = confluent_kafka.Producer({**settings, "message.timeout.ms": int(SECONDS_MAX * 1000)})
        self._topic = topic
        self._sent = 0
        self.at: dict[tuple[int, int], Pair] = {}
        self.failures: list[str] = []

    def send(self, count: int) -> None:
        for number in range(self._sent, self._sent + count):
            self._producer.produce(self._topic, f"value-{number}", f"key-{number % 11}", on_delivery=self._delivered)
            self._producer.poll(0)
        self._sent += count

    def flush(self) -> None:
        assert self._producer.flush(SECONDS_MAX) == 0

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        place = place_of(message)
        assert place not in self.at, f"two records were acknowledged at {place}"
        self.at[place] = pair_of(message)


def read_all(server: Server, topic: str, partitions: int) -> dict[tuple[int, int], Pair]:
    """Every record of the topic, by partition and offset."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.bootstrap, "group.id": topic})
    places = [confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)]
    ends = {place.partition: consumer.get_watermark_offsets(place, SECONDS_MAX)[1] for place in places}
    consumer.assign(places)
    seen: dict[tuple[int, int], Pair] = {}
    while len(seen) < sum(ends.values()):
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"{len(seen)} of {sum(ends.values())} records came"
        assert message.error() is None
        seen[place_of(message)] = pair_of(message)
    consumer.close()
    return seen


def test_kill_9_loses_nothing_that_was_acknowledged(start: Callable[..., Server], name: str) -> None:
    server = start()
    create_topic(server, name, 3)
    producer = Acknowledged(server, name)
    for _ in range(ROUNDS):
        producer.send(RECORDS_BEFORE)
        server.kill()
        producer.send(RECORDS_AFTER)
        server.start()
    producer.flush()
    assert not producer.failures
    assert len(producer.at) == ROUNDS * (RECORDS_BEFORE + RECORDS_AFTER)
    assert read_all(server, name, 3) == producer.at, "each once, where it was acknowledged, and nothing else"


def test_a_clean_stop_ends_with_status_0_and_leaves_the_mark(start: Callable[..., Server], name: str) -> None:
    server = start()
    create_topic(server, name)
    producer = Acknowledged(server, name)
    producer.send(RECORDS_BEFORE)
    producer.flush()
    assert server.stop() == 0
    assert (server.data / ".kafka_cleanshutdown").exists()
    server.start()
    assert not (server.data / ".kafka_cleanshutdown").exists(), "it marks a stop, not a run"
    assert read_all(server, name, 1) == producer.at


def test_a_group_goes_on_after_a_kill(start: Callable[..., Server], name: str) -> None:
    server = start()
    create_topic(server, name)
    producer = Acknowledged(server, name)
    producer.send(100)
    producer.flush()
    settings = {"bootstrap.servers": server.bootstrap, "group.id": name, "enable.auto.commit": False}
    with_commit = confluent_kafka.Consumer({**settings, "auto.offset.reset": "earliest"})
    with_commit.subscribe([name])
    read = [polled(with_commit, SECONDS_MAX) for _ in range(40)]
    with_commit.commit(message=read[-1], asynchronous=False)
    server.kill()
    server.start()
    rest = [polled(with_commit, SECONDS_MAX) for _ in range(60)]
    assert [message.offset() for message in [*read, *rest]] == list(range(100))
    with_commit.close()
    again = confluent_kafka.Consumer({**settings, "auto.offset.reset": "error"})
    (found,) = committed(again, [confluent_kafka.TopicPartition(name, 0)])
    assert found.offset == 40
    again.close()
