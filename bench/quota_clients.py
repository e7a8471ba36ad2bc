"""Clients that send or read as fast as they are let, and count what the broker took or gave.

Each runs in the background from its making until `stop`. `taken` are bytes of record values, as acknowledged or
received (of `mutation_clients`: partitions); `told_ms` is the sum of the delays that it was told, where the client
says so.
"""

import contextlib
import re
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import confluent_kafka as ck
from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from bench import processes, wire
from tools.kafka_jars import class_path

QUEUE_KIB: Final = "8000"  # or the queue of librdkafka takes a gigabyte before it refuses
RECORDS_MAX: Final = 2_000_000_000
REQUEST_BYTES: Final = 64 * 1024
JAVA_WINDOW: Final = re.compile(rb"^(\d+) records sent, ", re.MULTILINE)
SECONDS_MAX: Final = 60.0
SUM_SECONDS: Final = 0.02


class Client(ABC):
    """One load, in a thread of its own."""

    def __init__(self) -> None:
        self.taken = 0
        self.told_ms = 0.0
        self.failure: str | None = None
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it. Raises ClientError where it has failed on the way."""
        self._stops.set()
        self._thread.join(SECONDS_MAX)
        if self.failure:
            raise processes.ClientError(self.failure)

    @abstractmethod
    def run(self) -> None:
        """Send or read until `_stops` is set."""

    def _guarded(self) -> None:
        try:
            self.run()
        except (OSError, ck.KafkaException, KafkaError, wire.WireError) as error:
            if not self._stops.is_set():
                self.failure = f"{type(self).__name__}: {error!r}"

    def _throttled(self, event: ck.ThrottleEvent) -> None:
        self.told_ms += event.throttle_time * 1000


class RdkafkaProducer(Client):
    """confluent-kafka as it is by default: acks=all, five requests in flight, not idempotent."""

    def __init__(self, bootstrap: str, topic: str, client_id: str, size_bytes: int) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0,
            "queue.buffering.max.kbytes": QUEUE_KIB, "throttle_cb": self._throttled,
        }  # fmt: skip
        self._topic, self._value = topic, b"x" * size_bytes
        super().__init__()

    def run(self) -> None:
        producer = ck.Producer(self._settings)
        while not self._stops.is_set():
            try:
                producer.produce(self._topic, self._value, partition=0, on_delivery=self._delivered)
                producer.poll(0)
            except BufferError:
                producer.poll(0.1)
        producer.purge()
        producer.poll(0)

    def _delivered(self, error: ck.KafkaError | None, _message: ck.Message) -> None:
        if error is None:
            self.taken += len(self._value)
        elif not self._stops.is_set():
            self.failure = f"librdkafka: {error}"


class RdkafkaConsumer(Client):
    """confluent-kafka as it is by default, over one partition, again and again from its beginning."""

    def __init__(self, bootstrap: str, topic: str, client_id: str) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "client.id": client_id, "group.id": client_id, "log_level": 0,
            "enable.auto.commit": False, "enable.partition.eof": True, "throttle_cb": self._throttled,
            "queued.max.messages.kbytes": QUEUE_KIB,
        }  # fmt: skip
        self._start = ck.TopicPartition(topic, 0, 0)
        super().__init__()

    def run(self) -> None:
        consumer = ck.Consumer(self._settings)
        consumer.assign([self._start])
        while not self._stops.is_set():
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is None:
                self.taken += len(message.value() or b"")
            else:
                consumer.seek(self._start)  # it has come to the end
        consumer.close()


class KafkaPythonProducer(Client):
    """kafka-python as it is by default."""

    def __init__(self, bootstrap: str, topic: str, client_id: str, size_bytes: int) -> None:
        self._bootstrap, self._topic, self._client_id = bootstrap, topic, client_id
        self._value = b"x" * size_bytes
        super().__init__()

    def run(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, client_id=self._client_id)
        while not self._stops.is_set():
            with contextlib.suppress(KafkaTimeoutError):  # its memory is full, for it is throttled
                producer.send(self._topic, self._value).add_callback(self._delivered)
        producer.close(timeout=0)

    def _delivered(self, _metadata: object) -> None:
        self.taken += len(self._value)


class JavaProducer(Client):
    """Java's producer as it is by default, idempotent, driven by Kafka's own kafka-producer-perf-test."""

    def __init__(self, bootstrap: str, topic: str, client_id: str, size_bytes: int) -> None:
        amount = ["--num-records", str(RECORDS_MAX), "--record-size", str(size_bytes), "--throughput", "-1"]
        target = ["--bootstrap-server", bootstrap, "--topic", topic, "--reporting-interval", "1000"]
        tool = ["java", "-Xmx256M", "-Dlog4j2.level=error", "-cp", class_path()]
        tool.append("org.apache.kafka.tools.ProducerPerformance")
        self._command = [*tool, *target, *amount, "--command-property", f"client.id={client_id}"]
        self._size_bytes = size_bytes
        super().__init__()

    def run(self) -> None:
        output = subprocess.PIPE
        with subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output) as process:
            ends = threading.Thread(target=self._end, args=(process,), daemon=True)
            ends.start()
            assert process.stdout is not None
            for line in process.stdout:
                for records in JAVA_WINDOW.findall(line):
                    self.taken += int(records) * self._size_bytes
            if not self._stops.is_set():
                assert process.stderr is not None
                self.failure = f"ProducerPerformance ended: {process.stderr.read()[-500:]!r}"

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._stops.wait()
        process.kill()


class PipelinedProducer(Client):
    """A bare socket that keeps so many requests under way, and waits for no delay."""

    def __init__(
        self, port: int, topic: str, client_id: str, in_flight: int, request_bytes: int = REQUEST_BYTES, acks: int = -1
    ) -> None:
        self._port, self._topic, self._in_flight, self._request_bytes = port, topic, in_flight, request_bytes
        self._frame = wire.produce_frame(topic, 0, b"x" * request_bytes, acks, client_id.encode())
        super().__init__()

    def run(self) -> None:
        with wire.Connection(self._port, SECONDS_MAX) as connection:
            sender = threading.Thread(target=self._send, args=(connection, self._in_flight), daemon=True)
            sender.start()
            while not self._stops.is_set():
                body = connection.receive_next()
                wire.produced_offset(body, self._topic)
                self.taken += self._request_bytes
                self.told_ms += wire.produce_throttle_ms(body)
                if not sender.is_alive():
                    connection.send(self._frame)

    def _send(self, connection: wire.Connection, requests: int) -> None:
        """All at once: it takes a while where the broker does not read."""
        connection.send(self._frame * requests)


class PipelinedFetcher(Client):
    """A bare socket that keeps so many fetches under way, always from the beginning, and waits for no delay."""

    def __init__(self, port: int, topic: str, client_id: str, in_flight: int) -> None:
        self._port, self._topic, self._in_flight = port, topic, in_flight
        self._frame = wire.fetch_frame(topic, 0, 0, client_id=client_id.encode())
        super().__init__()

    def run(self) -> None:
        with wire.Connection(self._port, SECONDS_MAX) as connection:
            connection.send(self._frame * self._in_flight)
            while not self._stops.is_set():
                body = connection.receive_next()
                self.told_ms += wire.fetch_throttle_ms(body)
                if wire.has_topics(body):
                    self.taken += wire.fetched_bytes(body, self._topic)
                connection.send(self._frame)


class Several(Client):
    """Clients that are one to the quota: their sums."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self.clients = clients
        super().__init__()

    def run(self) -> None:
        while not self._stops.wait(SUM_SECONDS):
            self.taken = sum(client.taken for client in self.clients)
            self.told_ms = sum(client.told_ms for client in self.clients)
            self.failure = next((client.failure for client in self.clients if client.failure), None)

    def stop(self) -> None:
        for client in self.clients:
            client.stop()
        super().stop()
