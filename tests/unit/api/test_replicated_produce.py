"""acks=all over a connection, with a follower that the test plays: who waits for what, and what comes of it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.brokers import UNTOLD_DIRECTORY
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import BrokerRegistrationChangeRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from tests.support.in_process import Client, InProcess, batch
from tests.support.waiting import until
from tests.unit.api.test_follower_fetch import OTHER, OTHER_EPOCH, call, fetch, opened, parts_of, play, size

VERSION = 12
TOPIC_CONFIG = 2
IN_FLIGHT = 5


def request(*partitions: int, value: bytes = b"v", wait_ms: int = 60_000, **producer: int) -> ProduceRequest:
    data = [PartitionProduceData(index, batch(value, timestamp_ms=-1, **producer)) for index in partitions]
    return ProduceRequest(None, -1, wait_ms, [TopicProduceData("t", partition_data=data)])


async def answer(client: Client) -> dict[int, PartitionProduceResponse]:
    response = await client.receive(ProduceResponse, VERSION)
    return {part.index: part for topic in response.responses for part in topic.partition_responses}


async def code(client: Client) -> ErrorCode:
    return ErrorCode((await answer(client))[0].error_code)


async def appended(inside: InProcess, end_offset: int) -> None:
    await until(lambda: inside.broker.partitions.leader("t", 0).log.log_end_offset >= end_offset)


async def decide(inside: InProcess, *records: Message) -> None:
    await inside.broker.active.submit(lambda *_: Decision(list(records), None))


def min_isr(value: int) -> ConfigRecord:
    return ConfigRecord(TOPIC_CONFIG, "t", "min.insync.replicas", str(value))


def test_five_in_flight_wait_for_one_round_trip_of_the_follower(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        for number in range(IN_FLIGHT):
            client.send(request(0, value=b"%d" % number), VERSION)
        # All batches are in the log before the first is committed.
        await appended(inside, IN_FLIGHT)
        assert inside.broker.partitions.leader("t", 0).high_watermark == 0
        follower = await inside.connect()
        await call(follower, fetch(topic_id, {0: IN_FLIGHT}))
        answers = [(await answer(client))[0] for _ in range(IN_FLIGHT)]
        assert [(partition.error_code, partition.base_offset) for partition in answers] == [
            (0, offset) for offset in range(IN_FLIGHT)
        ]

    play(tmp_path, scenario)


def test_produce_requests_are_answered_in_order_whichever_commits_first(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        client.send(request(0), VERSION)
        client.send(request(1), VERSION)
        client.send(request(0, 1), VERSION)
        await appended(inside, 2)
        follower = await inside.connect()
        await call(follower, fetch(topic_id, {1: 2}))
        await call(follower, fetch(topic_id, {0: 1}))
        assert set(await answer(client)) == {0}
        assert set(await answer(client)) == {1}
        await call(follower, fetch(topic_id, {0: 2}))
        assert {index: partition.base_offset for index, partition in (await answer(client)).items()} == {0: 1, 1: 1}

    play(tmp_path, scenario)


def test_a_failed_produce_does_not_delay_later_ones(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        client.send(request(0, wait_ms=1), VERSION)
        client.send(request(0), VERSION)
        await appended(inside, 2)
        assert await code(client) == ErrorCode.REQUEST_TIMED_OUT
        await call(await inside.connect(), fetch(topic_id, {0: 2}))
        assert await code(client) == ErrorCode.NONE

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "change",
    [{"isr": [1]}, {"isr": [1], "replicas": [1, OTHER, 3], "directories": [UNTOLD_DIRECTORY] * 3}],
    ids=["shrunk", "of more replicas"],
)
def test_a_shrunken_isr_times_out_and_a_retry_gets_the_offset(tmp_path: Path, change: Mapping[str, list[Any]]) -> None:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND is a race of Apache Kafka's threads: strict min ISR commits nothing."""

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        idempotent: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        await decide(inside, min_isr(2))
        client.send(request(0, wait_ms=300, **idempotent), VERSION)
        await appended(inside, 1)
        await decide(inside, PartitionChangeRecord(0, topic_id, **change))  # type: ignore[arg-type]
        assert await code(client) == ErrorCode.REQUEST_TIMED_OUT
        client.send(request(0, **idempotent), VERSION)
        assert await code(client) == ErrorCode.NOT_ENOUGH_REPLICAS
        await decide(inside, PartitionChangeRecord(0, topic_id, isr=[1, OTHER]))
        client.send(request(0, **idempotent), VERSION)
        await call(await inside.connect(), fetch(topic_id, {0: 1}))
        again = (await answer(client))[0]
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
        assert inside.broker.partitions.leader("t", 0).log.log_end_offset == 1

    play(tmp_path, scenario)


