"""A follower's fetches at a leader, over a connection: what they acknowledge, what they bring, when they wait."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kavka_broker.protocol.messages.delete_records_response import DeleteRecordsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kavka_broker.protocol.messages.fetch_response import FetchResponse, PartitionData
from kavka_broker.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kavka_broker.protocol.messages.list_offsets_response import ListOffsetsResponse
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.segment import Segment
from tests.support.in_process import Client, InProcess, batch, running
from tests.support.waiting import until

OTHER = 2
OTHER_EPOCH = 1_000
VERSION = 18
PARTITIONS = 3
Scenario = Callable[[InProcess, Client, bytes], Awaitable[None]]


def play(directory: Path, scenario: Scenario, partitions: int = PARTITIONS) -> None:
    """Run a scenario with a topic of so many partitions on this broker and on another that the test plays."""

    async def run() -> None:
        async with running(directory) as inside:
            topic_id = os.urandom(16)
            endpoints = [BrokerEndpoint("PLAINTEXT", "h", 1, 0)]
            other = RegisterBrokerRecord(OTHER, False, bytes(16), OTHER_EPOCH, endpoints, fenced=False)
            parts = [
                PartitionRecord(index, topic_id, [1, OTHER], [1, OTHER], leader=1, leader_epoch=4, partition_epoch=0)
                for index in range(partitions)
            ]
            records = [other, TopicRecord("t", topic_id), *parts]
            await inside.broker.active.submit(lambda *_: Decision(records, None))
            await scenario(inside, await inside.connect(), topic_id)
            # Otherwise the broker would wait at its stop for the other to take over.
            await inside.broker.active.submit(lambda *_: Decision([RemoveTopicRecord(topic_id)], None))

    asyncio.run(run())


def write(inside: InProcess, index: int = 0, value: bytes = b"v") -> Partition:
    partition = inside.broker.partitions.leader("t", index)
    partition.append(memoryview(bytearray(batch(value, timestamp_ms=-1))))
    return partition


def fetch(
    topic_id: bytes,
    positions: dict[int, int],
    *,
    session: tuple[int, int] = (0, -1),
    wait_ms: int = 0,
    epoch: int = 4,
    last_epoch: int = -1,
    broker: tuple[int, int] = (OTHER, OTHER_EPOCH),
    log_start: int = 0,
) -> FetchRequest:
    wanted = [
        FetchPartition(index, epoch, offset, last_epoch, log_start, 1 << 20) for index, offset in positions.items()
    ]
    return FetchRequest(
        replica_state=ReplicaState(*broker),
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic_id=topic_id, partitions=wanted)] if wanted else [],
    )


async def call(client: Client, request: FetchRequest) -> dict[int, PartitionData]:
    return parts_of(await client.call(request, FetchResponse, VERSION))


def parts_of(answer: FetchResponse) -> dict[int, PartitionData]:
    assert answer.error_code == ErrorCode.NONE
    return {part.partition_index: part for topic in answer.responses for part in topic.partitions}


def size(part: PartitionData) -> int:
    assert isinstance(part.records, bytes | memoryview)
    return len(part.records)


async def opened(client: Client, topic_id: bytes, positions: dict[int, int]) -> int:
    answer = await client.call(fetch(topic_id, positions, session=(0, 0), wait_ms=60_000), FetchResponse, VERSION)
    assert set(parts_of(answer)) == set(positions)
    return answer.session_id


def test_a_fetch_acknowledges_the_records_below_its_offset(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = write(inside)
        committed = partition.when_committed(0)
        assert committed is not None
        first = (await call(client, fetch(topic_id, {0: 0})))[0]
        assert (size(first) > 0, first.high_watermark, committed.done()) == (True, 0, False)
        second = (await call(client, fetch(topic_id, {0: 1})))[0]
        assert (size(second), second.high_watermark, committed.done()) == (0, 1, True)
        traffic = partition.traffic
        assert (traffic.produces, traffic.messages_in, traffic.fetches) == (1, 1, 2)
        assert traffic.bytes_out == 0, "no consumer has read them"

    play(tmp_path, scenario)


def test_an_append_wakes_the_fetch_which_reads_only_that_partition(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        session = await opened(client, topic_id, dict.fromkeys(range(PARTITIONS), 0))
        client.send(fetch(topic_id, {}, session=(session, 1), wait_ms=60_000), VERSION)
        await inside.heard()
        partition = write(inside, 1)
        answer = parts_of(await client.receive(FetchResponse, VERSION))
        assert {index: size(part) > 0 for index, part in answer.items()} == {1: True}
        # This fetch moves the high watermark, which the next answer names.
        answer = await call(client, fetch(topic_id, {1: 1}, session=(session, 2)))
        assert {index: part.high_watermark for index, part in answer.items()} == {1: 1}
        assert partition.high_watermark == 1
        assert await call(client, fetch(topic_id, {}, session=(session, 3))) == {}

    play(tmp_path, scenario)


def test_only_records_answered_before_are_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    original = Segment.check

    def noting(self: Segment, position: int, size_bytes: int, floor: int, ceiling: int, epochs: LeaderEpochs) -> None:
        checked.append(floor)
        original(self, position, size_bytes, floor, ceiling, epochs)

    monkeypatch.setattr(Segment, "check", noting)

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        await call(client, fetch(topic_id, {0: 0}))  # nothing is there yet
        asked = asyncio.ensure_future(call(client, fetch(topic_id, {0: 0}, wait_ms=60_000)))
        while not inside.broker.partitions.leader("t", 0).waiters.feeds:
            await asyncio.sleep(0)
        write(inside)
        assert size((await asked)[0]) > 0
        assert not checked
        write(inside)
        assert size((await call(client, fetch(topic_id, {0: 1})))[0]) > 0
        assert not checked
        await call(client, fetch(topic_id, {0: 1}))
        assert checked == [1]

    play(tmp_path, scenario)


def test_a_waiting_fetch_is_not_noted_again_and_a_former_replica_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[int] = []
    original = Partition.follower_fetched

    def noting(self: Partition, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int) -> None:
        noted.append(offset)
        original(self, broker_id, broker_epoch, offset, log_start_offset)

    monkeypatch.setattr(Partition, "follower_fetched", noting)

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = inside.broker.partitions.leader("t", 0)

        async def given(offset: int, *, while_replica: bool = True) -> PartitionData:
            asked = asyncio.ensure_future(call(client, fetch(topic_id, {0: offset}, wait_ms=60_000)))
            while not partition.waiters.feeds:
                await asyncio.sleep(0)
            write(inside)
            if not while_replica:
                assert partition.leadership is not None
                del partition.leadership.followers[OTHER]
            return (await asked)[0]

        assert size(await given(0)) > 0
        assert noted == [0]
        refused = await given(1, while_replica=False)
        assert (refused.error_code, noted) == (ErrorCode.UNKNOWN_LEADER_EPOCH, [0, 1])

    play(tmp_path, scenario)


def test_a_waiting_fetch_is_answered_when_the_next_one_arrives(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        write(inside, 2)
        session = await opened(client, topic_id, {0: 0})
        client.send(fetch(topic_id, {}, session=(session, 1), wait_ms=60_000), VERSION)
        client.send(fetch(topic_id, {2: 0}, session=(session, 2), wait_ms=60_000), VERSION)
        assert parts_of(await client.receive(FetchResponse, VERSION)) == {}
        assert set(parts_of(await client.receive(FetchResponse, VERSION))) == {2}

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"epoch": 3}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 5}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"broker": (OTHER, OTHER_EPOCH - 1)}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ({"broker": (7, 1)}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"last_epoch": 9}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_fetches_of_a_follower_that_are_refused(tmp_path: Path, how: dict[str, int], error: ErrorCode) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = write(inside)
        answer = (await call(client, fetch(topic_id, {0: 1}, wait_ms=60_000, **how)))[0]  # type: ignore[arg-type]
        assert (answer.error_code, answer.records) == (error, b"")
        assert partition.high_watermark == 0

    play(tmp_path, scenario)


def test_a_fetch_beyond_the_log_end_is_out_of_range_and_acknowledges_nothing(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = write(inside)
        answer = (await call(client, fetch(topic_id, {0: 2})))[0]
        assert (answer.error_code, partition.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)

    play(tmp_path, scenario)


def test_a_diverging_follower_is_told_the_epoch_end_and_acknowledges_nothing(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = write(inside)
        answer = (await call(client, fetch(topic_id, {0: 5}, last_epoch=4, wait_ms=60_000)))[0]
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset, size(answer)) == (4, 1, 0)
        assert partition.high_watermark == 0

    play(tmp_path, scenario)


def test_a_follower_that_has_cut_its_log_is_told_the_high_watermark_again(tmp_path: Path) -> None:
    """A follower takes no high watermark before it has cut its log; without appends no later answer would name it."""

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        session = await opened(client, topic_id, {0: 0})
        partition = write(inside)
        await call(await inside.connect(), fetch(topic_id, {0: 1}))
        assert partition.high_watermark == 1
        parted = (await call(client, fetch(topic_id, {0: 5}, last_epoch=4, session=(session, 1))))[0]
        assert (parted.diverging_epoch.end_offset, parted.high_watermark) == (1, 1)
        cut = await call(client, fetch(topic_id, {0: 1}, last_epoch=4, session=(session, 2)))
        assert cut[0].high_watermark == 1
        assert await call(client, fetch(topic_id, {}, session=(session, 3))) == {}

    play(tmp_path, scenario)


def test_a_consumer_reads_of_a_follower_what_is_committed_and_no_more(tmp_path: Path) -> None:
    """KIP-392: a follower's log is ahead of what it knows to be committed."""

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = write(inside)
        await call(client, fetch(topic_id, {0: 1}))
        write(inside)
        follows = PartitionChangeRecord(0, topic_id, leader=OTHER)
        await inside.broker.active.submit(lambda *_: Decision([follows], None))
        assert not partition.is_leader
        assert (partition.high_watermark, partition.log.log_end_offset) == (1, 2)
        for offset, size_bytes in ((0, len(batch(b"v"))), (1, 0)):
            answer = (await call(client, fetch(topic_id, {0: offset}, epoch=5, broker=(-1, -1))))[0]
            assert (answer.error_code, answer.high_watermark, size(answer)) == (ErrorCode.NONE, 1, size_bytes)

    play(tmp_path, scenario)


