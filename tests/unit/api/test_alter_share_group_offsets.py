"""AlterShareGroupOffsets, in the protocol of clients: what each partition of a request is told."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.coordinator.share import share_state_client
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kavka_broker.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from tests.support.in_process import Client, InProcess, running

LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


async def alter(inside: InProcess, client: Client, *offsets: tuple[int, int]) -> list[int]:
    """The error of each partition and start offset of topic t that is asked for."""
    parts = [AlterShareGroupOffsetsRequestPartition(*offset) for offset in offsets]
    request = AlterShareGroupOffsetsRequest("g", [AlterShareGroupOffsetsRequestTopic("t", parts)])
    while True:
        answer = await client.call(request, AlterShareGroupOffsetsResponse, 0)
        if answer.error_code not in LOADING:
            break
        await inside.heard()
    assert answer.error_code == 0, answer.error_message
    return [part.error_code for part in answer.responses[0].partitions]


def test_an_offset_that_is_none_is_refused_before_anything_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", 2)
            client = await inside.connect()
            await client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), FindCoordinatorResponse, 6)
            invalid, unknown = ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert await alter(inside, client, (0, -5)) == [invalid]
            assert inside.broker.groups.shard("g").shares.get("g") is None
            assert await alter(inside, client, (0, 3), (1, -2), (7, 0), (1, -1)) == [0, invalid, unknown, 0]

    asyncio.run(scenario())


def test_a_partition_that_is_named_twice_is_told_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_state_client, "GIVE_UP_MS", 0)
    settings = {"share.coordinator.state.topic.replication.factor": "3"}  # of one broker

    async def scenario() -> None:
        async with running(tmp_path, settings) as inside:
            await inside.create("t")
            client = await inside.connect()
            await client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), FindCoordinatorResponse, 6)
            assert await alter(inside, client, (0, 1), (0, 2)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2

    asyncio.run(scenario())
