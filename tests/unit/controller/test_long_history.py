"""A controller whose log is long: how it comes to lead, and what a stop leaves to the next start."""

import asyncio
import errno
from collections.abc import Callable, Iterator

import pytest

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.controller.metadata_log_opener import open_metadata_log
from kavka_broker.controller.snapshot_files import GENESIS
from kavka_broker.core.decision import Decision
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from tests.support.cluster import Machine, register_broker
from tests.support.quorums import Quorums
from tests.support.sim_disk import DiskError

#: Records that make a long history here; a thousand do otherwise.
HISTORY = 30


def replaying(records_max: int) -> Callable[[Quorums], None]:
    """Have new leaders replay no longer a history than that."""

    def set_up(cluster: Quorums) -> None:
        cluster.replayed_max = records_max

    return set_up


def keeping(bytes_max: int) -> Callable[[Quorums], None]:
    """Have nodes that stop leave no longer a history to replay than that."""

    def set_up(cluster: Quorums) -> None:
        cluster.history_bytes_max = bytes_max

    return set_up


def test_a_leader_with_a_long_history_replays_it_once_and_then_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image ahead is copied from the published one: replaying the history at once would hold the loop."""
    replayed: list[int] = []

    read = MetadataLog.messages

    def messages(log: MetadataLog, offset: int) -> Iterator[tuple[int, Message]]:
        replayed.append(log.end_offset - offset)
        return read(log, offset)

    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        for number in range(2 * HISTORY):
            await leader.write(f"t{number}")
        await cluster.agreed()
        for node in cluster.nodes.values():
            node.kill()
        replayed.clear()
        for node in cluster.nodes.values():
            node.start()
        leader = await cluster.leader()
        assert leader.quorum.epoch > 1
        await leader.write("more")
        await cluster.agreed()
        assert len(leader.topics) == 2 * HISTORY + 1
        assert max(replayed, default=0) < HISTORY

    monkeypatch.setattr(MetadataLog, "messages", messages)
    Quorums.play(scenario, set_up=replaying(HISTORY))


def test_a_leader_that_loses_the_lead_while_replaying_writes_no_opening() -> None:
    """In every epoch with a long history, the next leader has to write its own opening, and all agree."""

    async def scenario(cluster: Quorums) -> None:
        epochs: list[int] = []
        lost: list[int] = []
        leader = await cluster.leader()
        for number in range(8):
            leader = await cluster.leader()
            epochs.append(leader.quorum.epoch)
            await leader.write(f"t{number}")
            leader.kill(loses_power=True)
            leader.start()
            await cluster.until(lambda: any(node.quorum.is_leader for node in cluster.nodes.values() if node.is_alive))
            led = next(node for node in cluster.nodes.values() if node.is_alive and node.quorum.is_leader)
            if not led.leads:  # the lead is lost while the leader waits for its image
                lost.append(led.node_id)
                led.kill()
                led.start()
        await cluster.leader()
        await cluster.agreed()
        assert lost
        assert epochs == sorted(set(epochs))
        assert leader.topics == [f"t{number}" for number in range(8)]

    Quorums.play(scenario, set_up=replaying(0))


def test_a_stop_leaves_the_next_start_little_to_replay() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        for number in range(20):
            await leader.write(f"t{number}")
        await cluster.agreed()
        for node in cluster.nodes.values():
            assert list(node.quorum.log.snapshots) == [GENESIS]
            await node.stop()
            newest = open_metadata_log(node.disk, node.config, now_ms=0).files.newest()
            assert newest is not None
            assert newest.end_offset > 20
        for node in cluster.nodes.values():
            node.start()
            assert len(node.topics) == 20  # topics of the snapshot: none was fetched or published yet
        await cluster.leader()
        await cluster.agreed()

    Quorums.play(scenario, set_up=keeping(500))


def test_a_stop_with_a_short_history_takes_no_snapshot() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await leader.stop()
        assert list(leader.quorum.log.snapshots) == [GENESIS]

    Quorums.play(scenario)


def test_a_stop_without_room_for_a_snapshot_is_clean(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        follower = cluster.followers()[0]
        follower.disk.errors.append(DiskError(frozenset({"write"}), number=errno.ENOSPC, times=1))
        await follower.stop()
        assert list(follower.quorum.log.snapshots) == [GENESIS]
        assert "metadata.snapshot.failed" in caplog.text

    Quorums.play(scenario, set_up=keeping(0))


def test_records_replayed_at_the_start_count_towards_the_next_snapshot() -> None:
    """A lone controller that is started often and writes little would otherwise replay all of it each time."""

    async def scenario(machine: Machine) -> None:
        for number in range(10):
            async with machine.leading() as controller:
                await register_broker(controller, machine.config)
                topic = TopicRecord(f"t{number}", controller.new_uuid())
                await controller.submit(lambda *_, topic=topic: Decision([topic], None))
        log = open_metadata_log(machine.disk, machine.config, now_ms=0)
        assert [snapshot.end_offset > 0 for snapshot in log.snapshots][-1]
        assert [*machine.open().metadata.topics.names()] == [f"t{number}" for number in range(10)]

    machine = Machine(metadata_log_max_record_bytes_between_snapshots="3000")
    machine.format()
    asyncio.run(scenario(machine))
