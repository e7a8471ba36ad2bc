"""The controller over a simulated disk: what is answered is on the disk, and a start finds it again."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

import pytest

from kavka_broker.controller.controller import Controller
from kavka_broker.controller.damaged_metadata import check_damage
from kavka_broker.controller.metadata_log_opener import open_metadata_log
from kavka_broker.controller.quorum_state_file import SYNCED
from kavka_broker.controller.snapshot_files import GENESIS, SnapshotId, build, file_name
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.producer_ids import Block, allocate
from kavka_broker.core.metadata.decide.topics import Created, CreateTopic, Defaults, create_topics
from kavka_broker.core.metadata.image.features import INITIAL_LEVELS
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voters import Voter, voters_record
from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.begin_transaction_record import BeginTransactionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from tests.support.cluster import Machine, leave_cluster, register_broker, uuid

LOG = "/data/__cluster_metadata-0"
Scenario = Callable[[Machine], Coroutine[None, None, None]]


def play(scenario: Scenario, **settings: str) -> None:
    machine = Machine(**settings)
    machine.format()
    asyncio.run(scenario(machine))


async def create(controller: Controller, *names: str) -> list[Created | BrokerError]:
    commands = [CreateTopic(name, controller.new_uuid(), 1, 1) for name in names]
    return await controller.submit(lambda metadata, _: create_topics(metadata, commands, Defaults()))


async def join(controller: Controller, machine: Machine) -> int:
    return await register_broker(controller, machine.config)


def names(metadata: Metadata) -> list[str]:
    return [*metadata.topics.names()]


def write(*records: Message) -> Callable[[Metadata, int], Decision[None]]:
    return lambda metadata, now_ms: Decision(records, None)


def test_a_new_cluster_has_the_levels_of_the_format() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            levels = dict(controller.metadata.features.levels)
            assert levels.pop("kraft.version") == 1
            assert levels == INITIAL_LEVELS
            assert controller.metadata.configs.all_brokers() == {"min.insync.replicas": "1"}
            assert controller.epoch == 1
            assert [voter.node_id for voter in controller.voters] == [1]

    play(scenario)


def test_answered_decisions_survive_a_loss_of_power() -> None:
    async def scenario(machine: Machine) -> None:
        controller = machine.open()
        await controller.quorum.start()
        await join(controller, machine)
        await create(controller, "a", "b")
        before = list(controller.metadata.records())
        machine.disk.crash(Random(7))
        recovered = machine.open()
        assert list(recovered.metadata.records()) == before
        assert recovered.metadata.offset == controller.metadata.offset

    play(scenario)


def test_every_start_leads_in_a_new_epoch() -> None:
    async def scenario(machine: Machine) -> None:
        epochs = []
        for _ in range(3):
            async with machine.leading() as controller:
                epochs.append(controller.epoch)
                await join(controller, machine)
        assert epochs == [1, 2, 3]
        assert machine.disk.read_file(f"{LOG}/quorum-state").startswith(b'{"leaderId":1,"leaderEpoch":3,')

    play(scenario)


def test_a_promised_epoch_is_not_used_again() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading():
            pass
        # The process died after it had saved its epoch, before it wrote any record in it.
        log = open_metadata_log(machine.disk, machine.config, now_ms=machine.clock.now_ms())
        log.promises.save_state(QuorumState(leader_epoch=8, leader_id=1))
        async with machine.leading() as controller:
            assert controller.epoch == 9

    play(scenario)


def test_a_stopping_controller_waits_for_the_decision_of_a_lost_client() -> None:
    """The controller waits without busy turns of the loop until the disk has answered."""

    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            loop = asyncio.get_running_loop()
            asked = loop.create_future()
            asked.cancel()
            controller.waiting.append((controller.metadata.offset + 1, asked))
            steps = 0

            def call_soon(*args: Any, **options: Any) -> asyncio.Handle:
                nonlocal steps
                steps += 1
                return type(loop).call_soon(loop, *args, **options)

            loop.call_soon = call_soon  # type: ignore[method-assign, assignment] # it counts
            finishing = asyncio.create_task(controller.finish())
            for _ in range(100):
                await asyncio.sleep(0)
            assert not finishing.done()
            assert steps < 150
            controller.waiting.pop()[1].set_result(None)
            controller.waiting.clear()
            await finishing

    play(scenario)


def test_decisions_that_wait_together_share_a_sync() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            syncs = machine.syncs
            await asyncio.gather(*(create(controller, f"t{number}") for number in range(20)))
            assert machine.syncs - syncs <= 2
            assert len(controller.metadata.topics) == 20

    play(scenario)


def test_a_decision_sees_earlier_uncommitted_decisions() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            first, second = await asyncio.gather(create(controller, "t"), create(controller, "t"))
            assert isinstance(first[0], Created)
            assert isinstance(second[0], BrokerError)
            assert second[0].code is ErrorCode.TOPIC_ALREADY_EXISTS

    play(scenario)


def test_a_refusal_waits_for_the_commit_of_the_records_it_saw() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            creation = asyncio.create_task(create(controller, "t"))
            await asyncio.sleep(0)
            await create(controller, "t")
            assert names(controller.metadata) == ["t"]
            await creation

    play(scenario)


def test_subscribers_get_committed_records_before_the_answer_leaves() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            told: list[Sequence[Message]] = []

            def subscriber(records: Sequence[Message]) -> None:
                assert controller.metadata.topics.get("t") is not None
                told.append(records)

            controller.subscribers.append(subscriber)
            await create(controller, "t")
            assert [type(record).__name__ for record in told[0]] == ["TopicRecord", "PartitionRecord"]

    play(scenario)


def test_a_refused_decision_writes_nothing() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            offset = controller.metadata.offset

            def refuse(metadata: Metadata, now_ms: int) -> Decision[None]:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "no")

            with pytest.raises(BrokerError):
                await controller.submit(refuse)
            assert controller.metadata.offset == offset

    play(scenario)


def test_a_full_disk_refuses_decisions_until_there_is_room() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            machine.disk.space_bytes = 0
            with pytest.raises(BrokerError) as refusal:
                await create(controller, "t")
            assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            machine.disk.space_bytes = None
            await create(controller, "u")
            assert names(controller.metadata) == ["u"]

    play(scenario)


def test_a_failed_sync_stops_the_process_and_answers_no_request() -> None:
    async def scenario(machine: Machine) -> None:
        crashes: list[BaseException] = []
        controller = machine.open(crash=crashes.append)
        await controller.quorum.start()
        await join(controller, machine)
        machine.disk.fail_syncs = True
        with pytest.raises(BrokerError) as refusal:
            await create(controller, "t")
        assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert len(crashes) == 1
        assert names(controller.metadata) == []
        with pytest.raises(BrokerError, match="shutting down"):
            await create(controller, "u")

    play(scenario)


def test_the_size_of_a_decision_is_limited() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            huge = write(*(TopicRecord("t" * 200 + str(number), uuid(number)) for number in range(40_000)))
            with pytest.raises(BrokerError) as refusal:
                await controller.submit(huge)
            assert refusal.value.code is ErrorCode.POLICY_VIOLATION
            await create(controller)

    play(scenario)


def test_a_start_from_snapshot_and_log_gives_the_same_image() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            await create(controller, "a")
            snapshot = await controller.snapshot()
            assert snapshot == SnapshotId(controller.metadata.offset + 1, 1)
            await create(controller, "b")
            before = list(controller.metadata.records())
        recovered = machine.open()
        assert list(recovered.metadata.records()) == before
        assert recovered.voters == controller.voters

    play(scenario)


def test_a_snapshot_replaces_a_missing_log() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            await create(controller, "a")
            await leave_cluster(controller)
            await controller.snapshot()
            offset = controller.metadata.offset
        for name in machine.disk.names(LOG):
            if name.endswith((".log", ".index", ".timeindex")):
                machine.disk.remove(f"{LOG}/{name}")
        async with machine.leading() as controller:
            assert names(controller.metadata) == ["a"]
            assert controller.metadata.offset > offset
            await join(controller, machine)
            await create(controller, "b")
        assert names(machine.open().metadata) == ["a", "b"]

    play(scenario)


def test_snapshots_are_taken_by_bytes() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            for number in range(10):
                await create(controller, f"t{number}")
        snapshots = [name for name in machine.disk.names(LOG) if name.endswith(".checkpoint")]
        assert len(snapshots) > 1

    play(scenario, metadata_log_max_record_bytes_between_snapshots="500")


def test_snapshots_are_taken_by_time_when_something_changed() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            machine.clock.time_ms += 3_600_000
            await create(controller, "t")
        log = open_metadata_log(machine.disk, machine.config, now_ms=0)
        assert [snapshot.end_offset > 0 for snapshot in log.snapshots] == [False, True]

    play(scenario)


def test_old_snapshots_and_the_log_below_them_are_deleted() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            newest: SnapshotId | None = GENESIS
            for number in range(5):
                await create(controller, f"t{number}")
                newest = await controller.snapshot()
        log = open_metadata_log(machine.disk, machine.config, now_ms=0)
        assert list(log.snapshots) == [newest]
        assert GENESIS not in log.snapshots
        assert names(machine.open().metadata) == [f"t{number}" for number in range(5)]

    play(scenario, metadata_max_retention_bytes="100")


@pytest.mark.parametrize(("epoch", "is_kept"), [(1, True), (9, False)])
def test_a_log_older_than_the_leaders_snapshot_is_discarded(epoch: int, is_kept: bool) -> None:
    """The process died between download and cut: records of an older leader may stand there, up to the log's end."""

    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            await create(controller, "a", "b")
            end_offset = controller.quorum.log.end_offset
        adopted = SnapshotId(end_offset - 2, epoch)
        log = open_metadata_log(machine.disk, machine.config, now_ms=0)
        log.files.save(adopted, build([], [], epoch=epoch, last_timestamp_ms=0, now_ms=0))
        log.close()
        for _ in range(2):
            log = open_metadata_log(machine.disk, machine.config, now_ms=0)
            found = (log.start_offset, log.end_offset, log.latest_epoch)
            assert found == ((0, end_offset, 1) if is_kept else (adopted.end_offset, adopted.end_offset, 9))
            log.close()

    play(scenario)


