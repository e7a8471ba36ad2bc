"""How a follower's log is cut: what waits for the disk is a thread's, and what comes between the steps is safe."""

import asyncio
import errno
import threading
from collections.abc import Callable, Coroutine
from struct import pack_into
from typing import Any

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import PREFIX_BYTES
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.following.truncation import cut, go_on, restart_at
from kavka_broker.replica.leading.log_syncs import LogSyncs
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.storage import checkpoints, recovery
from kavka_broker.storage.log import Log
from kavka_broker.storage.retention import delete_expired
from tests.support.alone import Alone
from tests.support.sim_disk import DiskError, Operation, SimDisk
from tests.support.waiting import until

OTHER, HERE = 1, 2
FOLLOWS = PartitionState((OTHER, HERE), (OTHER, HERE), OTHER, 0)
LEADS = PartitionState((HERE,), (HERE,), HERE, 1)


class WatchedDisk(SimDisk):
    """Knows which syncs were not left to a thread, and how many reads."""

    def __init__(self) -> None:
        super().__init__()
        self.synced_on_loop = list[str]()
        self.reads_on_loop = 0

    def meet(self, operation: Operation, *paths: str) -> None:
        if threading.current_thread() is threading.main_thread():
            if operation == "sync":
                self.synced_on_loop.append(paths[0])
            self.reads_on_loop += operation == "read"
        super().meet(operation, *paths)


class Node(Alone):
    """A broker with one follower of six records, all of them synced."""

    def __init__(self) -> None:
        self.crashes = list[BaseException]()
        self.syncs = LogSyncs(self.crashes.append)
        self.disk = WatchedDisk()
        self.refusals = 0
        self.open(0)
        for offset in range(6):
            self.log.append_as_follower(record(offset))
        self.log.flush()
        self.disk.synced_on_loop.clear()

    def open(self, high_watermark: int) -> None:
        self.log = recovery.open_log(self.disk, "/data/t-0", LogConfig(flush_messages=4), now_ms=0)
        self.log.durability.on_recovery_point_lowered = self.write_checkpoint
        self.partition = Partition("t", 0, self.log, FOLLOWS, HERE, SystemClock(), self, high_watermark)

    def reopen(self, high_watermark: int) -> None:
        """Close the log and open it again, as a clean stop and a start do."""
        self.log.close()
        self.open(high_watermark)

    def write_checkpoint(self) -> None:
        checkpoints.write_offsets(self.disk, "/data/points", {self.log.name: self.log.recovery_point})

    @property
    def promised_offset(self) -> int:
        return checkpoints.read_offsets(self.disk, "/data/points")[self.log.name]

    def sync(self, partition: Partition) -> None:
        self.syncs.soon(partition)

    def refused(self, partition: Partition) -> None:
        self.refusals += 1

    async def step(self) -> None:
        """Wait until the thread has done its part."""
        waiting = self.partition.when_synced(self.log.log_end_offset - 1)
        assert waiting is not None
        await asyncio.wait_for(waiting, 60)


def record(offset: int) -> memoryview:
    return memoryview(build_batch([(None, b"%d" % offset)], base_offset=offset, leader_epoch=0))


PRODUCER = 7


def batch_of_producer(offset: int, *, transactional: bool = False) -> memoryview:
    batch = build_batch(
        [(None, b"%d" % offset)], base_offset=offset, leader_epoch=0, producer_id=PRODUCER, producer_epoch=0,
        base_sequence=offset - 6, transactional=transactional,
    )  # fmt: skip
    return memoryview(batch)


def marker(offset: int, kind: ControlType) -> memoryview:
    batch = build_marker(kind, producer_id=PRODUCER, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1)
    pack_into(">qii", batch, 0, offset, len(batch) - PREFIX_BYTES, 0)  # its place, which a leader gives it
    return memoryview(batch)


def sequences(log: Log) -> list[int]:
    """Of the batches of the producer that are known."""
    known = log.producers.get(PRODUCER)
    return [] if known is None else [batch.base_sequence for batch in known.batches]


