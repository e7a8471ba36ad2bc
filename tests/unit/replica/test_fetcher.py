"""A fetcher and its leader: sessions, newcomers, pauses, and partitions that move from one leader to another."""

import asyncio
import errno

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_response import (
    EpochEndOffset,
    PartitionData,
)
from kavka_broker.protocol.messages.list_offsets_request import ListOffsetsRequest
from kavka_broker.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kavka_broker.replica.following.fetched_batches import Next, take
from kavka_broker.replica.following.fetcher import TAKEN_PER_TURN_MAX
from kavka_broker.replica.leading.partition import Partition
from tests.support.alone import Alone
from tests.support.sim_disk import DiskError
from tests.support.waiting import pass_seconds, turns
from tests.unit.replica.leaders import (
    NODE_ID,
    SESSION_ID,
    Bench,
    answer,
    forgotten,
    named,
    opened,
    play,
    records,
)


def test_records_are_taken_and_only_what_moved_is_named() -> None:
    async def scenario(bench: Bench) -> None:
        (first, second), reply = await opened(bench, 0, 1)
        reply.set_result(answer(PartitionData(0, 0, 0, records=records(0))))
        request, reply = await bench.leaders[1].next()
        assert request.session_epoch == 2
        assert {index: (part.fetch_offset, part.last_fetched_epoch) for index, part in named(request).items()} == {
            0: (1, 0)
        }
        assert (first.log.log_end_offset, first.high_watermark, second.log.log_end_offset) == (1, 0, 0)
        reply.set_result(answer(PartitionData(0, 0, 1)))
        await bench.leaders[1].next()
        assert first.high_watermark == 1

    play(scenario)


def test_the_next_fetch_leaves_in_the_turn_in_which_the_answer_came() -> None:
    async def scenario(bench: Bench) -> None:
        (first,), reply = await opened(bench, 0)
        reply.set_result(answer(PartitionData(0, 0, 0, records=records(0))))
        await asyncio.sleep(0)
        assert first.log.log_end_offset == 1
        assert (first.traffic.bytes_in, first.traffic.bytes_copied) == (0, len(records(0))), (
            "no producer has sent them here"
        )
        request, _ = bench.leaders[1].asked.get_nowait()
        assert named(request)[0].fetch_offset == 1

    play(scenario)


def test_a_newcomer_does_not_wait_behind_a_fetch_that_waits() -> None:
    async def scenario(bench: Bench) -> None:
        (first,), waiting = await opened(bench, 0)
        newcomer = bench.partition(5)
        bench.fetchers.follow(newcomer)
        request, reply = await bench.leaders[1].next()
        assert (request.session_epoch, set(named(request))) == (2, {5})
        # The first is answered with records, and the second, which did not know of them, with the same ones.
        waiting.set_result(answer(PartitionData(0, 0, 0, records=records(0))))
        reply.set_result(answer(PartitionData(0, 0, 0, records=records(0)), PartitionData(5, 0, 0, records=records(0))))
        request, _ = await bench.leaders[1].next()
        assert set(named(request)) == {0, 5}
        assert (first.log.log_end_offset, newcomer.log.log_end_offset) == (1, 1)

    play(scenario)


class Later(Alone):
    """A broker whose syncs the test does."""

    def sync(self, partition: Partition) -> None:
        """The test does it."""


@pytest.mark.parametrize("flush_messages", [2**63 - 1, 1], ids=["plain", "waits for its sync"])
def test_the_high_watermark_of_an_answer_that_comes_too_late_for_its_records_is_taken(flush_messages: int) -> None:
    """The leader says it once: a follower of a partition that rests would never hear of it."""

    async def scenario(bench: Bench) -> None:
        _, waiting = await opened(bench, 0)
        config = LogConfig(flush_messages=flush_messages)
        partition = bench.partition(1, config=config, around=Later() if flush_messages == 1 else None)
        bench.fetchers.follow(partition)
        _, reply = await bench.leaders[1].next()
        waiting.set_result(answer())
        newcomer = bench.partition(5)
        bench.fetchers.follow(newcomer)
        _, reply_of_newcomer = await bench.leaders[1].next()
        reply.set_result(answer(PartitionData(1, 0, 0, records=records(0))))
        same, plain = records(0), PartitionData(5)
        reply_of_newcomer.set_result(answer(PartitionData(1, 0, 1, records=same), plain))
        await turns()
        assert (partition.log.log_end_offset, partition.high_watermark) == (1, 1)

    play(scenario)


