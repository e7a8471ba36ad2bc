"""A compacted topic under all faults: keys are written again and again, and deleted, while each replica cleans its log.

Records go by right, so the logs are not compared batch by batch as those of other topics. What must never be:

| anomaly | meaning |
|---|---|
| last-lost | the newest acknowledged record of a key is gone (a tombstone before its horizon), without a newer one |
| moved | a record stands at another offset than it was acknowledged at, or with another value |
| went-back | a reader was given an offset again, or one below where it was |
| replicas-part | two replicas have other newest records of a key |
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Final

from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, Source, read_records
from tests.sim.clients import Admin, Client
from tests.sim.history import History, Place, Send
from tests.sim.invariants import INVARIANTS, Invariant, Invariants, Seen
from tests.sim.last_batches import LAST_BATCHES_STAY
from tests.sim.producers import EPOCH_MS, Batch, OutOfOrder, Producer, Refused
from tests.sim.readers import Reader
from tests.sim.weak import WeakProducer
from tests.sim.workloads import Workload

TOPIC: Final = "compacted"
PLACE: Final[Place] = (TOPIC, 0)
KEYS: Final = 12
NAMES_MAX: Final = 100_000  # of so many it is remembered what they say
#: Longer than any clock is set ahead, or none at all.
RETENTIONS_MS: Final = (str(10**15), str(10**15), str(10**15), "0")
NAME: Final = "name"
#: What a log has to be true to though each replica cleans its own.
HOLD: Final = ("OneLeaderPerEpoch", "HighWatermarkMonotone")


@lru_cache(NAMES_MAX)
def key_of(name: str) -> str:
    """Each record has a name of its own, which says its key: one of a few, or one that is soon written no more."""
    random = Random(name)
    if random.random() < 0.6:
        return f"k{random.randrange(KEYS)}"
    return f"k{random.randrange(3)} of {name.rpartition('.')[2][:-1] or 0}"


@lru_cache(NAMES_MAX)
def is_tombstone(name: str) -> bool:
    return Random(f"{name} deletes").random() < 0.2


def name_of(record: Record) -> str:
    """As its header says, since a tombstone has no value; what does not go together is no name that was sent."""
    name = next((value or b"" for key, value in record.headers if key == NAME), b"").decode()
    is_whole = record.key == key_of(name).encode() and record.value == (None if is_tombstone(name) else name.encode())
    return name if is_whole else f"{record} is named {name}"


def keyed(name: str, timestamp_ms: int) -> Record:
    """The record of this name."""
    written = None if is_tombstone(name) else name.encode()
    return Record(-1, timestamp_ms, key_of(name).encode(), written, [(NAME, name.encode())])


class KeyedProducer(Producer):
    """Writes and deletes keys."""

    def source(self, value: str) -> Source:
        return keyed(value, EPOCH_MS + self.loop.milliseconds())


class PassingProducer(KeyedProducer):
    """Writes one batch under each id that it gets: what it has written last may be replaced while brokers know it."""

    async def _produce(self, place: Place) -> None:
        while not self.is_stopping:
            identity = await self._identify()
            try:
                await self._deliver(place, identity, deque([Batch(self._new_values(place), 0, Compression.NONE)]), 0)
            except (OutOfOrder, Refused) as refused:
                self.history.note(f"refused: {self.name}: {refused!r}")
            await self.rest(0.05, 0.6)


class Overwriter(WeakProducer):
    """Writes with acks=1, so that a leader that is alone takes more and more of it, the keys that were written last:
    what replaced them is lost when that leader has to follow again, and they may not have gone by then.
    """

    place = PLACE
    others: Sequence[KeyedProducer] = ()

    def new_values(self) -> list[str]:
        newest = max(other.numbers for other in self.others)
        first = max(0, newest - self.random.randint(1, 12))
        return [f"{self.name} {self._numbers} {index}.{first}" for index in range(self.random.randint(2, 9))]

    def source(self, value: str) -> Source:
        return keyed(value, EPOCH_MS + self.loop.milliseconds())


class KeyedReader(Reader):
    """Reads names, and goes from record to record, whatever lies between them."""

    def text_of(self, record: Record) -> str:
        return name_of(record)


class Compaction(Workload):
    """Two producers, one that asks for less, a reader that is always there, and the replicas' logs at the end."""

    share = 0.35

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {
            "log.cleaner.backoff.ms": random.choice(("50", "500", "3000")),
            "log.cleaner.dedupe.buffer.size": random.choice(("300", "134217728")),
            "log.cleaner.io.max.bytes.per.second": random.choice(("20000", "1e300")),
        }

    async def begin(self, admin: Admin) -> None:
        self.history = History()
        holding = [invariant for invariant in INVARIANTS if invariant.name in HOLD]
        why = "What a leader that is alone has taken may be lost, and with it what has replaced an older record."
        cleaned = Invariant("CleansWhatIsCommitted", self._cleaned, why, False)
        self.simulation.rules[TOPIC] = [*holding, cleaned, LAST_BATCHES_STAY]
        self._committed = 0
        self._retention_ms = self.random.choice(RETENTIONS_MS)
        configs = {
            "cleanup_policy": "compact",
            "internal_segment_bytes": self.random.choice(("700", "1500", "4000")),
            "min_cleanable_dirty_ratio": self.random.choice(("0.0", "0.3")),
            "delete_retention_ms": self._retention_ms,
        }
        self.simulation.say(f"{TOPIC}: {configs}")
        await admin.create(TOPIC, 1, self.shape.replication_factor, **configs)

    def clients(self) -> Iterable[Client]:
        self._producers = [self.as_client(KeyedProducer, f"keyed{number}", [PLACE]) for number in (1, 2)]
        overwriter = self.as_client(Overwriter, "overwriter")
        overwriter.others = self._producers
        self._reader = self.as_client(KeyedReader, "reader of keys", [PLACE])
        passing = self.as_client(PassingProducer, "passing", [PLACE])
        return [*self._producers, overwriter, self._reader, passing]

    def _cleaned(self, invariants: Invariants, seen: Seen) -> Iterator[str]:
        if seen.is_leader:
            self._committed = max(self._committed, seen.high_watermark)
        log = log_on(invariants.simulation.nodes[seen.node_id - 1])
        if log is not None and log.state.cleaned_offset > self._committed:
            yield f"it is clean up to {log.state.cleaned_offset}; committed is what is below {self._committed}"

    async def judge(self) -> list[str]:
        last = self.as_judge(KeyedReader, "last reader of keys", [PLACE])
        found = await self.running(last, last.read_all(PLACE))
        self.reached(
            keys_written=sum(send.is_acknowledged for send in self.history.sends.values()),
            records_cleaned=max([*found, -1]) + 1 - len(found),
        )
        rules = (self._lost(found), self._moved(found), self._went_back(), self._parted())
        return [problem for rule in rules for problem in [*rule][:3]] + self.history.notes

    def _newest(self) -> Iterator[Send]:
        """The newest acknowledged record of each key."""
        newest = dict[str, Send]()
        for send in self.history.sends.values():
            if send.offset is not None and send.offset >= (newest.get(key_of(send.value), send).offset or 0):
                newest[key_of(send.value)] = send
        return iter(newest.values())

    def _lost(self, found: dict[int, str]) -> Iterator[str]:
        last_of = {key_of(name): offset for offset, name in sorted(found.items())}
        # With a horizon of no time a tombstone goes, also one of which no client knows that it was written.
        unknown = {key_of(send.value) for send in self.history.sends.values() if send.offset is None}
        drops = self._retention_ms == "0"
        for send in self._newest():
            key = key_of(send.value)
            may_go = drops and (is_tombstone(send.value) or key in unknown)
            is_replaced = last_of.get(key, -1) > (send.offset or 0)
            if send.offset is not None and found.get(send.offset) != send.value and not may_go and not is_replaced:
                yield f"last-lost: {key_of(send.value)} was {send.value} at {send.offset}; {found.get(send.offset)} is"

    def _moved(self, found: dict[int, str]) -> Iterator[str]:
        for reader, records in (("the final read", [*found.items()]), ("a reader", self._polled())):
            for offset, name in records:
                send = self.history.sends.get(name)
                if send is None or send.offset not in (None, offset):
                    yield f"moved: {reader} has {name} at {offset}; it was sent as {send}"

    def _polled(self) -> list[tuple[int, str]]:
        return [record for poll in self.history.polls.values() for record in poll.seen]

    def _went_back(self) -> Iterator[str]:
        for poll in self.history.polls.values():
            offsets = [offset for offset, _ in poll.seen]
            if sorted(set(offsets)) != offsets:
                yield f"went-back: {poll.reader} read {offsets[-50:]}"

    def _parted(self) -> Iterator[str]:
        if self._retention_ms == "0":
            return  # a reader that was away for longer may have missed a tombstone, as in Kafka
        seen = {node.host: newest_in(log) for node in self.simulation.nodes if (log := log_on(node)) is not None}
        first = next(iter(seen.values()), {})
        for host, newest in seen.items():
            if newest != first:
                yield f"replicas-part: {host} has {sorted(newest.items())}, {next(iter(seen))} {sorted(first.items())}"


def log_on(node: Any) -> Any:
    """The log of this node's replica, if it has one."""
    partition = node.broker.partitions.get(*PLACE)
    return None if partition is None else partition.log


def newest_in(log: Any) -> dict[str, tuple[int, str]]:
    """Of each key the newest offset and the name of what stands there, from the bytes of the segments."""
    files, newest = log.disk.peek(log.directory), dict[str, tuple[int, str]]()
    for segment in log.segments:
        for _, batch in split_batches(bytes(files[f"{segment.base_offset:020}.log"].data)):
            newest |= {key_of(name_of(record)): (record.offset, name_of(record)) for record in read_records(batch)}
    return newest
