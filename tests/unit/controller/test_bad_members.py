"""What must not be let in: a stranger, a voter that forgot everything, a log that is torn. Each is named in the log."""

from typing import Any

import pytest

from kavka_broker.controller.format import Voters
from kavka_broker.protocol.errors import BrokerError
from tests.support.quorums import Quorums
from tests.support.waiting import pass_seconds


def said(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    """The fields of the nodes' log lines of an event."""
    return [record.fields for record in caplog.records if record.message == event]  # type: ignore[attr-defined]


def test_a_torn_log_is_fetched_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        await cluster.agreed()
        follower = cluster.followers()[0]
        follower.kill()
        path = f"/data/__cluster_metadata-0/{0:020d}.log"
        file = follower.disk.open(path)
        file.truncate(file.size - 7)
        file.sync()
        follower.start()
        await cluster.agreed()
        assert follower.topics == ["a"]
        assert [fields["path"] for fields in said(caplog, "segment.truncated")] == [path]

    Quorums.play(scenario)


def test_a_node_of_another_cluster_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        stranger = cluster.add(11, "broker")
        stranger.format(Voters(none=True), "YW5vdGhlci1jbHVzdGVyLg")
        stranger.start()
        await leader.write("a")
        await pass_seconds(5)
        assert stranger.topics == []
        assert stranger.quorum.log.end_offset == 0
        assert {"cluster_id": "YW5vdGhlci1jbHVzdGVyLg", "replica": 11} in said(caplog, "raft.fetch.misdirected")
        assert "INCONSISTENT_CLUSTER_ID" in {fields["error"] for fields in said(caplog, "raft.fetch.refused")}

    Quorums.play(scenario)


def test_a_voter_with_an_empty_disk_does_not_vote(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: Quorums) -> None:
        leader = await cluster.leader()
        await leader.write("a")
        first, second = cluster.followers()
        first.kill()
        del cluster.nodes[first.node_id]
        anew = cluster.add(first.node_id)
        anew.format(Voters(none=True))
        anew.start()
        await cluster.agreed()
        assert anew.quorum.role == "Observer"
        await pass_seconds(3)
        assert {"by": first.node_id, "error": "INVALID_VOTER_KEY"} in said(caplog, "raft.begin.refused")
        second.kill()
        with pytest.raises(BrokerError):
            await leader.write("b")  # one of three voters, whatever the third fetches
        second.start()
        leader = await cluster.leader()
        await leader.write("c")

    Quorums.play(scenario)
