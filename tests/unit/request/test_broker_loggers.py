"""Levels of a node's loggers, shown and altered while it runs (KIP-412)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.audit.buffer import Journal
from kavka_broker.core.audit.chain import Chain
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.events import Changed
from kavka_broker.logs import levels, set_level
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.support.in_process import Client, InProcess, following, running

LOGGERS = 8
OF_LOGGERS = 6
SET, DELETE, APPEND = range(3)
BAD, INVALID = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST


@pytest.fixture(autouse=True)
def _levels_as_before() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in levels()}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def play(directory: Path, scenario: Callable[[InProcess, Client], Awaitable[None]]) -> None:
    """Run a scenario at node 2, which is only a broker."""

    async def run() -> None:
        async with running(directory / "1") as first, following(directory / "2", first) as second:
            set_level("kavka", "INFO")
            await scenario(second, await second.connect())

    asyncio.run(run())


async def alter(client: Client, *ops: tuple[str, int, str | None], name: str = "2", only_asked: bool = False) -> int:
    resource = altering.AlterConfigsResource(LOGGERS, name, [altering.AlterableConfig(*op) for op in ops])
    request = altering.IncrementalAlterConfigsRequest([resource], only_asked)
    (answer,) = (await client.call(request, IncrementalAlterConfigsResponse, 1)).responses
    assert bool(answer.error_message) == bool(answer.error_code)
    return answer.error_code


async def described(client: Client, name: str = "2") -> dict[str, str | None]:
    request = DescribeConfigsRequest([DescribeConfigsResource(LOGGERS, name, None)])
    (result,) = (await client.call(request, DescribeConfigsResponse, 4)).results
    assert all((one.config_source, one.read_only) == (OF_LOGGERS, False) for one in result.configs)
    assert bool(result.error_code) == (name != "2")
    return {one.name: one.value for one in result.configs}


def test_one_part_of_a_node_logs_more_until_it_is_told_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(node: InProcess, client: Client) -> None:
        shown = await described(client)
        assert (shown["kavka"], shown["kavka.replica"], shown["kavka.net"]) == ("INFO",) * 3
        assert await alter(client, ("kavka.replica", SET, "debug")) == 0
        shown = await described(client)
        assert (shown["kavka.replica"], shown["kavka.net"]) == ("DEBUG", "INFO")
        assert logging.getLogger("kavka.replica").isEnabledFor(logging.DEBUG)
        assert await alter(client, ("kavka", SET, "WARN")) == 0
        assert await alter(client, ("kavka.replica", DELETE, None)) == 0
        assert set((await described(client)).values()) == {"WARN"}

    play(tmp_path, scenario)
    told: list[Any] = [record for record in caplog.records if record.getMessage() == "log_level.altered"]
    assert told[0].fields == {"logger": "kavka.replica", "level": "DEBUG"}


def test_what_cannot_be_is_refused_whole(tmp_path: Path) -> None:
    async def scenario(node: InProcess, client: Client) -> None:
        before = await described(client)
        good = ("kavka.net", SET, "DEBUG")
        assert await alter(client, good, ("kavka.nothing", SET, "DEBUG")) == BAD
        assert await alter(client, good, ("kavka", SET, "loud")) == BAD
        assert await alter(client, good, ("kavka", DELETE, None)) == INVALID
        assert await alter(client, good, ("kavka", APPEND, "DEBUG")) == INVALID
        assert await alter(client, good, name="1") == INVALID
        assert await alter(client, good, only_asked=True) == 0
        assert await described(client) == before
        assert await described(client, "1") == {}

    play(tmp_path, scenario)


def test_the_trail_tells_who_has_altered_a_level(tmp_path: Path) -> None:
    async def scenario(node: InProcess, client: Client) -> None:
        journal = node.broker.journal = Journal(Chain("1-1"), 0)
        await alter(client, ("kavka.net", SET, "DEBUG"))
        (tally,) = journal.window.take(1)
        change = Change("ALTER_CONFIGS", "broker_logger", "2", "kavka.net", "DEBUG")
        assert tally.happening == Changed("User:ANONYMOUS", "127.0.0.1", "test", change)

    play(tmp_path, scenario)
