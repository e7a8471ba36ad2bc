"""Topics that are created, deleted and grown under a quota of controller mutations (KIP-599)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import alter_client_quotas_request as altering
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from tests.support.in_process import Client, InProcess, following, running
from tests.support.waiting import until

LIMIT = 0.01  # a second: the burst is of 0.11 partitions, so the first topic passes and uses it up
EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
Scenario = Callable[[InProcess, InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """Run a scenario where node 1 is broker and controller, node 2 a broker, and client "limited" has a quota."""

    async def run() -> None:
        async with running(directory / "1") as first, following(directory / "2", first) as second:
            await limit(await first.connect(), LIMIT)
            await until(lambda: second.broker.quotas.by_type["controller_mutation"].entities_total == 1)
            await scenario(first, second)

    asyncio.run(run())


async def limit(client: Client, rate: float | None) -> None:
    op = altering.OpData("controller_mutation_rate", rate or 0.0, remove=rate is None)
    entry = altering.EntryData([altering.EntityData("client-id", "limited")], [op])
    answer = await client.call(altering.AlterClientQuotasRequest([entry]), AlterClientQuotasResponse, 1)
    assert answer.entries[0].error_code == 0


async def limited(node: InProcess) -> Client:
    client = await node.connect()
    client.client_id = "limited"
    return client


async def create(client: Client, *names: str, version: int = 7, validate_only: bool = False) -> tuple[list[int], int]:
    request = CreateTopicsRequest([CreatableTopic(name, 2, 1) for name in names], validate_only=validate_only)
    answer = await client.call(request, CreateTopicsResponse, version)
    return [topic.error_code for topic in answer.topics], answer.throttle_time_ms


async def delete(client: Client, name: str, version: int) -> tuple[list[int], int]:
    request = DeleteTopicsRequest([DeleteTopicState(name)]) if version >= 6 else DeleteTopicsRequest([], [name])
    answer = await client.call(request, DeleteTopicsResponse, version)
    return [topic.error_code for topic in answer.responses], answer.throttle_time_ms


async def grow(client: Client, name: str, version: int) -> tuple[list[int], int]:
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, 3, None)])
    answer = await client.call(request, CreatePartitionsResponse, version)
    return [topic.error_code for topic in answer.results], answer.throttle_time_ms


def muted(node: InProcess) -> int:
    return sum(one.is_muted for listener in node.server.addresses.of_brokers for one in listener.connections)


@pytest.mark.parametrize("asked", [0, 1], ids=["the controller's node", "another broker"])
def test_what_exceeds_the_quota_is_refused_and_its_connection_held(tmp_path: Path, asked: int) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        node = (first, second)[asked]
        client = await limited(node)
        codes, throttle_time_ms = await create(client, "a", "b")
        assert codes == [0, EXCEEDED]
        assert 100_000 < throttle_time_ms <= 200_000
        assert (muted(node), muted((second, first)[asked])) == (1, 0)
        assert first.broker.metadata.topics.get("b") is None
        (held,) = at_once(node.broker.quotas.by_type["controller_mutation"].entities(0))
        assert (held.entity, held.held_connections) == (Entity(None, "limited"), 1)

    play(tmp_path, scenario)


def test_an_old_client_is_not_refused_and_waits(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        codes, throttle_time_ms = await create(await limited(second), "a", "b", version=5)
        assert codes == [0, 0]
        assert 300_000 < throttle_time_ms <= 400_000

    play(tmp_path, scenario)


def test_partitions_are_counted_where_they_are_deleted_and_added(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await create(await first.connect(), "a", "b", "c")
        assert await delete(await limited(first), "a", 6) == ([0], 0)  # and uses the quota up
        for do, strict in ((delete, 5), (grow, 3)):
            codes, throttle_time_ms = await do(await limited(first), "b", strict)
            assert (codes, throttle_time_ms > 100_000) == ([EXCEEDED], True)
            codes, throttle_time_ms = await do(await limited(second), "c" if do is delete else "b", strict - 1)
            assert (codes, throttle_time_ms > 100_000) == ([0], True)
        topics = first.broker.metadata.topics
        assert [topics.get(name) is not None for name in "abc"] == [False, True, False]
        used = at_once(first.broker.quotas.by_type["controller_mutation"].usages(0))
        assert {line.client_id: line.used_total for line in used}["limited"] == 2 + 2 + 1

    play(tmp_path, scenario)


def test_what_is_refused_for_another_reason_counts_for_nothing(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        client = await limited(first)
        for _ in range(3):
            assert await delete(client, "missing", 6) == ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], 0)
            assert await create(client, "a b") == ([ErrorCode.INVALID_TOPIC_EXCEPTION], 0)
        assert await create(client, "a") == ([0], 0)

    play(tmp_path, scenario)


def test_what_is_only_validated_counts(tmp_path: Path) -> None:
    """As in Apache Kafka: the quota is asked ahead of the records, whatever becomes of them."""

    async def scenario(first: InProcess, second: InProcess) -> None:
        assert await create(await limited(first), "a", validate_only=True) == ([0], 0)
        assert (await create(await limited(first), "a"))[0] == [EXCEEDED]

    play(tmp_path, scenario)


def test_a_raised_quota_holds_from_the_next_request_on(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await create(await limited(second), "a")
        assert (await create(await limited(second), "b"))[0] == [EXCEEDED]
        await limit(await first.connect(), None)
        assert await create(await limited(second), "b") == ([0], 0)

    play(tmp_path, scenario)


def test_a_long_decision_counts_too(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        request = CreateTopicsRequest([CreatableTopic("long", 300, 1), CreatableTopic("late", 1, 1)])
        answer = await (await limited(second)).call(request, CreateTopicsResponse, 7)
        assert {topic.name: topic.error_code for topic in answer.topics} == {"long": 0, "late": EXCEEDED}

    play(tmp_path, scenario)
