"""Victims: light clients that go by the clock, and tell how long they had to wait.

python -m bench.victims produce PORT TOPIC SECONDS     100 B each ms, acks=1
python -m bench.victims consume PORT TOPIC SECONDS     records of 10 KB each 10 ms, until a consumer that waits has them

A wait counts from when the request was due, so one that could not be sent in time has waited too. One that is not
answered `LAST_SECONDS_MAX` after the end has waited until then: its figure is the least that it can be. The answer is
one line of JSON: how many requests were answered, and the p50, p99 and maximum of all in ms.
"""

import json
import select
import socket
import sys
import time
from collections.abc import Callable
from typing import Final

from bench import wire
from bench.repetitions import percentile

CLIENT: Final = b"victim"
RECEIVED_BYTES: Final = 1 << 20
LAST_SECONDS_MAX: Final = 10.0


class Counted:
    """A socket of which only the answers' bodies are looked at, one after the other."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pending = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def receive(self) -> list[memoryview]:
        """The bodies of the answers that have come whole, behind their correlation ids."""
        received = self._socket.recv(RECEIVED_BYTES)
        if not received:
            raise wire.WireError("the broker closed the connection")
        self._pending += received
        whole, at = bytes(self._pending), 0
        bodies = []
        while len(whole) - at >= 4 and len(whole) - at - 4 >= (size := int.from_bytes(whole[at : at + 4], "big")):
            bodies.append(memoryview(whole)[at + 8 : at + 4 + size])
            at += 4 + size
        del self._pending[:at]
        return bodies


class Schedule:
    """Requests that are due at equal distances."""

    def __init__(self, count: int, apart_seconds: float) -> None:
        self.count = count
        self.apart_seconds = apart_seconds
        self.sent = 0
        self.waited_ms: list[float] = []
        self._began = time.perf_counter()

    @property
    def is_done(self) -> bool:
        is_late = time.perf_counter() > self._due(self.count) + LAST_SECONDS_MAX
        return is_late or len(self.waited_ms) >= self.count

    def waits_ms(self) -> list[float]:
        """The wait of each request that was due, ascending: until its answer, or until now."""
        now = time.perf_counter()
        unanswered = range(len(self.waited_ms), self.count)
        return sorted([*self.waited_ms, *((now - self._due(number)) * 1000 for number in unanswered)])

    def _due(self, number: int) -> float:
        return self._began + number * self.apart_seconds

    def send_due(self, send: Callable[[], None]) -> float:
        """Send what is due; returns the seconds until the next is."""
        while self.sent < self.count and time.perf_counter() >= self._due(self.sent):
            send()
            self.sent += 1
        return max(0.0, self._due(self.sent) - time.perf_counter()) if self.sent < self.count else 1.0

    def answered(self, requests: int) -> None:
        now = time.perf_counter()
        for _ in range(requests):
            self.waited_ms.append((now - self._due(len(self.waited_ms))) * 1000)


def produce(port: int, topic: str, seconds: float) -> Schedule:
    """Send a Produce request each millisecond, pipelined where one is late."""
    frame = wire.produce_frame(topic, 0, b"x" * 100, 1, CLIENT)
    connection, schedule = Counted(port), Schedule(int(seconds * 1000), 0.001)
    while not schedule.is_done:
        seconds_left = schedule.send_due(lambda: connection.send(frame))
        readable, _, _ = select.select([connection], [], [], seconds_left)
        if readable:
            bodies = connection.receive()
            for body in bodies:
                wire.produced_offset(body, topic)
            schedule.answered(len(bodies))
    return schedule


def consume(port: int, topic: str, seconds: float) -> Schedule:
    """Write records that a consumer waits for; each is answered when the consumer has it."""
    value = b"x" * 10_000
    frame = wire.produce_frame(topic, 0, value, 1, CLIENT)
    batch_bytes = len(wire.one_record_batch(value, int(time.time() * 1000)))
    producer, consumer = Counted(port), Counted(port)
    with wire.Connection(port) as first:
        offset = wire.produced_offset(first.ask(frame), topic) + 1
    consumer.send(wire.fetch_frame(topic, 0, offset, client_id=CLIENT))
    schedule = Schedule(int(seconds * 100), 0.01)
    while not schedule.is_done:
        seconds_left = schedule.send_due(lambda: producer.send(frame))
        readable, _, _ = select.select([producer, consumer], [], [], seconds_left)
        if producer in readable:
            producer.receive()
        if consumer in readable:
            for body in consumer.receive():
                records = wire.fetched_bytes(body, topic) // batch_bytes
                schedule.answered(records)
                offset += records
                consumer.send(wire.fetch_frame(topic, 0, offset, client_id=CLIENT))
    return schedule


def main() -> None:
    what, port, topic, seconds = sys.argv[1:]
    play = {"produce": produce, "consume": consume}[what]
    schedule = play(int(port), topic, float(seconds))
    waited = schedule.waits_ms()
    told = {
        "count": len(schedule.waited_ms),
        "p50_ms": percentile(waited, 50),
        "p99_ms": percentile(waited, 99),
        "max_ms": waited[-1],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
