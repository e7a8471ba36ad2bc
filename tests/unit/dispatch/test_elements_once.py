"""An element that a request names again is answered once: its answer may be much longer than its name."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import describe_quorum_request as quorums
from kavka_broker.protocol.messages import read_share_group_state_request as reads
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kavka_broker.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kavka_broker.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kavka_broker.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from kavka_broker.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest
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
    "OffsetFetch v1": (
        lambda count: OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic("t", [0] * count)]),
        "topics.partitions",
    ),
    "DescribeProducers": (
        lambda count: DescribeProducersRequest([TopicRequest("t", [0] * count)]),
        "topics.partitions",
    ),
    "DescribeQuorum": (
        lambda count: DescribeQuorumRequest(
            [quorums.TopicData("__cluster_metadata", [quorums.PartitionData(0) for _ in range(count)])]
        ),
        "topics.partitions",
    ),
    "ReadShareGroupState": (
        lambda count: ReadShareGroupStateRequest(
            "g", [reads.ReadStateData(bytes(15) + b"1", [reads.PartitionData(0, number) for number in range(count)])]
        ),
        "results.partitions",
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
    make, answers = REQUESTS[name]
    name, _, version = name.partition(" v")
    (api,) = (api for api in load().values() if api.name == name)

    async def ask(inside: InProcess, request: Message) -> Any:
        client = await inside.connect()
        return await client.call(request, api.response, int(version or api.versions[1]))

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t", 1)
            for count in TIMES:
                found = [await ask(inside, make(count))]
                for attribute in answers.split("."):
                    found = [answer for owner in found for answer in getattr(owner, attribute)]
                assert len(found) == 1, count

    asyncio.run(scenario())


def test_the_list_is_of_all_that_say_so() -> None:
    assert {api.name for api in load().values() if api.once} == {name.partition(" v")[0] for name in REQUESTS}
