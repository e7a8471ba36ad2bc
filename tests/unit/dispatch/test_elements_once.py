"""An element that a request names again is answered once: its answer may be much longer than its name."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kavka_broker.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kavka_broker.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from kavka_broker.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tests.support.in_process import InProcess, running

#: Whole requests, requests in parts, and large ones that a thread reads.
TIMES = (20, 300, 5_000)
#: A request with an element so many times, and where its answers are.
REQUESTS: dict[str, tuple[Any, str]] = {
    "Metadata": (lambda count: MetadataRequest([MetadataRequestTopic(name="t") for _ in range(count)]), "topics"),
    "OffsetFetch": (
        lambda count: OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g") for _ in range(count)]),
        "groups",
    ),
    "DescribeGroups": (lambda count: DescribeGroupsRequest(["g"] * count), "groups"),
    "DescribeConfigs": (
        lambda count: DescribeConfigsRequest([DescribeConfigsResource(4, "1", None) for _ in range(count)]),
        "results",
    ),
    "DescribeTransactions": (lambda count: DescribeTransactionsRequest(["x"] * count), "transaction_states"),
    "ConsumerGroupDescribe": (lambda count: ConsumerGroupDescribeRequest(["g"] * count), "groups"),
    "ShareGroupDescribe": (lambda count: ShareGroupDescribeRequest(["g"] * count), "groups"),
    "StreamsGroupDescribe": (lambda count: StreamsGroupDescribeRequest(["g"] * count), "groups"),
    "DescribeShareGroupOffsets": (
        lambda count: DescribeShareGroupOffsetsRequest(
            [DescribeShareGroupOffsetsRequestGroup("g", None) for _ in range(count)]
        ),
        "groups",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_an_element_that_is_named_again_is_answered_once(name: str, tmp_path: Path) -> None:
    (api,) = (api for api in load().values() if api.name == name)
    make, answers = REQUESTS[name]

    async def ask(inside: InProcess, request: Message) -> Any:
        client = await inside.connect()
        return await client.call(request, api.response, api.versions[1])

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", 1)
            for count in TIMES:
                assert len(getattr(await ask(inside, make(count)), answers)) == 1, count

    asyncio.run(scenario())


def test_the_list_is_of_all_that_say_so() -> None:
    assert {api.name for api in load().values() if api.once} == REQUESTS.keys()
