"""Partitions of a deleted topic are ended a few a turn of the loop; nobody finds them from the first on."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from kavka_broker.core.metadata.decide.topics import delete_topic
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.replica.hosting.partition_deletions import SLICE_MAX, Departures
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.storage.disk import RealDisk
from tests.support.in_process import InProcess, batch, code_of, running

MANY = 2 * SLICE_MAX + SLICE_MAX // 2


def partitions(count: int, first: int = 0) -> dict[int, Partition]:
    return {index: cast(Partition, SimpleNamespace(index=index)) for index in range(first, first + count)}


def never(error: BaseException) -> None:
    raise error


def test_partitions_end_a_slice_in_each_turn() -> None:
    async def scenario() -> None:
        ended = list[int]()
        departures = Departures(lambda one: ended.append(one.index), never)
        departures.add("t", partitions(SLICE_MAX - 1))
        departures.add("u", partitions(SLICE_MAX, SLICE_MAX - 1))
        counts = list[int]()
        departures.end_soon()
        while not counts or len(departures):
            counts.append(len(ended))
            departures.end_soon()  # news meanwhile changes nothing
            await asyncio.sleep(0)
        assert set(counts) == {SLICE_MAX}
        assert ended == list(range(2 * SLICE_MAX - 1))

    asyncio.run(scenario())


def test_one_whose_name_is_wanted_is_ended_first_and_once() -> None:
    async def scenario() -> None:
        ended = list[int]()
        departures = Departures(lambda one: ended.append(one.index), never)
        departures.add("t", partitions(2 * SLICE_MAX))
        departures.end_soon()
        for _ in range(2):
            departures.end_now("t", 2 * SLICE_MAX - 1)
        assert ended[-1] == 2 * SLICE_MAX - 1
        await departures.stop()
        assert sorted(ended) == list(range(2 * SLICE_MAX))

    asyncio.run(scenario())


def test_all_are_ended_where_the_image_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """Nothing in the image has the name any more: their logs would be kept as those of strays."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", MANY)
            await all_open(inside, MANY)
            replicas, paths = inside.broker.replicas, inside.server.config.log_dirs
            inside.broker.quorum.subscribers.append(lambda _: replicas.load())
            await delete(inside, "t")
            found.extend(name for path in paths for name in RealDisk().names(path) if name.startswith("t-"))

    found = list[str]()
    asyncio.run(scenario())
    assert [name.rpartition("-")[2] for name in found] == ["delete"] * MANY


def test_a_defect_ends_the_broker() -> None:
    async def scenario() -> None:
        crashes = list[BaseException]()

        def ended(one: Partition) -> None:
            assert one.index < SLICE_MAX

        departures = Departures(ended, crashes.append)
        departures.add("t", partitions(2 * SLICE_MAX))
        departures.end_soon()
        await departures.stop()
        await asyncio.sleep(0)
        assert [type(error) for error in crashes] == [AssertionError]

    asyncio.run(scenario())


async def delete(inside: InProcess, name: str) -> None:
    topic = inside.broker.metadata.topics.get(name)
    assert topic is not None
    await inside.broker.active.submit(lambda *_: delete_topic(topic))


async def all_open(inside: InProcess, count: int) -> None:
    async with asyncio.timeout(60):
        while len(list(inside.broker.partitions)) < count:
            await asyncio.sleep(0)


def test_nobody_finds_a_partition_of_a_deleted_topic_that_waits_for_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", MANY)
            await all_open(inside, MANY)
            departures = inside.broker.replicas.departures
            seen = list[tuple[int, set[ErrorCode]]]()
            inside.broker.quorum.subscribers.append(
                lambda _: seen.append((len(departures), {code_of(inside, index) for index in range(MANY)}))
            )
            await delete(inside, "t")
            assert seen == [(MANY - SLICE_MAX, {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})]
            await departures.stop()
            assert not list(inside.broker.replicas.logs)

    asyncio.run(scenario())


def test_a_topic_that_is_made_anew_meanwhile_has_logs_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            replicas = inside.broker.replicas
            await inside.create("t", MANY)
            await all_open(inside, MANY)
            for one in replicas.partitions:
                one.append(memoryview(bytearray(batch(b"former"))))
            topic = inside.broker.metadata.topics.get("t")
            assert topic is not None
            deleting = inside.broker.active.submit(lambda *_: delete_topic(topic))
            made = await asyncio.gather(deleting, inside.create("t", MANY))
            await all_open(inside, MANY)
            await replicas.departures.stop()
            assert {(one.topic_id, one.log.topic_id, one.log.log_end_offset) for one in replicas.partitions} == {
                (made[1], made[1], 0)
            }
            assert len(list(replicas.logs)) == MANY

    asyncio.run(scenario())
