"""One idempotent producer and one consumer of a group that live through everything, and what became of each record."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import confluent_kafka

from tests.support.messages import place_of

TOPIC: Final = "load"
PARTITIONS: Final = 3
PAUSE_SECONDS: Final = 0.02
DELIVERY_SECONDS_MAX: Final = 120
POLL_SECONDS: Final = 0.1


class Load:
    """A record to each partition every few milliseconds; the values count up from 0 in each."""

    def __init__(self, bootstrap: str) -> None:
        self.failed: list[str] = []
        self.sent = 0  # to each partition
        self.read: dict[tuple[int, int], int] = {}  # value by partition and offset
        self._ends = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": DELIVERY_SECONDS_MAX * 1000,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "load",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._consumer.subscribe([TOPIC])
        self._threads = [threading.Thread(target=self._produce), threading.Thread(target=self._consume)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        while not self._ends.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(TOPIC, b"%d" % self.sent, partition=partition, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0)
            time.sleep(PAUSE_SECONDS)
        if self._producer.flush(DELIVERY_SECONDS_MAX):
            self.failed.append("records were not delivered in time")

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failed.append(f"{message.partition()}: {error}")

    def _consume(self) -> None:
        deadline = float("inf")
        while len(self.read) < PARTITIONS * self.sent or not self._ends.is_set():
            if self._ends.is_set():
                deadline = min(deadline, time.monotonic() + DELIVERY_SECONDS_MAX)
            if time.monotonic() > deadline:
                self.failed.append(f"{len(self.read)} of {PARTITIONS * self.sent} records were read in time")
                break
            message = self._consumer.poll(POLL_SECONDS)
            if message is None or message.error():
                continue
            place, value = place_of(message), int(message.value() or b"")
            if self.read.setdefault(place, value) != value:
                self.failed.append(f"{place} was {self.read[place]}, and then {value}")
        self._consumer.close()

    def end(self) -> None:
        """No more records; wait until all have been read."""
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def judge(self) -> None:
        """Nothing failed, nothing is lost, doubled, or out of order."""
        assert not self.failed, self.failed[:5]
        assert self.sent
        for partition in range(PARTITIONS):
            found = [(offset, value) for (one, offset), value in sorted(self.read.items()) if one == partition]
            wrong = [place for place, (_, value) in enumerate(found) if place != value]
            near = found[max(0, wrong[0] - 2) : wrong[0] + 6] if wrong else []
            assert not wrong, (
                f"partition {partition}: {len(wrong)} of {self.sent} are wrong, (offset, value) near {near}"
            )
            assert len(found) == self.sent, f"partition {partition}: {len(found)} of {self.sent}"


@contextmanager
def load(bootstrap: str) -> Iterator[Load]:
    """Under way until the block ends; judged where it ends well."""
    running = Load(bootstrap)
    running.start()
    try:
        yield running
    except BaseException:
        running.sent = 0  # no client waits for the rest
        running.end()
        raise
    running.end()
    running.judge()
