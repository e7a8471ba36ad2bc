"""Produce in a transaction: nothing is written that its coordinator does not know of."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from kavka_broker.coordinator.transactions.transaction_coordinator_client import TransactionCoordinators
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.writing.batch_preparation import Preparation
from kavka_broker.replica.writing.produce import Produce
from kavka_broker.storage.batch_check import Prepared
from kavka_broker.storage.log import Log, Origin
from tests.support.in_process import Client, InProcess, running
from tests.support.waiting import until

NOW_MS = time.time_ns() // 1_000_000
PRODUCER = 7
VERSION, ADDS_VERSION = 10, 12


class Line(ExclusiveTurns):
    """Turns, and how many requests have one or await one."""

    def count(self, transactional_id: str) -> int:
        return self._locks.get(transactional_id, (None, 0))[1]


class Coordinators(TransactionCoordinators):
    """A coordinator on this broker, or on another one, that answers what the test sets, once the test lets it."""

    again_ms, attempts_max = 1, 5
    verifies = True

    def __init__(self, *, is_here: bool = False) -> None:
        self.is_here = is_here
        self.turns = self.line = Line()
        self.asked: list[tuple[Sequence[tuple[str, int]], bool]] = []
        self.code: ErrorCode = ErrorCode.NONE
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def admit(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: Sequence[tuple[str, int]],
        *,
        adds: bool,
    ) -> dict[tuple[str, int], int]:
        assert (transactional_id, producer_id, producer_epoch) == ("tx", PRODUCER, 0)
        self.asked.append((places, adds))
        await self.may_answer.wait()
        if self.code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            raise BrokerError(self.code)
        return dict.fromkeys(places, self.code)

    def verified_here(
        self, transactional_id: str, producer: tuple[int, int], places: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], int] | None:
        is_at_hand = self.is_here and self.may_answer.is_set() and self.code is not ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not is_at_hand:
            return None
        assert (transactional_id, *producer) == ("tx", PRODUCER, 0)
        self.asked.append((places, False))
        return dict.fromkeys(places, self.code)


Scenario = Callable[[Client, Partition, Coordinators], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """With a coordinator on another broker, then with one on this broker."""

    async def run(where: str) -> None:
        async with running(directory / where) as inside:
            await inside.create("t")
            coordinators = inside.broker.writes.coordinators = Coordinators(is_here=where == "here")
            await scenario(await inside.connect(), partition_of(inside), coordinators)
            assert not partition_of(inside).log.producers.awaits_verdict(PRODUCER)

    for where in ("there", "here"):
        (directory / where).mkdir()
        asyncio.run(run(where))


def partition_of(inside: InProcess) -> Partition:
    return inside.broker.partitions.leader("t", 0)


def batch_of(producer_id: int, sequence: int = 0, *, transactional: bool = True) -> bytearray:
    return build_batch(
        [(None, b"v")],
        timestamp_ms=NOW_MS,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=transactional,
    )


def request(sequence: int = 0, *, transactional: bool = True) -> ProduceRequest:
    batch = batch_of(PRODUCER, sequence, transactional=transactional)
    return ProduceRequest("tx", -1, 1000, [TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])])


def large_request() -> ProduceRequest:
    """A request whose batch a thread has to prepare."""
    batch = build_batch(
        [(None, bytes(1000))] * 1000, timestamp_ms=NOW_MS, producer_id=PRODUCER, producer_epoch=0, base_sequence=0,
        transactional=True, compression=Compression.GZIP,
    )  # fmt: skip
    return ProduceRequest("tx", -1, 1000, [TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])])


async def produce(client: Client, sequence: int = 0, *, version: int = VERSION, transactional: bool = True) -> int:
    answer = await client.call(request(sequence, transactional=transactional), ProduceResponse, version)
    return answer.responses[0].partition_responses[0].error_code


def mark(partition: Partition, producer_id: int = PRODUCER) -> None:
    marker = build_marker(
        ControlType.ABORT, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW_MS
    )
    partition.append(memoryview(marker), origin=Origin.COORDINATOR)


def test_the_coordinator_is_asked_once_per_transaction(tmp_path: Path) -> None:
    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        assert [await produce(client, sequence) for sequence in range(3)] == [0, 0, 0]
        assert coordinators.asked == [([("t", 0)], False)]
        mark(partition)
        assert await produce(client, 3) == 0
        assert len(coordinators.asked) == 2
        assert partition.log.log_end_offset == 5

    play(tmp_path, scenario)


def test_nobody_is_asked_where_verification_is_off(tmp_path: Path) -> None:
    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        coordinators.verifies, coordinators.code = False, ErrorCode.TRANSACTION_ABORTABLE
        assert [await produce(client, sequence) for sequence in range(2)] == [0, 0]
        assert not coordinators.asked
        mark(partition)
        coordinators.code = ErrorCode.NONE
        assert await produce(client, 2, version=ADDS_VERSION) == 0
        assert [adds for _, adds in coordinators.asked] == [True], "it is not verified, but added"

    play(tmp_path, scenario)


def test_verification_is_switched_while_the_broker_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, {"transaction.partition.verification.enable": "false"}) as inside:
            coordinators = inside.broker.writes.coordinators
            assert not coordinators.verifies
            client = await inside.connect()
            config = AlterableConfig("transaction.partition.verification.enable", 0, "true")
            asked = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "", [config])])
            await client.call(asked, IncrementalAlterConfigsResponse, 1)
            await until(lambda: coordinators.verifies)

    asyncio.run(scenario())


def test_the_leader_adds_the_partition_for_newer_clients(tmp_path: Path) -> None:
    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        assert await produce(client, 5, version=ADDS_VERSION) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await produce(client, version=ADDS_VERSION) == 0
        assert [adds for _, adds in coordinators.asked] == [True, True]

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [VERSION, ADDS_VERSION])
def test_a_partition_has_a_bounded_number_of_open_transactions(tmp_path: Path, version: int) -> None:
    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        partition.log.producers.producers_max = 1
        partition.append(memoryview(batch_of(PRODUCER + 1)))
        refused = [await produce(client, sequence, version=version) for sequence in range(2)]
        assert refused == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
        assert partition.log.log_end_offset == 1
        mark(partition, PRODUCER + 1)
        assert await produce(client, 1, version=version) != ErrorCode.NONE  # not before the first
        assert [await produce(client, sequence, version=version) for sequence in range(2)] == [0, 0]

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, VERSION, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, VERSION, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, ADDS_VERSION, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, VERSION, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, VERSION, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, VERSION, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ADDS_VERSION, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_batches_that_the_coordinator_refuses_are_not_appended(
    tmp_path: Path, said: ErrorCode, version: int, told: ErrorCode
) -> None:
    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        coordinators.code = said
        assert await produce(client, version=version) == told
        assert partition.log.log_end_offset == 0
        coordinators.code = ErrorCode.NONE
        assert await produce(client, version=version) == 0

    play(tmp_path, scenario)


def test_a_marker_before_the_coordinators_answer_refuses_the_batch(tmp_path: Path) -> None:
    """KIP-890: otherwise the batch would begin a transaction that is never ended."""

    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        coordinators.may_answer.clear()
        client.send(request(), VERSION)
        async with asyncio.timeout(60):
            while not coordinators.asked:
                await asyncio.sleep(0)
        mark(partition)
        coordinators.may_answer.set()
        answer = await client.receive(ProduceResponse, VERSION)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TXN_STATE
        assert partition.last_stable_offset == partition.log.log_end_offset == 1

    play(tmp_path, scenario)


def test_a_marker_while_a_partition_is_added_has_the_coordinator_asked_again(tmp_path: Path) -> None:
    """It ends the transaction before, for which the coordinator has waited."""

    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        coordinators.may_answer.clear()
        client.send(request(), ADDS_VERSION)
        async with asyncio.timeout(60):
            while not coordinators.asked:
                await asyncio.sleep(0)
        mark(partition)
        coordinators.may_answer.set()
        answer = await client.receive(ProduceResponse, ADDS_VERSION)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert [adds for _, adds in coordinators.asked] == [True, True]
        assert partition.last_stable_offset == 1

    play(tmp_path, scenario)


def test_pipelined_requests_are_appended_in_order(tmp_path: Path) -> None:
    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        coordinators.may_answer.clear()
        for sequence in range(4):
            # The requests follow one another into the same buffer of the broker.
            client.send(request(sequence), VERSION)
            async with asyncio.timeout(60):
                while coordinators.line.count("tx") <= sequence:
                    await asyncio.sleep(0)
        assert len(coordinators.asked) == 1
        coordinators.may_answer.set()
        for offset in range(4):
            answer = (await client.receive(ProduceResponse, VERSION)).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, offset)
        assert len(coordinators.asked) == 1
        assert not coordinators.turns.is_taken("tx")

    play(tmp_path, scenario)


def test_a_plain_batch_is_refused_during_an_open_transaction(tmp_path: Path) -> None:
    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        assert await produce(client) == 0
        assert await produce(client, 1, transactional=False) == ErrorCode.INVALID_TXN_STATE
        assert partition.log.log_end_offset == 1

    play(tmp_path, scenario)


def test_what_its_coordinator_does_not_know_is_refused_for_good(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            client = await inside.connect()
            assert await produce(client) == ErrorCode.INVALID_TXN_STATE
            await inside.create("__transaction_state")
            await until(lambda: not inside.broker.transactions.is_loading)
            assert await produce(client) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
            assert partition_of(inside).log.log_end_offset == 0

    asyncio.run(scenario())


class Gated(Preparation):
    """Prepares batches once the test lets it."""

    def __init__(self, slices: Slices) -> None:
        super().__init__(slices)
        self.is_asked, self.may_prepare = asyncio.Event(), asyncio.Event()

    async def prepare(self, batch: memoryview, log: Log, now_ms: int) -> Prepared:
        self.is_asked.set()
        await self.may_prepare.wait()
        return await super().prepare(batch, log, now_ms)


def test_no_question_comes_between_a_verdict_at_hand_and_a_batch_that_a_thread_prepares(tmp_path: Path) -> None:
    """A marker makes the verdict void. The question of another request would be taken for the one before, and the batch
    begin a transaction that is never ended (KIP-890).
    """

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            writes = inside.broker.writes
            coordinators = writes.coordinators = Coordinators(is_here=True)
            preparation = writes.preparation = Gated(writes.slices)
            partition = partition_of(inside)
            first, repeated = await inside.connect(), await inside.connect()
            first.send(large_request(), VERSION)
            await preparation.is_asked.wait()
            mark(partition)
            coordinators.code = ErrorCode.TRANSACTION_ABORTABLE  # the transaction has ended
            repeated.send(request(), VERSION)
            await until(lambda: coordinators.line.count("tx") == 2)
            preparation.may_prepare.set()
            for client in (first, repeated):
                answer = await client.receive(ProduceResponse, VERSION)
                assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TXN_STATE
            assert partition.last_stable_offset == partition.log.log_end_offset == 1

    asyncio.run(scenario())


def test_a_batch_prepared_by_a_thread_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, prepared = list[object](), list[object]()
    keep = Produce._keep

    def keep_and_note(self: Produce) -> None:
        keep(self)
        kept.append(self._request.topic_data[0].partition_data[0].records)

    monkeypatch.setattr(Produce, "_keep", keep_and_note)
    prepare = Preparation.prepare

    def prepare_and_note(self: Preparation, batch: memoryview, log: Log, now_ms: int) -> Awaitable[Prepared]:
        prepared.append(batch)
        return prepare(self, batch, log, now_ms)

    monkeypatch.setattr(Preparation, "prepare", prepare_and_note)

    async def scenario(client: Client, partition: Partition, coordinators: Coordinators) -> None:
        answer = await client.call(large_request(), ProduceResponse, VERSION)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert partition.log.log_end_offset == 1000
        assert prepared[0] is kept[0]

    play(tmp_path, scenario)
