"""The share coordinator, asked in the protocol of brokers: keys 83 to 87, and FindCoordinator with key type 2."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.coordinator.share import share_state_requests
from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC
from kavka_broker.core.share.share_records import ShareRecord
from kavka_broker.core.share.share_states import SharePartitionKey, ShareStates, WrittenState
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import delete_share_group_state_request as deletions
from kavka_broker.protocol.messages import initialize_share_group_state_request as beginnings
from kavka_broker.protocol.messages import read_share_group_state_request as reads
from kavka_broker.protocol.messages import read_share_group_state_summary_request as summaries
from kavka_broker.protocol.messages import write_share_group_state_request as writes
from kavka_broker.protocol.messages.delete_share_group_state_response import DeleteShareGroupStateResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.initialize_share_group_state_response import InitializeShareGroupStateResponse
from kavka_broker.protocol.messages.read_share_group_state_response import ReadShareGroupStateResponse
from kavka_broker.protocol.messages.read_share_group_state_summary_response import (
    ReadShareGroupStateSummaryResponse,
)
from kavka_broker.protocol.messages.write_share_group_state_response import WriteShareGroupStateResponse
from kavka_broker.protocol.uuids import to_text
from tests.support.in_process import Client, InProcess, running
from tests.support.waiting import until

LEADER = 4
Batch = tuple[int, int, int, int]


class Coordinator:
    """A client that asks as brokers do, about one share partition."""

    def __init__(self, client: Client, topic_id: bytes, index: int = 0) -> None:
        self.client = client
        self.topic_id = topic_id
        self.index = index

    async def find(self, key: str | None = None) -> FindCoordinatorResponse:
        asked = key or f"g:{to_text(self.topic_id)}:{self.index}"
        return await self.client.call(
            FindCoordinatorRequest(key_type=2, coordinator_keys=[asked]), FindCoordinatorResponse, 6
        )

    async def initialize(self, state_epoch: int, start_offset: int) -> int:
        data = beginnings.PartitionData(self.index, state_epoch, start_offset)
        request = beginnings.InitializeShareGroupStateRequest(
            "g", [beginnings.InitializeStateData(self.topic_id, [data])]
        )
        answer = await self.client.call(request, InitializeShareGroupStateResponse, 0)
        return answer.results[0].partitions[0].error_code

    async def write(self, start_offset: int, *batches: Batch, leader_epoch: int = LEADER, state_epoch: int = 1) -> int:
        states = [writes.StateBatch(*batch) for batch in batches]
        data = writes.PartitionData(self.index, state_epoch, leader_epoch, start_offset, 3, states)
        request = writes.WriteShareGroupStateRequest("g", [writes.WriteStateData(self.topic_id, [data])])
        answer = await self.client.call(request, WriteShareGroupStateResponse, 1)
        return answer.results[0].partitions[0].error_code

    async def read(self, leader_epoch: int = LEADER) -> tuple[int, int, int, list[Batch]]:
        """The error, the state's epoch, its start, and its batches."""
        data = reads.PartitionData(self.index, leader_epoch)
        request = reads.ReadShareGroupStateRequest("g", [reads.ReadStateData(self.topic_id, [data])])
        answer = await self.client.call(request, ReadShareGroupStateResponse, 0)
        told = answer.results[0].partitions[0]
        batches = [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in told.state_batches]
        return told.error_code, told.state_epoch, told.start_offset, batches

    async def summary(self) -> tuple[int, int, int, int]:
        """The error, the leader's epoch, the start, and the count of records behind it that are done."""
        data = summaries.PartitionData(self.index, -1)
        request = summaries.ReadShareGroupStateSummaryRequest(
            "g", [summaries.ReadStateSummaryData(self.topic_id, [data])]
        )
        answer = await self.client.call(request, ReadShareGroupStateSummaryResponse, 1)
        told = answer.results[0].partitions[0]
        return told.error_code, told.leader_epoch, told.start_offset, told.delivery_complete_count

    async def delete(self) -> int:
        data = deletions.DeleteStateData(self.topic_id, [deletions.PartitionData(self.index)])
        answer = await self.client.call(
            deletions.DeleteShareGroupStateRequest("g", [data]), DeleteShareGroupStateResponse, 0
        )
        return answer.results[0].partitions[0].error_code


async def begun(inside: InProcess) -> Coordinator:
    """The coordinator of a share partition of a new topic t; its log has been read."""
    coordinator = Coordinator(await inside.connect(), await inside.create("t", 2))
    found = await coordinator.find()
    assert (found.coordinators[0].error_code, found.coordinators[0].node_id) == (0, 1)
    while await coordinator.initialize(1, -1) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        await asyncio.sleep(0)
    return coordinator


def test_a_state_is_written_and_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            coordinator = await begun(inside)
            assert await coordinator.read() == (0, 1, -1, [])
            assert await coordinator.write(0, (0, 4, 2, 1), (6, 9, 0, 1)) == 0
            assert await coordinator.write(0, (5, 5, 4, 5)) == 0
            assert await coordinator.read() == (0, 1, 0, [(0, 4, 2, 1), (5, 5, 4, 5), (6, 9, 0, 1)])
            assert await coordinator.summary() == (0, LEADER, 0, 3)
            assert await coordinator.write(6) == 0
            assert await coordinator.read(LEADER + 1) == (0, 1, 6, [(6, 9, 0, 1)])
            assert await coordinator.write(10) == ErrorCode.FENCED_LEADER_EPOCH
            assert await coordinator.write(10, leader_epoch=5, state_epoch=0) == ErrorCode.FENCED_STATE_EPOCH

    asyncio.run(scenario())