def test_what_flush_messages_wants_synced_is_named_once_it_is() -> None:
    """A fetch from behind a record says that this replica has it."""

    async def scenario(bench: Bench) -> None:
        (other,), reply = await opened(bench, 0)
        partition = bench.partition(1, config=LogConfig(flush_messages=1), around=Later())
        bench.fetchers.follow(partition)
        _, reply_of_newcomer = await bench.leaders[1].next()
        reply.set_result(answer())
        reply_of_newcomer.set_result(answer(PartitionData(1, records=records(0))))
        request, reply = await bench.leaders[1].next()
        assert (named(request), forgotten(request), partition.log.log_end_offset) == ({}, [1], 1)
        bench.fetchers.leave(partition)  # as a newer epoch does: what is not synced is not named then either
        bench.fetchers.follow(partition)
        reply.set_result(answer(PartitionData(0, records=records(0))))
        request, reply = await bench.leaders[1].next()
        assert (set(named(request)), other.log.log_end_offset) == ({0}, 1)
        partition.log.durability.sync_records()
        partition.synced()
        request, _ = await bench.leaders[1].next()
        assert {index: part.fetch_offset for index, part in named(request).items()} == {1: 1}

    play(scenario)


def test_what_came_before_a_batch_that_is_not_taken_is_synced_too() -> None:
    """Or the next fetch would wait for a sync that nobody has asked for."""
    asked = list[int]()

    class Noting(Alone):
        def sync(self, partition: Partition) -> None:
            asked.append(partition.index)

    async def scenario(bench: Bench) -> None:
        config = LogConfig(flush_messages=1, internal_segment_bytes=80)
        partition = bench.partition(1, config=config, around=Noting())
        bench.disk.errors.append(DiskError(frozenset({"open"}), "/data/t-1", errno.ENOSPC))
        both = memoryview(bytes(records(0)) + bytes(records(1)))
        assert take(partition, PartitionData(1, records=both), 0) is Next.LATER
        assert (partition.log.log_end_offset, asked) == (1, [1])

    play(scenario)


