"""Clients of a broker whose image is known to be outdated, as its full disk takes no news: sent away to others."""

import asyncio
from pathlib import Path

from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.support.in_process import running


def test_clients_are_sent_away_from_an_outdated_broker(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect()
            await client.call(MetadataRequest([]), MetadataResponse, 9)
            inside.broker.lifecycle.outdated.is_known = True
            client.send(MetadataRequest([]), 9)
            assert await client.is_closed()
            other = await inside.connect()
            await other.call(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
            other.send(MetadataRequest([]), 9)
            assert await other.is_closed()
            inside.broker.lifecycle.outdated.is_known = False
            again = await inside.connect()
            await again.call(MetadataRequest([]), MetadataResponse, 9)

    asyncio.run(scenario())
