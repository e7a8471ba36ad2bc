"""Brokers and controllers serve their own APIs, and a broker passes on what only the controller decides."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message, says
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kavka_broker.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kavka_broker.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kavka_broker.protocol.messages.envelope_request import EnvelopeRequest
from kavka_broker.protocol.messages.envelope_response import EnvelopeResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.request.broker import Connected, Enveloped
from kavka_broker.request.envelopes import decode_address, decode_principal, encode_address, encode_principal
from kavka_broker.request.request_bounds import BOUNDS, RequestBounds
from tests.support.decisions import before_decisions
from tests.support.in_process import Client, InProcess, following, running

CREATE = 7
Scenario = Callable[[InProcess, InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """Run a scenario where node 1 is broker and controller, node 2 a broker."""

    async def run() -> None:
        async with running(directory / "1") as first, following(directory / "2", first) as second:
            await scenario(first, second)

    asyncio.run(run())


async def keys(client: Client) -> set[int]:
    answer = await client.call(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 3)
    return {api.api_key for api in answer.api_keys}


def test_each_listener_says_what_it_serves(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        of_brokers, of_controllers = (
            await keys(await first.connect()),
            await keys(await first.connect(to_controller=True)),
        )
        assert of_brokers == await keys(await second.connect())
        assert {0, 1, 3, 19, 60} <= of_brokers
        assert {1, 19, 52, 58, 60, 62, 63} <= of_controllers
        assert not {52, 56, 58, 62, 63, 67} & of_brokers
        assert not {0, 2, 3, 10} & of_controllers

    play(tmp_path, scenario)


def test_a_broker_does_not_serve_a_controllers_api(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        client = await second.connect()
        client.send(EnvelopeRequest(), 0)
        assert await client.is_closed()

    play(tmp_path, scenario)


async def create(client: Client, name: str, replicas: int = 1) -> CreatableTopicResult:
    request = CreateTopicsRequest([CreatableTopic(name, 1, replicas)])
    (topic,) = (await client.call(request, CreateTopicsResponse, CREATE)).topics
    return topic


def test_a_broker_forwards_decisions_to_the_controller(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        client = await second.connect()
        made = await create(client, "t", replicas=2)
        assert (made.error_code, made.replication_factor) == (ErrorCode.NONE, 2)
        assert (await create(client, "t")).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert first.broker.metadata.topics.get("t") is not None

    play(tmp_path, scenario)


def test_what_the_loop_does_after_an_enveloped_request_is_not_its_clients(tmp_path: Path) -> None:
    later_ns = 10_000_000_000

    async def scenario(first: InProcess, second: InProcess) -> None:
        time, serve, is_over = first.broker.slices.time, first.broker.serve_enveloped, False
        now_ns = time.now_ns

        async def served(frame: memoryview, peer: Connected) -> Enveloped:
            nonlocal is_over
            answer = await serve(frame, peer)
            is_over = True
            return answer

        first.broker.serve_enveloped = served
        time.now_ns = lambda: now_ns() + later_ns * is_over
        assert (await create(await second.connect(), "t")).error_code == ErrorCode.NONE
        used = [usage.used_total for usage in at_once(first.broker.quotas.requests.usages(0))]
        assert is_over
        assert 0 < sum(used) < later_ns

    play(tmp_path, scenario)


def test_without_a_controller_every_part_gets_the_error(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        controller = first.broker.controller
        assert controller is not None
        controller.is_active = False
        second.broker.bounds = RequestBounds(forward_ms_max=100)
        # Given up, which is not unsaid: the controller may read it when it is active again.
        assert (await create(await second.connect(), "given-up")).error_code == ErrorCode.NOT_CONTROLLER
        second.broker.bounds = BOUNDS
        assert (await create(await first.connect(to_controller=True), "t")).error_code == ErrorCode.NOT_CONTROLLER
        controller.is_active = True
        assert (await create(await second.connect(), "t")).error_code == ErrorCode.NONE

    play(tmp_path, scenario)


def test_a_controller_that_loses_the_lead_while_deciding_forwards_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        controller = first.broker.controller
        assert controller is not None
        refusals = 0

        async def lost(_: object) -> None:
            nonlocal refusals
            refusals += 1
            monkeypatch.undo()
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "the controller has lost its leadership")

        before_decisions(monkeypatch, controller, lost)
        assert (await create(await first.connect(), "t")).error_code == ErrorCode.NONE
        assert refusals == 1

    play(tmp_path, scenario)


def test_the_controller_is_asked_for_producer_ids(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        request = InitProducerIdRequest(None)
        ids = [
            (await (await member.connect()).call(request, InitProducerIdResponse, 4)).producer_id
            for member in (first, second)
        ]
        assert len(set(ids)) == 2

    play(tmp_path, scenario)


def test_a_controllers_listener_shows_controllers(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        async def describe(client: Client, kind: int) -> DescribeClusterResponse:
            return await client.call(DescribeClusterRequest(endpoint_type=kind), DescribeClusterResponse, 1)

        controller, broker = await first.connect(to_controller=True), await second.connect()
        found = await describe(controller, 2)
        assert (found.endpoint_type, found.controller_id, [broker.broker_id for broker in found.brokers]) == (2, 1, [1])
        assert (await describe(controller, 1)).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        refused = await describe(broker, 2)
        assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        assert str(refused.error_message).endswith("of type BROKER, but we wanted an endpoint of type CONTROLLER")
        assert [broker.broker_id for broker in (await describe(broker, 1)).brokers] == [1, 2]
        assert (await describe(broker, 9)).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE

    play(tmp_path, scenario)


def enveloped(request: Message, version: int, principal: bytes | None = None) -> EnvelopeRequest:
    assert request.API_KEY is not None
    frame = encode_request_header(RequestHeader(request.API_KEY, version, 4711, "inner")) + encode(request, version)
    return EnvelopeRequest(frame, encode_principal("alice") if principal is None else principal, encode_address(""))


def test_an_envelope_holds_only_forwarded_apis(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        client = await first.connect(to_controller=True)

        async def send(envelope: EnvelopeRequest) -> EnvelopeResponse:
            return await client.call(envelope, EnvelopeResponse, 0)

        create = CreateTopicsRequest([CreatableTopic("t", 1, 1)])
        answer = await send(enveloped(create, CREATE))
        assert answer.error_code == ErrorCode.NONE
        assert answer.response_data is not None
        assert read_response_header(19, CREATE, memoryview(answer.response_data))[0] == 4711
        assert (await send(enveloped(MetadataRequest(), 9))).error_code == ErrorCode.INVALID_REQUEST
        alice = encode_principal("alice")
        for frame, address in ((b"\0" * 20, b"1234"), (b"", b"12345")):
            assert (await send(EnvelopeRequest(frame, alice, address))).error_code == ErrorCode.INVALID_REQUEST
        unknown = encode_request_header(RequestHeader(19, CREATE + 1, 4711, "inner"))
        for frame in (unknown, unknown[:3]):
            envelope = EnvelopeRequest(frame, alice, encode_address(""))
            assert (await send(envelope)).error_code == ErrorCode.UNSUPPORTED_VERSION
        forged = enveloped(create, CREATE, principal=b"\0\x09")
        assert (await send(forged)).error_code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE

    play(tmp_path, scenario)


def test_envelopes_carry_principals_and_addresses() -> None:
    assert decode_principal(encode_principal("CN=a,OU=b")).name == "CN=a,OU=b"
    assert [decode_address(encode_address(text)) for text in ("10.0.0.1", "::1", "fe80::1%eth0", "")] == [
        "10.0.0.1",
        "::1",
        "fe80::1",
        "127.0.0.1",
    ]
    with pytest.raises(ProtocolViolation):
        decode_address(b"12345")


def test_an_error_is_found_at_the_top_or_in_a_part_of_an_answer() -> None:
    code = ErrorCode.NOT_CONTROLLER
    assert says(EnvelopeResponse(None, code), code)
    assert says(CreateTopicsResponse(topics=[CreatableTopicResult("t", error_code=code)]), code)
    assert not says(CreateTopicsResponse(topics=[CreatableTopicResult("t")]), code)