def test_a_snapshot_superseded_by_a_later_one_is_deleted() -> None:
    """The snapshot was being written when the leader's replaced the log; the log does not begin with its epoch."""
    machine = Machine()
    machine.format()
    overtaken, adopted = SnapshotId(2, 1), SnapshotId(5, 3)
    log = open_metadata_log(machine.disk, machine.config, now_ms=0)
    for snapshot in (overtaken, adopted):
        log.files.save(snapshot, build([], [], epoch=snapshot.epoch, last_timestamp_ms=0, now_ms=0))
    log.files.saved(adopted)
    log.start_behind(adopted)
    log.files.saved(overtaken)
    assert log.epoch_end(2) == (3, 5)
    # A crash may leave the older snapshot there as well.
    again = open_metadata_log(machine.disk, machine.config, now_ms=0)
    assert (again.start_offset, list(again.snapshots), again.epoch_end(2)) == (5, [adopted], (3, 5))
    assert file_name(overtaken) not in machine.disk.names(LOG)


def test_damage_below_a_snapshot_is_not_taken_for_a_torn_end() -> None:
    """Records behind the snapshot were promised, even if a crash has lost the record of what was synced."""

    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            snapshot = await controller.snapshot()
            await create(controller, "a")
            end_offset = controller.quorum.log.end_offset
        assert snapshot is not None
        machine.disk.flip_bit(f"{LOG}/{0:020d}.log", 300)
        machine.disk.overwrite(f"{LOG}/{SYNCED}", b"")
        log = open_metadata_log(machine.disk, machine.config, now_ms=0)
        assert (log.start_offset, log.end_offset) == (snapshot.end_offset, end_offset)
        assert any(isinstance(message, TopicRecord) for _, message in log.messages(log.start_offset))

    play(scenario)


