"""The clients of the demo: ordinary confluent-kafka producers and consumers, configured as anybody would."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, ThrottleEvent, TopicPartition

from kavka_demo.flights import Tally, row_of

FLUSH_SECONDS_MAX = 30.0
JOIN_SECONDS_MAX = 30.0
READ_SECONDS_MAX = 60.0
CHUNK_RECORDS = 2_000
REPORT_EVERY = 1_000
PULSE_SECONDS = 0.02
VALUE_BYTES = 10 * 1024
QUEUE_KIB = 8 * 1024  # eight seconds of what the limited client may send
QUIET = 2  # errors come through callbacks and exceptions; a log line would stand in the middle of a progress bar


class ClientFailedError(Exception):
    """A client could not do its work; the message says what happened."""


def produce_flights(
    bootstrap: str,
    topic: str,
    flights: Iterable[tuple[bytes, bytes]],
    progress: Callable[[int], None],
    may_go_on: Callable[[int], bool],
) -> Tally:
    """Produce every flight and wait until each is acknowledged by all replicas that are in sync.

    `may_go_on` is asked now and then, with how many have been produced; while it says no, the producer waits.
    Raises ClientFailedError.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer({**_durable(bootstrap, "flights"), "linger.ms": 5, "queue.buffering.max.messages": 100_000})
    tally = Tally()
    try:
        for key, value in flights:
            _produce(producer, topic, key, value, delivered)
            tally.add(key, value)
            if tally.count % REPORT_EVERY == 0:
                producer.poll(0)
                progress(tally.count)
                while not may_go_on(tally.count):
                    producer.poll(0.02)
    except BaseException:
        producer.purge()  # otherwise the client logs at its end what was left in its queue
        producer.flush(1.0)
        raise
    left = producer.flush(FLUSH_SECONDS_MAX)
    if left or failures:
        raise ClientFailedError(f"{left + len(failures)} flights were not acknowledged; {failures[:1] or 'no answer'}")
    progress(tally.count)
    return tally


def _durable(bootstrap: str, client_id: str) -> dict[str, Any]:
    """A producer that loses nothing and writes nothing twice."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "log_level": QUIET,
        "acks": "all",
        "enable.idempotence": True,
    }


def _produce(
    producer: Producer, topic: str, key: bytes, value: bytes, delivered: Callable[[KafkaError | None, Message], None]
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=delivered)
            return
        except BufferError:
            producer.poll(0.1)


class Pulse:
    """Sends a small record to every partition every 20 ms, and measures how long acknowledgements stay away.

    The records have no key and carry their number, so that a reader of the topic can tell them from the flights and
    say which are missing or stand twice.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.acknowledged: dict[int, list[int]] = {number: [] for number in range(partitions)}
        self.failure: str | None = None
        self._producer = Producer({**_durable(bootstrap, "pulse"), "linger.ms": 0})
        self._topic = topic
        self._last = dict.fromkeys(range(partitions), time.monotonic())
        self._longest = 0.0
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        """The number of acknowledged pulses."""
        return sum(map(len, self.acknowledged.values()))

    def begin(self) -> None:
        """Forget how long the acknowledgements have stayed away so far."""
        self._longest = 0.0

    def longest_gap_seconds(self) -> float:
        """The longest time between two acknowledgements of one partition since `begin`, one still missing included."""
        return max(self._longest, time.monotonic() - min(self._last.values()))

    def stop(self) -> None:
        """Send no more, and wait for what is on its way."""
        self._halt.set()
        self._thread.join(FLUSH_SECONDS_MAX)
        if left := self._producer.flush(FLUSH_SECONDS_MAX):
            self.failure = f"{left} records were not acknowledged"

    def abandon(self) -> None:
        """Stop without waiting for anything."""
        self._halt.set()
        self._thread.join(1.0)
        self._producer.purge()
        self._producer.flush(1.0)

    def _run(self) -> None:
        number = 0
        due = time.monotonic()
        while not self._halt.is_set():
            for partition in self.acknowledged:
                self._producer.produce(self._topic, b"%d" % number, partition=partition, on_delivery=self._delivered)
            number += 1
            due += PULSE_SECONDS
            self._producer.poll(0)
            while (left := due - time.monotonic()) > 0 and not self._halt.is_set():
                self._producer.poll(left)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failure = self.failure or str(error)
            return
        partition, value, now = message.partition(), message.value(), time.monotonic()
        assert partition is not None
        assert isinstance(value, bytes)
        self._longest = max(self._longest, now - self._last[partition])
        self._last[partition] = now
        self.acknowledged[partition].append(int(value))


@dataclass(slots=True)
class Reader:
    """One reader of the consumer group: what it was given and what it read; of pulses, the numbers by partition."""

    name: str
    tally: Tally = field(default_factory=Tally)
    pulses: dict[int, list[int]] = field(default_factory=dict)
    partitions: list[int] = field(default_factory=list)
    disorder: str | None = None
    failure: str | None = None
    count: int = 0


