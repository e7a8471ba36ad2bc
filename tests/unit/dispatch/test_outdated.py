"""Clients of a broker whose image is known to be outdated, as its full disk takes no news: sent away to others."""

import asyncio
from pathlib import Path

from kavka_broker.membership.outdated_image import OUTDATED
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.support.in_process import Client, InProcess, running


def outdate(inside: InProcess) -> None:
    """Let the controller say that the broker is fenced, while its image stands still."""
    outdated = inside.broker.lifecycle.outdated
    outdated.has_room = lambda: False
    outdated.told(is_fenced=True, is_unfenced=True)


async def ask(client: Client) -> None:
    await client.call(MetadataRequest([]), MetadataResponse, 9)


def test_clients_are_sent_away_from_an_outdated_broker_until_its_image_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            waiting = await inside.connect()
            await ask(waiting)
            assert inside.server.health.is_ready
            outdate(inside)
            assert await waiting.is_closed(), "it has not asked again, and need not"
            assert inside.server.health.obstacles == {"outdated": OUTDATED}
            other = await inside.connect()
            other.send(MetadataRequest([]), 9)
            assert await other.is_closed()
            inside.broker.lifecycle.outdated.replayed(is_unfenced=False)
            await ask(await inside.connect())
            assert inside.server.health.is_ready

    asyncio.run(scenario())


def test_an_outdated_broker_says_what_is_on_its_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            outdate(inside)
            client = await inside.connect()
            answer = await client.call(DescribeLogDirsRequest(None), DescribeLogDirsResponse, 4)
            assert len(answer.results) == 1

    asyncio.run(scenario())
