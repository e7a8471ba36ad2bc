"""Three controllers on simulated disks: committed records survive any death, and all of them agree on them."""

import asyncio
from typing import Any

import pytest

from kavka_broker.controller.format import Voters
from kavka_broker.controller.metadata_log_opener import open_metadata_log
from kavka_broker.controller.snapshot_files import SnapshotId
from kavka_broker.core.decision import Decision
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Buffer, Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.messages.vote_response import VoteResponse
from tests.support.cluster import CLUSTER_ID
from tests.support.quorums import Node, Quorums
from tests.support.waiting import pass_seconds

STATIC = "1@node-1:9093,2@node-2:9093,3@node-3:9093"
#: Longer than an election after a lost connection takes, shorter than an election after a timeout.
AT_ONCE_MS = 500


@pytest.mark.parametrize("settings", [{}, {"controller_quorum_voters": STATIC}])
def test_one_voter_is_elected_and_all_agree(settings: dict[str, Any]) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        assert all(node.topics == ["a"] for node in cluster.nodes.values())
        assert {node.quorum.leader_id for node in cluster.nodes.values()} == {leader.node_id}
        assert {node.quorum.leader_endpoint() for node in cluster.nodes.values()} == {(f"node-{leader.node_id}", 9093)}
        assert [node.quorum.role for node in cluster.followers()] == ["Follower", "Follower"]
        levels = leader.quorum.metadata.features.levels
        assert levels.get("kraft.version", 0) == (0 if settings else 1)

    Quorums.play(scenario, **settings)


def test_followers_publish_committed_batches() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        for node in cluster.followers():
            assert [record.name for record in node.told if isinstance(record, TopicRecord)] == ["a"]
            assert [type(one) for one in node.told] == [type(one) for one in leader.told]

    Quorums.play(scenario)


def test_a_follower_refuses_to_decide() -> None:
    async def scenario(cluster: Quorums) -> None:
        await cluster.leader()
        with pytest.raises(BrokerError) as refusal:
            await cluster.followers()[0].write("a")
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER

    Quorums.play(scenario)


def test_a_killed_leader_is_replaced_at_once() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        epoch = leader.quorum.epoch
        killed_ms = cluster.clock.monotonic_ms()
        leader.kill()
        successor = await cluster.leader()
        assert cluster.clock.monotonic_ms() - killed_ms < AT_ONCE_MS
        assert successor.quorum.epoch > epoch
        await successor.write("b")
        leader.start()
        await cluster.agreed()
        assert leader.topics == ["a", "b"]
        assert leader.quorum.leader_id == successor.node_id

    Quorums.play(scenario)


def test_a_silent_leader_is_replaced_after_the_fetch_timeout() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        leader.is_cut_off = True
        successor = await cluster.leader(other_than=[leader])
        await successor.write("a")
        assert leader.topics == []
        await cluster.until(lambda: not leader.leads)  # the leader reaches no majority any more

    Quorums.play(scenario)


def test_a_stopping_leader_hands_over() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        stopped_ms = cluster.clock.monotonic_ms()
        await leader.stop()
        successor = await cluster.leader()
        assert cluster.clock.monotonic_ms() - stopped_ms < AT_ONCE_MS
        await successor.write("b")

    Quorums.play(scenario)


def test_records_that_no_other_voter_had_are_cut_off() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        leader.is_cut_off = True
        lost = asyncio.create_task(leader.write("lost"))
        await asyncio.sleep(0)
        successor = await cluster.leader(other_than=[leader])
        await successor.write("b")
        with pytest.raises(BrokerError) as refusal:
            await lost
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER
        ends_at = leader.quorum.log.end_offset
        leader.is_cut_off = False
        await cluster.agreed()
        assert leader.topics == ["a", "b"]
        assert leader.quorum.log.end_offset == successor.quorum.log.end_offset != ends_at
        await successor.write("c")
        await cluster.agreed()

    Quorums.play(scenario)


def test_a_majority_that_loses_power_keeps_answered_decisions() -> None:
    async def scenario(cluster: Quorums) -> None:
        for number in range(5):
            leader = await cluster.leader()
            await leader.write(f"t{number}")
            for node in cluster.nodes.values():
                node.kill(loses_power=True)
            for node in cluster.nodes.values():
                node.start()
        await cluster.leader()
        await cluster.agreed()
        assert all(node.topics == [f"t{number}" for number in range(5)] for node in cluster.nodes.values())

    Quorums.play(scenario)


