"""DescribeShareGroupOffsets, in the protocol of clients: where a group begins, before and after it reads."""

import asyncio
from pathlib import Path

from kavka_broker.core.share.share_states import UNSET, WrittenState
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


async def begun(inside: InProcess, records: int) -> Member:
    """A member of a group that has begun at the end of a partition with so many records."""
    topic_id = await inside.create("t")
    produce(inside, records // 3)
    await initialize(inside, topic_id, UNSET)
    assert await described(inside) == (-1, -1)
    member = Member(await inside.connect(), topic_id)
    while (await summary(inside, topic_id))[0] == UNSET:
        assert await member.acquire(wait_ms=0) == []
    return member


def test_a_group_has_no_start_in_a_partition_without_a_record(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            member = await begun(inside, 0)
            assert await summary(inside, member.topic_id) == (0, UNSET), "the next leader begins where this one did"
            assert await described(inside) == (-1, -1)
            produce(inside, 1)
            assert await described(inside) == (0, -1), "nothing is acknowledged yet"
            assert await member.acquire() == [(0, 2, 1)]
            assert await member.acknowledge(0, 2, ACCEPT) == 0
            assert await described(inside) == (3, 0), "there is nothing more, and the group has been here"

    asyncio.run(scenario())


def test_a_group_that_begins_at_the_end_of_records_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await begun(inside, 6)
            assert await described(inside) == (6, 0)
            produce(inside, 1)
            assert await described(inside) == (6, 3)

    asyncio.run(scenario())


def test_where_nothing_was_counted_the_lag_is_not_known(tmp_path: Path) -> None:
    """As brokers before KIP-1226 have written it, whose members may have read very much."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            topic_id = await inside.create("t")
            produce(inside, 2)
            await initialize(inside, topic_id, UNSET)
            written = WrittenState(1, 0, 6, UNSET, ())
            await inside.broker.as_broker.sharing.states.write("g", (topic_id, 0), written)
            assert await described(inside) == (6, -1)

    asyncio.run(scenario())
