"""Time that requests take on the loop: measured by a clock of which each reading is 10 ms later than the one before."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import alter_client_quotas_request as altering
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.request.broker import Connected
from kavka_broker.runtime.environment import REAL
from tests.support.clocks import StoppedClock
from tests.support.in_process import Client, InProcess, following, running
from tests.support.waiting import until

STEP_NS = 10_000_000
THREAD_STEP_NS = 1_000_000_000_000
LIMIT = 0.001
WINDOW_MS = 1000
VERSIONS = 3
CREATE_TOPICS = 19
Scenario = Callable[[InProcess, InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """Run a scenario where node 1 is broker and controller, node 2 a broker, and client "limited" has a quota."""

    async def run() -> None:
        clock = StoppedClock()
        world = replace(REAL, clock=clock)
        async with (
            running(directory / "1", world=world) as first,
            following(directory / "2", first, world=world) as second,
        ):
            entity = [altering.EntityData("client-id", "limited")]
            entry = altering.EntryData(entity, [altering.OpData("request_percentage", LIMIT)])
            request = altering.AlterClientQuotasRequest([entry])
            answer = await (await first.connect()).call(request, AlterClientQuotasResponse, 1)
            assert answer.entries[0].error_code == 0
            await until(lambda: second.broker.quotas.by_type["request"].entities_total == 1)
            clock.stop()  # no client has waited long enough
            for node in (first, second):
                node.broker.slices.time.now_ns = count(step=STEP_NS).__next__
            await scenario(first, second)
            clock.go_on()

    asyncio.run(run())


async def named(node: InProcess, client_id: str) -> Client:
    client = await node.connect()
    client.client_id = client_id
    return client


def used_ns(node: InProcess, client_id: str) -> float:
    lines = at_once(node.broker.quotas.by_type["request"].usages(0))
    return {line.client_id: line.used_total for line in lines}.get(client_id, 0)


def muted(node: InProcess) -> int:
    return sum(one.is_muted for listener in node.server.addresses.of_brokers for one in listener.connections)


def test_a_client_over_its_percentage_is_told_and_held_for_a_sample_at_most(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        told = await (await named(first, "limited")).call(ApiVersionsRequest("a", "1"), ApiVersionsResponse, VERSIONS)
        assert (told.throttle_time_ms, muted(first)) == (WINDOW_MS, 1)
        (held,) = at_once(first.broker.quotas.by_type["request"].entities(0))
        assert held.held_connections == 1
        free = await (await named(first, "free")).call(ApiVersionsRequest("a", "1"), ApiVersionsResponse, VERSIONS)
        assert free.throttle_time_ms == 0

    play(tmp_path, scenario)


def test_decoding_handling_and_sending_count(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await (await named(first, "quick")).call(ApiVersionsRequest("a", "1"), ApiVersionsResponse, VERSIONS)
        assert used_ns(first, "quick") == 2 * STEP_NS  # until it is charged, and until it is sent

    play(tmp_path, scenario)


def test_each_step_of_a_waiting_handler_counts_where_it_runs(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        client = await named(second, "maker")
        await client.call(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), CreateTopicsResponse, 7)
        assert used_ns(first, "maker") > 3 * STEP_NS, "the controller has decided"
        assert used_ns(second, "maker") > 3 * STEP_NS, "the broker has passed it on and waited"

    play(tmp_path, scenario)


def test_slices_of_long_work_count_for_the_request_that_began_it(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await first.create("wide", 4000)
        await (await named(first, "reader")).call(MetadataRequest(None), MetadataResponse, 12)
        assert used_ns(first, "reader") > 3 * STEP_NS

    play(tmp_path, scenario)


def test_an_answer_that_a_thread_writes_is_charged_once(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await first.create("wide", 4000)
        answer = await (await named(first, "limited")).call(MetadataRequest(None), MetadataResponse, 12)
        assert answer.throttle_time_ms == WINDOW_MS
        lines = at_once(first.broker.quotas.by_type["request"].usages(0))
        assert {line.throttled_requests_total for line in lines if line.client_id == "limited"} == {1}

    play(tmp_path, scenario)


def test_a_forwarded_request_is_throttled_once_by_the_broker_that_was_asked(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        request = CreateTopicsRequest([CreatableTopic("t", 1, 1)])
        answer = await (await named(second, "limited")).call(request, CreateTopicsResponse, 7)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, WINDOW_MS)
        assert (muted(first), muted(second)) == (0, 1)

    play(tmp_path, scenario)


def test_what_has_no_answer_and_what_nodes_ask_each_other_is_exempt(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await first.create("t")
        client = await named(first, "limited")
        data = PartitionProduceData(0, build_batch([(None, b"x")]))
        client.send(ProduceRequest(None, 0, 1000, [TopicProduceData("t", partition_data=[data])]), 9)
        partition = first.broker.partitions.get("t", 0)
        assert partition is not None
        while not partition.log.log_end_offset:
            await asyncio.sleep(0)
        await first.heard()
        assert (used_ns(first, "limited"), muted(first)) == (0, 0)
        assert first.broker.quotas.requests.exempt.used_total > 2 * STEP_NS

    play(tmp_path, scenario)


def test_what_threads_do_for_a_request_counts(tmp_path: Path) -> None:
    """To pack a batch again, and to write a long answer; of that the client is told with its next request."""

    async def scenario(first: InProcess, second: InProcess) -> None:
        await first.create("packed", compression_type="zstd")
        await first.create("wide", 1000)
        first.broker.slices.time.thread_ns = count(step=THREAD_STEP_NS).__next__
        batch = build_batch([(None, bytes(64 * 1024))], timestamp_ms=-1)
        request = ProduceRequest(
            None, 1, 10_000, [TopicProduceData("packed", partition_data=[PartitionProduceData(0, batch)])]
        )
        answer = await (await named(first, "packer")).call(request, ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        await (await named(first, "reader")).call(MetadataRequest(None), MetadataResponse, 12)
        for client_id in ("packer", "reader"):
            assert 1 <= used_ns(first, client_id) / THREAD_STEP_NS < 2

    play(tmp_path, scenario)


def test_what_a_thread_does_is_observed_of_its_own_client(tmp_path: Path) -> None:
    """Another client is answered while the thread writes."""

    async def scenario(first: InProcess, second: InProcess) -> None:
        await first.create("wide", 1000)
        entity = [altering.EntityData("client-id", "reader")]
        entry = altering.EntryData(entity, [altering.OpData("kavka_observed_request_percentage", 1.0)])
        await (await first.connect()).call(altering.AlterClientQuotasRequest([entry]), AlterClientQuotasResponse, 1)
        first.broker.slices.time.thread_ns = count(step=THREAD_STEP_NS).__next__
        reader, other, write = (
            await named(first, "reader"),
            await named(first, "other"),
            first.broker.message_threads.write,
        )

        async def write_beside(answer: Message, *told: Any) -> list[Any]:
            pieces = await write(answer, *told)
            await other.call(ApiVersionsRequest("a", "1"), ApiVersionsResponse, VERSIONS)
            return pieces

        first.broker.message_threads.write = write_beside  # type: ignore[method-assign, assignment]
        await reader.call(MetadataRequest(None), MetadataResponse, 12)
        now_ms = int(first.broker.clock.monotonic_ms())
        (line,) = at_once(first.broker.quotas.observed["request"].observed(now_ms))
        assert line.usage > 1000, "the thread's time, which is far more than all of the loop's"

    play(tmp_path, scenario)


def test_nobody_pays_for_what_comes_after_a_request_that_closes_its_connection(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        header = encode_request_header(RequestHeader(CREATE_TOPICS, 0x7FFF, 7, "gone"))
        with pytest.raises(ProtocolViolation, match="is not served"):
            await first.broker.serve_enveloped(memoryview(header), Connected("", "PLAINTEXT"))
        assert first.broker.slices.time.payer is None

    play(tmp_path, scenario)
