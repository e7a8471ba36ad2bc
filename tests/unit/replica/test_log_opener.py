"""New partitions are opened a few a turn of the loop; what happens to them meanwhile counts when their turn comes."""

import asyncio
import errno
import os
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.topics import delete_topic
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.replica.hosting.log_opener import SLICE_MAX, Openings
from kavka_broker.runtime.environment import REAL
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_manager import LogManager
from tests.support.in_process import InProcess, batch, code_of, running
from tests.support.sim_disk import SimDisk
from tests.support.waiting import until

MANY = 5 * SLICE_MAX
ID = b"i" * 16
TOPIC_CONFIG = 2
#: Nobody but the test writes checkpoints.
SELDOM = {"replica.high.watermark.checkpoint.interval.ms": "3600000"}
SETTINGS: Final[Any] = {"config_of": lambda topic: LogConfig(), "now_ms": lambda: 0}
NO_LOGS = LogManager(SimDisk(), "cluster", [])


def never(error: BaseException) -> None:
    pytest.fail(repr(error))


def test_one_a_turn_in_their_order() -> None:
    """To make even one log may wait for the disk."""

    async def scenario() -> None:
        opened = list[int]()
        openings = Openings(lambda _, index, is_prepared: opened.append(index), NO_LOGS, never, **SETTINGS)
        for index in range(3):
            openings.add(ID, index)
        counts = []
        openings.open_soon()
        while True:
            counts.append(len(opened))
            openings.open_soon()  # news meanwhile changes nothing
            if not len(openings):
                break
            assert ((ID, 0) in openings, (ID, 2) in openings) == (False, True)
            await asyncio.sleep(0)
        assert set(counts) == {1, 2, 3}
        assert opened == sorted(opened)

    asyncio.run(scenario())


class Former:
    """Logs of which some had others of their name before; what is forgotten is so before the thread ends."""

    has_unsecured = False

    def __init__(self, *names: PartitionName) -> None:
        self.names = set(names)
        self.has_forgotten, self.may_end = threading.Event(), threading.Event()

    def remembers_former(self, topic: str, partition: int) -> bool:
        return PartitionName(topic, partition) in self.names

    def awaits_reopening(self, topic: str, partition: int) -> bool:
        return False

    def reopen(self, configs: dict[PartitionName, LogConfig], now_ms: int) -> None:
        """None of these logs could not be opened."""

    def forget_former(self, names: set[PartitionName]) -> None:
        self.names -= names
        self.has_forgotten.set()
        self.may_end.wait(60)


def opening(former: Former) -> tuple[Openings, list[str]]:
    opened = list[str]()

    def opens(topic_id: bytes, index: int, is_prepared: bool) -> None:
        if openings.wait_for_thread(topic_id.decode(), topic_id, index):
            return
        if is_prepared or not openings.prepare_first(topic_id.decode(), topic_id, index):
            opened.append(f"{topic_id.decode()}-{index}")

    openings = Openings(opens, cast(LogManager, former), never, **SETTINGS)
    openings.start()
    return openings, opened


def test_one_that_is_asked_for_again_while_a_thread_forgets_is_opened_once() -> None:
    async def scenario() -> None:
        former = Former(PartitionName("a", 0))
        openings, opened = opening(former)
        openings.add(b"a", 0)
        openings.open_soon()
        await until(former.has_forgotten.is_set)
        openings.add(b"a", 0)
        openings.open_soon()
        assert (opened, len(openings)) == ([], 1), "the thread is at its files"
        former.may_end.set()
        await until(lambda: not len(openings))
        await openings.stop()
        assert opened == ["a-0"]

    asyncio.run(scenario())


def test_who_comes_in_the_turn_in_which_the_work_ends_is_not_forgotten() -> None:
    async def scenario() -> None:
        former = Former(PartitionName("a", 0))
        former.may_end.set()
        openings, opened = opening(former)
        openings.add(b"a", 0)
        openings.open_soon()
        forgetting = openings.preparation
        assert forgetting is not None
        await until(forgetting.done)
        former.names.add(PartitionName("b", 0))
        openings.add(b"b", 0)
        openings.open_soon()
        await until(lambda: "b-0" in opened)
        for index in range(SLICE_MAX + 1):
            openings.add(b"c", index)
        openings.open_soon()
        task = openings.drain.task
        assert task is not None
        await until(task.done)
        openings.add(b"d", 0)
        openings.open_soon()
        await until(lambda: "d-0" in opened)
        await openings.stop()

    asyncio.run(scenario())


def test_a_defect_ends_the_broker() -> None:
    async def scenario() -> None:
        crashes = list[BaseException]()

        def opened(_: bytes, index: int, is_prepared: bool) -> None:
            assert index < SLICE_MAX

        openings = Openings(opened, NO_LOGS, crashes.append, **SETTINGS)
        for index in range(2 * SLICE_MAX):
            openings.add(ID, index)
        openings.open_soon()
        for _ in range(5):
            await asyncio.sleep(0)
        assert [type(error) for error in crashes] == [AssertionError]

    asyncio.run(scenario())


