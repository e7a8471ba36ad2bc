"""What is done to groups by and by: offsets of topics that are gone, and those that nobody has used for long."""

from collections.abc import Generator, Iterator

import pytest

from kavka_broker.coordinator.groups.offset_expiration import BATCH_BYTES_MAX, RECORDS_PER_SLICE_MAX
from kavka_broker.core.group.offsets import Commit
from kavka_broker.protocol.errors import ErrorCode
from tests.unit.coordinator.fakes import WEEK_MS, World, commit, expire, finish, offset, play, state

COMMITTED_AT_ONCE = 100  # of a group with a long name the log takes not many more


def forget_deleted(world: World) -> None:
    world.delete_topic("t")
    list(world.shard.upkeep.forget_all())
    finish(world.shard.upkeep.tombstones())


def test_offsets_of_deleted_topics_are_removed() -> None:
    async def scenario() -> None:
        world = World()
        commit(world, "g", 7)
        commit(world, "g", 8, topic="u")
        forget_deleted(world)
        assert (offset(world, "g"), offset(world, "g", "u")) == (None, 8)

    play(scenario)


def commit_many(world: World, group: str, count: int, topic: str = "t") -> None:
    for first in range(0, count, COMMITTED_AT_ONCE):
        commits = [Commit(topic, index, 7) for index in range(first, min(first + COMMITTED_AT_ONCE, count))]
        world.shard.commit(group, -1, "", None, commits, -1, 9)


def records_per_step(world: World, work: Iterator[None] | Generator[None, None, int]) -> list[int]:
    """The number of records that each slice has appended."""
    counts, done = list[int](), False
    while not done:
        before = world.partition.log.log_end_offset
        done = next(work, work) is work
        counts.append(world.partition.log.log_end_offset - before)
    return counts


def test_offsets_of_a_deleted_topic_are_removed_in_batches_and_slices() -> None:
    async def scenario() -> None:
        world = World()
        for group in "gh":
            commit_many(world, group, 2 * RECORDS_PER_SLICE_MAX)
        batches_before = len(world.partition.log.batches)
        world.delete_topic("t")
        assert list(world.shard.upkeep.forget_all()) == [2, 2]
        assert [world.shard.image.offsets(group) for group in "gh"] == [{}, {}], "nobody sees them any more"
        counts = records_per_step(world, world.shard.upkeep.tombstones())
        assert (sum(counts), max(counts)) == (4 * RECORDS_PER_SLICE_MAX, RECORDS_PER_SLICE_MAX)
        assert len(world.partition.log.batches) - batches_before == 4

    play(scenario)


def test_offsets_of_a_new_topic_of_the_same_name_stay() -> None:
    async def scenario() -> None:
        world = World()
        commit_many(world, "g", 2 * RECORDS_PER_SLICE_MAX)
        world.delete_topic("t")
        list(world.shard.upkeep.forget_all())
        world.make_topic("t")
        work = world.shard.upkeep.tombstones()
        next(work)
        world.partition.holds = True
        commit(world, "g", 9)
        before = world.partition.log.log_end_offset
        next(work)
        assert world.partition.log.log_end_offset == before, "it is not known yet what the commit comes to"
        await world.partition.commit()
        world.partition.holds = False
        finish(work)
        assert world.shard.image.offsets("g")["t"].keys() == {0}
        assert world.partition.log.log_end_offset == before + RECORDS_PER_SLICE_MAX - 1

    play(scenario)


def test_a_requested_group_forgets_the_deleted_topic_before_its_turn() -> None:
    async def scenario() -> None:
        world = World()
        commit(world, "g", 7)
        commit(world, "g", 8, topic="u")
        world.delete_topic("t")
        world.make_topic("t")
        assert world.shard.offsets("g").keys() == {"u"}
        commit(world, "g", 9)
        list(world.shard.upkeep.forget_all())
        assert (offset(world, "g"), offset(world, "g", "u")) == (9, 8)
        assert not world.shard.upkeep.is_behind

    play(scenario)


