"""One at a time: how long a single record takes, with nothing else in flight.

Measured with bare sockets (the broker and the loopback, nothing else) and with confluent-kafka (what an application
sees). `end to end` is the time from sending a record until a consumer that was already waiting has it.
"""

import time
from collections.abc import Callable

import confluent_kafka as ck

from bench import wire

VALUE = b"x" * 100
WARM_UP_SHARE = 20
QUIET: dict[str, object] = {"log_level": 3}
CONSUMER_SECONDS_MAX = 10.0

Samples = list[float]


def produce_bare(port: int, topic: str, count: int) -> Samples:
    """Milliseconds of each produce with acks=all, over one socket."""
    frame = wire.produce_frame(topic, 0, VALUE, -1)
    with wire.Connection(port) as connection:

        def once() -> None:
            wire.produced_offset(connection.ask(frame), topic)

        return _timed(once, count)


def produce_pipelined(port: int, topic: str, count: int, in_flight: int) -> float:
    """Acknowledged requests a second over one socket, with so many under way."""
    frame = wire.produce_frame(topic, 0, VALUE, -1)
    with wire.Connection(port) as connection:
        for _ in range(in_flight):
            connection.send(frame)
        started = time.perf_counter()
        for number in range(count):
            wire.produced_offset(connection.receive_next(), topic)
            if number < count - in_flight:
                connection.send(frame)
        return count / (time.perf_counter() - started)


def end_to_end_bare(port: int, topic: str, count: int) -> Samples:
    """Milliseconds from sending a record until the fetch that waits for it is answered, over two sockets."""
    frame = wire.produce_frame(topic, 0, VALUE, -1)
    with wire.Connection(port) as producer, wire.Connection(port) as consumer:
        offset = wire.produced_offset(producer.ask(frame), topic) + 1

        def once() -> None:
            nonlocal offset
            producer.send(frame)
            if not wire.fetched_bytes(consumer.receive(), topic):
                raise wire.WireError("a fetch was answered with nothing")
            _produced = wire.produced_offset(producer.receive(), topic)
            offset += 1

        def park() -> None:
            consumer.send(wire.fetch_frame(topic, 0, offset))
            # The fetch has to wait in the broker before the record comes, or this measures two requests in a row.
            time.sleep(0.0005)

        return _timed(once, count, before=park)


def produce_confluent(bootstrap: str, topic: str, count: int) -> Samples:
    """Milliseconds of each produce with acks=all through confluent-kafka."""
    producer = ck.Producer(QUIET | {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    reports: list[ck.KafkaError | None] = []

    def once() -> None:
        producer.produce(topic, VALUE, partition=0, on_delivery=lambda error, _message: reports.append(error))
        while not reports:
            producer.poll(1.0)
        if error := reports.pop():
            raise wire.WireError(f"confluent-kafka: {error}")

    return _timed(once, count)


def end_to_end_confluent(bootstrap: str, topic: str, count: int) -> Samples:
    """Milliseconds from produce to poll through confluent-kafka."""
    producer = ck.Producer(QUIET | {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    consumer = ck.Consumer(QUIET | {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    _low, end = consumer.get_watermark_offsets(ck.TopicPartition(topic, 0), CONSUMER_SECONDS_MAX)
    consumer.assign([ck.TopicPartition(topic, 0, end)])
    consumer.poll(1.0)

    def once() -> None:
        producer.produce(topic, VALUE, partition=0)
        producer.poll(0)
        message = consumer.poll(CONSUMER_SECONDS_MAX)
        if message is None or message.error():
            raise wire.WireError("confluent-kafka: the record did not come")

    samples = _timed(once, count)
    producer.flush(CONSUMER_SECONDS_MAX)
    consumer.close()
    return samples


def _timed(once: Callable[[], None], count: int, before: Callable[[], None] | None = None) -> Samples:
    """Milliseconds of each call, sorted; the first twentieth is warm-up."""
    samples: Samples = []
    for _ in range(count):
        if before is not None:
            before()
        started = time.perf_counter()
        once()
        samples.append((time.perf_counter() - started) * 1000)
    return sorted(samples[count // WARM_UP_SHARE :])