def test_a_vote_is_on_the_disk_before_it_is_given() -> None:
    async def scenario(cluster: Quorums) -> None:
        def votes() -> list[tuple[int, int]]:
            return [
                (asker, asked)
                for asker, asked, request, answer in cluster.traffic
                if isinstance(request, VoteRequest)
                and not request.topics[0].partitions[0].pre_vote
                and isinstance(answer, VoteResponse)
                and answer.topics[0].partitions[0].vote_granted
            ]

        await cluster.until(votes)
        for asker, asked in votes():
            assert any(f'"votedId":{asker},' in event for event in cluster.nodes[asked].events)
        leader = await cluster.leader()
        assert f'"leaderId":{leader.node_id},' in leader.events[-1]

    Quorums.play(scenario)


def test_a_fetch_acknowledges_only_synced_records() -> None:
    async def scenario(cluster: Quorums) -> None:
        for number in range(10):
            leader = await cluster.leader()
            await leader.write(f"t{number}")
            follower = cluster.followers()[0]
            offsets = [
                request.topics[0].partitions[0].fetch_offset
                for asker, _, request, _ in cluster.traffic
                if asker == follower.node_id and isinstance(request, FetchRequest)
            ]
            follower.kill(loses_power=True)
            log = open_metadata_log(follower.disk, follower.config, now_ms=0)
            assert log.end_offset >= max(offsets)
            follower.start()

    Quorums.play(scenario)


def test_a_follower_behind_the_log_start_is_sent_a_snapshot() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("gone")
        await cluster.agreed()
        behind = cluster.followers()[0]
        behind.kill()
        gone = leader.quorum.metadata.topics.get("gone")
        assert gone is not None
        await remove(leader, gone.topic_id)
        for number in range(30):
            await leader.write(f"t{number}")
        assert await leader.run(leader.quorum.snapshot()) is not None
        await leader.write("after")
        assert leader.quorum.log.start_offset > behind.quorum.log.end_offset
        behind.start()
        await cluster.agreed()
        assert behind.topics == leader.topics
        assert behind.quorum.log.start_offset == leader.quorum.log.start_offset
        names = [record.name for record in behind.told if isinstance(record, TopicRecord)]
        assert sorted(names) == sorted(leader.topics)
        behind.kill()
        behind.start()
        await cluster.agreed()

    Quorums.play(
        scenario,
        metadata_max_retention_bytes="100",
        metadata_log_segment_bytes=str(8 * 1024 * 1024),
        internal_metadata_log_segment_bytes="1000",
        controller_quorum_fetch_snapshot_max_bytes="300",
    )


async def remove(leader: Node, topic_id: bytes) -> None:
    assert leader.controller is not None
    await leader.run(leader.controller.submit(lambda *_: Decision([RemoveTopicRecord(topic_id)], None)))


def test_a_broker_finds_the_leader_and_observes() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        broker = cluster.add(11, "broker")
        broker.format(Voters(none=True))
        broker.start()
        await broker.run(broker.quorum.caught_up())
        assert broker.topics == ["a"]
        assert broker.quorum.role == "Observer"
        leader.kill()
        successor = await cluster.leader()
        await successor.write("b")
        await cluster.agreed()
        assert broker.topics == ["a", "b"]

    Quorums.play(scenario)


def test_the_active_controller_changes_hands_many_times() -> None:
    async def scenario(cluster: Quorums) -> None:
        epochs = []
        leader = await cluster.leader()
        for number in range(10):
            leader = await cluster.leader()
            epochs.append(leader.quorum.epoch)
            await leader.write(f"t{number}")
            leader.kill(loses_power=number % 2 == 0)
            successor = await cluster.leader()
            await successor.write(f"u{number}")
            leader.start()
            await cluster.agreed()
        assert epochs == sorted(set(epochs))
        assert len(leader.topics) == 20

    Quorums.play(scenario)


def test_a_controller_that_observes_gets_a_vote_and_loses_it_again() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        joiner = cluster.add(4)
        joiner.format(Voters(none=True))
        joiner.start()
        await joiner.run(joiner.quorum.caught_up())
        assert joiner.quorum.role == "Observer"
        await pass_seconds(1)  # until the leader knows that the observer has caught up
        directory = joiner.quorum.identity.directory_id
        added = await ask(
            leader,
            AddRaftVoterRequest(CLUSTER_ID, 1000, 4, directory, [Listener("CONTROLLER", "node-4", 9093)]),
        )
        assert added.error_code == ErrorCode.NONE, added
        await cluster.agreed()
        assert all([voter.node_id for voter in node.quorum.voters] == [1, 2, 3, 4] for node in cluster.nodes.values())
        assert joiner.quorum.role == "Follower"
        removed = await ask(leader, RemoveRaftVoterRequest(CLUSTER_ID, 4, directory))
        assert removed.error_code == ErrorCode.NONE
        await cluster.agreed()
        assert joiner.quorum.role == "Observer"

    Quorums.play(scenario)