def test_a_commit_makes_its_group_forget_the_deleted_topic() -> None:
    async def scenario() -> None:
        world = World()
        commit_many(world, "g", 2)
        world.delete_topic("t")
        world.make_topic("t")
        commit(world, "g", 9)
        assert {index: value.offset for index, value in world.shard.image.offsets("g")["t"].items()} == {0: 9}
        world.delete_topic("t")
        list(world.shard.upkeep.forget_all())
        assert world.shard.image.offsets("g") == {}

    play(scenario)


def test_a_commit_that_completes_after_its_topic_was_replaced_is_dropped() -> None:
    async def scenario() -> None:
        world = World()
        world.partition.holds = True
        _, waiting = commit(world, "g", 7)
        world.delete_topic("t")
        world.make_topic("t")
        await world.partition.commit()
        world.partition.holds = False
        assert await waiting == ErrorCode.NONE
        assert offset(world, "g") is None
        before = world.partition.log.log_end_offset
        finish(world.shard.upkeep.tombstones())
        assert world.partition.log.log_end_offset == before + 1, "nor for whoever reads the log"

    play(scenario)


def test_tombstones_that_the_log_refuses_are_written_later() -> None:
    async def scenario() -> None:
        world = World()
        commit_many(world, "g", 3)
        world.partition.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        forget_deleted(world)
        world.partition.refuses = None
        before = world.partition.log.log_end_offset
        finish(world.shard.upkeep.tombstones())
        assert world.partition.log.log_end_offset == before + 3
        finish(world.shard.upkeep.tombstones())
        assert world.partition.log.log_end_offset == before + 3

    play(scenario)


def test_a_group_with_many_offsets_expires_in_slices() -> None:
    async def scenario() -> None:
        world = World()
        count = 3 * RECORDS_PER_SLICE_MAX
        commit_many(world, "g", count)
        world.clock.ms += WEEK_MS
        counts = records_per_step(world, world.shard.upkeep.expire())
        assert (sum(counts), len(counts)) == (count + 1, 3)
        assert max(counts) == RECORDS_PER_SLICE_MAX + 1
        assert state(world) is None

    play(scenario)


@pytest.mark.parametrize("holds", [False, True])
def test_a_group_with_long_names_expires_in_batches_that_the_log_takes(holds: bool) -> None:
    async def scenario() -> None:
        world = World()
        group = "g" * 5_000
        commit_many(world, group, 300)
        batches = len(world.partition.log.batches)
        world.clock.ms += WEEK_MS
        world.partition.holds = holds
        assert expire(world) == 301
        assert max(map(len, world.partition.log.batches[batches:])) <= BATCH_BYTES_MAX
        await world.partition.commit()
        assert world.shard.image.groups == {}
        assert world.shard.image.offsets(group) == {}

    play(scenario)


def test_offsets_committed_during_an_expiry_stay() -> None:
    async def scenario() -> None:
        world = World()
        commit_many(world, "g", 2 * RECORDS_PER_SLICE_MAX)
        world.clock.ms += WEEK_MS
        work = world.shard.upkeep.expire()
        next(work)
        world.shard.commit("g", -1, "", None, [Commit("t", 2 * RECORDS_PER_SLICE_MAX - 1, 9)], -1, 9)
        finish(work)
        assert world.shard.image.offsets("g")["t"].keys() == {2 * RECORDS_PER_SLICE_MAX - 1}
        assert "g" in world.shard.image.groups

    play(scenario)


def test_an_uncommitted_offset_postpones_the_expiry_of_its_group() -> None:
    async def scenario() -> None:
        world = World()
        commit_many(world, "g", 2 * RECORDS_PER_SLICE_MAX)
        world.clock.ms += WEEK_MS
        work = world.shard.upkeep.expire()
        next(work)
        world.partition.holds = True
        commit_many(world, "g", 2 * RECORDS_PER_SLICE_MAX)
        finish(work)
        await world.partition.commit()
        assert len(world.shard.image.offsets("g")["t"]) == 2 * RECORDS_PER_SLICE_MAX

    play(scenario)
