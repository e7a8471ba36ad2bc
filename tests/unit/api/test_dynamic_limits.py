"""How many connections a broker takes changes while it runs (KIP-308)."""

import asyncio
from pathlib import Path

from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.support.in_process import running

BROKER, SET, DELETE = 4, 0, 1


def test_connections_of_an_address_are_limited_and_freed_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect()

            async def alter(operation: int, value: str | None) -> None:
                change = altering.AlterableConfig("max.connections.per.ip", operation, value)
                request = altering.IncrementalAlterConfigsRequest([altering.AlterConfigsResource(BROKER, "", [change])])
                (answer,) = (await client.call(request, IncrementalAlterConfigsResponse, 1)).responses
                assert answer.error_code == 0, answer.error_message

            await alter(SET, "1")
            assert await (await inside.connect()).is_closed()
            await alter(DELETE, None)
            other = await inside.connect()
            await other.call(altering.IncrementalAlterConfigsRequest(), IncrementalAlterConfigsResponse, 1)

    asyncio.run(run())


def test_the_bound_on_memory_outlives_a_change_of_limits(tmp_path: Path) -> None:
    """The memory that requests have used by then still counts."""

    async def run() -> None:
        async with running(tmp_path) as inside:
            addresses = inside.server.addresses
            before = [listener.limits.memory for listener in addresses.of_brokers]
            addresses.limit_brokers(inside.server.config.altered({"max.connections": "7"}))
            assert all(one.limits.memory is two for one, two in zip(addresses.of_brokers, before, strict=True))

    asyncio.run(run())