def test_what_does_not_exist_has_no_state(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            coordinator = await begun(inside)
            other = Coordinator(coordinator.client, coordinator.topic_id, 1)
            assert (await other.read())[0] == ErrorCode.INVALID_REQUEST
            assert await other.write(0) == ErrorCode.INVALID_REQUEST
            assert await other.summary() == (0, 0, -1, -1)
            assert await other.delete() == 0
            for nowhere in (
                Coordinator(coordinator.client, bytes(16)),
                Coordinator(coordinator.client, coordinator.topic_id, 7),
            ):
                assert await nowhere.initialize(1, 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                assert await nowhere.delete() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert await Coordinator(coordinator.client, coordinator.topic_id, -1).delete() == ErrorCode.INVALID_REQUEST

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "key", ["g", "g:0", "g:AAAAAAAAAAAAAAAAAAAAAA", "g:x:0", ":AAAAAAAAAAAAAAAAAAAAAA:0", "g:AAAAAAAAAAAAAAAAAAAAAA:-1"]
)
def test_a_wrong_key_finds_nothing_and_makes_no_topic(tmp_path: Path, key: str) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            coordinator = Coordinator(await inside.connect(), bytes(16))
            found = await coordinator.find(key)
            assert found.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
            assert inside.broker.metadata.topics.get(SHARE_STATE_TOPIC) is None

    asyncio.run(scenario())


def test_states_survive_a_restart(tmp_path: Path) -> None:
    settings = {"share.coordinator.snapshot.update.records.per.snapshot": "2"}

    async def write() -> bytes:
        async with running(tmp_path, settings) as inside:
            coordinator = await begun(inside)
            for offset in range(5):
                assert await coordinator.write(0, (2 * offset, 2 * offset, 2, 1)) == 0
            other = Coordinator(coordinator.client, coordinator.topic_id, 1)
            assert await other.initialize(1, 3) == 0
            assert await other.delete() == 0
            return coordinator.topic_id

    async def read(topic_id: bytes) -> None:
        async with running(tmp_path, settings) as inside:
            coordinator = Coordinator(await inside.connect(), topic_id)
            while (found := await coordinator.read())[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                await asyncio.sleep(0)
            assert found == (0, 1, 0, [(2 * offset, 2 * offset, 2, 1) for offset in range(5)])
            assert await Coordinator(coordinator.client, topic_id, 1).summary() == (0, 0, -1, -1)

    asyncio.run(read(asyncio.run(write())))


def test_the_log_is_pruned_below_the_oldest_snapshot(tmp_path: Path) -> None:
    settings = {
        "share.coordinator.snapshot.update.records.per.snapshot": "1",
        "share.coordinator.state.topic.prune.interval.ms": "20",
        "share.coordinator.state.topic.num.partitions": "1",
    }

    async def scenario() -> None:
        async with running(tmp_path, settings) as inside:
            coordinator = await begun(inside)
            for offset in range(6):
                assert await coordinator.write(offset, (offset, offset, 0, 1)) == 0
            log = inside.broker.partitions.leader(SHARE_STATE_TOPIC, 0).log
            await until(lambda: log.log_start_offset >= 4)
            assert await coordinator.read() == (0, 1, 5, [(5, 5, 0, 1)])
            assert await coordinator.delete() == 0
            await until(lambda: log.log_start_offset == log.log_end_offset)

    asyncio.run(scenario())


def test_states_of_deleted_topics_are_forgotten(tmp_path: Path) -> None:
    settings = {"share.coordinator.cold.partition.snapshot.interval.ms": "20"}

    async def scenario() -> None:
        async with running(tmp_path, settings) as inside:
            coordinator = await begun(inside)
            states = [shard.states for shard in inside.broker.as_broker.sharing.coordinator.shards]
            assert sum(len(one.by_key) for one in states) == 1
            request = DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=10_000)
            await coordinator.client.call(request, DeleteTopicsResponse, 6)
            await until(lambda: not any(one.by_key for one in states))
            assert await coordinator.write(0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(scenario())


def test_a_write_of_very_many_batches_takes_several_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    write = ShareStates.write

    def counted(states: ShareStates, key: SharePartitionKey, written: WrittenState, now_ms: int) -> list[ShareRecord]:
        sizes.append(len(written.batches))
        return write(states, key, written, now_ms)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            coordinator = await begun(inside)
            batches = [(2 * number, 2 * number, 2, 1) for number in range(10_000)]
            wrong = (3, 2, 2, 1)
            assert await coordinator.write(5, *batches[1:], wrong) == ErrorCode.INVALID_REQUEST
            assert await coordinator.read() == (0, 1, -1, []), "nothing of it is written"
            monkeypatch.setattr(ShareStates, "write", counted)
            assert await coordinator.write(5, *batches) == 0
            assert await coordinator.read() == (0, 1, 5, batches[3:])
            assert await coordinator.summary() == (0, LEADER, 5, 3)
            assert max(sizes) <= share_state_requests.WRITTEN_PER_TURN_MAX
            assert sum(sizes) == 10_000

    asyncio.run(scenario())


def test_one_turn_writes_no_more_batches_of_several_partitions() -> None:
    async def scenario() -> int:
        slices, turns = Slices(), 0

        async def turn() -> None:
            nonlocal turns
            turns += 1

        slices.turn = turn  # type: ignore[method-assign]
        pace = share_state_requests.Pace(slices)
        for _ in range(50):
            await pace.take(100)
        return turns

    assert asyncio.run(scenario()) == 24
