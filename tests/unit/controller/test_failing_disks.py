"""A controller whose metadata directory fails while it runs: another leads, and nothing that was decided is lost."""

import asyncio
import errno
from itertools import pairwise

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import split_batches
from tests.support.quorums import Node, Quorums
from tests.support.sim_disk import DiskError, Operation
from tests.support.waiting import pass_seconds

METADATA = "/data/__cluster_metadata-0/"
#: Longer than a follower waits for a silent leader, and an election after it.
ELECTION_SECONDS = 10.0


def fail(node: Node, *operations: Operation, times: int | None = None, under: str = METADATA) -> None:
    node.disk.errors.append(DiskError(frozenset(operations), under, errno.EIO, times))


def mend(node: Node) -> None:
    """Repair a node's disk, and start the node if it has ended."""
    node.disk.errors.clear()
    node.crashes.clear()
    if not node.is_alive:
        node.start()


@pytest.mark.parametrize("times", [1, None])
@pytest.mark.parametrize("operation", ["append", "sync", "read"])
def test_a_leader_whose_disk_fails_is_replaced(operation: Operation, times: int | None) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        fail(leader, operation, times=times)
        # The request is refused, or gets no answer from an ended process: the decision may hold or not.
        asked = asyncio.create_task(leader.write("b"))
        async with asyncio.timeout(ELECTION_SECONDS):
            successor = await cluster.leader(other_than=[leader])
        await successor.write("c")
        was_answered = asked.done() and asked.exception() is None
        assert set(successor.topics) >= {"a", "c", *["b"] * was_answered}
        assert leader not in cluster.active()
        mend(leader)
        await cluster.agreed()
        assert leader.topics == successor.topics

    Quorums.play(scenario)


def test_a_leader_that_cannot_write_logs_the_refusal() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        fail(leader, "append")
        with pytest.raises(BrokerError) as refused:
            await leader.write("b")
        assert refused.value.code is ErrorCode.NOT_CONTROLLER  # the client tries another controller
        assert leader.crashes == []
        await (await cluster.leader(other_than=[leader])).write("b")
        leader.disk.errors.clear()
        await cluster.agreed()
        assert leader.topics == ["b"]

    Quorums.play(scenario)


@pytest.mark.parametrize("operation", ["append", "sync", "read", "write"])
def test_a_follower_whose_disk_fails_does_not_hold_up_the_others(operation: Operation) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        follower = cluster.followers()[0]
        fail(follower, operation)
        for name in ("a", "b"):
            await leader.write(name)
        mend(follower)
        await cluster.agreed()
        assert follower.topics == ["a", "b"]

    Quorums.play(scenario)


@pytest.mark.parametrize("operation", ["append", "sync", "read", "write"])
def test_a_candidate_whose_disk_fails_does_not_keep_the_others_from_a_leader(operation: Operation) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        failing, well = cluster.followers()
        fail(failing, operation)
        leader.kill()
        await pass_seconds(ELECTION_SECONDS)
        assert failing not in cluster.active()
        leader.start()
        successor = await cluster.leader(other_than=[failing])
        await successor.write("b")
        mend(failing)
        await cluster.agreed()
        assert failing.topics == well.topics == ["a", "b"]

    Quorums.play(scenario)


@pytest.mark.parametrize("position", [8, 9, 10, 11, 16, 17, 26, 57, 70])
def test_a_voter_with_a_damaged_log_starts_and_fetches_it_again(position: int) -> None:
    """A length, magic, CRC, delta, count or record: also where the end of the batch cannot be found any more."""

    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        for name in ("a", "b", "c"):
            await leader.write(name)
        await cluster.agreed()
        voter = cluster.followers()[0]
        voter.kill()
        path = f"{METADATA}{0:020d}.log"
        batches = [len(batch) for _, batch in split_batches(memoryview(bytes(voter.disk.read_file(path))))]
        voter.disk.flip_bit(path, sum(batches[:-2]) + position, 1)
        voter.start()
        await leader.write("d")
        await cluster.agreed()
        assert voter.topics == ["a", "b", "c", "d"]

    Quorums.play(scenario)


def test_a_voter_that_is_damaged_below_its_snapshot_and_above_has_no_hole_afterwards() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await leader.write("b")
        await cluster.agreed()
        voter = cluster.followers()[0]
        snapshot = await voter.run(voter.quorum.snapshot())
        assert snapshot is not None
        await leader.write("c")
        await leader.write("d")
        await cluster.agreed()
        voter.kill()
        path, position = f"{METADATA}{0:020d}.log", 0
        for header, batch in split_batches(memoryview(bytes(voter.disk.read_file(path)))):
            if header.base_offset in (snapshot.end_offset - 1, snapshot.end_offset):
                voter.disk.flip_bit(path, position + len(batch) - 1, 1)
            position += len(batch)
        voter.start()
        await cluster.agreed()
        log, next_offset = voter.quorum.log, voter.quorum.log.start_offset
        for header, _ in log.batches(log.start_offset):
            assert header.base_offset == next_offset
            next_offset = header.next_offset
        assert voter.topics == ["a", "b", "c", "d"]

    Quorums.play(scenario)


def test_a_voter_that_is_cut_below_its_snapshot_writes_nothing_behind_a_gap() -> None:
    """A wild base offset makes the log end there at its opening, and start behind the snapshot."""

    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await leader.write("b")
        await cluster.agreed()
        voter = cluster.followers()[0]
        snapshot = await voter.run(voter.quorum.snapshot())
        assert snapshot is not None
        await leader.write("c")
        await cluster.agreed()
        voter.kill()
        path, position = f"{METADATA}{0:020d}.log", 0
        for header, batch in split_batches(memoryview(bytes(voter.disk.read_file(path)))):
            if header.next_offset == snapshot.end_offset:
                voter.disk.flip_bit(path, position + 4, 3)
            position += len(batch)
        voter.start()
        await cluster.agreed()
        assert voter.topics == ["a", "b", "c"]
        written = [
            header
            for path, _ in sorted(voter.disk.files())
            if path.startswith(METADATA) and path.endswith(".log")
            for header, _ in split_batches(memoryview(bytes(voter.disk.read_file(path))))
        ]
        assert all(batch.next_offset == other.base_offset for batch, other in pairwise(written))

    Quorums.play(scenario)