async def all_open(inside: InProcess, count: int) -> None:
    async with asyncio.timeout(60):
        while len(list(inside.broker.partitions)) < count:
            await asyncio.sleep(0)


async def delete(inside: InProcess, name: str) -> None:
    topic = inside.broker.metadata.topics.get(name)
    assert topic is not None
    await inside.broker.active.submit(lambda *_: delete_topic(topic))


def test_who_asks_for_one_that_waits_for_its_turn_comes_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            seen = list[tuple[ErrorCode, ErrorCode]]()
            inside.broker.quorum.subscribers.append(
                lambda _: seen.append((code_of(inside, 0), code_of(inside, MANY - 1)))
            )
            await inside.create("t", MANY)
            await all_open(inside, MANY)
            assert (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER) in seen
            assert code_of(inside, MANY - 1) == ErrorCode.NONE

    asyncio.run(scenario())


def test_what_is_decided_meanwhile_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", MANY)
            altered = ConfigRecord(TOPIC_CONFIG, "t", "segment.bytes", "7777777")
            await inside.broker.active.submit(lambda *_: Decision([altered], None))
            await all_open(inside, MANY)
            assert {one.log.config.segment_bytes_max for one in inside.broker.partitions} == {7777777}

    asyncio.run(scenario())


def test_a_topic_that_is_deleted_before_its_turn_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", MANY)
            await delete(inside, "t")
            await inside.create("u")
            await all_open(inside, 1)
            assert [str(one) for one in inside.broker.partitions] == ["u-0"]
            assert [str(one.name) for one in inside.broker.replicas.logs] == ["u-0"]

    asyncio.run(scenario())


@pytest.mark.parametrize("was_hosted", [True, False], ids=["deleted", "never hosted"])
def test_a_topic_made_anew_under_its_name_is_not_synced_for_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_hosted: bool
) -> None:
    """A start may find logs whose topic is gone as the first records are applied: nobody has ended their partitions."""

    async def scenario() -> None:
        async with running(tmp_path, SELDOM) as inside:
            logs = inside.broker.replicas.logs
            if was_hosted:
                await inside.create("t", MANY)
                await all_open(inside, MANY)
                await inside.broker.replicas.openings.secured()
            else:
                for index in range(MANY):
                    logs.create("t", index, bytes(range(16)), LogConfig())
            for one in logs:
                one.append_as_leader(memoryview(bytearray(batch(b"former"))), 0, 0)
                one.flush()
            logs.write_checkpoints(lambda one: one.log_end_offset)
            if was_hosted:
                await delete(inside, "t")
                assert logs.remembers_former("t", 0)
            by_the_loop = list[str]()
            for name in ("fsync", "fdatasync"):
                monkeypatch.setattr(os, name, watched(getattr(os, name), by_the_loop))
            await inside.create("t", MANY)
            await all_open(inside, MANY)
            assert by_the_loop == []
            assert {one.log_end_offset for one in logs} == {0}
            known = logs.directories[0].high_watermarks
            assert not any(known.values()), (
                "what was known of the former logs is forgotten before the new ones are there"
            )

    asyncio.run(scenario())


def watched(call: Callable[[int], None], by_the_loop: list[str]) -> Callable[[int], None]:
    """The call, which notes where it is made outside of threads that may wait."""

    def watching(descriptor: int) -> None:
        if threading.current_thread() is threading.main_thread():
            by_the_loop.append("".join(traceback.format_stack(limit=6)))
        call(descriptor)

    return watching


def test_a_disk_that_lets_nothing_be_forgotten_is_told_by_whoever_makes_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, SELDOM) as inside:
            logs = inside.broker.replicas.logs
            await inside.create("t")
            await all_open(inside, 1)
            logs.write_checkpoints(lambda _: 1)
            await delete(inside, "t")

            def refuse(*_: object, **__: object) -> None:
                raise OSError(28, "No space left on device")

            with monkeypatch.context() as patched:
                patched.setattr(LogDirectory, "write", refuse)
                await inside.create("t")
                topic = inside.broker.metadata.topics.get("t")
                assert topic is not None
                await until(lambda: topic.partitions[0].leader < 0)

    asyncio.run(scenario())


class FullDisk(RealDisk):
    """A disk without room for the directory of a topic."""

    def make_directory(self, path: str) -> None:
        if path.endswith("/t-0"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().make_directory(path)


def test_a_log_that_cannot_be_made_is_told_to_the_controller(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, world=replace(REAL, disk=FullDisk())) as inside:
            await inside.create("t")
            topic = inside.broker.metadata.topics.get("t")
            assert topic is not None
            await until(lambda: topic.partitions[0].leader < 0)

    asyncio.run(scenario())
