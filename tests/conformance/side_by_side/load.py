"""One idempotent producer and one consumer of a group that live through everything, and what became of each record.

Where leaders change, librdkafka's retries can come behind a request that it sends to the new leader. That one refuses
it as out of order, and the client begins anew with another epoch: it sends again what it has not been told of, though
it may be there. Between two nodes of Apache Kafka too; what such a node has said of it is in its log.
"""

import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import confluent_kafka

from tests.support.messages import place_of
from tests.support.servers import Server

TOPIC: Final = "load"
PARTITIONS: Final = 3
PAUSE_SECONDS: Final = 0.02
DELIVERY_SECONDS_MAX: Final = 300
POLL_SECONDS: Final = 0.1
REFUSAL: Final = re.compile(
    rf"Out of order sequence number for producer \d+ at offset (\d+) in partition {TOPIC}-(\d+)"
)


class Load:
    """A record to each partition every few milliseconds; the values count up from 0 in each."""

    def __init__(self, bootstrap: str) -> None:
        self.failed: list[str] = []
        self.sent = 0  # to each partition
        self.read: dict[tuple[int, int], int] = {}  # value by partition and offset
        self._highest = dict.fromkeys(range(PARTITIONS), -1)  # value that was read, by partition
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
        while min(self._highest.values()) < self.sent - 1 or not self._ends.is_set():
            if self._ends.is_set():
                deadline = min(deadline, time.monotonic() + DELIVERY_SECONDS_MAX)
            if time.monotonic() > deadline:
                self.failed.append(f"read in time are those up to {self._highest} of {self.sent}")
                break
            message = self._consumer.poll(POLL_SECONDS)
            if message is None or message.error():
                continue
            place, value = place_of(message), int(message.value() or b"")
            self._highest[place[0]] = max(self._highest[place[0]], value)
            if self.read.setdefault(place, value) != value:
                self.failed.append(f"{place} was {self.read[place]}, and then {value}")
        self._consumer.close()

    def end(self) -> None:
        """No more records; wait until all have been read."""
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def judge(self, logs: Iterable[str]) -> None:
        """Nothing failed, nothing is lost or out of order, and nothing doubled but what a client sent again itself."""
        assert not self.failed, self.failed[:5]
        assert self.sent
        refusals = [(int(partition), int(offset)) for log in logs for offset, partition in REFUSAL.findall(log)]
        for partition in range(PARTITIONS):
            found = [(offset, value) for (one, offset), value in sorted(self.read.items()) if one == partition]
            wrong = misplaced(found, self.sent, sorted(offset for one, offset in refusals if one == partition))
            near = [] if wrong is None else found[max(0, wrong - 2) : wrong + 6]
            assert wrong is None, f"partition {partition} of {self.sent} records: (offset, value) near {near}"


def misplaced(found: Sequence[tuple[int, int]], sent: int, refusals: Sequence[int]) -> int | None:
    """The place of the first value that does not count on, of (offset, value); None where all are there. Behind the
    offset of each refusal they may go back once.
    """
    wanted, left = 0, [*refusals]
    for place, (offset, value) in enumerate(found):
        if value < wanted and left and left[0] <= offset:
            wanted = value
            del left[0]
        if value != wanted:
            return place
        wanted += 1
    return None if wanted == sent else len(found)


@contextmanager
def load(bootstrap: str, servers: Iterable[Server]) -> Iterator[Load]:
    """Under way until the block ends; judged where it ends well, by what these servers have told in their logs too."""
    running = Load(bootstrap)
    running.start()
    try:
        yield running
    except BaseException:
        running.sent = 0  # no client waits for the rest
        running.end()
        raise
    running.end()
    running.judge("\n".join(server.log_lines()) for server in servers)