def test_throttled_replication_holds_back_who_is_not_in_sync_and_nobody_else(tmp_path: Path) -> None:
    """KIP-73: acknowledgements wait for those that are in sync."""

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = write(inside)
        partition.log.config = LogConfig(leader_replication_throttled_replicas=("*",))
        throttle = inside.broker.replicas.throttles.by_side["leader"]
        throttle.limit = lambda: 1.0
        throttle.record(1_000_000)
        assert size((await call(client, fetch(topic_id, {0: 0})))[0]) > 0
        parted = PartitionChangeRecord(0, topic_id, isr=[1])
        await inside.broker.active.submit(lambda *_: Decision([parted], None))
        assert size((await call(client, fetch(topic_id, {0: 0})))[0]) == 0
        throttle.limit = lambda: 1e9
        assert size((await call(client, fetch(topic_id, {0: 0})))[0]) > 0

    play(tmp_path, scenario)


def test_delete_records_waits_for_the_follower_which_is_told_at_once(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        write(inside)
        session = await opened(client, topic_id, {0: 1})
        client.send(fetch(topic_id, {}, session=(session, 1), wait_ms=60_000), VERSION)
        await inside.heard()
        other = await inside.connect()
        wanted = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 1)])], 60_000)
        other.send(wanted, 2)
        answer = parts_of(await client.receive(FetchResponse, VERSION))
        assert answer[0].log_start_offset == 1
        await call(client, fetch(topic_id, {0: 1}, session=(session, 2), log_start=1))
        deleted = (await other.receive(DeleteRecordsResponse, 2)).topics[0].partitions[0]
        assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.NONE, 1)

    play(tmp_path, scenario)