@pytest.mark.parametrize("chance", range(6))
def test_what_a_damaged_log_had_is_known_after_a_loss_of_power(chance: int) -> None:
    """The cut takes the damage away, and the offset that was synced up to was only in the page cache."""

    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            await create(controller, "a")
            end_offset = controller.quorum.log.end_offset
        machine.disk.write_file(f"{LOG}/{SYNCED}", f"0\n1\n1 {end_offset}\n".encode(), durable=False)
        machine.disk.flip_bit(f"{LOG}/{0:020d}.log", 300)
        log = open_metadata_log(machine.disk, machine.config, now_ms=0)
        others = [Voter(node_id, uuid(node_id)) for node_id in (1, 2)]
        check_damage(machine.config, log, VoterHistory.of(others, kraft_version=1))
        assert log.end_offset < end_offset == log.promised_offset
        machine.disk.crash(Random(chance))
        again = open_metadata_log(machine.disk, machine.config, now_ms=0)
        assert again.end_offset < end_offset == again.promised_offset

    play(scenario)


def test_a_transaction_interrupted_by_a_crash_is_aborted() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await controller.submit(write(BeginTransactionRecord("half"), TopicRecord("t", uuid(1))))
        async with machine.leading() as controller:
            assert controller.metadata.transaction is None
            assert names(controller.metadata) == []

    play(scenario)


