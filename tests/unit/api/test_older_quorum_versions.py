"""The controllers' listener answers every version that it says it does, also those without places for addresses."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import begin_quorum_epoch_request as begin
from kavka_broker.protocol.messages import end_quorum_epoch_request as end
from kavka_broker.protocol.messages import fetch_request as fetch
from kavka_broker.protocol.messages import fetch_snapshot_request as snapshot
from kavka_broker.protocol.messages import vote_request as vote
from tests.support.in_process import CLUSTER_ID, running

TOPIC, METADATA_ID = "__cluster_metadata", bytes(15) + b"\1"
REQUESTS: dict[int, Message] = {
    1: fetch.FetchRequest(
        CLUSTER_ID, topics=[fetch.FetchTopic(TOPIC, METADATA_ID, [fetch.FetchPartition(0, current_leader_epoch=99)])]
    ),
    52: vote.VoteRequest(CLUSTER_ID, 1, [vote.TopicData(TOPIC, [vote.PartitionData(0, 1, 1)])]),
    53: begin.BeginQuorumEpochRequest(CLUSTER_ID, 1, [begin.TopicData(TOPIC, [begin.PartitionData(0)])]),
    54: end.EndQuorumEpochRequest(CLUSTER_ID, [end.TopicData(TOPIC, [end.PartitionData(0)])]),
    59: snapshot.FetchSnapshotRequest(
        CLUSTER_ID, 2, topics=[snapshot.TopicSnapshot(TOPIC, [snapshot.PartitionSnapshot(0)])]
    ),
}


@pytest.mark.parametrize("key", REQUESTS)
def test_every_version_is_answered(tmp_path: Path, key: int) -> None:
    api = load()[key]

    async def run() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect(to_controller=True)
            for version in range(api.versions[0], api.versions[1] + 1):
                assert (await client.call(REQUESTS[key], api.response, version)).NAME == api.response.NAME

    asyncio.run(run())