def test_min_isr_is_read_at_the_commit(tmp_path: Path) -> None:
    """The minimum may exceed the number of replicas: then all replicas are needed, and enough."""

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        client.send(request(0), VERSION)
        await appended(inside, 1)
        await decide(inside, PartitionChangeRecord(0, topic_id, isr=[1]), min_isr(3))
        partition = inside.broker.partitions.leader("t", 0)
        assert (partition.min_isr, partition.high_watermark) == (2, 0)
        await decide(inside, PartitionChangeRecord(0, topic_id, isr=[1, OTHER]))
        await call(await inside.connect(), fetch(topic_id, {0: 1}))
        assert await code(client) == ErrorCode.NONE

    play(tmp_path, scenario)


def test_a_waiting_producer_is_told_the_new_leader(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        client.send(request(0), VERSION)
        await appended(inside, 1)
        await decide(inside, PartitionChangeRecord(0, topic_id, leader=OTHER))
        told = await client.receive(ProduceResponse, VERSION)
        (refused,) = told.responses[0].partition_responses
        assert (refused.error_code, refused.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (OTHER, 5)
        assert [(node.node_id, node.host, node.port) for node in told.node_endpoints] == [(OTHER, "h", 1)]

    play(tmp_path, scenario)


def test_each_leader_is_named_once_and_fenced_leaders_never(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        await decide(inside, *(PartitionChangeRecord(index, topic_id, leader=OTHER) for index in (0, 1)))
        for version, named in ((9, []), (10, [OTHER]), (12, [OTHER])):
            told = await client.call(request(0, 1), ProduceResponse, version)
            assert [node.node_id for node in told.node_endpoints] == named
        for version, named in ((15, []), (16, [OTHER]), (18, [OTHER])):
            assert await leaders_of(client, fetch(topic_id, {0: 0, 1: 0}, broker=(-1, -1)), version) == named
        await decide(inside, BrokerRegistrationChangeRecord(OTHER, OTHER_EPOCH, fenced=1))
        assert (await client.call(request(0), ProduceResponse, 12)).node_endpoints == []

    play(tmp_path, scenario)


async def leaders_of(client: Client, asked: FetchRequest, version: int) -> list[int]:
    """The brokers to which a consumer of a former epoch is sent."""
    told = await client.call(asked, FetchResponse, version)
    assert {part.error_code for part in parts_of(told).values()} == {ErrorCode.FENCED_LEADER_EPOCH}
    return [node.node_id for node in told.node_endpoints]


def test_a_timed_out_producer_is_told_no_leader(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        del inside, topic_id
        told = await client.call(request(0, wait_ms=1), ProduceResponse, VERSION)
        assert told.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert told.node_endpoints == []

    play(tmp_path, scenario)


def test_a_waiting_consumer_gets_old_records_that_a_new_leader_commits(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        client.send(request(0), VERSION)
        await appended(inside, 1)
        await decide(inside, PartitionChangeRecord(0, topic_id, leader=1))
        assert inside.broker.partitions.leader("t", 0).leader_epoch == 5
        consumer = await inside.connect()
        consumer.send(fetch(topic_id, {0: 0}, epoch=-1, broker=(-1, -1), wait_ms=60_000), 18)
        follower = await inside.connect()
        await opened(follower, topic_id, {1: 0})
        await call(follower, fetch(topic_id, {0: 1}, epoch=5))
        async with asyncio.timeout(60):
            assert await code(client) == ErrorCode.NONE
        assert size(parts_of(await consumer.receive(FetchResponse, 18))[0])

    play(tmp_path, scenario)
