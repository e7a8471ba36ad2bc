"""Groups are described once what is said of them is committed."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import DescribedGroup
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.describe_answers import describe_all

IDS = ["a", "b", "c", "d"]


class Groups:
    """Groups of a coordinator whose log has not committed all that was written; `settled` are the waits for it."""

    def __init__(self) -> None:
        self.log = self
        self.settled: list[asyncio.Future[ErrorCode]] = []

    def shard(self, group_id: str) -> "Groups":
        del group_id
        return self

    def existing(self, group_id: str) -> str:
        return group_id

    def when_settled(self) -> asyncio.Future[ErrorCode]:
        self.settled.append(asyncio.get_running_loop().create_future())
        return self.settled[-1]

    async def whole(self, description: DescribedGroup) -> DescribedGroup:
        return description


def described(groups: Groups, client: Client) -> asyncio.Task[list[DescribedGroup]]:
    broker = cast("Broker", SimpleNamespace(groups=groups, slices=groups))
    asked = describe_all(
        ConsumerGroupDescribeRequest(IDS),
        DescribedGroup,
        lambda _: cast("Any", groups),
        lambda name: cast("Any", DescribedGroup(group_id=str(name))),
        broker,
        client,
        is_served=True,
    )
    return asyncio.ensure_future(asked)


def test_a_request_waits_for_one_failed_commit_and_hears_of_the_others() -> None:
    """It waited for each of its groups in turn, some seconds for each."""

    async def scenario() -> None:
        groups, client = Groups(), Client(5, "monitor", 7, "127.0.0.1", "PLAINTEXT")
        task = described(groups, client)
        while len(groups.settled) < len(IDS):
            await asyncio.sleep(0)
        groups.settled[2].set_result(ErrorCode.NONE)
        groups.settled[0].set_result(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        found = await task
        assert [group.error_code for group in found] == [15, 15, 0, 15]
        assert [group.group_id for group in found] == IDS
        groups.settled.clear()
        rest = await described(groups, client)
        assert {group.error_code for group in rest} == {15}, "of the next part of the request, too"

    asyncio.run(scenario())


def test_nothing_is_waited_for_behind_a_commit() -> None:
    async def scenario() -> None:
        groups, client = Groups(), Client(5, "monitor", 7, "127.0.0.1", "PLAINTEXT")
        task = described(groups, client)
        while len(groups.settled) < len(IDS):
            await asyncio.sleep(0)
        for settled in groups.settled:
            settled.set_result(ErrorCode.NONE)
        assert [group.error_code for group in await task] == [0] * len(IDS)

    asyncio.run(scenario())
