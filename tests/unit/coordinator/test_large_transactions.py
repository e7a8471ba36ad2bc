"""Transactions of ten thousand offsets and partitions hold the loop no longer than others."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from kavka_broker.coordinator.broker_connections import Connections
from kavka_broker.coordinator.groups.group_loading import load
from kavka_broker.coordinator.transactions.marker_sender import MarkerSender
from kavka_broker.coordinator.transactions.transaction_loading import load as load_transactions
from kavka_broker.coordinator.transactions.transaction_shard import TransactionShard
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.transaction.ending import End, end
from kavka_broker.core.transaction.partitions import add_partitions
from kavka_broker.core.transaction.settings import (
    TRANSACTIONS_BYTES_MAX,
    TRANSACTIONS_PER_PARTITION_MAX,
    TransactionSettings,
)
from kavka_broker.core.transaction.state import (
    ID_BYTES,
    PLACE_BYTES,
    Place,
    Sender,
    Standing,
    Transaction,
    TransactionState,
    check_move,
)
from kavka_broker.core.transaction.timeouts import kill
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.write_txn_markers_request import WritableTxnMarker
from kavka_broker.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
)
from kavka_broker.protocol.records.control import ControlType, build_marker
from tests.support.cluster import cluster
from tests.support.turns import CALLS_PER_TURN_MAX, Turns
from tests.support.waiting import until
from tests.unit.coordinator.fakes import Clock, FakePartition, World, play

COUNT: Final = 10_000
PER_REQUEST: Final = 100
PRODUCER, OTHER = 7, 8


def stage(world: World, producer_id: int, first: int = 0, count: int = COUNT) -> None:
    for start in range(first, first + count, PER_REQUEST):
        commits = [Commit("t", index, producer_id) for index in range(start, min(start + PER_REQUEST, first + count))]
        world.shard.staging.stage("g", (producer_id, 0), commits)


def mark(world: World, producer_id: int, *, commits: bool) -> asyncio.Future[None] | None:
    """Append a marker."""
    kind = ControlType.COMMIT if commits else ControlType.ABORT
    batch = build_marker(kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1)
    log = world.partition.log
    batch[:8] = log.log_end_offset.to_bytes(8, "big")
    log.batches.append(bytes(batch))
    log.log_end_offset += 1
    committed = world.partition.when_committed(log.log_end_offset - 1)
    return world.shard.staging.end_transaction(producer_id, committed, commits=commits)


def offsets(image: GroupImage) -> dict[int, int]:
    return {index: value.offset for index, value in image.offsets("g").get("t", {}).items()}


async def most_calls(work: Callable[[], Awaitable[object]]) -> int:
    """The most calls in one callback of the loop while the work is done."""
    turns = Turns()
    with turns.counting():
        await asyncio.get_running_loop().create_task(cast(Any, work()))
    return turns.most


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("holds", [True, False])
def test_offsets_are_settled_in_slices(*, commits: bool, holds: bool) -> None:
    async def scenario() -> None:
        world = World()
        stage(world, PRODUCER)
        world.partition.holds = holds

        async def settle() -> None:
            settled = mark(world, PRODUCER, commits=commits)
            assert settled is not None
            await world.partition.commit()
            assert world.shard.image.staged.is_unstable("g", "t", COUNT - 1), "until it is settled"
            await settled

        assert await most_calls(settle) < CALLS_PER_TURN_MAX
        assert offsets(world.shard.image) == (dict.fromkeys(range(COUNT), PRODUCER) if commits else {})
        assert not len(world.shard.image.staged)

    play(scenario)


def test_what_is_committed_meanwhile_stays() -> None:
    async def scenario() -> None:
        world = World()
        stage(world, PRODUCER)
        stage(world, OTHER, first=COUNT // 2, count=1)
        settled = mark(world, PRODUCER, commits=True)
        assert mark(world, OTHER, commits=True) is None, "few offsets are settled at once"
        world.shard.commit("g", -1, "", None, [Commit("t", COUNT - 1, 99)], -1, 9)
        assert settled is not None
        await settled
        found = offsets(world.shard.image)
        assert (found[0], found[COUNT // 2], found[COUNT - 1]) == (PRODUCER, OTHER, 99)
        replayed = GroupImage()
        await load(world.partition, replayed)
        assert offsets(replayed) == found

    play(scenario)


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_ends_what_stands_before_it(*, commits: bool) -> None:
    """An administrator may abort a transaction that its producer goes on with."""

    async def scenario() -> None:
        world = World()
        stage(world, PRODUCER, count=1)
        world.partition.holds = True
        settled = mark(world, PRODUCER, commits=commits)
        assert settled is not None
        stage(world, PRODUCER, first=1, count=1)
        await world.partition.commit()
        await settled
        assert list(offsets(world.shard.image)) == ([0] if commits else [])
        replayed = GroupImage()
        await load(world.partition, replayed)
        assert [*replayed.staged] == [*world.shard.image.staged]
        assert [offset.key.partition for _, offset in replayed.staged] == [1]

    play(scenario)


@pytest.mark.thorough
def test_a_log_is_read_in_slices() -> None:
    async def scenario() -> None:
        world = World()
        stage(world, PRODUCER, count=2 * COUNT)
        mark(world, PRODUCER, commits=True)
        stage(world, OTHER)
        replayed = GroupImage()
        assert await most_calls(lambda: load(world.partition, replayed)) < CALLS_PER_TURN_MAX
        assert len(offsets(replayed)) == 2 * COUNT
        assert len([*replayed.staged]) == COUNT

    play(scenario)


# --- partitions -------------------------------------------------------------------------------------------------


class LoopClock(Clock):
    """Time goes on, so that timers fire."""

    def monotonic_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000


class StatePartition(FakePartition):
    topic = "__transaction_state"


class Coordinator:
    """A shard of transactions on broker 1, which leads all partitions of t. To be made inside a running loop."""

    def __init__(self) -> None:
        world = World()
        self.partition = StatePartition()
        self.written = 0
        timers = Timers(LoopClock(), asyncio.get_running_loop())
        metadata = cluster(1, topics={"t": COUNT})
        connections = Connections(metadata, cast(Any, None), "PLAINTEXT", "")
        self.sender = MarkerSender(1, metadata, connections, self.write, timers, 1_000)
        self.shard = TransactionShard(
            self.partition, TransactionSettings(), world.clock, timers, version=lambda: 2, prepared=self.sender.send
        )
        self.shard.is_loading = False

    async def write(self, markers: Sequence[WritableTxnMarker]) -> list[WritableTxnMarkerResult]:
        results = []
        for marker in markers:
            topics = [
                WritableTxnMarkerTopicResult(
                    topic.name, [WritableTxnMarkerPartitionResult(index) for index in topic.partition_indexes]
                )
                for topic in marker.topics
            ]
            self.written += sum(len(topic.partitions) for topic in topics)
            results.append(WritableTxnMarkerResult(marker.producer_id, topics))
        await asyncio.sleep(0)
        return results


def test_partitions_are_added_and_marked_in_slices() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        shard = coordinator.shard
        transaction = shard.admit("x", Standing(PRODUCER, 0, 60_000, updated_ms=1))

        async def add_all() -> None:
            for start in range(0, COUNT, 500):
                added = [("t", index) for index in range(start, start + 500)]
                following = add_partitions(transaction, (PRODUCER, 0), added, 2, 1)
                assert following is not None
                await shard.move(transaction, following)
                await asyncio.sleep(0)

        async def commit() -> None:
            following = end(transaction, End(PRODUCER, 0, True, 2), -1, 1)
            assert following is not None
            await shard.move(transaction, following)
            await until(lambda: transaction.standing.state is TransactionState.COMPLETE_COMMIT)

        assert await most_calls(add_all) < CALLS_PER_TURN_MAX
        assert len(transaction.standing.partitions) == COUNT
        assert await most_calls(lambda: load_transactions(coordinator.partition)) < CALLS_PER_TURN_MAX
        assert await most_calls(commit) < CALLS_PER_TURN_MAX
        assert coordinator.written == COUNT

    play(scenario)


def test_a_transaction_whose_last_record_is_refused_is_completed_later() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        shard, partition = coordinator.shard, coordinator.partition
        one = Standing(PRODUCER, 0, 60_000, TransactionState.ONGOING, frozenset([("t", 0)]), started_ms=1, updated_ms=1)
        transaction = shard.admit("x", one)
        following = end(transaction, End(PRODUCER, 0, True, 2), -1, 1)
        assert following is not None
        await shard.move(transaction, following)
        partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        await until(lambda: shard.incomplete == 1)
        partition.refuses = None
        await until(lambda: transaction.standing.state is TransactionState.COMPLETE_COMMIT)
        assert shard.incomplete == 0

    play(scenario)


def admitted(shard: TransactionShard, count: int, characters: int) -> int:
    """How many of so many new ids are taken up."""
    taken = 0
    for number in range(count):
        with suppress(BrokerError):
            shard.admit(f"{number:0{characters}}", Standing(number, 0, 60_000, updated_ms=1))
            taken += 1
    return taken


def test_ids_take_a_bounded_number_of_bytes() -> None:
    """Whoever may write makes up ids of 32,767 characters, which are kept for a week."""

    async def scenario() -> None:
        shard = Coordinator().shard
        assert admitted(shard, 1_000, 32_000) == TRANSACTIONS_BYTES_MAX // (ID_BYTES + 4 * 32_000)
        assert shard.room_bytes < ID_BYTES + 4 * 32_000
        for transaction in list(shard.transactions.values()):
            transaction.begin(kill(transaction.standing))
        shard._forget(list(shard.transactions.values()))
        assert shard.room_bytes == TRANSACTIONS_BYTES_MAX
        ordinary = Coordinator().shard
        assert admitted(ordinary, TRANSACTIONS_PER_PARTITION_MAX + 1, 20) == TRANSACTIONS_PER_PARTITION_MAX

    play(scenario)


def test_an_id_at_rest_takes_no_more_than_is_counted() -> None:
    """Flink makes an id for each checkpoint, and each of them stays for a week."""
    tracemalloc.start()
    ids = dict[str, Transaction]()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(COUNT):
        name, producer_id, now_ms = f"sink-{number:019}", 10**6 + number, 10**12 + 2 * number
        standing = Standing(
            producer_id, 1, 60_000, TransactionState.COMPLETE_COMMIT,
            started_ms=now_ms, updated_ms=now_ms + 1, previous_producer_id=producer_id,
        )  # fmt: skip
        transaction = ids[name] = Transaction(name, standing)
        transaction.sender = Sender((producer_id, 1), 10**6 + number)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken <= sum(transaction.size_bytes for transaction in ids.values())


def test_partitions_of_transactions_take_room_until_the_transactions_are_over() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        shard = coordinator.shard
        full = TRANSACTIONS_BYTES_MAX // (PLACE_BYTES * COUNT)
        everywhere = [("t", index) for index in range(COUNT)]
        added = []
        for number in range(full):
            transaction = shard.admit(str(number), Standing(number, 0, 60_000, updated_ms=1))
            following = add_partitions(transaction, (number, 0), everywhere, 2, 1)
            assert following is not None
            await shard.move(transaction, following)
            added.append(transaction)
        late = shard.admit("late", Standing(full, 0, 60_000, updated_ms=1))
        following = add_partitions(late, (full, 0), everywhere, 2, 1)
        assert following is not None
        with pytest.raises(BrokerError) as refused:
            await shard.move(late, following)
        assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert late.pending is None
        following = end(added[0], End(0, 0, True, 2), -1, 1)
        assert following is not None
        await shard.move(added[0], following)
        await until(lambda: added[0].standing.state is TransactionState.COMPLETE_COMMIT)
        again = add_partitions(late, (full, 0), everywhere, 2, 1)
        assert again is not None
        await shard.move(late, again)
        assert len(late.standing.partitions) == COUNT

    play(scenario)


def test_ids_that_were_read_from_the_log_take_room() -> None:
    async def scenario() -> None:
        shard = Coordinator().shard
        shard.transactions = {
            str(number): Transaction(str(number), Standing(number, 0, 60_000, updated_ms=1)) for number in range(5_000)
        }
        steps = sum(1 for _ in shard.open())
        assert steps == 2, "many are counted in slices"
        assert shard.room_bytes == TRANSACTIONS_BYTES_MAX - sum(
            transaction.size_bytes for transaction in shard.transactions.values()
        )

    play(scenario)


class Unwritable(frozenset[Place]):
    def __repr__(self) -> str:
        raise AssertionError("nobody reads it")


def test_a_move_that_is_right_is_not_written_down() -> None:
    before = Standing(PRODUCER, 0, 60_000, TransactionState.ONGOING, Unwritable(), started_ms=1)
    check_move(before, before.then(TransactionState.PREPARE_COMMIT))
    wrong = replace(before, partitions=frozenset([("t", 0)]))
    with pytest.raises(AssertionError, match=r"\('t', 0\).* -> .*COMPLETE_COMMIT"):
        check_move(wrong, wrong.then(TransactionState.COMPLETE_COMMIT))
