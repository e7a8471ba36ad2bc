"""Which partitions' groups a broker serves: election, loading, resignation, and a log that cannot be read."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka_broker.coordinator.groups import group_coordinator as coordinator_module
from kavka_broker.coordinator.groups import group_loading as loading_module
from kavka_broker.coordinator.groups.deleted_topics import DeletedTopics
from kavka_broker.coordinator.groups.group_coordinator import GroupCoordinator
from kavka_broker.coordinator.groups.offset_expiration import (
    GROUP_IN_OFFSETS,
    OFFSETS_PER_SLICE_MAX,
    RECORDS_PER_SLICE_MAX,
)
from kavka_broker.coordinator.led_shards import LOAD_AGAIN_MS
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.group.image import GroupBounds
from kavka_broker.core.group.offsets import Commit
from kavka_broker.core.group.records import KeyedRecord, framed
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import PartitionState, Topics
from kavka_broker.loop.timers import TICK_MS, Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.log import Origin
from tests.support.waiting import until
from tests.unit.coordinator.fakes import Clock, FakePartition, pacing

TOPIC_ID = b"o" * 16


class Replicas(list[Any]):
    def __init__(self) -> None:
        super().__init__()
        self.leadership_listeners: list[Any] = []
        self.openings = SimpleNamespace(when_secured=lambda log: log.securing)
        self.partitions = self


def play(scenario: Callable[[GroupCoordinator], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = Clock()
        metadata = Metadata()
        metadata.replay(TopicRecord("__consumer_offsets", TOPIC_ID))
        metadata.replay(PartitionState((1,), (1,), 1).record(TOPIC_ID, 0))
        metadata.replay(TopicRecord("t", b"t" * 16))
        config = BrokerConfig.parse({"process.roles": "broker", "node.id": "1", **ADDRESSES})
        timers = Timers(clock, asyncio.get_running_loop())
        replicas = cast(Any, Replicas())
        await scenario(
            GroupCoordinator(
                config,
                metadata,
                cast(Any, SimpleNamespace()),
                replicas,
                pacing(clock, timers),
                lambda: "suffix",
            )
        )

    asyncio.run(run())


ADDRESSES = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "/nowhere",
}


def with_log(*pairs: tuple[bytes, bytes | None]) -> Any:
    partition = FakePartition()
    if pairs:
        partition.append(memoryview(build_batch(pairs, timestamp_ms=1)), -1, Origin.COORDINATOR)
    return partition


def committed(offset: int) -> tuple[bytes, bytes | None]:
    return framed(KeyedRecord(OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset), 4))


def tell(groups: GroupCoordinator, *records: Message) -> None:
    """Publish these records as one committed batch."""
    for record in records:
        groups.metadata.replay(record)
    groups.apply(records)


def code(groups: GroupCoordinator) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        groups.shard("g")
    return caught.value.code


async def settled(groups: GroupCoordinator) -> None:
    while groups.is_loading:
        await asyncio.sleep(0)


def test_a_partition_is_served_from_its_election_to_its_loss() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        assert code(groups) == ErrorCode.NOT_COORDINATOR
        partition = with_log()
        groups.led.leadership(partition, True)
        shard = groups.shard("g")
        groups.led.leadership(partition, True)
        assert groups.shard("g") is shard, "a new epoch of our own leadership changes nothing"
        groups.led.leadership(partition, False)
        assert code(groups) == ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_partitions_of_other_topics_are_ignored() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        partition = with_log()
        partition.topic = "t"
        groups.led.leadership(partition, True)
        assert code(groups) == ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_clients_wait_until_the_id_of_a_new_log_is_synced() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        first, second = with_log(), with_log()
        for partition in (first, second):
            partition.log.securing = asyncio.get_running_loop().create_future()
            groups.led.leadership(partition, True)
            assert code(groups) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        first.log.securing.set_result(None)
        await asyncio.sleep(0)
        assert code(groups) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "it is not the one that is led now"
        second.log.securing.set_result(None)
        await settled(groups)
        assert groups.shard("g").partition is second

    play(scenario)


def test_clients_wait_while_the_log_is_read() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        groups.led.leadership(with_log(committed(5)), True)
        assert code(groups) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert list(groups.shards()) == []
        await settled(groups)
        assert groups.shard("g").image.offsets("g")["t"][0].offset == 5

    play(scenario)


def test_a_partition_lost_while_it_loads_is_not_served() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        partition = with_log(committed(5))
        groups.led.leadership(partition, True)
        await asyncio.sleep(0)
        groups.led.leadership(partition, False)
        await asyncio.sleep(0)
        assert code(groups) == ErrorCode.NOT_COORDINATOR

    play(scenario)


def test_a_partition_lost_and_won_again_while_it_loads_is_loaded_again() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        first, second = with_log(committed(5)), with_log(committed(6))
        groups.led.leadership(first, True)
        await asyncio.sleep(0)
        groups.led.leadership(first, False)
        groups.led.leadership(second, True)
        await asyncio.sleep(0)
        groups.led.leadership(second, False)
        third = with_log(committed(7))
        groups.led.leadership(third, True)
        await settled(groups)
        assert groups.shard("g").image.offsets("g")["t"][0].offset == 7

    play(scenario)


def test_offsets_of_a_topic_deleted_during_a_load_are_removed() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        groups.led.leadership(with_log(committed(5)), True)
        tell(groups, RemoveTopicRecord(b"t" * 16))
        await settled(groups)
        assert groups.shard("g").image.offsets("g") == {}

    play(scenario)


def test_offsets_of_a_deleted_topic_are_removed_a_slice_a_turn_while_the_shard_is_served() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        partition = with_log()
        groups.led.leadership(partition, True)
        commits = [Commit("t", index, 1) for index in range(3 * RECORDS_PER_SLICE_MAX)]
        groups.shard("g").commit("g", -1, "", None, commits, -1, 9)

        def tombstones() -> int:
            return int(partition.log.log_end_offset) - len(commits)

        tell(groups, RemoveTopicRecord(b"t" * 16))
        assert tombstones() == RECORDS_PER_SLICE_MAX
        turn(groups)
        assert tombstones() == 2 * RECORDS_PER_SLICE_MAX
        groups.led.leadership(partition, False)
        turn(groups)
        assert tombstones() == 2 * RECORDS_PER_SLICE_MAX

    play(scenario)


def committed_by(groups: GroupCoordinator, count: int) -> None:
    """Commit an offset of topic t in each of `count` groups."""
    for number in range(count):
        groups.shard("g").commit(f"g{number}", -1, "", None, [Commit("t", 0, 1)], -1, 9)


def kept_by(groups: GroupCoordinator, count: int) -> int:
    """The number of these groups whose offset is still in memory."""
    return sum(bool(groups.shard("g").image.offsets(f"g{number}")) for number in range(count))


def test_offsets_of_very_many_groups_are_forgotten_in_slices() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        groups.led.leadership(with_log(), True)
        count = OFFSETS_PER_SLICE_MAX  # two steps each
        committed_by(groups, count)
        tell(groups, RemoveTopicRecord(b"t" * 16))
        assert kept_by(groups, count) == count // 2
        turn(groups)
        assert kept_by(groups, count) == 0

    play(scenario)


def test_offsets_of_a_new_topic_are_not_removed_with_the_former_ones() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        groups.led.leadership(with_log(), True)
        count = OFFSETS_PER_SLICE_MAX
        committed_by(groups, count)
        tell(groups, RemoveTopicRecord(b"t" * 16))
        tell(groups, TopicRecord("t", b"u" * 16))
        shard = groups.shard("g")
        assert kept_by(groups, count) == count // 2, "a new topic has no more forgotten in its turn"
        assert [number for number in range(count) if shard.offsets(f"g{number}")] == [], "and yet nobody sees them"
        committed_by(groups, count)
        turn(groups)
        assert kept_by(groups, count) == count

    play(scenario)


def test_a_topic_recreated_during_a_load_has_no_former_offsets() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        partition = with_log(committed(5))
        groups.led.leadership(partition, True)
        tell(groups, RemoveTopicRecord(b"t" * 16))
        tell(groups, TopicRecord("t", b"u" * 16))
        await settled(groups)
        assert groups.shard("g").offsets("g") == {}
        turn(groups)
        assert partition.log.log_end_offset == 2, "its tombstone is written"

    play(scenario)


def test_a_topic_replaced_within_a_snapshot_has_no_former_offsets() -> None:
    """A snapshot tells of deletion and creation at once; offsets loaded afterwards count for the new topic."""

    async def scenario(groups: GroupCoordinator) -> None:
        groups.led.leadership(with_log(), True)
        committed_by(groups, 1)
        tell(groups, RemoveTopicRecord(b"t" * 16), TopicRecord("t", b"u" * 16))
        assert groups.shard("g").offsets("g0") == {}
        groups.led.leadership(with_log(committed(5)), True)
        await settled(groups)
        assert groups.shard("g").offsets("g")["t"][0].offset == 5

    play(scenario)


def test_deletions_are_followed_from_the_topics_of_the_image() -> None:
    """The image may have changed after the coordinator was made, before it is first told."""

    async def scenario(groups: GroupCoordinator) -> None:
        groups.metadata.replay(TopicRecord("u", b"u" * 16))
        groups.removals.follow()
        groups.led.leadership(with_log(), True)
        groups.shard("g").commit("g", -1, "", None, [Commit("u", 0, 1)], -1, 9)
        tell(groups, RemoveTopicRecord(b"u" * 16), TopicRecord("u", b"v" * 16))
        assert groups.shard("g").offsets("g") == {}

    play(scenario)


def test_the_latest_deleted_topics_are_remembered() -> None:
    topics = Topics()
    removals = DeletedTopics(topics, names_max=2)
    for name in "abc":
        for record in (TopicRecord(name, name.encode() * 16), RemoveTopicRecord(name.encode() * 16)):
            topics.replay(record)
            removals.apply([record])
    for name in "abc":
        topics.replay(TopicRecord(name, name.encode() * 16))
    assert [removals.is_gone(name, 0) for name in "abc"] == [False, True, True]
    assert [removals.is_gone(name, 2) for name in "abc"] == [False, False, True]


def with_index(index: int) -> Any:
    partition = with_log()
    partition.index = index
    return partition


def test_a_recreated_topic_does_not_write_the_tombstones_of_all_shards_at_once() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        partitions = [with_index(index) for index in range(3)]
        for partition in partitions:
            groups.led.leadership(partition, True)
        count = OFFSETS_PER_SLICE_MAX
        for shard in groups.shards():
            for number in range(count):
                shard.commit(f"g{number}", -1, "", None, [Commit("t", 0, 1)], -1, 9)

        def tombstones() -> int:
            return sum(int(partition.log.log_end_offset) - count for partition in partitions)

        tell(groups, RemoveTopicRecord(b"t" * 16))
        tell(groups, TopicRecord("u", b"u" * 16))
        written = tombstones()
        while written < 3 * count:
            turn(groups)
            assert tombstones() - written <= RECORDS_PER_SLICE_MAX
            written = tombstones()
        assert [shard for shard in groups.shards() if shard.image.groups_with_offsets()] == []
        turn(groups)
        assert groups.forgetting is None

    play(scenario)


def turn(groups: GroupCoordinator) -> None:
    """Advance the timers to the next slice."""
    cast(Clock, groups.pacing.clock).ms += 2 * TICK_MS
    groups.timers.fire_due()


def test_very_many_groups_are_given_up_in_slices() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        partition = with_log()
        groups.led.leadership(partition, True)
        per_slice = OFFSETS_PER_SLICE_MAX // GROUP_IN_OFFSETS
        committed_by(groups, 2 * per_slice)
        shard = groups.shard("g")
        groups.led.leadership(partition, False)
        assert code(groups) == ErrorCode.NOT_COORDINATOR
        assert len(shard.image.groups) == per_slice
        turn(groups)
        assert shard.image.groups == {}

    play(scenario)


def test_a_stopping_broker_gives_up_all_groups_at_once() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        groups.led.leadership(with_log(), True)
        committed_by(groups, OFFSETS_PER_SLICE_MAX)
        shard = groups.shard("g")
        groups.close()
        assert shard.image.groups == {}

    play(scenario)


def test_members_of_very_many_groups_are_expected_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator_module, "OFFSETS_PER_SLICE_MAX", 2 * GROUP_IN_OFFSETS)
    looks: list[int] = []

    async def scenario(groups: GroupCoordinator) -> None:
        pairs = [framed(KeyedRecord(OffsetCommitKey(f"g{at}", "t", 0), OffsetCommitValue(1), 4)) for at in range(9)]
        groups.led.leadership(with_log(*pairs), True)
        shard = groups.led.by_partition[0]
        expect = shard.expect_members

        def expecting() -> Iterator[int]:
            for step in expect():
                looks.append(turns)
                yield step

        monkeypatch.setattr(shard, "expect_members", expecting)
        turns = 0
        while groups.is_loading:
            turns += 1
            await asyncio.sleep(0)

    play(scenario)
    assert Counter(Counter(looks).values()) == {2: 4, 1: 1}


def test_an_unreadable_log_is_not_served() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        key, _ = committed(5)
        groups.led.leadership(with_log((key, b"\x00\x63from the future")), True)
        await settled(groups)
        assert code(groups) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert list(groups.shards()) == []

    play(scenario)


def test_a_log_that_can_be_read_again_is_served() -> None:
    """Nobody else serves its groups: it stays their leader's as long as that has the partition."""
    load, refusals = loading_module.load, [BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)] * 2

    async def failing(*read: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return await load(*read)

    async def scenario(groups: GroupCoordinator) -> None:
        groups.load = failing
        groups.led.leadership(with_log(committed(5)), True)
        for _ in range(2):
            await settled(groups)
            assert code(groups) == ErrorCode.COORDINATOR_NOT_AVAILABLE
            cast(Clock, groups.pacing.clock).ms += LOAD_AGAIN_MS + TICK_MS
            groups.timers.fire_due()
        await settled(groups)
        assert list(groups.shards()) == [groups.shard("g")]

    play(scenario)


def test_members_do_not_wait_for_a_failed_load() -> None:
    async def broken(*_: object) -> Any:
        raise KeyError("a defect")

    async def scenario(groups: GroupCoordinator) -> None:
        groups.load = broken
        told: list[BaseException] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        groups.led.leadership(with_log(committed(3)), True)
        assert code(groups) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await until(lambda: told)
        assert code(groups) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert [type(error) for error in told] == [KeyError]

    play(scenario)


def test_the_number_of_groups_of_a_partition_is_limited() -> None:
    async def scenario(groups: GroupCoordinator) -> None:
        groups.led.leadership(with_log(), True)
        shard = groups.shard("g")
        shard.image.bounds = GroupBounds(groups_max=1)
        commits = [Commit("t", 0, 1)]
        shard.commit("g", -1, "", None, commits, -1, 9)
        shard.commit("g", -1, "", None, commits, -1, 9)
        with pytest.raises(BrokerError, match="POLICY_VIOLATION"):
            shard.commit("h", -1, "", None, commits, -1, 9)

    play(scenario)


def test_offsets_of_a_topic_that_was_deleted_before_the_log_was_read_count_for_no_other_of_its_name() -> None:
    """The coordinator before may have died between the deletion and its tombstones."""

    def named(topic: str, index: int, topic_id: bytes) -> tuple[bytes, bytes | None]:
        return framed(KeyedRecord(OffsetCommitKey("g", topic, index), OffsetCommitValue(7, topic_id=topic_id), 4))

    async def scenario(coordinator: GroupCoordinator) -> None:
        partition = with_log(
            named("t", 0, b"f" * 16), named("t", 1, b"t" * 16), named("t", 2, bytes(16)), named("gone", 0, b"g" * 16)
        )
        coordinator.led.leadership(partition, True)
        await until(lambda: not coordinator.led.by_partition[0].is_loading)
        shard = coordinator.led.by_partition[0]
        assert shard.offsets("g").keys() == {"t"}
        assert sorted(shard.offsets("g")["t"]) == [1, 2]
        await until(lambda: partition.log.log_end_offset == 6)
        coordinator.led.leadership(partition, False)

    play(scenario)
