"""Transactions as they lie in logs: opened, committed and aborted as an Apache Kafka broker of the same cluster would.

No client can open one here yet, so batches are handed to the leader's partition in its own process; the markers come
by WriteTxnMarkers. In some seeds the topic is compacted; no two records of it have one key. What must never be:

| anomaly | meaning |
|---|---|
| dirty-read | a read_committed reader was given a value of a transaction that nobody had decided to commit |
| lost-transaction | a committed value is not among what a read_committed reader gets at the end |
| stable-offset-back | the last stable offset of one leader epoch fell |
| IndexedIsAborted, AbortedIsIndexed | an index of aborted transactions is not as the log (`settled_partitions`) |
"""

import asyncio
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kavka_broker.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.records.control import ControlType, read_marker
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.leading.partition import ACKS_ALL
from kavka_broker.storage.batch_check import Origin
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.compaction import HOLD
from tests.sim.history import WORST_MAX, History, Place
from tests.sim.invariants import INVARIANTS
from tests.sim.last_batches import LAST_BATCHES_STAY
from tests.sim.loop import Ended
from tests.sim.producers import EPOCH_MS, Producer
from tests.sim.readers import Reader
from tests.sim.settled_partitions import AbortedIndexes
from tests.sim.workloads import Workload

TOPIC: Final = "txn"
PLACE: Final[Place] = (TOPIC, 0)
COMPACTED_SHARE: Final = 0.4
FINAL: Final = (ErrorCode.INVALID_PRODUCER_EPOCH,)


class Fates:
    """What became of each value's transaction: True is committed, and decided so before any marker was sent."""

    def __init__(self) -> None:
        self.committed: dict[str, bool] = {}
        self.settled: dict[str, None] = {}  # committed, written for sure, and the marker was acknowledged
        self.problems: list[str] = []

    def was_read(self, who: str, offset: int, value: str) -> None:
        if not self.committed.get(value, False):
            fate = "aborted" if value in self.committed else "open"
            self.problems.append(f"dirty-read: {who} was given {value} at {offset}, of a transaction that is {fate}")


class Transactor(Producer):
    """One transaction after the other, of a few batches each; some stay open for a while."""

    fates: Fates
    simulation: Any

    async def run(self) -> None:
        while not self.is_stopping:
            producer_id, epoch = await self._identify()
            sequence = 0
            while not self.is_stopping and sequence >= 0:  # type: ignore[redundant-expr] # set from outside
                sequence = await self._transact(producer_id, epoch, sequence)

    async def _transact(self, producer_id: int, epoch: int, sequence: int) -> int:
        """The next sequence; -1 where another id is needed."""
        values: list[str] = []
        is_whole = True
        for _ in range(self.random.randint(1, 3)):
            batch = self._new_values(PLACE)
            values += batch
            is_whole = is_whole and await self._append(batch, producer_id, epoch, sequence)
            if not is_whole:
                break
            sequence += len(batch)
            await asyncio.sleep(self.random.choice((0.01, 0.1, 1.0)))
        commits = is_whole and self.random.random() < 0.6
        self.fates.committed |= dict.fromkeys(values, commits)
        await self._mark(producer_id, epoch, commits=commits)
        if commits:
            self.fates.settled |= dict.fromkeys(values)
        return sequence if is_whole else -1

    async def _append(self, values: list[str], producer_id: int, epoch: int, sequence: int) -> bool:
        """Whether they are in the log for sure; tried again until it is known."""
        for _ in range(50):
            leader = await self._leading_node()
            batch = build_batch(
                [(value.encode(), value.encode()) for value in values],
                timestamp_ms=EPOCH_MS + self.loop.milliseconds(),
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=True,
            )
            work = self.loop.create_task(append(leader, batch), context=leader.process.context())
            try:
                async with asyncio.timeout(ANSWER_MS / 1000):
                    code = await asyncio.shield(work)
            except TimeoutError:
                code = ErrorCode.REQUEST_TIMED_OUT
            if code == ErrorCode.NONE:
                return True
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                return False
            self.forget_leader(PLACE)
            await self.pause()
        return False

    async def _leading_node(self) -> Any:
        while True:
            await self.leader(PLACE)
            host = self._leaders[PLACE][0]
            for node in self.simulation.nodes:
                if node.host == host and node.is_serving:
                    return node
            self.forget_leader(PLACE)
            await self.pause()

    async def _mark(self, producer_id: int, epoch: int, *, commits: bool) -> None:
        """Until it is acknowledged: what a coordinator has decided is final."""
        marker = WritableTxnMarker(producer_id, epoch, commits, [WritableTxnMarkerTopic(TOPIC, [0])], 0, 0)
        while True:
            peer = await self.leader(PLACE)
            try:
                answer = await peer.ask(WriteTxnMarkersRequest([marker]), WriteTxnMarkersResponse, timeout_ms=ANSWER_MS)
                code = answer.markers[0].topics[0].partitions[0].error_code
                if code in FINAL:
                    self.history.note(f"refused: a marker of {self.name}: {ErrorCode(code).name}")
                if code in (ErrorCode.NONE, *FINAL):
                    return
            except Unreachable:
                pass
            self.forget_leader(PLACE)
            await self.pause()


