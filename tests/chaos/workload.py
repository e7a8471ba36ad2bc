"""What clients do while things break: idempotent producers, a group that reads, and a final look at everything.

The clients are confluent-kafka's, as people use them. Each value is `producer:partition:number`, sent once by the
program; the library may send it as often as it likes. All of it is told to the history that the simulation judges by.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.chaos.copies import NOTED, LibraryLog
from tests.chaos.latencies import Latencies
from tests.sim.history import History, Place
from tests.support.committed import committed

TOPIC: Final = "chaos"
GROUP: Final = "readers"
DELIVERY_MS_MAX: Final = 180_000
COMMIT_EVERY: Final = 200
FINAL_SECONDS_MAX: Final = 120.0
DRAIN_SECONDS_MAX: Final = 120.0
PAUSE_SECONDS: Final = 0.02
ANSWER_SECONDS: Final = 2.0
MOVING_SECONDS_MAX: Final = 90.0
BEHIND_THE_NODES: Final = 10
#: Of the producer that one partition has for itself: so few that not all its requests are in flight beside a slow node.
VALUES_A_SECOND: Final = 5
QUIET: Final = {"log_level": 0, "socket.timeout.ms": 10_000, "reconnect.backoff.max.ms": 1000}


@dataclass(slots=True)
class Gaps:
    """The longest time between two acknowledgements of a partition, since the last `reset`."""

    last: dict[Place, float] = field(default_factory=dict)
    longest: dict[Place, float] = field(default_factory=dict)

    def acknowledged(self, place: Place) -> None:
        now = time.monotonic()
        if place in self.last:
            self.longest[place] = max(self.longest.get(place, 0.0), now - self.last[place])
        self.last[place] = now

    def reset(self) -> None:
        self.longest.clear()

    def worst(self) -> float:
        """The longest gap of any partition, one that still lasts included."""
        now = time.monotonic()
        return max([*self.longest.values(), *(now - then for then in self.last.values())], default=0.0)


class Workload:
    """Producers and readers in threads, until told to stop."""

    def __init__(self, bootstrap: str, partitions: int, producers: int, readers: int, values_a_second: int) -> None:
        self.bootstrap = bootstrap
        self.history = History()
        self.gaps = Gaps()
        self.latencies = Latencies()
        self.acknowledged_ends: dict[Place, int] = {}
        self.read_ends: dict[Place, int] = {}
        self.places = [(TOPIC, partition) for partition in range(partitions)]
        self.is_stopping = False
        self.is_reading = True
        self.failures: list[str] = []
        self.committed: dict[int, int] = {}
        self.complaints: dict[str, str] = {}  # what the library last told each reader
        self.is_asking = False  # where the readers are: something is wrong with the group
        self.standing: dict[str, str] = {}  # and what each of them answers
        self.library: dict[str, LibraryLog] = {}  # of each producer
        self._lock = threading.Lock()
        self._rate = values_a_second
        self._producers = [self._thread(self._produce, f"p{number}") for number in range(producers)]
        self._producers += [
            self._thread(partial(self._produce, only=place), f"o{place[1]}", is_measured=True) for place in self.places
        ]
        self._readers = [self._thread(self._read, f"c{number}") for number in range(readers)]

    def _thread(self, work: Callable[[str], None], name: str, *, is_measured: bool = False) -> threading.Thread:
        def guarded() -> None:
            # A producer of librdkafka 2.16 with all requests in flight spins, in a thread for each broker. They inherit
            # this, and the nodes come first, and the processes that measure them.
            if not is_measured:
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BEHIND_THE_NODES)
            try:
                work(name)
            except BaseException as problem:
                self.failures.append(f"{name} ended: {problem!r}")
                raise

        return threading.Thread(target=guarded, name=name, daemon=True)

    def start(self) -> None:
        for thread in (*self._producers, *self._readers):
            thread.start()

    def finish(self) -> None:
        """Stop sending, wait for what is under way, let the group read to the end, and read everything once more."""
        self.is_stopping = True
        for thread in self._producers:
            thread.join(DELIVERY_MS_MAX / 1000 + DRAIN_SECONDS_MAX)
            assert not thread.is_alive(), f"producer {thread.name} does not come to an end"
        for place in self.places:
            self.history.read_finally(place, self._all_of(place))
        self._wait_for_the_group()
        self.is_reading = False
        self._check_nothing_was_passed_over()
        for thread in self._readers:
            thread.join(DRAIN_SECONDS_MAX)
        self._check_commits()

    # --- producing ----------------------------------------------------------------------------------------------

    def _produce(self, name: str, only: Place | None = None) -> None:
        generation, number = 0, 0
        while not self.is_stopping:
            generation += 1
            number = self._produce_until_fatal(f"{name}.{generation}", number, only)

    def _produce_until_fatal(self, name: str, number: int, only: Place | None) -> int:
        """Send until the producer cannot go on or the run ends; the number that comes next."""
        library = self.library[name] = LibraryLog(name)
        producer = Producer({
            **QUIET, **NOTED, "bootstrap.servers": self.bootstrap, "enable.idempotence": True, "acks": "all",
            "linger.ms": 5, "delivery.timeout.ms": DELIVERY_MS_MAX, "request.timeout.ms": 10_000,
            "queue.buffering.max.messages": 20_000,
        }, logger=library.logger)  # fmt: skip
        places, rate = (self.places, self._rate) if only is None else ([only], VALUES_A_SECOND)
        is_fatal = False
        while not (self.is_stopping or is_fatal):
            for place in places:
                number += 1
                value = f"{name}:{place[1]}:{number}"
                is_fatal = is_fatal or not self._send(producer, name, place, value, is_timed=only is not None)
            producer.poll(len(places) / rate)
        left = producer.flush(DELIVERY_MS_MAX / 1000)
        with self._lock:
            self.history.given_up += left + is_fatal
        return number

    def _send(self, producer: Producer, name: str, place: Place, value: str, is_timed: bool) -> bool:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self._delivered(error, message, value, place)
            if error is None and is_timed:
                self.latencies.acknowledged(place, message.latency() or 0.0)

        with self._lock:
            self.history.sent(name, place, [value])
        while True:
            try:
                producer.produce(place[0], value.encode(), partition=place[1], on_delivery=on_delivery)
                return True
            except BufferError:
                producer.poll(PAUSE_SECONDS)
            except KafkaException as problem:
                with self._lock:
                    del self.history.sends[value]
                error = problem.args[0]
                if error.fatal():
                    return False
                raise

    def _delivered(self, error: KafkaError | None, message: Message, value: str, place: Place) -> None:
        if error is not None:
            return  # its fate is unknown
        offset = message.offset()
        with self._lock:
            self.history.acknowledged([value], offset if offset is not None and offset >= 0 else None)
            self.gaps.acknowledged(place)
            self.acknowledged_ends[place] = max(offset or 0, self.acknowledged_ends.get(place, 0))

    # --- reading ------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> None:
        """One member of the group. Each assignment of a partition is a reader of its own: it may begin further back."""
        generations: dict[int, int] = {}
        consumer = Consumer({
            **QUIET, "bootstrap.servers": self.bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "session.timeout.ms": 10_000, "isolation.level": "read_committed",
            "error_cb": lambda error: self.complaints.update({name: f"{time.monotonic():.1f} {error.str()}"}),
        })  # fmt: skip

        def on_assign(_: Consumer, assigned: Sequence[TopicPartition]) -> None:
            for partition in assigned:
                generations[partition.partition] = generations.get(partition.partition, 0) + 1

        consumer.subscribe([TOPIC], on_assign=on_assign)
        seen = 0
        while self.is_reading:
            for message in consumer.consume(500, timeout=0.2):
                if message.error() is not None:
                    continue
                seen += 1
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                reader = f"{name}#{generations.get(partition, 0)}"
                with self._lock:
                    self.read_ends[TOPIC, partition] = max(offset, self.read_ends.get((TOPIC, partition), 0))
                    self.history.polled(reader, (TOPIC, partition), [(offset, (value or b"").decode())], offset)
            if seen >= COMMIT_EVERY:
                seen = 0
                self._commit(consumer)
            if self.is_asking:
                self.standing[name] = where(consumer)
        self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        try:
            committed: Any = consumer.commit(asynchronous=False)
        except KafkaException:
            return  # a rebalance or a fault: the next one tells
        with self._lock:
            for done in committed or ():
                if done.error is None and done.offset >= 0:
                    self.committed[done.partition] = max(done.offset, self.committed.get(done.partition, 0))

    # --- the end ------------------------------------------------------------------------------------------------

    def _all_of(self, place: Place) -> dict[int, str]:
        """Every record of a partition, from its beginning to its end."""
        consumer = Consumer({
            **QUIET, "bootstrap.servers": self.bootstrap, "group.id": "final", "auto.offset.reset": "error",
            "enable.auto.commit": False, "enable.partition.eof": True,
        })  # fmt: skip
        found: dict[int, str] = {}
        deadline = time.monotonic() + FINAL_SECONDS_MAX
        try:
            consumer.assign([TopicPartition(*place, 0)])
            while time.monotonic() < deadline:
                for message in consumer.consume(1000, timeout=0.5):
                    error, offset = message.error(), message.offset()
                    if error is not None and error.code() == KafkaError._PARTITION_EOF:
                        return found
                    if error is None and offset is not None:
                        found[offset] = (message.value() or b"").decode()
        finally:
            consumer.close()
        raise AssertionError(f"{place} cannot be read to its end in {FINAL_SECONDS_MAX:g} s; {len(found)} records")

    def _wait_for_the_group(self) -> None:
        """Until the group has seen the last record of every partition."""
        deadline = time.monotonic() + DRAIN_SECONDS_MAX
        wanted = {place: max(records, default=-1) for place, records in self.history.finals.items()}
        while True:
            with self._lock:
                read: dict[Place, int] = {}
                for poll in self.history.polls.values():
                    read[poll.place] = max(read.get(poll.place, -1), poll.seen[-1][0])
            behind = {place: (read.get(place, -1), end) for place, end in wanted.items() if read.get(place, -1) < end}
            if not behind:
                return
            if time.monotonic() > deadline:
                self.history.note(
                    f"stuck-group: after {DRAIN_SECONDS_MAX:g} s it has read {behind} (read, end); {self._account()}"
                )
                return
            time.sleep(0.2)

    def wait_until_the_group_moves(self) -> None:
        """Until it has read what was acknowledged when this was called. Raises AssertionError where it stands still,
        with all that is known of the cause.
        """
        deadline = time.monotonic() + MOVING_SECONDS_MAX
        wanted = dict(self.acknowledged_ends)
        while behind := {place: end for place, end in wanted.items() if self.read_ends.get(place, -1) < end}:
            if time.monotonic() > deadline:
                at = {place: self.read_ends.get(place, -1) for place in behind}
                raise AssertionError(
                    f"the group stands still: after {MOVING_SECONDS_MAX:g} s it is at {at}, wanted {behind};"
                    f" {self._account()}"
                )
            time.sleep(0.1)

    def _check_nothing_was_passed_over(self) -> None:
        """Whoever took over a partition began no further on than the group had come."""
        with self._lock:
            polls = list(self.history.polls.values())
        for place, records in self.history.finals.items():
            read = {offset for poll in polls if poll.place == place for offset, _ in poll.seen}
            missed = [offset for offset in records if offset not in read and offset < max(read, default=0)]
            if missed:
                self.history.note(
                    f"passed-over: {place}: no reader saw {len(missed)} records, the first at {missed[0]}"
                )

    def _account(self) -> str:
        """All that is known of the readers: what they heard, where they are, and where in the program they wait."""
        self.is_asking = True
        time.sleep(ANSWER_SECONDS)
        frames = sys._current_frames()
        stacks = {
            thread.name: "".join(traceback.format_stack(frames[thread.ident], 1)).strip()
            for thread in self._readers
            if thread.ident in frames
        }
        return (
            f"heard {self.complaints} until {time.monotonic():.1f}; standing {self.standing}; waiting {stacks};"
            f" the coordinator says {self._described()}"
        )

    def _described(self) -> str:
        """The group as its coordinator knows it."""
        admin = AdminClient({**QUIET, "bootstrap.servers": self.bootstrap})
        try:
            group = admin.describe_consumer_groups([GROUP], request_timeout=10)[GROUP].result()
        except KafkaException as problem:
            return str(problem)
        members = [(member.member_id, str(member.assignment.topic_partitions)) for member in group.members]
        return f"{group.state} at {group.coordinator}: {members}"

    def _check_commits(self) -> None:
        """What a commit was answered for is still committed."""
        consumer = Consumer({**QUIET, "bootstrap.servers": self.bootstrap, "group.id": GROUP})
        try:
            asked = [TopicPartition(TOPIC, partition) for partition in self.committed]
            for answer in committed(consumer, asked) if asked else []:
                if answer.offset < self.committed[answer.partition]:
                    was = self.committed[answer.partition]
                    self.history.note(f"lost-commit: {answer.partition} was committed at {was}, is at {answer.offset}")
        finally:
            consumer.close()


def where(consumer: Consumer) -> str:
    """Who a reader is, which partitions it has and how far it has come in them."""
    try:
        assigned = consumer.assignment()
        positions = {at.partition: at.offset for at in consumer.position(assigned)}
        return f"{consumer.memberid()} at {positions}"
    except (KafkaException, RuntimeError) as problem:
        return f"no answer: {problem}"