def play(scenario: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        node = Node()
        await scenario(node)
        await node.syncs.stop()
        assert not node.crashes

    asyncio.run(run())


@pytest.mark.parametrize("restarts", [False, True])
def test_no_sync_of_a_cut_holds_the_loop(restarts: bool) -> None:
    async def scenario(node: Node) -> None:
        if restarts:
            restart_at(node.partition, 40)
        else:
            cut(node.partition, 3)
        assert node.log.log_end_offset == 6, "the disk still promises more than the cut leaves"
        await node.step()
        assert node.promised_offset <= 3
        go_on(node.partition)
        end_offset = 40 if restarts else 3
        assert node.log.log_end_offset == node.partition.log.log_end_offset == end_offset
        await node.step()
        assert not node.log.durability.is_being_cut
        assert node.partition.when_synced(end_offset - 1) is None
        assert node.disk.synced_on_loop == []

    play(scenario)


def test_what_was_not_synced_is_cut_at_once_and_sealed_by_a_thread() -> None:
    async def scenario(node: Node) -> None:
        node.log.append_as_follower(record(6))
        cut(node.partition, 6)
        assert (node.log.log_end_offset, node.log.durability.is_being_cut) == (6, True)
        await node.step()
        assert not node.log.durability.is_being_cut
        assert node.disk.synced_on_loop == []

    play(scenario)


def test_who_comes_to_lead_before_the_cut_keeps_its_records_and_waits_for_their_sync() -> None:
    async def scenario(node: Node) -> None:
        for offset in range(6, 10):
            node.log.append_as_follower(record(offset))
        assert node.log.durability.answerable_end == 6, "flush.messages has yet to be done"
        cut(node.partition, 3)
        node.partition.apply(LEADS)
        assert (node.log.log_end_offset, node.log.recovery_point, node.log.durability.is_being_cut) == (10, 6, False)
        assert node.partition.high_watermark <= 6
        await node.step()
        assert (node.log.durability.answerable_end, node.partition.high_watermark) == (10, 10)

    play(scenario)


def test_who_comes_to_lead_after_the_cut_takes_nothing_before_it_is_sealed() -> None:
    async def scenario(node: Node) -> None:
        node.log.append_as_follower(record(6))
        cut(node.partition, 6)
        node.partition.apply(LEADS)
        with pytest.raises(BrokerError) as caught:
            node.partition.append(record(0))
        assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await node.step()
        assert node.partition.append(record(0)).base_offset == 6

    play(scenario)


def test_a_sync_of_what_is_to_go_promises_nothing_of_it() -> None:
    async def scenario(node: Node) -> None:
        cut(node.partition, 3)
        lowered = node.partition.when_synced(5)  # which may be earlier than the other thread's sync
        assert lowered is not None
        await asyncio.to_thread(node.log.flush)
        await asyncio.wait_for(lowered, 60)
        assert node.log.recovery_point == 3
        assert node.log.durability.may_be_cut

    play(scenario)


def test_a_log_that_is_closed_before_the_cut_says_where_it_ends() -> None:
    async def scenario(node: Node) -> None:
        cut(node.partition, 3)
        node.log.close()
        assert node.log.recovery_point == node.log.log_end_offset == 6

    play(scenario)


def test_a_full_disk_is_told_of_and_the_cut_goes_on_when_there_is_room() -> None:
    async def scenario(node: Node) -> None:
        node.disk.write_file("/data/points", b"")  # such as it is; what replaces it has to find room
        cut(node.partition, 3)
        waiting = node.partition.when_synced(5)
        assert waiting is not None
        node.disk.space_bytes = 0
        await until(lambda: node.refusals)
        assert not waiting.done()
        assert (node.log.log_end_offset, node.log.is_failed) == (6, False)
        node.disk.space_bytes = None
        await asyncio.wait_for(waiting, 60)
        go_on(node.partition)
        assert node.log.log_end_offset == 3

    play(scenario)


def test_a_disk_that_fails_meanwhile_fails_the_log() -> None:
    async def scenario(node: Node) -> None:
        node.log.append_as_follower(record(6))
        failed = threading.Event()
        node.log.state.on_failed = failed.set
        node.disk.fail_syncs = True
        cut(node.partition, 6)
        assert await asyncio.to_thread(failed.wait, 60)
        assert node.log.is_failed

    play(scenario)


def test_a_batch_that_has_changed_below_the_cut_damages_the_replica() -> None:
    async def scenario(node: Node) -> None:
        length_at = len(record(0)) + 8  # of the second batch
        node.disk.flip_bit("/data/t-0/00000000000000000000.log", length_at, 4)
        cut(node.partition, 3)
        await node.step()
        for _ in range(2):  # the fetcher comes again until the replica begins anew
            with pytest.raises(BrokerError, match="ends inside the batch") as raised:
                go_on(node.partition)
            assert raised.value.code == ErrorCode.CORRUPT_MESSAGE
        assert node.partition.is_damaged
        assert not node.log.is_failed

    play(scenario)


@pytest.mark.parametrize("is_cut", [False, True])
def test_retention_leaves_alone_what_is_being_cut(is_cut: bool) -> None:
    """The segments to cut are those that were there when the cut was planned, and one of them is yet to be synced. What
    lies below them goes: the disk may be too full for the cut.
    """

    def retain(one: Log) -> int:
        return delete_expired(one, now_ms=10**15, high_watermark=one.log_end_offset)

    async def scenario(node: Node) -> None:
        for offset in range(6, 9):
            if offset != 7:
                node.log.roll(0)
            node.log.append_as_follower(record(offset))
        await asyncio.to_thread(node.log.flush)
        cut(node.partition, 7)
        if is_cut:
            await node.step()
            go_on(node.partition)
        assert retain(node.log) == 1
        if not is_cut:
            await node.step()
            go_on(node.partition)
        await node.step()
        assert (node.log.log_start_offset, node.log.log_end_offset) == (6, 7)
        assert retain(node.log) == 1

    play(scenario)


def test_a_thread_that_comes_late_writes_nothing_into_the_directory_of_the_next_log_of_the_name() -> None:
    async def scenario(node: Node) -> None:
        log = node.log
        log.truncation.plan_cut(3)
        log.durability.lower_on_disk()
        log.truncation.carry_out()
        log.abandon()  # its topic is deleted, and made again
        node.disk.rename("/data/t-0", "/data/t-0.gone-delete")
        anew = recovery.open_log(node.disk, "/data/t-0", LogConfig(), now_ms=0)
        names = node.disk.names(anew.directory)
        log.durability.seal()
        assert node.disk.names(anew.directory) == names

    play(scenario)


def test_the_producers_are_worked_out_by_a_thread() -> None:
    """Behind the newest snapshot may stand millions of batches."""

    async def scenario(node: Node) -> None:
        log, batches = node.log, 500
        for offset in range(6, 6 + batches):
            log.append_as_follower(batch_of_producer(offset))
        await asyncio.to_thread(log.flush)
        node.disk.reads_on_loop = 0
        cut(node.partition, 6 + batches - 1)
        await node.step()
        go_on(node.partition)
        await node.step()
        assert sequences(log) == [494, 495, 496, 497, 498]
        assert node.disk.reads_on_loop < batches / 10

    play(scenario)


def test_producers_that_cannot_be_read_for_now_are_read_later_and_once() -> None:
    async def scenario(node: Node) -> None:
        log = node.log
        for offset in range(6, 9):
            log.append_as_follower(batch_of_producer(offset))
        cut(node.partition, 8)
        node.disk.errors = [DiskError(frozenset({"read"}), "/data/t-0/", errno.EMFILE, times=1)]
        with pytest.raises(BrokerError):
            log.durability.sync_records()
        assert (log.durability.is_being_cut, log.is_failed) == (True, False)
        await node.step()
        assert (log.durability.is_being_cut, sequences(log)) == (False, [0, 1])

    play(scenario)


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
@pytest.mark.parametrize("is_rolled", [False, True])
def test_a_transaction_whose_marker_was_replicated_and_is_cut_is_unstable_at_once(
    kind: ControlType, *, is_rolled: bool
) -> None:
    """As after an unclean election. A read_committed reader of this follower (KIP-392) could read it until the seal."""

    async def scenario(node: Node) -> None:
        log, partition = node.log, node.partition
        log.append_as_follower(batch_of_producer(6, transactional=True))
        if is_rolled:
            log.roll(0)  # the snapshot of the producers there says that it is open
        log.append_as_follower(batch_of_producer(7, transactional=True))
        log.append_as_follower(marker(8, kind))
        partition.follow_high_watermark(9)
        assert partition.last_stable_offset == 9
        cut(partition, 8)
        go_on(partition)
        assert (log.log_end_offset, log.durability.is_being_cut) == (8, True)
        assert (partition.high_watermark, partition.last_stable_offset) == (8, 6 if is_rolled else 0)
        partition.apply(LEADS)
        assert partition.last_stable_offset <= 6
        await node.step()
        assert not log.durability.is_being_cut
        assert (partition.high_watermark, partition.last_stable_offset) == (8, 6)

    play(scenario)


def test_a_transaction_whose_marker_the_start_has_found_is_unstable_once_that_is_cut() -> None:
    """A snapshot says nothing of it: it has ended there, though its marker is above the high watermark."""

    async def scenario(node: Node) -> None:
        node.log.append_as_follower(batch_of_producer(6, transactional=True))
        node.log.append_as_follower(marker(7, ControlType.ABORT))
        node.reopen(high_watermark=7)
        cut(node.partition, 7)
        await node.step()
        go_on(node.partition)
        assert (node.log.log_end_offset, node.log.durability.is_being_cut) == (7, True)
        assert node.partition.last_stable_offset <= 6
        await node.step()
        assert (node.log.durability.is_being_cut, node.partition.last_stable_offset) == (False, 6)

    play(scenario)


def test_a_cut_above_the_high_watermark_leaves_the_stable_offset() -> None:
    async def scenario(node: Node) -> None:
        log, partition = node.log, node.partition
        log.append_as_follower(batch_of_producer(6, transactional=True))
        log.append_as_follower(batch_of_producer(7, transactional=True))
        log.append_as_follower(marker(8, ControlType.COMMIT))
        partition.follow_high_watermark(8)
        cut(partition, 8)
        assert (log.log_end_offset, log.durability.is_being_cut) == (8, True)
        assert partition.last_stable_offset == 6
        await node.step()
        assert (log.durability.is_being_cut, partition.last_stable_offset) == (False, 6)

    play(scenario)


def test_a_log_that_is_closed_between_cut_and_seal_keeps_the_producers_that_are_left() -> None:
    async def scenario(node: Node) -> None:
        log = node.log
        for offset in range(6, 9):
            log.append_as_follower(batch_of_producer(offset))
        log.truncation.plan_cut(8)
        log.durability.sync_records()
        log.truncation.carry_out()
        assert not log.is_finished
        log.close()
        opened = recovery.open_log(node.disk, log.directory, LogConfig(), recover=False, recovery_point=8, now_ms=0)
        assert sequences(opened)[-1:] == [1]

    play(scenario)
