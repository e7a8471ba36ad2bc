"""No request waits forever: decisions made while the controller is busy elsewhere are answered all the same."""

import asyncio
from collections.abc import Callable

from kavka_broker.controller.controller import Controller
from kavka_broker.controller.snapshot_files import SnapshotId, build
from kavka_broker.core.metadata.decide.topics import CreateTopic, Defaults, create_topics
from tests.support.cluster import START_MS, Machine, register_broker
from tests.support.waiting import turns, until

WITHIN_SECONDS = 60
EVERY_MS = 3_600_000


async def create(controller: Controller, name: str) -> None:
    command = CreateTopic(name, controller.new_uuid(), 1, 1)
    await controller.submit(lambda metadata, _: create_topics(metadata, [command], Defaults()))


class HeldMachine(Machine):
    """A machine whose disk can be made to wait: with the next snapshot, or with the next sync of the log."""

    held: asyncio.Event | None = None
    what = "write"
    is_waiting = False

    async def run_blocking(self, work: Callable[[], None]) -> None:
        if work.__name__ == self.what and self.held is not None:
            self.is_waiting = True
            await self.held.wait()
        await super().run_blocking(work)


def test_decisions_made_while_a_snapshot_is_written_are_committed() -> None:
    async def scenario() -> None:
        machine = HeldMachine(metadata_log_max_snapshot_interval_ms=str(EVERY_MS))
        machine.format()
        async with asyncio.timeout(WITHIN_SECONDS), machine.leading() as controller:
            await register_broker(controller, machine.config)
            machine.held = asyncio.Event()
            machine.clock.time_ms = START_MS + EVERY_MS
            await create(controller, "first")
            waiting = asyncio.create_task(create(controller, "second"))
            await until(lambda: machine.is_waiting)
            await turns()
            machine.held.set()
            await waiting
            assert [*controller.metadata.topics.names()] == ["first", "second"]

    asyncio.run(scenario())


def test_a_snapshot_superseded_while_it_was_written_is_not_kept() -> None:
    async def scenario() -> None:
        machine = HeldMachine()
        machine.format()
        async with asyncio.timeout(WITHIN_SECONDS), machine.leading() as controller:
            await register_broker(controller, machine.config)
            machine.held = asyncio.Event()
            writing = asyncio.create_task(controller.snapshot())
            await until(lambda: machine.is_waiting)
            log = controller.quorum.log
            adopted = SnapshotId(log.end_offset + 100, 9)
            log.files.save(adopted, build([], [], epoch=9, last_timestamp_ms=0, now_ms=0))
            log.files.saved(adopted)
            log.start_behind(adopted)
            machine.held.set()
            await writing
            assert list(log.snapshots) == [adopted]

    asyncio.run(scenario())


def test_a_snapshot_waits_for_the_sync_of_the_log() -> None:
    """Records that a majority has are committed, but a start trusts the log below a snapshot of this disk."""

    async def scenario() -> None:
        machine = HeldMachine()
        machine.format()
        async with asyncio.timeout(WITHIN_SECONDS), machine.leading() as controller:
            await register_broker(controller, machine.config)
            log, held = controller.quorum.log, asyncio.Event()
            machine.what, machine.held = "flush", held
            creating = asyncio.create_task(create(controller, "t"))
            await until(lambda: machine.is_waiting)
            assert log.synced_offset < log.end_offset
            controller.quorum.loader.committed(log.end_offset)
            await turns()
            writing = asyncio.create_task(controller.snapshot())
            await turns()
            assert not writing.done()
            held.set()
            snapshot = await writing
            assert snapshot is not None
            assert snapshot.end_offset <= log.synced_offset
            await creating

    asyncio.run(scenario())