def test_a_leader_that_loses_its_vote_hands_over() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        removed = await ask(leader, RemoveRaftVoterRequest(CLUSTER_ID, leader.node_id, leader.directory_id))
        assert removed.error_code == ErrorCode.NONE
        successor = await cluster.leader(other_than=[leader])
        await successor.write("a")
        await cluster.agreed()
        assert leader.quorum.role == "Observer"
        assert leader.topics == ["a"]

    Quorums.play(scenario)


def test_voters_survive_a_snapshot_and_a_restart() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        leaver = cluster.followers()[0]
        await ask(leader, RemoveRaftVoterRequest(CLUSTER_ID, leaver.node_id, leaver.directory_id))
        await cluster.agreed()
        for node in cluster.nodes.values():
            await node.run(node.quorum.snapshot())
            node.kill(loses_power=True)
            node.start()
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        remaining = sorted({1, 2, 3} - {leaver.node_id})
        assert all([voter.node_id for voter in node.quorum.voters] == remaining for node in cluster.nodes.values())

    Quorums.play(scenario)


def test_a_damaged_snapshot_is_refused_and_downloaded_again() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        behind = cluster.followers()[0]
        behind.kill()
        for number in range(10):
            await leader.write(f"t{number}")
        await leader.run(leader.quorum.snapshot())
        behind.start()
        save, damaged = behind.quorum.log.files.save_piece, list[int]()

        def damage(snapshot: SnapshotId, position: int, piece: Buffer) -> None:
            if not damaged:
                piece = bytearray(piece)
                piece[-20] ^= 1
                damaged.append(position)
            save(snapshot, position, piece)

        behind.quorum.log.files.save_piece = damage  # type: ignore[method-assign]
        await cluster.agreed()
        assert damaged
        assert behind.topics == leader.topics

    Quorums.play(
        scenario,
        metadata_max_retention_bytes="100",
        metadata_log_segment_bytes=str(8 * 1024 * 1024),
        internal_metadata_log_segment_bytes="1000",
    )


async def ask(node: Node, request: Message) -> Any:
    """Send a request to one node."""

    async def serve() -> Any:
        answer = node.quorum.serve(request)
        return answer if isinstance(answer, Message) else await answer

    return await node.run(serve())


def test_a_follower_with_a_full_disk_goes_on_when_there_is_room() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        follower = cluster.followers()[0]
        follower.disk.space_bytes = 0
        for number in range(5):
            await leader.write(f"t{number}")
        await pass_seconds(3)
        assert follower.topics == ["a"]
        follower.disk.space_bytes = None
        await cluster.agreed()
        assert follower.topics == leader.topics

    Quorums.play(scenario)


def test_a_leader_with_a_full_disk_gives_up_the_lead() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        leader.disk.space_bytes = 0
        with pytest.raises(BrokerError) as refused:
            await leader.write("b")
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        successor = await cluster.leader(other_than=[leader])
        await successor.write("c")
        leader.disk.space_bytes = None
        await cluster.agreed()
        assert leader.topics == ["a", "c"]

    Quorums.play(scenario)


def test_a_voter_without_room_for_its_vote_gives_none() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        first, second = cluster.followers()
        first.disk.space_bytes = second.disk.space_bytes = 0
        leader.kill()
        await pass_seconds(5)
        assert cluster.active() == []
        first.disk.space_bytes = second.disk.space_bytes = None
        successor = await cluster.leader()
        await successor.write("b")

    Quorums.play(scenario)


def test_a_node_that_waits_for_a_majority_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: Quorums) -> None:
        lonely = cluster.nodes[1]
        lonely.start()
        waiting = asyncio.create_task(lonely.run(lonely.quorum.caught_up()))
        await pass_seconds(11)
        (note,) = [record for record in caplog.records if record.message == "quorum.awaited"]
        assert note.fields["voters"] == "1@node-1:9093,2@node-2:9093,3@node-3:9093"  # type: ignore[attr-defined]
        assert not waiting.done()
        cluster.nodes[2].start()
        await waiting

    Quorums.play(scenario, starts=False)


def test_a_paused_follower_does_not_take_the_leader_for_lost() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        epoch = leader.quorum.epoch
        for follower in cluster.followers():
            follower.pause()
            await pass_seconds(10)
            follower.resume()
            await pass_seconds(10)
        assert leader.leads
        assert {node.quorum.epoch for node in cluster.nodes.values()} == {epoch}
        await leader.write("b")
        await cluster.agreed()

    Quorums.play(scenario)


def test_a_paused_leader_learns_of_its_successor() -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        leader.pause()
        await cluster.until(lambda: len(cluster.active()) == 2)
        successor = await cluster.leader(other_than=[leader])
        await successor.write("b")
        leader.resume()
        await cluster.agreed()
        assert not leader.leads
        assert leader.topics == ["a", "b"]

    Quorums.play(scenario)
