"""Transactions while things break: values are written and aborted, copied exactly once, and read.

A feeder writes values to one topic in transactions. Copiers, members of one group, read them with
`isolation.level=read_committed`, write a copy of each to another topic, and commit their offsets in the same
transaction. A reader reads both topics. All clients are confluent-kafka's, whose transactions are of version 1. One
transaction in a few is aborted on purpose. After an error that an abort does not mend, and after a call that does not
return, the instance is given up, and another one of the same transactional id goes on.

`tests/histories` judges what they were told; `uncopied` looks whether each value was copied once.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.chaos.workload import QUIET
from tests.histories.judge import fatal
from tests.histories.operations import CommitOffset, Kind, Poll
from tests.sim.history import Place
from tests.sim.recorded import Record, Written

T = TypeVar("T")

SOURCE: Final = "values"
TARGET: Final = "copies"
TOPICS: Final = (SOURCE, TARGET)
GROUP: Final = "copiers"
PARTITIONS: Final = 3
COPIERS: Final = 2
VALUES_MAX: Final = 4  # of a feeder's transaction
COPIED_MAX: Final = 20  # in one transaction
ABORTED_SHARE: Final = 0.2
PAUSE_SECONDS: Final = 0.05
#: A call asks for an answer within the first of these seconds, again and again within the second. Then its instance is
#: given up: `send_offsets_to_transaction` of librdkafka may not return at all, whatever its timeout is.
CALL_SECONDS: Final = 15.0
CALL_SECONDS_MAX: Final = 60.0
TRANSACTION_MS_MAX: Final = 20_000
MOVING_SECONDS_MAX: Final = 180.0
END_SECONDS_MAX: Final = 300.0
SHOWN_MAX: Final = 3  # of each kind
MARK: Final = ">"  # between a value and who copies it


class GivenUp(Exception):
    """A call has not returned in time."""


def bounded(call: Callable[[], T]) -> T:
    """Call in a thread of its own. Raises GivenUp, and leaves the thread behind, where that takes too long."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised where the call was made
            result.set_exception(error)

    threading.Thread(target=run, name="bounded", daemon=True).start()
    try:
        return result.result(CALL_SECONDS_MAX)
    except TimeoutError:
        raise GivenUp from None


def repeated(call: Callable[[float], T]) -> T:
    """Call as often as the library says that it may help. Raises KafkaException."""
    deadline = time.monotonic() + CALL_SECONDS_MAX
    while True:
        try:
            return call(CALL_SECONDS)
        except KafkaException as problem:
            error = problem.args[0]
            is_final = not error.retriable() or error.txn_requires_abort() or error.fatal()
            if is_final or time.monotonic() > deadline:
                raise


class Transactor:
    """The producers of one transactional id, one after the other."""

    def __init__(self, bootstrap: str, name: str, record: Record, lock: threading.Lock, chance: random.Random) -> None:
        self.name = name
        self.committed = 0
        self.instances = 0
        self._bootstrap = bootstrap
        self._record = record
        self._lock = lock
        self._chance = chance

    def begin(self) -> None:
        """Take over the id: the transaction of whoever had it before is over then."""
        while True:
            self.instances += 1
            self._producer = Producer({
                **QUIET, "bootstrap.servers": self._bootstrap, "transactional.id": self.name, "linger.ms": 2,
                "transaction.timeout.ms": TRANSACTION_MS_MAX,
            })  # fmt: skip
            try:
                bounded(lambda: repeated(self._producer.init_transactions))
            except (KafkaException, GivenUp):
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def transact(self, work: Callable[[Producer, Written], None]) -> bool:
        """One transaction; whether it is known to be committed."""
        with self._lock:
            written = self._record.begin(self.name, self.name, time.monotonic())
        try:
            self._producer.begin_transaction()
            work(self._producer, written)
            if self._chance.random() < ABORTED_SHARE:
                self._producer.flush(self._chance.choice((0, CALL_SECONDS)))
                bounded(lambda: repeated(self._producer.abort_transaction))
            else:
                self._note(written, None)
                bounded(lambda: repeated(self._producer.commit_transaction))
                self._note(written, True)
        except GivenUp:
            self.begin()
        except KafkaException as problem:
            self._abort(written, problem)
        with self._lock:
            written.ended = time.monotonic()
            self.committed += written.committed is True
            return written.committed is True

    def _abort(self, written: Written, problem: KafkaException) -> None:
        """Abort after an error; where that is not possible another instance goes on, and the fate is not known."""
        if not problem.args[0].fatal():
            try:
                bounded(lambda: repeated(self._producer.abort_transaction))
            except (KafkaException, GivenUp):
                pass
            else:
                self._note(written, False)
                return
        self.begin()

    def _note(self, written: Written, committed: bool | None) -> None:
        with self._lock:
            if committed is None:
                written.commit_asked = time.monotonic()
            written.committed = committed

    def send(self, producer: Producer, written: Written, place: Place, value: str) -> None:
        """Write a value in the transaction. Raises KafkaException."""

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None and offset is not None:
                with self._lock:
                    self._record.acknowledged(written, [value], offset)

        with self._lock:
            written.sends(place, [value])
        producer.produce(place[0], value.encode(), partition=place[1], on_delivery=on_delivery)
        producer.poll(0)