def test_a_torn_tail_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            await join(controller, machine)
            await create(controller, "a")
        file = machine.disk.open(f"{LOG}/{0:020d}.log")
        file.append(b"\0\0\0\0\0\0\0\x63\0\0\1\0torn")
        file.sync()
        async with machine.leading() as controller:
            assert names(controller.metadata) == ["a"]
        (note,) = [record for record in caplog.records if record.message == "segment.truncated"]
        fields = note.fields  # type: ignore[attr-defined]
        assert (fields["path"], fields["lost_bytes"]) == (f"{LOG}/{0:020d}.log", 16)

    play(scenario)


def test_a_cluster_of_an_unknown_level_is_refused_with_advice() -> None:
    async def scenario(machine: Machine) -> None:
        crashes: list[BaseException] = []
        controller = machine.open(crash=crashes.append)
        await controller.quorum.start()
        with pytest.raises(BrokerError):
            await controller.submit(write(FeatureLevelRecord("metadata.version", 31)))
        assert [type(crash) for crash in crashes] == [CannotStart]
        with pytest.raises(CannotStart, match=r"metadata\.version 31, .* start a newer"):
            machine.open()

    play(scenario)


def test_a_lone_voter_with_another_directory_is_refused() -> None:
    machine = Machine()
    machine.format()
    path = f"{LOG}/{file_name(GENESIS)}"
    control: list[Message] = [KRaftVersionRecord(0, 1), voters_record([Voter(1, uuid(7))])]
    machine.disk.write_file(path, build(control, [], epoch=0, last_timestamp_ms=0, now_ms=0))
    with pytest.raises(CannotStart, match="is the only voter, with another directory than this one"):
        machine.open()


def test_a_node_without_any_voter_is_refused() -> None:
    machine = Machine()
    machine.format()
    machine.disk.remove(f"{LOG}/{file_name(GENESIS)}")
    with pytest.raises(CannotStart, match=r"nobody is known to vote; set controller\.quorum\.bootstrap\.servers"):
        machine.open()


def test_a_controller_outside_of_the_configured_voters_is_refused() -> None:
    machine = Machine(controller_quorum_voters="2@127.0.0.1:9093")
    machine.format()
    with pytest.raises(CannotStart, match=r"node 1 is a controller and not among the voters \[2\]"):
        machine.open()


def test_a_static_quorum_takes_its_voters_from_the_configuration() -> None:
    async def scenario(machine: Machine) -> None:
        async with machine.leading() as controller:
            assert "kraft.version" not in controller.metadata.features.levels
            assert [voter.node_id for voter in controller.voters] == [1]
        async with machine.leading() as controller:
            assert controller.epoch == 2

    play(scenario, controller_quorum_voters="1@127.0.0.1:9093")


def test_a_subscriber_that_fails_stops_the_process() -> None:
    async def scenario(machine: Machine) -> None:
        crashes: list[BaseException] = []
        controller = machine.open(crash=crashes.append)
        await controller.quorum.start()

        def broken(records: Sequence[Message]) -> None:
            raise InvariantViolation("a replica disagrees")

        controller.subscribers.append(broken)
        with pytest.raises(BrokerError):
            await join(controller, machine)
        assert [str(crash) for crash in crashes] == ["a replica disagrees"]

    play(scenario)


def test_producer_ids_are_given_once_across_restarts() -> None:
    async def scenario(machine: Machine) -> None:
        given: list[int] = []
        for _ in range(2):
            async with machine.leading() as controller:
                epoch = await join(controller, machine)

                def decide(metadata: Metadata, _: int, epoch: int = epoch) -> Decision[Block]:
                    return allocate(metadata.producer_ids, 1, epoch)

                given += [
                    block.first for block in await asyncio.gather(controller.submit(decide), controller.submit(decide))
                ]
        assert given == sorted(set(given))

    play(scenario)