class Group:
    """Two consumers of one group, each in a thread, that read a topic to its end.

    Reading begins when both have their partitions, so that neither reads what the other will be given.
    """

    def __init__(self, bootstrap: str, topic: str, group: str, partitions: int) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "log_level": QUIET,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        self._topic, self._partitions, self._records = topic, partitions, 0
        self._stop = threading.Event()
        self.readers = [Reader("reader-1"), Reader("reader-2")]

    def read(self, progress: Callable[[int], None]) -> list[Reader]:
        """Read everything that the topic holds; the readers with what they read."""
        self._records = self._size()
        threads = [threading.Thread(target=self._run, args=(reader,), daemon=True) for reader in self.readers]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + READ_SECONDS_MAX
        try:
            while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
                progress(self._count())
                if any(reader.failure for reader in self.readers):
                    break
                time.sleep(0.05)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(JOIN_SECONDS_MAX)
        progress(self._count())
        return self.readers

    def _size(self) -> int:
        consumer = Consumer(self._settings)
        try:
            parts = [TopicPartition(self._topic, number) for number in range(self._partitions)]
            return sum(high - low for low, high in (consumer.get_watermark_offsets(part, timeout=20) for part in parts))
        finally:
            consumer.close()

    def _count(self) -> int:
        return sum(reader.count for reader in self.readers)

    def _run(self, reader: Reader) -> None:
        consumer = Consumer({**self._settings, "client.id": reader.name})
        try:
            self._read_as(reader, consumer)
        except KafkaException as error:
            reader.failure = str(error)
        finally:
            consumer.close()

    def _read_as(self, reader: Reader, consumer: Consumer) -> None:
        reading = False

        def assigned(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            reader.partitions = sorted(partition.partition for partition in partitions)

        consumer.subscribe([self._topic], on_assign=assigned)
        held: list[Message] = []
        while not self._stop.is_set() and self._count() < self._records:
            messages = consumer.consume(CHUNK_RECORDS, 0.1)
            if not reading:
                # Records that arrive before both readers have their partitions may be the other reader's in the end.
                held += messages
                if not self._is_shared_out():
                    continue
                mine = set(reader.partitions)
                messages, held, reading = [message for message in held if message.partition() in mine], [], True
            _take(reader, messages)
        if reading:
            consumer.commit(asynchronous=False)

    def _is_shared_out(self) -> bool:
        given = [number for reader in self.readers for number in reader.partitions]
        return all(reader.partitions for reader in self.readers) and sorted(given) == list(range(self._partitions))


def _take(reader: Reader, messages: list[Message]) -> None:
    last = reader.tally.last_row
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
        key, value, partition = message.key(), message.value(), message.partition()
        assert isinstance(value, bytes)
        assert partition is not None
        reader.count += 1
        if key is None:
            reader.pulses.setdefault(partition, []).append(int(value))
            continue
        assert isinstance(key, bytes)
        reader.tally.add(key, value)
        row = row_of(value)
        if row <= last.get(key, -1) and reader.disorder is None:
            reader.disorder = f"carrier {key.decode()}: row {row} came after row {last[key]}"
        last[key] = row


@dataclass(slots=True)
class Load:
    """A client that produces for a while, and what became of it."""

    client_id: str
    acknowledged_bytes: int = 0
    throttle_ms_max: int = 0
    throttle_ms_total: int = 0
    throttled_answers: int = 0
    seconds: float = 0.0
    failure: str | None = None

    @property
    def rate(self) -> float:
        """Bytes a second that were acknowledged."""
        return self.acknowledged_bytes / self.seconds if self.seconds else 0.0


def run_load(
    bootstrap: str, topic: str, load: Load, seconds: float, wanted_rate: float | None, stop: threading.Event
) -> None:
    """Produce for `seconds`, as fast as the broker lets or at `wanted_rate` bytes a second.

    With acks=all and as many requests under way as the queue holds, as librdkafka does by default: a client that does
    not wait for its answers is to be held all the same.
    """

    def throttled(event: ThrottleEvent) -> None:
        wait_ms = round(event.throttle_time * 1000)
        load.throttled_answers += wait_ms > 0
        load.throttle_ms_total += wait_ms
        load.throttle_ms_max = max(load.throttle_ms_max, wait_ms)

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None and time.monotonic() < end:
            load.acknowledged_bytes += len(message)
        elif (
            error is not None and error.code() != KafkaError._PURGE_QUEUE and error.code() != KafkaError._PURGE_INFLIGHT
        ):
            load.failure = str(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": load.client_id,
            "log_level": QUIET,
            "acks": "all",
            "batch.size": 64 * 1024,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": QUEUE_KIB,
            "throttle_cb": throttled,
        }
    )
    value = bytes(VALUE_BYTES)
    begin = time.monotonic()
    end = begin + seconds
    sent = 0
    while (now := time.monotonic()) < end and not stop.is_set() and load.failure is None:
        if wanted_rate is not None and sent >= (now - begin) * wanted_rate:
            producer.poll(0.005)
            continue
        try:
            producer.produce(topic, value, on_delivery=delivered)
            sent += len(value)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)
    load.seconds = time.monotonic() - begin
    producer.purge()
    producer.flush(1.0)