def test_a_follower_that_may_not_fetch_says_what_to_change(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(bench: Bench) -> None:
        refused = PartitionData(1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert take(bench.partition(1), refused, 0) is Next.LATER

    with caplog.at_level("WARNING"):
        play(scenario)
    (record,) = [record for record in caplog.records if record.getMessage() == "fetch.not_allowed"]
    assert "super.users" in vars(record)["fields"]["fix"]


def test_a_new_log_is_fetched_for_once_its_topics_id_is_synced() -> None:
    """Its first record would sync it on the loop."""

    async def scenario(bench: Bench) -> None:
        _, reply = await opened(bench, 0)
        bench.securing = securing = asyncio.get_running_loop().create_future()
        bench.fetchers.follow(bench.partition(5))
        reply.set_result(answer())
        request, reply = await bench.leaders[1].next()
        assert named(request) == {}
        bench.securing = None
        securing.set_result(None)
        reply.set_result(answer())
        request, _ = await bench.leaders[1].next()
        assert set(named(request)) == {5}

    play(scenario)


@pytest.mark.parametrize("error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_a_session_that_is_gone_is_opened_anew(error: ErrorCode) -> None:
    async def scenario(bench: Bench) -> None:
        _, reply = await opened(bench, 0, 1)
        reply.set_result(answer(error=error, session_id=0))
        request, _ = await bench.leaders[1].next()
        assert (request.session_id, request.session_epoch, set(named(request))) == (SESSION_ID, 0, {0, 1})

    play(scenario)


def test_a_lost_connection_begins_a_new_session() -> None:
    async def scenario(bench: Bench) -> None:
        _, reply = await opened(bench, 0)
        reply.set_exception(Unreachable("lost"))
        request, _ = await bench.leaders[1].next()
        assert (request.session_epoch, set(named(request))) == (0, {0})

    play(scenario)


def test_an_error_pauses_its_partition_and_no_other() -> None:
    async def scenario(bench: Bench) -> None:
        _, reply = await opened(bench, 0, 1)
        reply.set_result(answer(PartitionData(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)))
        request, reply = await bench.leaders[1].next()
        assert (named(request), forgotten(request)) == ({}, [0])
        request, _ = await bench.leaders[1].next()  # behind the one that waits, as soon as the pause is over
        assert (set(named(request)), forgotten(request)) == ({0}, [])

    play(scenario)


def test_a_fenced_epoch_waits_for_a_newer_one() -> None:
    async def scenario(bench: Bench) -> None:
        (first, _), reply = await opened(bench, 0, 1)
        reply.set_result(answer(PartitionData(0, ErrorCode.FENCED_LEADER_EPOCH, -1)))
        request, _ = await bench.leaders[1].next()
        assert forgotten(request) == [0]
        first.apply(first.state._replace(leader_epoch=3, partition_epoch=1))
        bench.fetchers.follow(first)
        request, _ = await bench.leaders[1].next()
        assert {index: part.current_leader_epoch for index, part in named(request).items()} == {0: 3}

    play(scenario)


def test_an_answer_to_an_earlier_fetch_is_not_about_a_newer_epoch() -> None:
    """The leader has gone on to the new epoch while the fetch of the old one waited there."""

    async def scenario(bench: Bench) -> None:
        (partition,), waiting = await opened(bench, 0)
        partition.apply(partition.state._replace(leader_epoch=1, partition_epoch=1))
        bench.fetchers.follow(partition)
        request, reply = await bench.leaders[1].next()
        assert named(request)[0].current_leader_epoch == 1
        waiting.set_result(answer(PartitionData(0, ErrorCode.FENCED_LEADER_EPOCH)))
        await asyncio.sleep(0)
        reply.set_result(answer(PartitionData(0, 0, 0, records=records(0, epoch=1))))
        request, _ = await bench.leaders[1].next()
        assert named(request)[0].fetch_offset == partition.log.log_end_offset == 1

    play(scenario)


def test_a_diverging_epoch_cuts_the_log_and_the_next_fetch_says_so() -> None:
    async def scenario(bench: Bench) -> None:
        (first,), reply = await opened(bench, 0)
        reply.set_result(answer(PartitionData(0, 0, 0, records=memoryview(b"".join([records(0), records(1)])))))
        _, reply = await bench.leaders[1].next()
        reply.set_result(answer(PartitionData(0, 0, 0, diverging_epoch=EpochEndOffset(0, 1))))
        request, _ = await bench.leaders[1].next()
        assert named(request)[0].fetch_offset == first.log.log_end_offset == 1

    play(scenario)


def test_others_have_their_turn_after_each_log_that_is_cut() -> None:
    async def scenario(bench: Bench) -> None:
        partitions, reply = await opened(bench, *range(4))
        two = memoryview(b"".join([records(0), records(1)]))
        reply.set_result(answer(*(PartitionData(index, 0, 0, records=two) for index in range(4))))
        _, reply = await bench.leaders[1].next()
        seen = set[int]()

        async def watch() -> None:
            while len(seen) < 5:
                seen.add(sum(one.log.log_end_offset == 1 for one in partitions))
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        reply.set_result(answer(*(PartitionData(index, diverging_epoch=EpochEndOffset(0, 1)) for index in range(4))))
        await bench.leaders[1].next()
        watching.cancel()
        assert seen >= {1, 2, 3}

    play(scenario)


def test_others_have_their_turn_within_an_answer_about_very_many() -> None:
    async def scenario(bench: Bench) -> None:
        count = 3 * TAKEN_PER_TURN_MAX
        partitions, reply = await opened(bench, *range(count))
        seen = set[int]()

        async def watch() -> None:
            while True:
                seen.add(sum(one.log.log_end_offset for one in partitions))
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        reply.set_result(answer(*(PartitionData(index, 0, 0, records=records(0)) for index in range(count))))
        await bench.leaders[1].next()
        watching.cancel()
        assert seen >= {TAKEN_PER_TURN_MAX, 2 * TAKEN_PER_TURN_MAX}

    play(scenario)


@pytest.mark.parametrize(("span", "end"), [((7, 9), 7), ((0, 0), 0), ((0, 1), 1)])
def test_out_of_range_is_looked_up(span: tuple[int, int], end: int) -> None:
    async def scenario(bench: Bench) -> None:
        (first,), reply = await opened(bench, 0)
        reply.set_result(answer(PartitionData(0, 0, 0, records=records(0))))
        _, reply = await bench.leaders[1].next()
        reply.set_result(answer(PartitionData(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1)))
        for offset in span:
            request, reply = await bench.leaders[1].next()
            assert isinstance(request, ListOffsetsRequest)
            assert request.replica_id == NODE_ID
            found = ListOffsetsPartitionResponse(0, 0, -1, offset)
            reply.set_result(ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [found])]))
        request, _ = await bench.leaders[1].next()
        assert named(request)[0].fetch_offset == first.log.log_end_offset == end

    play(scenario)


