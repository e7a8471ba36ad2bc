"""The clients of the demo: ordinary confluent-kafka producers and consumers, configured as anybody would."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, ThrottleEvent, TopicPartition

from kavka_operator.demo.flights import Tally, row_of

FLUSH_SECONDS_MAX = 30.0
JOIN_SECONDS_MAX = 30.0
READ_SECONDS_MAX = 60.0
CHUNK_RECORDS = 2_000
REPORT_EVERY = 4_000
VALUE_BYTES = 10 * 1024
QUIET = 2  # errors reach us through callbacks and exceptions; nothing is worth a line in the middle of a bar


class ClientFailedError(Exception):
    """A client could not do its work; the message says what happened."""


def produce_flights(
    bootstrap: str, topic: str, flights: Iterable[tuple[bytes, bytes]], progress: Callable[[int], None]
) -> Tally:
    """Produce every flight and wait until each is acknowledged by all replicas."""
    failures: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "flights",
            "log_level": QUIET,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 100_000,
        }
    )
    tally = Tally()
    try:
        for key, value in flights:
            _produce(producer, topic, key, value, delivered)
            tally.add(key, value)
            if tally.count % REPORT_EVERY == 0:
                producer.poll(0)
                progress(tally.count)
    except BaseException:
        producer.purge()  # or the client complains, at its end, of what was left in its queue
        producer.flush(1.0)
        raise
    left = producer.flush(FLUSH_SECONDS_MAX)
    if left or failures:
        raise ClientFailedError(f"{left + len(failures)} flights were not acknowledged; {failures[:1] or 'no answer'}")
    progress(tally.count)
    return tally


def _produce(
    producer: Producer, topic: str, key: bytes, value: bytes, delivered: Callable[[KafkaError | None, Message], None]
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=delivered)
            return
        except BufferError:
            producer.poll(0.1)


@dataclass(slots=True)
class Member:
    """One member of the consumer group: what it was given and what it read."""

    name: str
    tally: Tally = field(default_factory=Tally)
    partitions: list[int] = field(default_factory=list)
    disorder: str | None = None
    failure: str | None = None


class Group:
    """Two consumers of one group, each in a thread, that read a topic to its end.

    Reading begins when both have their partitions, so that neither reads what the other will be given.
    """

    def __init__(self, bootstrap: str, topic: str, group: str, partitions: int, records: int) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "log_level": QUIET,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        self._topic, self._partitions, self._records = topic, partitions, records
        self._stop = threading.Event()
        self.members = [Member("reader-1"), Member("reader-2")]

    def read(self, progress: Callable[[int], None]) -> list[Member]:
        """Read everything; the members with what they read."""
        threads = [threading.Thread(target=self._run, args=(member,), daemon=True) for member in self.members]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + READ_SECONDS_MAX
        try:
            while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
                progress(self._count())
                if any(member.failure for member in self.members):
                    break
                time.sleep(0.05)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(JOIN_SECONDS_MAX)
        progress(self._count())
        return self.members

    def _count(self) -> int:
        return sum(member.tally.count for member in self.members)

    def _run(self, member: Member) -> None:
        consumer = Consumer({**self._settings, "client.id": member.name})
        try:
            self._read_as(member, consumer)
        except KafkaException as error:
            member.failure = str(error)
        finally:
            consumer.close()

    def _read_as(self, member: Member, consumer: Consumer) -> None:
        reading = False

        def assigned(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            member.partitions = sorted(partition.partition for partition in partitions)

        consumer.subscribe([self._topic], on_assign=assigned)
        held: list[Message] = []
        while not self._stop.is_set() and self._count() < self._records:
            messages = consumer.consume(CHUNK_RECORDS, 0.1)
            if not reading:
                # Records that arrive before both members have their share may belong to the other one in the end.
                held += messages
                if not self._is_shared_out():
                    continue
                mine = set(member.partitions)
                messages, held, reading = [each for each in held if each.partition() in mine], [], True
            _take(member, messages)
        if reading:
            consumer.commit(asynchronous=False)

    def _is_shared_out(self) -> bool:
        given = [number for member in self.members for number in member.partitions]
        return all(member.partitions for member in self.members) and sorted(given) == list(range(self._partitions))


def _take(member: Member, messages: list[Message]) -> None:
    last = member.tally.last_row
    for message in messages:
        if (error := message.error()) is not None:
            raise KafkaException(error)
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        member.tally.add(key, value)
        row = row_of(value)
        if row <= last.get(key, -1) and member.disorder is None:
            member.disorder = f"carrier {key.decode()}: row {row} came after row {last[key]}"
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
    """Produce for `seconds`, as fast as the broker lets or at `wanted_rate` bytes a second."""

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
            "acks": "1",
            "batch.size": 64 * 1024,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 2048,
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
