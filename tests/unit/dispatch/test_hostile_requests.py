"""Requests that no honest client sends: refused with Kafka's code, told in one line, and they leave no trace."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kavka_broker.protocol.messages.delete_records_response import DeleteRecordsResponse
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kavka_broker.protocol.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.request.produce_policy import ADMIN_CLIENT_ID
from tests.support.in_process import Client, InProcess, batch, running

OFFSETS_TOPIC = "__consumer_offsets"
#: What also logs that this machine has stood still for a while.
OF_STALLS = ("kavka.raft", "kavka.membership", "kavka.controller")


def play(directory: Path, scenario: Callable[[InProcess, Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await scenario(inside, await inside.connect())

    asyncio.run(run())


def write(topic: str, records: bytes, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        None, acks, 1000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, records)])]
    )


async def produced(client: Client, request: ProduceRequest) -> ErrorCode:
    answer = await client.call(request, ProduceResponse, 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def stamped(**options: int) -> bytes:
    return batch(b"a", timestamp_ms=-1, **options)


async def make_offsets_topic(client: Client) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    answer = await client.call(request, FindCoordinatorResponse, 4)
    assert answer.coordinators[0].error_code == ErrorCode.NONE


def test_only_the_admin_client_writes_to_internal_topics(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await make_offsets_topic(client)
        log = inside.broker.partitions.leader(OFFSETS_TOPIC, 0).log
        assert await produced(client, write(OFFSETS_TOPIC, stamped())) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert log.log_end_offset == 0
        client.client_id = ADMIN_CLIENT_ID
        # The batch is let through, and refused for a record without a key in a compacted topic.
        assert await produced(client, write(OFFSETS_TOPIC, stamped())) == ErrorCode.INVALID_RECORD

    play(tmp_path, scenario)


@pytest.mark.parametrize("topic", sorted(INTERNAL))
def test_a_client_on_a_listener_of_clients_is_no_node_whatever_it_calls_itself(tmp_path: Path, topic: str) -> None:
    """Without an authorizer the listener is all that tells nodes from clients."""
    settings = {
        "listeners": "NODES://127.0.0.1:0,CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "NODES:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "NODES",
    }

    async def run() -> None:
        async with running(tmp_path, settings) as inside:
            await inside.create(topic)
            codes = {}
            for listener in inside.server.advertised:
                client = Client(*await asyncio.open_connection("127.0.0.1", listener.port))
                client.client_id = ADMIN_CLIENT_ID
                codes[listener.name] = await produced(client, write(topic, stamped()))
                client.close()
            assert codes == {"NODES": ErrorCode.NONE, "CLIENTS": ErrorCode.INVALID_TOPIC_EXCEPTION}

    asyncio.run(run())


def test_records_of_internal_topics_are_not_deleted(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await make_offsets_topic(client)
        request = DeleteRecordsRequest([DeleteRecordsTopic(OFFSETS_TOPIC, [DeleteRecordsPartition(0, -1)])])
        answer = await client.call(request, DeleteRecordsResponse, 2)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    play(tmp_path, scenario)


def test_a_transactional_batch_needs_a_transactional_id(tmp_path: Path) -> None:
    """An open transaction is never forgotten: transactions that are never ended would fill the memory."""

    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        records = stamped(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        code = await produced(client, write("t", records))
        assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert len(inside.broker.partitions.leader("t", 0).log.producers) == 0

    play(tmp_path, scenario)


def test_acks_0_that_fails_is_one_line_of_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        client.send(write("nowhere", stamped(), acks=0), 9)
        assert await client.is_closed()

    with caplog.at_level(logging.WARNING, "kavka"):
        play(tmp_path, scenario)
    told = [record.getMessage() for record in caplog.records if record.name not in OF_STALLS]
    assert told == ["connection.closed"]


def test_an_idle_connection_ends_without_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """That is ordinary: it counts as no refusal, of which an alert would tell."""

    async def scenario() -> None:
        async with running(tmp_path, {"connections.max.idle.ms": "200"}) as inside:
            assert await (await inside.connect()).is_closed()
            assert [listener.refused_count for listener in inside.server.addresses.of_brokers] == [0]

    with caplog.at_level(logging.WARNING, "kavka"):
        asyncio.run(scenario())
    assert "connection.closed" not in [record.getMessage() for record in caplog.records]


def test_an_epoch_below_all_others_is_unknown(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await inside.create("t")
        wanted = OffsetForLeaderPartition(partition=0, leader_epoch=-2)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("t", [wanted])])
        answer = await client.call(request, OffsetForLeaderEpochResponse, 4)
        found = answer.topics[0].partitions[0]
        assert (found.error_code, found.leader_epoch, found.end_offset) == (0, -1, -1)

    play(tmp_path, scenario)


def test_an_unknown_broker_id_is_not_remembered(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        for claimed in (1, 2, 1000, 2**31 - 1):
            request = FetchRequest(replica_id=claimed, max_wait_ms=0, session_epoch=-1, topics=[])
            await client.call(request, FetchResponse, 11)
        assert list(inside.broker.replicas.in_sync.contacts) == [1]

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [1, 4])
def test_an_error_about_the_longest_name_is_answered(tmp_path: Path, version: int) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        asked = DescribeConfigsRequest([DescribeConfigsResource(4, "n" * 32_740, None)])
        (answer,) = (await client.call(asked, DescribeConfigsResponse, version)).results
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert "nnn" in (answer.error_message or "")

    play(tmp_path, scenario)
