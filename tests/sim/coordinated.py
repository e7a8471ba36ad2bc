"""Transactional producers, as Apache Kafka's clients of two generations are: with a coordinator of the cluster.

Each transactional id belongs to two producers, of which now and then the other one takes over. A transaction writes to
one or both partitions of a topic, and commits an offset of a group in most of them. Requests are repeated until they
are answered, so that they come twice, and late. A producer whose transaction fails goes on with what it has, or by
InitProducerId with its epoch (KIP-360), or begins again. In half of the seeds the ids have used up nearly all epochs
(`aged_ids`), and in some they expire as soon as nobody uses them. What must never be:

| anomaly | meaning |
|---|---|
| dirty-read | a read_committed reader was given a value of a transaction that nobody has asked to commit |
| lost-transaction | a value of an acknowledged commit is not among what a read_committed reader gets at the end |
| aborted-read | a value of an aborted transaction is |
| torn-transaction | one part of a transaction is there at the end, and another is not |
| twice | a value is there twice |
| torn-offset | the group's offset is not that of the last transaction whose values are there |
| stale-offset, aborted-offset | a producer that has its id is told another offset than that of the last commit |
| last-epoch-given | a producer is given the epoch that is for fencing it |
| epoch-given-twice | two producers are given one id with one epoch |
| fenced-producer-goes-on | a producer has its epoch raised (KIP-360), and another one has taken its id over before |
| marker-missing | a transaction begins in a partition where the one before of its producer has no marker |
| stable-offset-stuck | nobody writes any more, and the last stable offset stays behind the high watermark |
| ReplaysAgree | a coordinator knows something else than its log says, also once that is cleaned (`replays`) |
| SettledIsCommitted, OneMoveAtATime | what stands above the high watermark counts already (`settled_ids`) |
| StableIsSettled, IndexedIsAborted | a replica knows other things of transactions than its log (`settled_partitions`) |
| MarkedIsCommitted, MarkedIsTakenOver | a marker is answered too early (`settled_partitions`) |
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, Final

from kavka_broker.core.metadata.image.features import TRANSACTION_VERSION
from kavka_broker.core.transaction.state import BUMPS_FROM, EPOCH_MAX
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kavka_broker.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kavka_broker.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.end_txn_request import EndTxnRequest
from kavka_broker.protocol.messages.end_txn_response import EndTxnResponse
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kavka_broker.protocol.records.batch import BatchHeader
from kavka_broker.protocol.records.control import read_marker
from kavka_broker.protocol.records.record import build_batch, read_records
from tests.histories.judge import fatal
from tests.histories.operations import CommitOffset, FetchOffset, History
from tests.sim.aged_ids import age_ids
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.grouped import Again, Grouped
from tests.sim.history import WORST_MAX, Place
from tests.sim.producers import ALL, EPOCH_MS, PRODUCE_MS, RETRIABLE
from tests.sim.recorded import Markers, Record, Written
from tests.sim.settled_ids import SettledIds
from tests.sim.settled_partitions import SettledPartitions
from tests.sim.transactions import Fates, StableReader
from tests.sim.workloads import Workload

TOPIC: Final = "coordinated"
PLACES: Final[tuple[Place, ...]] = ((TOPIC, 0), (TOPIC, 1))
GROUP: Final = "coordinated-group"
IDS: Final = ("tx-a", "tx-b")
TIMEOUT_MS: Final = 4_000
QUIET_SECONDS_MAX: Final = 60.0
TRANSACTION_KEY, GROUP_KEY = 1, 0
GIVES_UP_SHARE: Final = 0.4  # of the batches without an answer: their producer aborts

EXPIRING: Final = {
    "transactional.id.expiration.ms": "3000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "300",
}

AGAIN: Final = RETRIABLE | {
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.UNSTABLE_OFFSET_COMMIT,
}  # fmt: skip


class FormerEndTxn(EndTxnRequest):
    """As clients of transaction version 1 send it."""

    __slots__ = ()
    VERSIONS = (0, 4)


class FormerAddPartitions(AddPartitionsToTxnRequest):
    """As producers send it."""

    __slots__ = ()
    VERSIONS = (0, 3)


class FormerProduce(ProduceRequest):
    """As clients of transaction version 1 send it: these name topics."""

    __slots__ = ()
    VERSIONS = (3, 11)


class FormerOffsetCommit(TxnOffsetCommitRequest):
    """As clients of transaction version 1 send it."""

    __slots__ = ()
    VERSIONS = (0, 4)


class NamingOffsetFetch(OffsetFetchRequest):
    """As clients send it that know no ids of topics."""

    __slots__ = ()
    VERSIONS = (8, 9)


class Over(Exception):
    """The producer is fenced, or its transaction cannot go on: it has to begin anew."""


class Owners:
    """Which producer has had each transactional id last. One that another has replaced must not go on (KIP-360)."""

    def __init__(self) -> None:
        self.problems: list[str] = []  # that are none where ids expire
        self.never: list[str] = []
        self._last: dict[str, tuple[str, float]] = {}  # producer, and when it was answered
        self._given: dict[tuple[int, int], str] = {}  # to which producer each id and epoch

    def give(self, producer: str, identity: tuple[int, int]) -> None:
        """A producer was told an id and an epoch for what it begins."""
        if identity[1] >= EPOCH_MAX:
            self.never.append(f"last-epoch-given: {producer} got {identity}, which fences")
        if identity in self._given:
            self.never.append(f"epoch-given-twice: {producer} got {identity}, and {self._given[identity]} has had it")
        self._given[identity] = producer

    def take(self, transactional_id: str, producer: str, began: float, now: float, *, goes_on: bool) -> None:
        """A producer that asked at `began` has been given an epoch; it `goes_on` where it said which it had before."""
        last, answered = self._last.get(transactional_id, (producer, now))
        if goes_on and last != producer and answered < began:
            problem = f"{producer} goes on with {transactional_id} at {now:g}, which {last} has had since {answered:g}"
            self.problems.append(f"fenced-producer-goes-on: {problem}")
        self._last[transactional_id] = producer, now


class Transactional(Client):
    """One transaction after the other. Some stop within one, as a client that dies: its coordinator has to abort it."""

    group_id = GROUP
    transactional_id: str
    index: int  # of the partition whose offset it commits
    is_former: bool
    follows_level = (
        False  # begins each transaction as `transaction.version` says, as clients of the third generation do
    )
    record: Record
    fates: Fates
    asks_offsets = True
    is_stopping = False
    has_ended = False
    _coordinators: dict[int, tuple[str, int]]
    owners: Owners
    _identity: tuple[int, int] | None = None
    _level_epoch = -1  # of the newest levels that it has heard of
    _present: Written | None = None
    _sequences: dict[Place, int]
    _chance: Random
    _recovery: Random

    async def run(self) -> None:
        self._coordinators = {}
        self._chance = self.stream("idle")
        self._recovery = self.stream("recovery")
        dies = self.stream("dies").random() < 0.5
        while not self.is_stopping:
            try:
                await self._begin()
                await self._transact_several()
                if dies:
                    await self._stop_within_a_transaction()
            except Over:
                await self._recover()
            self._identity = None
            # The other producer of the id may take over meanwhile.
            await self.rest(0.5, 4.0)
        self.has_ended = True

    async def _transact_several(self) -> None:
        """Raises Over."""
        while not self.is_stopping and self._chance.random() < 0.9:
            await self._transact()
            if self._recovery.random() < 0.6:  # otherwise the next one begins while markers of this one are written
                await self.rest(0.0, 0.3)

    async def _recover(self) -> None:
        """Abort the transaction that has failed, and go on as the same producer; or give up."""
        try:
            while self._identity is not None and self._recovery.random() < 0.7:
                try:
                    await self._end(commits=False)
                    if self._present is not None and self._present.ended is None:
                        self._present.ended = self.loop.time()
                    if self.is_former or self._recovery.random() < 0.3:
                        await self.rest(0.0, 1.0)
                        await self._begin(self._identity)
                    await self._transact_several()
                    return
                except Over:
                    if self._recovery.random() < 0.5:
                        await self._begin(self._identity)
        except Over:
            pass

    async def _begin(self, expected: tuple[int, int] | None = None) -> None:
        """Get an id and an epoch; `expected` are those that this producer has had. Raises Over."""
        began = self.loop.time()
        request = InitProducerIdRequest(self.transactional_id, TIMEOUT_MS, *(expected or ()))
        answer = await self._coordinate(TRANSACTION_KEY, self.transactional_id, request, InitProducerIdResponse)
        if answer.error_code:
            raise Over(answer.error_code)
        self._identity = answer.producer_id, answer.producer_epoch
        self._sequences = dict.fromkeys(PLACES, 0)
        self.owners.give(self.name, self._identity)
        self.owners.take(self.transactional_id, self.name, began, self.loop.time(), goes_on=expected is not None)
        if self.asks_offsets and self._recovery.random() < 0.5:
            await self._ask_offset()

    async def _ask_offset(self) -> None:
        """Ask for the offset that the last transaction of this id has committed: it is over, so its offset counts."""
        began, is_stable = self.loop.time(), self._recovery.random() < 0.5
        wanted = OffsetFetchRequestTopics(TOPIC, self.topic_ids.get(TOPIC, b"\0" * 16), [self.index])
        group = OffsetFetchRequestGroup(self.group_id, None, -1, [wanted])
        request = NamingOffsetFetch("", [], [group], is_stable)
        answer = await self._coordinate(
            GROUP_KEY,
            self.group_id,
            request,
            OffsetFetchResponse,
            lambda answer: answer.groups[0].error_code or answer.groups[0].topics[0].partitions[0].error_code,
        )
        group_told = answer.groups[0]
        if not group_told.error_code and not group_told.topics[0].partitions[0].error_code:
            offset = int(group_told.topics[0].partitions[0].committed_offset)
            told = FetchOffset(self.group_id, (TOPIC, self.index), offset)
            self.record.fetched_offset(self.name, self.transactional_id, told, began, self.loop.time())

    async def _look_at_level(self) -> None:
        """Learn the level from any node. The newest one that the producer has heard of counts, as nodes may lag."""
        found = await self.ask_any(ApiVersionsRequest("sim", "1"), ApiVersionsResponse)
        if not isinstance(found, ApiVersionsResponse) or found.finalized_features_epoch < self._level_epoch:
            return
        levels = {feature.name: feature.max_version_level for feature in found.finalized_features}
        self._level_epoch = found.finalized_features_epoch
        self.is_former = levels.get(TRANSACTION_VERSION, 0) < BUMPS_FROM

    async def _transact(self) -> None:
        """Raises Over."""
        if self.follows_level:
            await self._look_at_level()
        written = self._begin_recorded()
        places = self.random.sample(PLACES, self.random.randint(1, len(PLACES)))
        for place in places:
            await self._write(place, written)
            if self.random.random() < 0.1:
                await asyncio.sleep(self.random.choice((0.5, 2.0, 6.0)))  # the last is more than its time
        if self.random.random() < 0.6:
            await self._commit_offset(written)
        commits = self.random.random() < 0.7
        if self._recovery.random() < 0.1:
            await asyncio.sleep(self._recovery.choice((0.5, 6.0)))  # its coordinator may abort it, or another take over
        if commits:
            written.committed, written.commit_asked = None, self.loop.time()
            self.fates.committed |= dict.fromkeys(written.values, True)
        try:
            await self._end(commits=commits)
            written.committed = commits
        finally:
            written.ended = self.loop.time()

    def _begin_recorded(self) -> Written:
        former = self._identity if self.is_former else None
        self._present = self.record.begin(self.name, self.transactional_id, self.loop.time(), former)
        return self._present

    async def _stop_within_a_transaction(self) -> None:
        if self.is_stopping:
            await self._write(self.random.choice(PLACES), self._begin_recorded())

    async def _write(self, place: Place, written: Written) -> None:
        values = [f"{self.name}.{written.transactional_id}.{written.number}.{place[1]}.{n}" for n in range(2)]
        written.sends(place, values)
        if self.is_former:
            await self._add(place)
        assert self._identity is not None
        producer_id, epoch = self._identity
        sequence = self._sequences[place]
        self._sequences[place] += len(values)
        for _ in range(60):
            peer = await self.leader(place)
            batch = build_batch(
                [(None, value.encode()) for value in values],
                timestamp_ms=EPOCH_MS + self.loop.milliseconds(),
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=True,
            )
            kind = FormerProduce if self.is_former else ProduceRequest
            data = TopicProduceData(place[0], self.topic_ids[place[0]], [PartitionProduceData(place[1], batch)])
            request = kind(self.transactional_id, ALL, PRODUCE_MS, [data])
            base_offset = -1
            try:
                answer = await peer.ask(request, ProduceResponse, timeout_ms=ANSWER_MS)
                told = answer.responses[0].partition_responses[0]
                code, base_offset = told.error_code, told.base_offset
            except Unreachable:
                if self._recovery.random() < GIVES_UP_SHARE:
                    raise Over("a batch that may come late") from None
                code = ErrorCode.NETWORK_EXCEPTION
            if code == ErrorCode.NONE:
                self.record.acknowledged(written, values, base_offset)
                return
            if code not in AGAIN:
                raise Over(code)
            self.forget_leader(place)
            await self.pause()
        raise Over("no answer")

    async def _add(self, place: Place) -> None:
        assert self._identity is not None
        topics = [AddPartitionsToTxnTopic(place[0], [place[1]])]
        request = FormerAddPartitions([], self.transactional_id, *self._identity, topics)
        answer = await self._coordinate(
            TRANSACTION_KEY,
            self.transactional_id,
            request,
            AddPartitionsToTxnResponse,
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )
        code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        if code:
            raise Over(code)

    async def _commit_offset(self, written: Written) -> None:
        assert self._identity is not None
        if self.is_former:
            added = AddOffsetsToTxnRequest(self.transactional_id, *self._identity, self.group_id)
            answer = await self._coordinate(TRANSACTION_KEY, self.transactional_id, added, AddOffsetsToTxnResponse)
            if answer.error_code:
                raise Over(answer.error_code)
        while TOPIC not in self.topic_ids:
            await self._learn(TOPIC)
        kind = FormerOffsetCommit if self.is_former else TxnOffsetCommitRequest
        partition = TxnOffsetCommitRequestPartition(self.index, written.number)
        topics = [TxnOffsetCommitRequestTopic(TOPIC, self.topic_ids[TOPIC], [partition])]
        request = kind(self.transactional_id, self.group_id, *self._identity, -1, "", None, topics)
        answer = await self._coordinate(
            GROUP_KEY,
            self.group_id,
            request,
            TxnOffsetCommitResponse,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )
        if code := answer.topics[0].partitions[0].error_code:
            raise Over(code)
        written.steps.append(CommitOffset(self.group_id, (TOPIC, self.index), written.number))

    async def _end(self, *, commits: bool) -> None:
        assert self._identity is not None
        kind = FormerEndTxn if self.is_former else EndTxnRequest
        request = kind(self.transactional_id, *self._identity, commits)
        answer = await self._coordinate(TRANSACTION_KEY, self.transactional_id, request, EndTxnResponse)
        if answer.error_code:
            raise Over(answer.error_code)
        if not self.is_former and (answer.producer_id, answer.producer_epoch) != self._identity:
            self._identity = answer.producer_id, answer.producer_epoch
            self._sequences = dict.fromkeys(PLACES, 0)
            self.owners.give(self.name, self._identity)

    async def _coordinate(
        self, kind: int, key: str, request: Message, response: type[Message], code_of: Any = None
    ) -> Any:
        """The answer of a coordinator, once it has one that is not to come again."""
        code_of = code_of or (lambda answer: answer.error_code)
        while True:
            if kind not in self._coordinators:
                found = await self.ask_any(FindCoordinatorRequest("", kind, [key]), FindCoordinatorResponse)
                if isinstance(found, FindCoordinatorResponse) and not found.coordinators[0].error_code:
                    self._coordinators[kind] = found.coordinators[0].host, found.coordinators[0].port
                else:
                    await self.pause()
                    continue
            try:
                answer = await self.peer(self._coordinators[kind]).ask(request, response, timeout_ms=ANSWER_MS)
            except Unreachable:
                self._coordinators.pop(kind, None)
                await self.pause()
                continue
            code = code_of(answer)
            if code not in AGAIN:
                return answer
            if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                self._coordinators.pop(kind, None)
            await self.pause()


class Coordinated(Workload):
    """Two producers for each of two ids, of two generations; a reader of what is committed, and another at the end."""

    share = 0.2
    recorded: History  # once it is judged

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": random.choice(("200", "1000")),
            "log.cleaner.backoff.ms": random.choice(("50", "500")),
            **(EXPIRING if random.random() < 0.2 else {}),
        }

    async def begin(self, admin: Admin) -> None:
        chance = self._chance()
        segment_bytes = chance.choice(("1000", "4000", "1048576"))
        await admin.create(TOPIC, len(PLACES), self.shape.replication_factor, internal_segment_bytes=segment_bytes)
        if chance.random() < 0.5:
            epochs = {transactional_id: EPOCH_MAX - chance.randint(1, 8) for transactional_id in IDS}
            await age_ids(self.simulation, epochs, TIMEOUT_MS)

    def _chance(self) -> Random:
        return Random(f"coordinated {self.simulation.seed}")

    def clients(self) -> Iterable[Client]:
        self.fates, self.record, self.owners = Fates(), Record(), Owners()
        self.transactional = []
        self.settled = SettledIds(self.simulation)
        self.places_settled = SettledPartitions(self.simulation, PLACES)
        self.simulation.looking += [self.settled.after_step, self.places_settled.after_step]
        for number in range(4):
            producer = self.as_client(Transactional, f"transactional{number}")
            producer.transactional_id, producer.index = IDS[number % 2], number % 2
            is_former, said = self.random.random() < 0.5, self.shape.has_former_producers
            producer.is_former = is_former if said is None else said
            producer.follows_level = self.shape.has_releases and not producer.is_former
            producer.record, producer.fates, producer.owners = self.record, self.fates, self.owners
            # As another workload has drawn: they may have expired.
            producer.asks_offsets = "offsets.retention.minutes" not in self.shape.settings
            self.transactional.append(producer)
        return [*self.transactional, *(self._reader(f"committed reader {place[1]}", [place]) for place in PLACES)]

    def stop(self) -> None:
        for producer in self.transactional:
            producer.is_stopping = True

    def missing(self) -> list[str]:
        return [f"{producer.name} has not ended" for producer in self.transactional if not producer.has_ended]

    def _reader(self, name: str, places: Sequence[Place]) -> "CommittedReader":
        reader = self.as_client(CommittedReader, name, places)
        reader.fates, reader.record, reader.markers = self.fates, self.record, Markers()
        reader.settled, reader.unknown_markers = self.settled, []
        return reader

    async def judge(self) -> list[str]:
        stuck = await self._until_stable()
        if stuck:
            return [stuck]
        finals: dict[Place, dict[int, str]] = {}
        unmarked: list[str] = []
        for place in PLACES:
            last = self._reader(f"last committed reader {place[1]}", [place])
            finals[place] = await self.running(last, last.read_all(place))
            unmarked += [*last.markers.problems, *last.unknown_markers]
        offsets = await self._offsets()
        transactions = self.record.transactions
        self.reached(
            coordinated_committed=sum(written.committed is True for written in transactions),
            coordinated_aborted=sum(written.committed is False for written in transactions),
            coordinated_unknown=sum(written.committed is None for written in transactions),
        )
        if "offsets.retention.minutes" in self.shape.settings:  # as another workload has drawn: they may have expired
            offsets = {place: offset for place, offset in offsets.items() if offset >= 0}
        self.recorded = self.record.history(finals, GROUP, offsets)
        replays = self.simulation.replays
        permitted = self.record.without_excused(self.recorded)
        excused = self.record.excused_values
        read = [problem for problem in self.fates.problems if excused.isdisjoint(problem.split())]
        objections = [*map(str, fatal(permitted)), *unmarked, *read, *replays.at_the_end()]
        objections += self.owners.never
        if not self.shape.settings.keys() & EXPIRING.keys():  # whose id has expired may go on, as in Apache Kafka
            objections += self.owners.problems
        self.reached(logs_replayed=replays.compared, records_compacted=replays.taken)
        self.reached(transaction_records_read=self.settled.records, markers_answered=self.places_settled.answered)
        return [*objections[:WORST_MAX], *self.history.notes[:WORST_MAX]]

    async def _until_stable(self) -> str:
        """Wait until all transactions have ended: those that nobody ends, their coordinator does."""
        end = self.loop.time() + QUIET_SECONDS_MAX
        while True:
            leaders = [
                partition
                for node in self.simulation.nodes
                if node.is_serving
                for place in PLACES
                if (partition := node.broker.partitions.get(*place)) is not None and partition.is_leader
            ]
            behind = [str(leader) for leader in leaders if leader.last_stable_offset < leader.high_watermark]
            if len(leaders) == len(PLACES) and not behind and self._is_settled():
                return ""
            if self.loop.time() > end:
                return f"stable-offset-stuck: {behind}, {self._unsettled()}"
            await asyncio.sleep(0.2)

    def _shards(self) -> list[Any]:
        return [
            shard for node in self.simulation.nodes if node.is_serving for shard in node.broker.transactions.shards()
        ]

    def _unsettled(self) -> list[str]:
        return [
            f"{transaction.transactional_id} is {transaction.standing.state.title}"
            for shard in self._shards()
            for transaction in shard.transactions.values()
            if not transaction.standing.state.is_resting or transaction.pending is not None
        ]

    def _is_settled(self) -> bool:
        return not self._unsettled()

    async def _offsets(self) -> dict[Place, int]:
        """What the group has committed of each partition."""
        asking = self.as_judge(Grouped, "asks for offsets")
        asking.group_id = GROUP
        await self.running(asking, asking.leader(PLACES[0]))
        found = {}
        for place in PLACES:
            while True:
                try:
                    found[place] = await self.running(asking, asking.committed(place))
                    break
                except Again:
                    await asyncio.sleep(0.2)
        return found


class CommittedReader(StableReader):
    """Reads one partition of the topic."""

    record: Record
    markers: Markers
    settled: SettledIds
    unknown_markers: list[str]

    async def run(self) -> None:
        while True:
            began = self.loop.time()
            records = await self.fetch(self._places[0])
            if records:
                self.record.polled(self.name, self._places[0], records, began, self.loop.time())
            await asyncio.sleep(self.random.uniform(0.0, 0.3))

    def _wanted(self, data: PartitionData, batches: Iterable[tuple[BatchHeader, memoryview]]) -> Iterator[memoryview]:
        return super()._wanted(data, self._marked(batches))

    def _marked(self, batches: Iterable[tuple[BatchHeader, memoryview]]) -> Iterator[tuple[BatchHeader, memoryview]]:
        for header, batch in batches:
            transaction = None
            if (marker := read_marker(batch) if header.is_control else None) is not None:
                where = f"{self._places[0][0]}-{self._places[0][1]}@{header.base_offset}"
                producer = header.producer_id, header.producer_epoch
                self.unknown_markers += filter(None, [self.settled.marker(where, producer, marker.coordinator_epoch)])
            if not header.is_control:
                # A value ends with its partition and its number; what is before them names the transaction.
                transaction = self.text_of(next(iter(read_records(batch)))).rsplit(".", 2)[0]
            self.markers.batch(self._places[0], header.base_offset, header.producer_id, transaction)
            yield header, batch
