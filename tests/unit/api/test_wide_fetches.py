"""A follower's fetches of more partitions than are read in one go: what is new meanwhile, and who comes behind them."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.api import a01_fetch
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.replica.serving import pending_fetch
from tests.support.in_process import Client, InProcess
from tests.support.waiting import until
from tests.unit.api.test_follower_fetch import VERSION, call, fetch, opened, parts_of, play, size, write

WIDE = pending_fetch.AT_ONCE_MAX + 1


async def settled(inside: InProcess, client: Client, topic_id: bytes) -> int:
    """A fetch session without news."""
    await until(lambda: len(list(inside.broker.partitions)) > WIDE)
    session = await opened(client, topic_id, dict.fromkeys(range(WIDE + 1), 0))
    await call(client, fetch(topic_id, {}, session=(session, 1)))
    return session


def test_an_append_before_the_partition_is_read_wakes_a_wide_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll_of = a01_fetch.poll_of

    def and_then_an_append(request: object, *others: object) -> pending_fetch.Poll:
        made = poll_of(request, *others)  # type: ignore[arg-type]
        asyncio.get_running_loop().call_soon(write, appended_to[0], WIDE)
        return made

    appended_to: list[InProcess] = []

    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        session = await settled(inside, client, topic_id)
        appended_to.append(inside)
        monkeypatch.setattr(a01_fetch, "poll_of", and_then_an_append)
        client.send(fetch(topic_id, dict.fromkeys(range(WIDE), 0), session=(session, 2), wait_ms=60_000), VERSION)
        async with asyncio.timeout(60):
            answer = parts_of(await client.receive(FetchResponse, VERSION))
        assert [index for index, part in answer.items() if size(part)] == [WIDE]

    play(tmp_path, scenario, partitions=WIDE + 1)


@pytest.mark.parametrize("count", [3, WIDE])
def test_the_next_request_ends_the_wait_of_a_wide_fetch(tmp_path: Path, count: int) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        session = await settled(inside, client, topic_id)
        client.send(fetch(topic_id, dict.fromkeys(range(count), 0), session=(session, 2), wait_ms=60_000), VERSION)
        client.send(fetch(topic_id, {}, session=(session, 3)), VERSION)
        async with asyncio.timeout(60):
            await client.receive(FetchResponse, VERSION)
            await client.receive(FetchResponse, VERSION)

    play(tmp_path, scenario, partitions=WIDE + 1)


@pytest.mark.parametrize("count", [3, WIDE])
def test_a_wide_fetch_without_a_session_leaves_no_feed_when_its_connection_ends(tmp_path: Path, count: int) -> None:
    async def scenario(inside: InProcess, client: Client, topic_id: bytes) -> None:
        await settled(inside, client, topic_id)
        feeds = inside.broker.partitions.leader("t", 0).waiters.feeds
        before, one = len(feeds), await inside.connect()
        one.send(fetch(topic_id, dict.fromkeys(range(count), 0), wait_ms=60_000), VERSION)
        async with asyncio.timeout(60):
            await until(lambda: len(feeds) != before)
            one.close()
            await until(lambda: len(feeds) <= before)

    play(tmp_path, scenario, partitions=WIDE + 1)