def test_two_that_do_not_agree_ask_each_other_with_pauses() -> None:
    """The leader does not know the epoch of the follower's last record, and yet their offsets are the same."""

    async def scenario(bench: Bench) -> None:
        _, reply = await opened(bench, 0, 1)
        reply.set_result(answer(PartitionData(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1)))
        for _ in ("start", "end"):
            request, reply = await bench.leaders[1].next()
            assert isinstance(request, ListOffsetsRequest)
            found = ListOffsetsPartitionResponse(0, 0, -1, 0)
            reply.set_result(ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [found])]))
        request, _ = await bench.leaders[1].next()
        assert (named(request), forgotten(request)) == ({}, [0])
        request, _ = await bench.leaders[1].next()
        assert set(named(request)) == {0}

    play(scenario)


@pytest.mark.parametrize(("position", "value"), [(-1, 1), (11, 0), (8, 0x7F)], ids=["value", "short", "long"])
def test_a_broken_batch_is_named_and_not_taken(position: int, value: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(bench: Bench) -> None:
        (first, _), reply = await opened(bench, 0, 1)
        broken = records(0)
        broken[position] = value
        reply.set_result(answer(PartitionData(0, 0, 0, records=broken)))
        request, _ = await bench.leaders[1].next()
        assert (forgotten(request), first.log.log_end_offset) == ([0], 0)
        request, _ = await bench.leaders[1].next()
        assert named(request)[0].fetch_offset == 0

    play(scenario)
    assert "fetch.damaged" in [record.getMessage() for record in caplog.records]


def test_when_the_rate_is_exceeded_all_that_is_throttled_waits_until_it_is_not() -> None:
    async def scenario(bench: Bench) -> None:
        _, reply = await opened(bench, 0, 1, 2)
        bench.throttled = {0, 2}
        reply.set_result(answer(PartitionData(0, 0, 0, records=records(0))))
        request, reply = await bench.leaders[1].next()
        assert (bench.taken[0][0], forgotten(request)) == (0, [0, 2])
        # Its time is over, the rate is not below its bound: it waits on.
        await pass_seconds(60)
        assert bench.leaders[1].asked.empty()
        bench.throttled = {2}
        request, _ = await bench.leaders[1].next()
        assert set(named(request)) == {0}

    play(scenario)


def test_a_partition_follows_its_leader_elsewhere() -> None:
    async def scenario(bench: Bench) -> None:
        (first, second), _ = await opened(bench, 0, 1)
        for partition in (first, second):
            partition.apply(partition.state._replace(leader=2, leader_epoch=1, partition_epoch=1))
            bench.fetchers.follow(partition)
        request, _ = await bench.leaders[2].next()
        assert {index: part.current_leader_epoch for index, part in named(request).items()} == {0: 1, 1: 1}
        assert len(bench.fetchers) == 1
        async with asyncio.timeout(60):
            while not bench.leaders[1].is_closed:
                await asyncio.sleep(0)

    play(scenario)


def test_what_cannot_be_cut_yet_is_followed_when_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records without epochs cannot be compared with the leader's: they go first, for which a full disk has no room."""

    async def scenario(bench: Bench) -> None:
        partition = bench.partition(0)
        refusals = iter([True, True, False])

        def cut(_: Partition) -> None:
            if next(refusals):
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "No space left on device")

        monkeypatch.setattr("kavka_broker.replica.following.fetcher.begin", cut)
        bench.fetchers.follow(partition)
        request, _ = await bench.leaders[1].next()
        assert set(named(request)) == {0}

    play(scenario)


def test_a_leader_that_nobody_knows_is_waited_for() -> None:
    async def scenario(bench: Bench) -> None:
        bench.fetchers.follow(bench.partition(0, leader=3))
        bench.fetchers.follow(bench.partition(1, leader=-1))
        assert len(bench.fetchers) == 0

    play(scenario)