class Copier:
    """A member of the group, with a transactional id of its own."""

    def __init__(self, bootstrap: str, transactor: Transactor, record: Record, lock: threading.Lock) -> None:
        self._transactor = transactor
        self._record = record
        self._lock = lock
        self._consumer = Consumer({
            **QUIET, "bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "session.timeout.ms": 10_000, "isolation.level": "read_committed",
        })  # fmt: skip
        # With callbacks a rebalance happens in `consume` only, so not between reading and committing.
        self._consumer.subscribe([SOURCE], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def copy(self) -> None:
        """Read some values, and copy them in a transaction; what is not known to be copied is read again."""
        messages = [one for one in self._consumer.consume(COPIED_MAX, 0.2) if one.error() is None]
        if messages and not self._transactor.transact(
            lambda producer, written: self._work(producer, written, messages)
        ):
            self._rewind(messages)

    def close(self) -> None:
        self._consumer.close()

    def _work(self, producer: Producer, written: Written, messages: list[Message]) -> None:
        found = by_place(messages)
        with self._lock:
            written.steps.append(Poll(found))
        for (_, partition), records in found.items():
            for _, value in records:
                copy = f"{value}{MARK}{self._transactor.name}.{written.number}"
                self._transactor.send(producer, written, (TARGET, partition), copy)
        self.send_offsets(producer, written, {place: records[-1][0] + 1 for place, records in found.items()})

    def send_offsets(self, producer: Producer, written: Written, offsets: Mapping[Place, int]) -> None:
        """Commit the offsets with the transaction. Raises KafkaException and GivenUp."""
        with self._lock:
            written.steps += [CommitOffset(GROUP, place, offset) for place, offset in offsets.items()]
        places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        group = self._consumer.consumer_group_metadata()
        bounded(lambda: repeated(lambda seconds: producer.send_offsets_to_transaction(places, group, seconds)))

    def _rewind(self, messages: list[Message]) -> None:
        """Read on at the committed offsets. Where a partition is assigned anew meanwhile it begins there by itself."""
        mine = {part.partition for part in self._consumer.assignment()}
        parts = [TopicPartition(*place) for place in by_place(messages) if place[1] in mine]
        for part in committed(self._consumer, parts):
            self._consumer.seek(TopicPartition(SOURCE, part.partition, max(part.offset, 0)))

    def _assigned(self, consumer: Consumer, parts: Sequence[TopicPartition]) -> None:
        self._chose(parts)

    def _revoked(self, consumer: Consumer, parts: Sequence[TopicPartition]) -> None:
        self._chose(())

    def _chose(self, parts: Sequence[TopicPartition]) -> None:
        with self._lock:
            places = [(part.topic, part.partition) for part in parts]
            self._record.chose(self._transactor.name, Kind.SUBSCRIBE, places, time.monotonic())


class Transactions:
    """A feeder, copiers and a reader in threads, until told to stop. `failures` are those of the threads."""

    isolation = "read_committed"  # of the reader

    def __init__(self, bootstrap: str, seed: int, failures: list[str], copier: type[Copier] = Copier) -> None:
        self._bootstrap = bootstrap
        self._failures = failures
        self._record = Record()
        self._lock = threading.Lock()
        self._stopping = {work: threading.Event() for work in ("feed", "copy", "read")}
        self._names = ["feeder", *(f"copier{number}" for number in range(COPIERS))]
        self._transactors = {
            name: Transactor(bootstrap, name, self._record, self._lock, random.Random(f"{seed} {name}"))
            for name in self._names
        }
        self._copier = copier
        self._finals: dict[Place, dict[int, str]] = {}
        self._offsets: dict[Place, int] = {}
        self._notes: list[str] = []
        self._is_finished = False
        self._threads = [self._thread(self._feed, "feeder", "feed"), self._thread(self._read, "reader", "read")]
        self._threads += [self._thread(self._copy, name, "copy") for name in self._names[1:]]

    def _thread(self, work: Callable[[str, threading.Event], None], name: str, until: str) -> threading.Thread:
        def guarded() -> None:
            try:
                work(name, self._stopping[until])
            except BaseException as problem:
                self._failures.append(f"{name} ended: {problem!r}")
                raise

        return threading.Thread(target=guarded, name=name, daemon=True)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        for stopping in self._stopping.values():
            stopping.set()

    def text(self) -> str:
        """One line for the report."""
        with self._lock:
            fates = Counter(written.committed for written in self._record.transactions)
        instances = sum(transactor.instances for transactor in self._transactors.values())
        return (
            f"{fates[True]:,} transactions committed, {fates[False]:,} aborted, {fates[None]:,} of unknown fate,"
            f" by {instances} instances of {len(self._names)} ids"
        )

    # --- what they do -------------------------------------------------------------------------------------------

    def _feed(self, name: str, stopping: threading.Event) -> None:
        transactor, chance = self._transactors[name], random.Random(name)
        transactor.begin()
        number = 0
        while not stopping.wait(PAUSE_SECONDS):
            count = chance.randint(1, VALUES_MAX)
            values = range(number, number + count)
            number += count

            def write(producer: Producer, written: Written, values: range = values) -> None:
                for value in values:
                    transactor.send(producer, written, (SOURCE, chance.randrange(PARTITIONS)), str(value))

            transactor.transact(write)
        transactor.begin()  # whatever its last transaction was, it is over then

    def _copy(self, name: str, stopping: threading.Event) -> None:
        transactor = self._transactors[name]
        transactor.begin()
        copier = self._copier(self._bootstrap, transactor, self._record, self._lock)
        while not stopping.is_set():
            copier.copy()
        copier.close()
        transactor.begin()

    def _read(self, name: str, stopping: threading.Event) -> None:
        consumer = Consumer({
            **QUIET, "bootstrap.servers": self._bootstrap, "group.id": name, "auto.offset.reset": "error",
            "enable.auto.commit": False, "isolation.level": self.isolation,
        })  # fmt: skip
        places = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
        consumer.assign([TopicPartition(*place, 0) for place in places])
        self._record.chose(name, Kind.ASSIGN, places, time.monotonic())
        while not stopping.is_set():
            began = time.monotonic()
            messages = [one for one in consumer.consume(500, 0.2) if one.error() is None]
            with self._lock:
                for place, records in by_place(messages).items():
                    self._record.polled(name, place, records, began, time.monotonic())
        consumer.close()

    def wait_until_they_move(self) -> None:
        """Until the feeder and a copier have committed once more. Raises AssertionError where one does not."""
        deadline = time.monotonic() + MOVING_SECONDS_MAX
        before = self._progress()
        while any(now <= then for now, then in zip(self._progress(), before, strict=True)):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"transactions stand still: {before} by feeder and copiers, {self._progress()} after"
                    f" {MOVING_SECONDS_MAX:g} s"
                )
            time.sleep(0.1)

    def _progress(self) -> tuple[int, int]:
        done = {name: transactor.committed for name, transactor in self._transactors.items()}
        return done.pop("feeder"), sum(done.values())

    # --- the end ------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the last transactions, let all be copied, and read what is there."""
        self._end("feed", "feeder")
        for partition in range(PARTITIONS):
            self._finals[SOURCE, partition] = self._all_of((SOURCE, partition))
        self._wait_for_copiers()
        self._end("copy", *self._names[1:])
        self._end("read", "reader")
        for partition in range(PARTITIONS):
            self._finals[TARGET, partition] = self._all_of((TARGET, partition))
        self._offsets = {place: offset for place, offset in self._committed().items() if offset >= 0}
        self._is_finished = True

    def _end(self, work: str, *names: str) -> None:
        self._stopping[work].set()
        for thread in self._threads:
            if thread.name in names:
                thread.join(END_SECONDS_MAX)
                assert not thread.is_alive(), f"{thread.name} does not come to an end"

    def _wait_for_copiers(self) -> None:
        ends = {place: max(self._finals[place], default=-1) + 1 for place in self._finals}
        deadline = time.monotonic() + END_SECONDS_MAX
        while behind := {place: end for place, end in ends.items() if self._committed().get(place, -1) < end}:
            if time.monotonic() > deadline:
                self._notes.append(f"stuck-copiers: {self._committed()} is committed, wanted {behind}")
                return
            time.sleep(0.5)

    def _committed(self) -> dict[Place, int]:
        consumer = Consumer({
            **QUIET, "bootstrap.servers": self._bootstrap, "group.id": GROUP, "isolation.level": "read_committed",
        })  # fmt: skip
        try:
            parts = committed(consumer, [TopicPartition(SOURCE, partition) for partition in range(PARTITIONS)])
            return {(SOURCE, part.partition): part.offset for part in parts}
        finally:
            consumer.close()

    def _all_of(self, place: Place) -> dict[int, str]:
        """All values that a reader of committed records gets of a partition."""
        consumer = Consumer({
            **QUIET, "bootstrap.servers": self._bootstrap, "group.id": "final", "auto.offset.reset": "error",
            "enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": "read_committed",
        })  # fmt: skip
        found: dict[int, str] = {}
        deadline = time.monotonic() + END_SECONDS_MAX
        try:
            consumer.assign([TopicPartition(*place, 0)])
            while time.monotonic() < deadline:
                for message in consumer.consume(1000, timeout=0.5):
                    error = message.error()
                    if error is not None and error.code() == KafkaError._PARTITION_EOF:
                        return found
                    for records in by_place([message] if error is None else []).values():
                        found |= dict(records)
        finally:
            consumer.close()
        raise AssertionError(f"{place} cannot be read to its end in {END_SECONDS_MAX:g} s; {len(found)} records")

    def anomalies(self) -> list[str]:
        """What breaks a promise. Without `finish` nothing is said of what may still come."""
        with self._lock:
            history = self._record.history(self._finals, GROUP, self._offsets)
        found: dict[str, list[str]] = {}
        for anomaly in fatal(history):
            found.setdefault(anomaly.name, []).append(str(anomaly))
        told = [line for lines in found.values() for line in lines[:SHOWN_MAX]]
        twice = list(uncopied(self._finals))[:SHOWN_MAX] if self._is_finished else []
        return [*told, *twice, *self._notes]


