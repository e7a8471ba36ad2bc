"""A log directory fails: its replicas are offline, the others go on, and the controller hears of it."""

import asyncio
from pathlib import Path

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.directories import Assign, assign_directories
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from tests.support.in_process import code_of, running
from tests.support.waiting import until

PARTITIONS = 4


def test_a_lost_directory_takes_only_its_own_replicas(tmp_path: Path) -> None:
    settings = {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "metadata.log.dir": str(tmp_path / "a")}

    async def scenario() -> None:
        async with running(tmp_path / "a", settings) as inside:
            await inside.create("t", PARTITIONS)
            replicas = inside.broker.replicas
            await until(lambda: sum(partition.is_leader for partition in replicas.partitions) == PARTITIONS)
            homes = {}
            for index in range(PARTITIONS):
                home = replicas.reports.directory_of(replicas.partitions.leader("t", index))
                assert home is not None
                homes[index] = home.path
            assert set(homes.values()) == {str(tmp_path / "a"), str(tmp_path / "b")}
            failed = next(one for one in replicas.log_directories if one.path == str(tmp_path / "b"))
            replicas.logs.fail_directory(failed)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            codes = {index: code_of(inside, index) for index in range(PARTITIONS)}
            assert codes == {
                index: ErrorCode.KAFKA_STORAGE_ERROR if path == failed.path else ErrorCode.NONE
                for index, path in homes.items()
            }
            assert inside.broker.lifecycle.offline_directories == [failed.directory_id]
            client = await inside.connect()
            described = await client.call(DescribeLogDirsRequest(None), DescribeLogDirsResponse, 4)
            assert {one.log_dir: one.error_code for one in described.results} == {
                str(tmp_path / "a"): ErrorCode.NONE,
                failed.path: ErrorCode.KAFKA_STORAGE_ERROR,
            }

    asyncio.run(scenario())


def test_one_that_the_controller_has_yet_to_hear_of_is_reported_as_lost(tmp_path: Path) -> None:
    """Or it would take this broker for its leader, and the failed directory for another one's."""
    settings = {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "metadata.log.dir": str(tmp_path / "a")}

    async def scenario() -> None:
        async with running(tmp_path / "a", settings) as inside:
            topic_id = await inside.create("t", 2)
            replicas, topic = inside.broker.replicas, inside.broker.metadata.topics.get("t")
            assert topic is not None
            lost = next(
                one for one in replicas.partitions if replicas.reports.directory_of(one) is replicas.log_directories[1]
            )
            await until(lambda: lost.state.directory_of(1) == replicas.log_directories[1].directory_id)
            forgotten = PartitionChangeRecord(lost.index, topic_id, directories=[bytes(16)])
            await inside.broker.active.submit(lambda *_: Decision([forgotten], None))
            replicas.logs.fail_directory(replicas.log_directories[1])
            await until(lambda: topic.partitions[lost.index].leader < 0)
            assert topic.partitions[1 - lost.index].leader == 1

    asyncio.run(scenario())


def test_a_late_report_does_not_take_the_place_of_a_newer_one_for_long(tmp_path: Path) -> None:
    """The network delivers where a replica was; the broker, which sees it in the image, says where it is."""
    settings = {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "metadata.log.dir": str(tmp_path / "a")}

    async def scenario() -> None:
        async with running(tmp_path / "a", settings) as inside:
            topic_id = await inside.create("t")
            replicas, topic = inside.broker.replicas, inside.broker.metadata.topics.get("t")
            assert topic is not None
            partition = replicas.partitions.leader("t", 0)
            home = replicas.reports.directory_of(partition)
            assert home is not None
            (other,) = [one for one in replicas.log_directories if one is not home]
            late = [Assign(topic_id, 0, other.directory_id)]
            for _ in range(2):
                await until(lambda: topic.partitions[0].directories == (home.directory_id,))
                epoch = inside.broker.lifecycle.broker_epoch
                await inside.broker.active.submit(
                    lambda metadata, _: assign_directories(metadata, 1, epoch, late)  # noqa: B023 - awaited at once
                )

    asyncio.run(scenario())
