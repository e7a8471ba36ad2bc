"""confluent-kafka's producer and consumer with the counting around them.

    teller = Teller(Producer(config), "producer", "shop")
    producer = CountedProducer(Producer(config), teller)
    ...                                      # produce, poll and flush as before
    teller.close()

A producer counts what a broker has acknowledged; within a transaction, once it is committed. A consumer counts what it
is given, and tells it before it commits: a consumer that is killed reads again what it has not told. A producer that
is killed has not told its last `interval_seconds`; those records show as duplicates, as nobody says to have written
them. The wrapped client is given, so that this module imports no Kafka library.
"""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from kavka_audit.completeness.offset_ranges import Ranges
from kavka_audit.completeness.reports import RUNS_MAX, TIERS, TOPIC, Report, encode, parts

INTERVAL_SECONDS: Final = 30.0
"""How often a client tells: well within the minute after which a bucket is judged."""
FLUSH_SECONDS: Final = 10.0
UNDELIVERED_MAX: Final = 1_000
"""Reports that wait for the topic to take them; later ones are dropped, and the gap in their sequence is seen."""
Delivered = Callable[[Any, Any], None]


class Teller:
    """Counts of one client, and the producer that tells them: one that has no transactions."""

    def __init__(
        self, producer: Any, tier: str, name: str, *, topic: str = TOPIC, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        assert tier in TIERS, tier
        self._producer, self._tier, self._name, self._topic = producer, tier, name, topic
        self._instance, self._sequence = uuid.uuid4().hex, 0
        self._lock, self._ranges = threading.Lock(), Ranges()
        self._undelivered: deque[bytes] = deque()
        self.dropped = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._tell_on, args=(interval_seconds,), daemon=True)
        self._thread.start()

    def count(self, message: Any) -> None:
        """Count a message of confluent-kafka that was acknowledged, or read."""
        with self._lock:
            add(self._ranges, message, self._topic)
            is_full = self._ranges.size >= RUNS_MAX
        if is_full:
            self.tell()

    def take(self, counted: Ranges) -> None:
        """Count what was counted elsewhere."""
        with self._lock:
            self._ranges.take(counted)

    def tell(self) -> None:
        """Hand over what was counted since the last time."""
        with self._lock:
            counted, self._ranges = self._ranges, Ranges()
            again, self._undelivered = self._undelivered, deque()
            for part in parts(counted):
                report = Report(self._tier, self._name, self._instance, self._sequence, int(time.time() * 1000), part)
                again.append(encode(report))
                self._sequence += 1
        for value in again:
            self._send(value)

    def flush(self, timeout_seconds: float = FLUSH_SECONDS) -> None:
        """Tell, and wait until the topic has taken it, for a bounded time."""
        self.tell()
        self._producer.flush(timeout_seconds)

    def close(self) -> None:
        """Tell what is left, and stop."""
        self._closing.set()
        self._thread.join()
        self.flush()

    def _tell_on(self, interval_seconds: float) -> None:
        while not self._closing.wait(interval_seconds):
            self.flush()

    def _send(self, value: bytes) -> None:
        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                self._keep(value)

        try:
            self._producer.produce(self._topic, value, on_delivery=delivered)
        except BufferError:
            self._keep(value)
        self._producer.poll(0)

    def _keep(self, value: bytes) -> None:
        """Have a report told again later, with its own sequence."""
        with self._lock:
            if len(self._undelivered) < UNDELIVERED_MAX:
                self._undelivered.append(value)
            else:
                self.dropped += 1


def add(ranges: Ranges, message: Any, own_topic: str = TOPIC) -> None:
    """Add a message of confluent-kafka; those of the topic with the counts are not counted."""
    if message.topic() != own_topic:
        offset = message.offset()
        ranges.add(message.topic(), message.partition(), message.timestamp()[1], -1 if offset is None else offset)


class _Wrapped:
    """A client with all of its methods."""

    def __init__(self, client: Any, teller: Teller) -> None:
        self._client, self._teller = client, teller

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class CountedProducer(_Wrapped):
    """A producer of confluent-kafka that counts what is acknowledged."""

    def __init__(self, producer: Any, teller: Teller) -> None:
        super().__init__(producer, teller)
        self._open: Ranges | None = None

    def produce(  # the order of confluent-kafka's own parameters
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Delivered | None = None,
        on_delivery: Delivered | None = None,
        **others: Any,
    ) -> None:
        """Produce a record, as the wrapped producer does."""
        counted = self._counted(on_delivery or callback)
        self._client.produce(topic, value=value, key=key, partition=partition, on_delivery=counted, **others)

    def begin_transaction(self) -> None:
        """Begin: what is acknowledged from now on counts once it is committed."""
        self._client.begin_transaction()
        self._open = Ranges()

    def commit_transaction(self, *arguments: Any) -> None:
        """Commit, and count."""
        self._client.commit_transaction(*arguments)
        counted, self._open = self._open, None
        if counted is not None:
            self._teller.take(counted)

    def abort_transaction(self, *arguments: Any) -> None:
        """Abort: nothing of it counts."""
        self._client.abort_transaction(*arguments)
        self._open = None

    def _counted(self, told: Delivered | None) -> Delivered:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self._count(message)
            if told is not None:
                told(error, message)

        return delivered

    def _count(self, message: Any) -> None:
        if self._open is None:
            self._teller.count(message)
        else:
            add(self._open, message)


class CountedConsumer(_Wrapped):
    """A consumer of confluent-kafka that counts what it is given."""

    def poll(self, timeout: float = -1) -> Any:
        """Return a message, as the wrapped consumer does."""
        message = self._client.poll(timeout)
        self._count(() if message is None else (message,))
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> Any:
        """Return messages, as the wrapped consumer does."""
        messages = self._client.consume(num_messages, timeout)
        self._count(messages)
        return messages

    def commit(self, *arguments: Any, **others: Any) -> Any:
        """Tell what was counted, then commit."""
        self._teller.flush()
        return self._client.commit(*arguments, **others)

    def close(self) -> None:
        """Tell what was counted, then close, which may commit."""
        self._teller.flush()
        self._client.close()

    def _count(self, messages: Any) -> None:
        for message in messages:
            if message.error() is None:
                self._teller.count(message)