def uncopied(finals: Mapping[Place, Mapping[int, str]]) -> Iterator[str]:
    """Values of the source that have no copy at the end, or more than one."""
    copies = Counter(
        value.partition(MARK)[0]
        for place, records in finals.items()
        if place[0] == TARGET
        for value in records.values()
    )
    for place, records in finals.items():
        for offset, value in records.items() if place[0] == SOURCE else ():
            if copies[value] != 1:
                where = f"{place[0]}-{place[1]}@{offset}"
                yield f"{'copied-twice' if copies[value] else 'not-copied'}: {value} of {where}: {copies[value]} copies"


def by_place(messages: Sequence[Message]) -> dict[Place, list[tuple[int, str]]]:
    """Offsets and values by partition, in the order in which they came."""
    found: dict[Place, list[tuple[int, str]]] = {}
    for message in messages:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        found.setdefault((topic, partition), []).append((offset, (message.value() or b"").decode()))
    return found


def committed(consumer: Consumer, parts: list[TopicPartition]) -> list[TopicPartition]:
    """The committed offsets of a group; asked for again as long as none come. Raises KafkaException."""
    deadline = time.monotonic() + END_SECONDS_MAX
    while parts:
        try:
            answers = consumer.committed(parts, CALL_SECONDS)
            errors = [answer.error for answer in answers if answer.error is not None]
            if not errors:
                return answers
            if time.monotonic() > deadline:
                raise KafkaException(errors[0])
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)
    return []
