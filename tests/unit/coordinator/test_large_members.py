"""Members that say much: with many protocols, for many others, and in requests that wait long for their answers."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from sys import getrefcount
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from kavka_broker.api import a14_sync_group
from kavka_broker.coordinator.groups import group_shard as shard
from kavka_broker.core.group.settings import PROTOCOLS_MAX
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from tests.support.in_process import Client, InProcess, running
from tests.unit.coordinator.calls import find, join, join_request

LARGE_BYTES = 100_000
BOUND_BYTES = 2 * LARGE_BYTES


def play(directory: Path, scenario: Callable[[InProcess, Client], Awaitable[None]]) -> None:
    async def run() -> None:
        settings = {
            "queued.max.request.bytes": str(BOUND_BYTES),
            "socket.request.max.bytes": str(BOUND_BYTES),
            "offsets.topic.num.partitions": "1",
        }
        async with running(directory, settings) as inside:
            client = await inside.connect()
            await find(client, "g")
            await scenario(inside, client)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("count", "code"), [(PROTOCOLS_MAX, ErrorCode.NONE), (PROTOCOLS_MAX + 1, ErrorCode.INVALID_REQUEST)]
)
def test_the_number_of_protocols_of_a_member_is_limited(tmp_path: Path, count: int, code: ErrorCode) -> None:
    async def scenario(_: InProcess, client: Client) -> None:
        request = join_request("g")
        request.protocols = [JoinGroupRequestProtocol(f"p{number}", b"") for number in range(count)]
        assert (await client.call(request, JoinGroupResponse, 3)).error_code == code

    play(tmp_path, scenario)


def test_a_waiting_join_frees_its_request_memory(tmp_path: Path) -> None:
    """The other members' requests may need all of `queued.max.request.bytes` before the join is answered."""

    async def scenario(inside: InProcess, client: Client) -> None:
        late = await join(client, "g")
        (listener,) = inside.server.addresses.of_brokers
        waiting: list[Client] = []
        for number in range(2 * BOUND_BYTES // LARGE_BYTES):
            waiting.append(await inside.connect())
            request = join_request("g")
            request.protocols[0].metadata = bytes(LARGE_BYTES)
            waiting[-1].send(request, 3)
            members = inside.broker.groups.shard("g").image.groups["g"].members
            async with asyncio.timeout(60):
                while len(members) < number + 2:
                    await asyncio.sleep(0)
            assert listener.limits.memory.used_bytes == 0
        again = join_request("g", late.member_id)
        client.send(again, 3)
        answers = [await member.receive(JoinGroupResponse, 3) for member in (client, *waiting)]
        assert {answer.generation_id for answer in answers} == {2}

    play(tmp_path, scenario)


def test_a_sync_with_many_assignments_is_taken_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[int] = []
    by_member = a14_sync_group.by_member

    def noting(some: list[SyncGroupRequestAssignment]) -> dict[str, bytes]:
        parts.append(len(some))
        return by_member(some)

    monkeypatch.setattr(a14_sync_group, "by_member", noting)

    async def scenario(_: InProcess, client: Client) -> None:
        member_id = (await join(client, "g")).member_id
        names = [*(f"m{number}" for number in range(2_499)), member_id]
        assignments = [SyncGroupRequestAssignment(name, name.encode()) for name in names]
        request = SyncGroupRequest("g", 1, member_id, None, "consumer", "range", assignments)
        client.send(request, 5)
        client.send(ApiVersionsRequest("a", "1"), 3)
        assert (await client.receive(SyncGroupResponse, 5)).assignment == member_id.encode()
        await client.receive(ApiVersionsResponse, 3)
        assert parts == [1_000, 1_000, 500]

    play(tmp_path, scenario)


def test_a_waiting_sync_keeps_none_of_its_many_assignments() -> None:
    """The assignments no longer count in `queued.max.request.bytes`."""

    async def scenario() -> None:
        has_begun = asyncio.Event()
        shard_that_waits = SimpleNamespace(sync=lambda *_: None)
        broker: Any = SimpleNamespace(slices=Slices(), groups=SimpleNamespace(shard=lambda _: shard_that_waits))
        client: Any = SimpleNamespace(forget_request=has_begun.set)
        payload = bytes(LARGE_BYTES)
        before = getrefcount(payload)
        assignments = [SyncGroupRequestAssignment(f"m{number}", payload) for number in range(1_001)]
        request = SyncGroupRequest("g", 1, "m0", None, "consumer", "range", assignments)
        waiting = asyncio.ensure_future(a14_sync_group.sync_many(request, broker, client))
        del assignments, request
        await has_begun.wait()
        assert (getrefcount(payload), waiting.done()) == (before, False)
        waiting.cancel()

    asyncio.run(scenario())


def test_a_group_record_too_large_for_the_log_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        member_id = (await join(client, "g")).member_id
        partition = inside.broker.partitions.get("__consumer_offsets", inside.broker.groups.shard("g").partition.index)
        assert partition is not None
        partition.log.config = replace(partition.log.config, max_message_bytes=1_000)
        monkeypatch.setattr(shard, "batch_of", unexpected)
        assignments = [SyncGroupRequestAssignment(member_id, bytes(1_000))]
        request = SyncGroupRequest("g", 1, member_id, None, "consumer", "range", assignments)
        answer = await client.call(request, SyncGroupResponse, 5)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

    play(tmp_path, scenario)


def unexpected(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("it is built")