def test_offsets_end_at_the_high_watermark_for_consumers_and_at_the_log_end_for_followers(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        write(inside)
        found = {}
        for replica_id in (-1, OTHER):
            request = ListOffsetsRequest(replica_id, topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, 4, -1)])])
            found[replica_id] = (await client.call(request, ListOffsetsResponse, 7)).topics[0].partitions[0].offset
        assert found == {-1: 0, OTHER: 1}

    play(tmp_path, scenario)


def test_a_new_leader_lists_committed_offsets_but_no_end_offset(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        partition = inside.broker.partitions.leader("t", 0)
        for stamp in (10, 20):
            partition.append(memoryview(bytearray(batch(b"v", timestamp_ms=stamp))))
            await call(client, fetch(topic_id, {0: 1}))
        elected = PartitionChangeRecord(0, topic_id, leader=1)
        await inside.broker.active.submit(lambda *_: Decision([elected], None))
        found = {}
        for wanted in (10, 15, 30, -1):
            asked = [ListOffsetsTopic("t", [ListOffsetsPartition(0, 5, wanted)])]
            answer = await client.call(ListOffsetsRequest(-1, topics=asked), ListOffsetsResponse, 7)
            part = answer.topics[0].partitions[0]
            found[wanted] = (part.error_code, part.offset)
        missing = (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert found == {10: (0, 0), 15: missing, 30: missing, -1: missing}

    play(tmp_path, scenario)


def test_a_session_ends_with_its_connection(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        await opened(client, topic_id, dict.fromkeys(range(PARTITIONS), 0))
        partition = inside.broker.partitions.leader("t", 0)
        assert (len(inside.broker.fetches.sessions), len(partition.waiters.feeds)) == (1, 1)
        client.close()
        await until(lambda: not len(inside.broker.fetches.sessions))
        assert not partition.waiters.feeds

    play(tmp_path, scenario)


def test_replaced_sessions_leave_no_callbacks_at_their_connection(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        told = []
        for _ in range(3):
            session = await opened(client, topic_id, {0: 0})
            feed = inside.broker.fetches.sessions.sessions[session].feed
            assert feed is not None
            assert feed.on_close is not None
            told.append(len(feed.on_close.func.__self__))  # type: ignore[attr-defined]
            inside.broker.fetches.sessions.drop(session)
        assert told == [told[0]] * 3

    play(tmp_path, scenario)


def test_a_fetch_without_a_session_leaves_no_feed_behind(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        client.send(fetch(topic_id, {0: 0}, wait_ms=60_000), VERSION)
        await inside.heard()
        partition = write(inside)
        assert size(parts_of(await client.receive(FetchResponse, VERSION))[0])
        assert not partition.waiters.feeds

    play(tmp_path, scenario)
