"""GetTelemetrySubscriptions and PushTelemetry over a socket, and what a broker knows of the client that asks."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kavka_broker.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.push_telemetry_request import PushTelemetryRequest
from kavka_broker.protocol.messages.push_telemetry_response import PushTelemetryResponse
from tests.support.in_process import Client, InProcess, running
from tests.support.pushes import gauge, metrics
from tests.support.waiting import until

Scenario = Callable[[InProcess, Client], Coroutine[None, None, None]]
ME = b"\7" * 16
NOBODY = bytes(16)


def play(directory: Path, scenario: Scenario, **settings: str) -> None:
    async def run() -> None:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        async with running(directory, dotted) as broker:
            await scenario(broker, await broker.connect())

    asyncio.run(run())


async def subscribe(broker: InProcess, client: Client, **values: str) -> None:
    """Set configs of a subscription; the broker holds to them, for its controller is in the same process."""
    configs = [altering.AlterableConfig(key.replace("_", "."), 0, value) for key, value in values.items()]
    request = altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(16, "one", configs)])
    answer = await client.call(request, IncrementalAlterConfigsResponse, 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


async def asked(client: Client, instance_id: bytes = ME) -> GetTelemetrySubscriptionsResponse:
    return await client.call(GetTelemetrySubscriptionsRequest(instance_id), GetTelemetrySubscriptionsResponse, 0)


async def pushed(client: Client, subscription_id: int, data: bytes, instance_id: bytes = ME) -> ErrorCode:
    request = PushTelemetryRequest(instance_id, subscription_id, metrics=data)
    return ErrorCode((await client.call(request, PushTelemetryResponse, 0)).error_code)


def test_a_client_that_nobody_asks(tmp_path: Path) -> None:
    async def scenario(broker: InProcess, client: Client) -> None:
        answer = await asked(client, NOBODY)
        assert answer.error_code == 0
        assert answer.client_instance_id != NOBODY
        assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300_000)
        assert answer.telemetry_max_bytes == 1_048_576
        assert (await asked(client, answer.client_instance_id)).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED

    play(tmp_path, scenario)


def test_what_is_pushed_is_kept_under_the_clients_names(tmp_path: Path) -> None:
    async def scenario(broker: InProcess, client: Client) -> None:
        named = ApiVersionsRequest("my-software", "1.2")
        assert (await client.call(named, ApiVersionsResponse, 3)).error_code == 0
        await subscribe(broker, client, metrics="org.", match="client_software_name=my-software,client_id=test")
        answer = await asked(client)
        assert answer.requested_metrics == ["org."]
        push = metrics(*(gauge(f"org.m{number}", 1.5) for number in range(200)))
        assert await pushed(client, answer.subscription_id, push) is ErrorCode.NONE
        series = dict(broker.broker.client_metrics.series)
        assert len(series) == 200
        assert {key.client for key in series} == {("test", "my-software/1.2")}

    play(tmp_path, scenario)


def test_a_large_push_and_one_that_is_too_large(tmp_path: Path) -> None:
    async def scenario(broker: InProcess, client: Client) -> None:
        await subscribe(broker, client, metrics="*")
        answer = await asked(client)
        assert answer.telemetry_max_bytes == 20_000
        push = metrics(gauge("org.m", *([1.5] * 1_600)))
        assert 16_000 < len(push) < 20_000
        assert await pushed(client, answer.subscription_id, push) is ErrorCode.NONE
        assert await pushed(client, answer.subscription_id, bytes(20_001)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        other = await asked(client, b"\x08" * 16)
        refused = await pushed(client, other.subscription_id, bytes(20_001), b"\x08" * 16)
        assert refused is ErrorCode.TELEMETRY_TOO_LARGE

    play(tmp_path, scenario, telemetry_max_bytes="20000")


def test_a_push_that_cannot_be_read(tmp_path: Path) -> None:
    async def scenario(broker: InProcess, client: Client) -> None:
        await subscribe(broker, client, metrics="*")
        answer = await asked(client)
        assert await pushed(client, answer.subscription_id, b"\xff" * 50) is ErrorCode.INVALID_RECORD
        assert broker.broker.client_metrics.results == {"INVALID_RECORD": 1}

    play(tmp_path, scenario)


def test_an_instance_ends_with_its_connection_and_is_told_once(tmp_path: Path) -> None:
    async def scenario(broker: InProcess, client: Client) -> None:
        for _ in range(3):
            await asked(client)
        known = broker.broker.client_metrics
        assert known.instances.knows(ME)
        assert [len(peer.on_lost) for peer in known.by_connection] == [1]  # type: ignore[attr-defined]
        client.close()
        await until(lambda: not known.instances.knows(ME))
        assert known.by_connection == {}

    play(tmp_path, scenario)


def test_after_a_restart_the_same_subscription_has_the_same_id(tmp_path: Path) -> None:
    answers: list[GetTelemetrySubscriptionsResponse] = []

    async def scenario(broker: InProcess, client: Client) -> None:
        if not answers:
            await subscribe(broker, client, metrics="a,b,c", interval_ms="5000")
        else:
            assert await pushed(client, answers[0].subscription_id, b"") is ErrorCode.NONE
            assert await pushed(client, 5, b"", b"\x09" * 16) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        answers.append(await asked(client, b"\x0a" * 16 if answers else ME))

    play(tmp_path, scenario)
    play(tmp_path, scenario)
    assert answers[0].requested_metrics == answers[1].requested_metrics == ["a", "b", "c"]


async def offered(client: Client) -> set[int]:
    """The keys of telemetry that a client is told of."""
    answer = await client.call(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
    return {api.api_key for api in answer.api_keys} & {71, 72}


def test_telemetry_is_offered_where_a_subscription_asks_for_it(tmp_path: Path) -> None:
    async def scenario(broker: InProcess, client: Client) -> None:
        assert await offered(client) == set()
        await subscribe(broker, client, metrics="*")
        assert await offered(client) == {71, 72}

    play(tmp_path, scenario)


def test_telemetry_is_offered_where_a_collector_gets_it(tmp_path: Path) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        assert await offered(client) == {71, 72}

    play(tmp_path, scenario, kavka_telemetry_otlp_endpoint="http://127.0.0.1:1/v1/metrics")
