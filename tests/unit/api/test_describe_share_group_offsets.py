"""DescribeShareGroupOffsets, in the protocol of clients: where a group begins, before and after it reads."""

import asyncio
from pathlib import Path

from kavka_broker.core.share.share_states import UNSET
from kavka_broker.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kavka_broker.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from tests.support.in_process import InProcess, running
from tests.unit.api.test_share_fetch import ACCEPT, Member, initialize, produce, summary


async def described(inside: InProcess) -> tuple[int, int]:
    """The start offset and the lag of the group in its one partition."""
    topic = DescribeShareGroupOffsetsRequestTopic("t", [0])
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("g", [topic])])
    answer = await (await inside.connect()).call(request, DescribeShareGroupOffsetsResponse, 1)
    told = answer.groups[0].topics[0].partitions[0]
    assert (answer.groups[0].error_code, told.error_code) == (0, 0), told.error_message
    return told.start_offset, told.lag


def test_a_group_that_has_nothing_to_read_has_no_start_yet(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            topic_id = await inside.create("t")
            produce(inside, 2)
            await initialize(inside, topic_id, UNSET)
            assert await described(inside) == (-1, -1)
            member = Member(await inside.connect(), topic_id)
            assert await member.acquire(wait_ms=0) == []
            while (await summary(inside, topic_id))[0] == UNSET:
                assert await member.acquire(wait_ms=0) == []
            assert await summary(inside, topic_id) == (6, UNSET), "the next leader begins where this one did"
            assert await described(inside) == (-1, -1)
            produce(inside, 1)
            assert await described(inside) == (6, 3), "records wait, from here on"
            assert await member.acquire() == [(6, 8, 1)]
            assert await member.acknowledge(6, 8, ACCEPT) == 0
            assert await described(inside) == (9, 0), "there is nothing more, and the group has been here"

    asyncio.run(scenario())
