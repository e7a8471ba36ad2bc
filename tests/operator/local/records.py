"""Numbered records through an idempotent producer, and all that a topic holds."""

import threading
from itertools import count
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.operator.local.support import Kavka, wait_until


def read_all(kavka: Kavka, topic: str, partitions: int) -> list[bytes]:
    """Every value of a topic, from its start to the end that it has now."""
    settings = {"bootstrap.servers": kavka.bootstrap, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer({**settings, **kavka.access})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        wanted = sum(consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=60)[1] for n in range(partitions))
        values: list[bytes] = []
        wait_until(lambda: take(consumer, values) >= wanted, f"{wanted} records are read")
        return values
    finally:
        consumer.close()


def take(consumer: Consumer, values: list[bytes]) -> int:
    for message in consumer.consume(1000, 0.2):
        assert message.error() is None, message.error()
        value = message.value()
        assert isinstance(value, bytes)
        values.append(value)
    return len(values)


TOGETHER: Final = 5
#: Between them: a request each millisecond would keep three brokers busy with nothing else.
PAUSE_SECONDS: Final = 0.005


class Writer(threading.Thread):
    """Produces numbered records until it is told to stop, and notes which were acknowledged; some are always on their
    way.
    """

    def __init__(self, kavka: Kavka, topic: str) -> None:
        super().__init__()
        self.acknowledged: list[bytes] = []
        self.halt = threading.Event()
        self._topic = topic
        settings = {"bootstrap.servers": kavka.bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 1}
        self._producer = Producer({**settings, **kavka.access})

    def run(self) -> None:
        for number in count():
            self._producer.produce(self._topic, b"%d" % number, on_delivery=self._delivered)
            if number % TOGETHER == 0:
                self._producer.poll(0)
                if self.halt.wait(PAUSE_SECONDS):
                    break
        self._producer.flush(30)

    def wait_for_more(self, records: int) -> None:
        reached = len(self.acknowledged) + records
        wait_until(lambda: len(self.acknowledged) >= reached, f"{records} more records are acknowledged")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        if error is None:
            assert isinstance(value, bytes)
            self.acknowledged.append(value)
