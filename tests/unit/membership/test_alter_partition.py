"""Proposals for in-sync sets travel together, one request at a time."""

import asyncio

import pytest

from kavka_broker.core.partition.isr_proposal import InSyncMember, IsrChange
from kavka_broker.membership.alter_partition import AlterPartitionSender
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_partition_request import AlterPartitionRequest
from kavka_broker.protocol.messages.alter_partition_response import AlterPartitionResponse, PartitionData, TopicData
from tests.support.waiting import for_ever
from tests.unit.membership.fakes import Answer, FakePeers, FakeQuorum


def change(number: int) -> IsrChange:
    return IsrChange(bytes([number % 2]) * 16, number, 3, 5, (InSyncMember(1), InSyncMember(2, 77)))


def sender(answer: Answer) -> AlterPartitionSender:
    channel = ControllerChannel(1, FakeQuorum(), FakePeers({("one", 1): answer}), leads=lambda: False, local=answer)
    return AlterPartitionSender(channel, 1, lambda: 9)


def test_what_comes_while_a_request_is_under_way_shares_the_next() -> None:
    requests: list[AlterPartitionRequest] = []
    go_on = asyncio.Event()

    async def answer(request: Message) -> Message:
        assert isinstance(request, AlterPartitionRequest)
        requests.append(request)
        await go_on.wait()
        return AlterPartitionResponse(
            topics=[
                TopicData(
                    topic.topic_id,
                    [
                        PartitionData(partition.partition_index, isr=[partition.partition_index])
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def scenario() -> None:
        alter = sender(answer)
        first = asyncio.create_task(alter([change(0)]))
        while not requests:
            await asyncio.sleep(0)
        rest = [asyncio.create_task(alter([change(2 * n), change(2 * n + 1)])) for n in range(1, 5)]
        await asyncio.sleep(0)
        go_on.set()
        assert [one.isr for one in await first] == [(0,)]
        assert [[one.isr for one in await task] for task in rest] == [[(2 * n,), (2 * n + 1,)] for n in range(1, 5)]
        assert len(requests) == 2
        assert (requests[1].broker_id, requests[1].broker_epoch) == (1, 9)
        (partition,) = requests[0].topics[0].partitions
        assert [(epoch.broker_id, epoch.broker_epoch) for epoch in partition.new_isr_with_epochs] == [(1, -1), (2, 77)]
        assert (partition.leader_epoch, partition.partition_epoch) == (3, 5)

    asyncio.run(scenario())


def test_an_error_of_the_request_is_told_to_all() -> None:
    async def answer(_: Message) -> Message:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)

    async def scenario() -> None:
        alter = sender(answer)
        for result in await asyncio.gather(alter([change(0)]), alter([change(1)]), return_exceptions=True):
            assert isinstance(result, BrokerError)
            assert result.code is ErrorCode.STALE_BROKER_EPOCH

    asyncio.run(scenario())


def test_a_partition_that_the_answer_forgets_is_an_error() -> None:
    async def answer(_: Message) -> Message:
        return AlterPartitionResponse()

    async def scenario() -> None:
        (outcome,) = await sender(answer)([change(0)])
        assert outcome.error is ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(scenario())


def test_a_defect_reaches_who_waits() -> None:
    """Who waits for an answer that never comes would keep its in-sync set forever."""

    async def answer(_: Message) -> Message:
        raise ValueError("a defect")

    async def scenario() -> None:
        alter = sender(answer)
        async with asyncio.timeout(60):
            with pytest.raises(ValueError, match="a defect"):
                await alter([change(0)])
            with pytest.raises(ValueError, match="a defect"):
                await alter([change(1)])

    asyncio.run(scenario())


def test_closing_cancels_waiting_callers() -> None:
    async def answer(_: Message) -> Message:
        await for_ever()
        raise AssertionError

    async def scenario() -> None:
        alter = sender(answer)
        waiting = [asyncio.create_task(alter([change(n)])) for n in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        alter.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting[2]

    asyncio.run(scenario())