async def append(node: Any, batch: bytearray) -> ErrorCode:
    """In the process of a node: as if a client had sent it there."""
    try:
        partition = node.broker.partitions.leader(*PLACE)
        appended = partition.append(memoryview(batch), ACKS_ALL, Origin.CLIENT)
        committed = partition.when_committed(appended.last_offset)
        if committed is not None:
            await committed
    except BrokerError as error:
        return error.code
    except Ended:
        return ErrorCode.NETWORK_EXCEPTION
    return ErrorCode.NONE


class StableReader(Reader):
    """Reads what is committed, as a consumer with `isolation.level=read_committed` does."""

    fates: Fates
    isolation_level = 1
    _stable: tuple[int, int] = (-1, -1)  # leader epoch, last stable offset

    async def run(self) -> None:
        while True:
            await self.fetch(PLACE)
            await asyncio.sleep(self.random.uniform(0.0, 0.3))

    async def _take(self, place: Place, epoch: int, data: PartitionData) -> list[tuple[int, str]]:
        if not data.error_code and place not in self._with_follower:
            if epoch == self._stable[0] and data.last_stable_offset < self._stable[1]:
                self.fates.problems.append(f"stable-offset-back: {data.last_stable_offset} after {self._stable}")
            self._stable = epoch, data.last_stable_offset
        records = await super()._take(place, epoch, data)
        self.high_watermarks[place] = data.last_stable_offset
        for offset, value in records:
            self.fates.was_read(self.name, offset, value)
        return records

    def _wanted(self, data: PartitionData, batches: Iterable[tuple[BatchHeader, memoryview]]) -> Iterator[memoryview]:
        """As the consumers of Apache Kafka filter: by the aborted transactions that the answer names."""
        aborted = sorted(
            ((transaction.first_offset, transaction.producer_id) for transaction in data.aborted_transactions or ()),
            reverse=True,
        )
        open_ids: dict[int, None] = {}
        for header, batch in batches:
            while aborted and aborted[-1][0] <= header.last_offset:
                open_ids[aborted.pop()[1]] = None
            if header.is_control:
                marker = read_marker(batch)
                if marker is not None and marker.kind is ControlType.ABORT:
                    open_ids.pop(header.producer_id, None)
            elif not (header.is_transactional and header.producer_id in open_ids):
                yield batch


class Transactions(Workload):
    """Two producers, a reader of committed records, and another reader when all is over."""

    share = 0.25

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {"log.cleaner.backoff.ms": random.choice(("50", "500"))}

    async def begin(self, admin: Admin) -> None:
        configs = {"internal_segment_bytes": self.random.choice(("1000", "4000", "1048576"))}
        chance = Random(f"compacted transactions {self.simulation.seed}")
        if chance.random() < COMPACTED_SHARE:
            self.history = History()
            holding = [invariant for invariant in INVARIANTS if invariant.name in HOLD]
            self.simulation.rules[TOPIC] = [*holding, LAST_BATCHES_STAY]
            configs |= {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.0"}
            configs |= {"internal_segment_bytes": "1000", "delete_retention_ms": chance.choice(("0", "3000"))}
            if self.shape.replication_factor > 1:
                # As in Apache Kafka, a follower that is away for longer than this may have the records of an aborted
                # transaction, and never get its marker: the leader has cleaned both.
                configs["delete_retention_ms"] = "86400000"
            self.simulation.say(f"{TOPIC}: {configs}")
        await admin.create(TOPIC, 1, self.shape.replication_factor, **configs)

    def clients(self) -> Iterable[Client]:
        self.fates = Fates()
        if TOPIC not in self.simulation.rules:  # a cleaning takes entries with their records
            self.simulation.looking.append(AbortedIndexes(self.simulation, PLACE).after_step)
        self._transactors = [self.as_client(Transactor, f"transactor{number}", [PLACE]) for number in range(2)]
        for transactor in self._transactors:
            transactor.fates, transactor.simulation = self.fates, self.simulation
        return [*self._transactors, self._reader("stable reader")]

    def _reader(self, name: str) -> StableReader:
        reader = self.as_client(StableReader, name, [PLACE])
        reader.fates = self.fates
        return reader

    async def judge(self) -> list[str]:
        last = self._reader("last stable reader")
        found = {*(await self.running(last, last.read_all(PLACE))).values()}
        self.reached(
            transactions_committed=sum(self.fates.committed.values()),
            transactions_aborted=len(self.fates.committed) - sum(self.fates.committed.values()),
        )
        lost = [f"lost-transaction: {value} is not there" for value in self.fates.settled if value not in found]
        return [*self.fates.problems[:WORST_MAX], *lost[:WORST_MAX], *self.history.notes[:WORST_MAX]]
