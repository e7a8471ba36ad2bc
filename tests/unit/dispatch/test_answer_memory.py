"""Long answers: what they take of memory together, and who waits for it."""

import asyncio
import socket
import tracemalloc
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from struct import pack
from types import SimpleNamespace
from typing import Any, Final

import pytest

from kavka_broker.core.group.state import ClassicGroup, GroupState, Member
from kavka_broker.dispatch.dispatcher import Dispatcher, Exchange
from kavka_broker.dispatch.forwarding import Forwarded
from kavka_broker.loop.slices import LoopTime
from kavka_broker.loop.turns import Turns
from kavka_broker.net.connection import OUTBOX_BYTES_MAX, Connection
from kavka_broker.net.outbox import CHUNK_BYTES_MAX
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.messages.create_topics_request import CreateTopicsRequest
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribeGroupsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListGroupsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from kavka_broker.request import answer_memory
from kavka_broker.request.answer_memory import AnswerBounds
from kavka_broker.request.broker import Broker
from kavka_broker.request.broker import Client as RequestClient
from kavka_broker.request.registry import APIS
from tests.support.in_process import Client, InProcess, crash, running
from tests.support.waiting import until
from tests.unit.coordinator.calls import find

VERSION: Final = 5
MEMBERS: Final = 200
BROKER: Final = 4  # the type of a resource
ID: Final = bytes(15) + b"1"
GROUPS: Final = [f"g{number}" for number in range(100)]
#: What an answer takes at most, of its own bytes: they are joined to be sent, and a part is there as objects.
TIMES_MAX: Final = 3.0


class Clock:
    """Says what the test has set."""

    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic_ms(self) -> float:
        return self.now_ms


class Unset:
    """Timers that never fire."""

    def after(self, *_: object) -> object:
        return self


def fill(broker: Broker) -> None:
    """Add large groups to the image; their members are one, so that they take little themselves."""
    members = {
        f"member-{number}": Member(f"member-{number}", None, "client", "/127.0.0.1", 10_000, 60_000, ())
        for number in range(MEMBERS)
    }
    for group_id in GROUPS:
        group = ClassicGroup(group_id, state=GroupState.STABLE, protocol_type="consumer", protocol_name="range")
        group.members.update(members)
        broker.groups.shard(group_id).image.groups[group_id] = group


async def filled(inside: InProcess) -> Client:
    client = await inside.connect()
    await find(client, "g")
    fill(inside.broker)
    return client


async def describe(client: Client) -> DescribeGroupsResponse:
    return await client.call(DescribeGroupsRequest(GROUPS), DescribeGroupsResponse, VERSION)


def test_an_answer_about_many_groups_takes_a_few_times_its_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client = await filled(inside)
            answer = await describe(client)
            assert [len(group.members) for group in answer.groups] == [MEMBERS] * len(GROUPS)
            tracemalloc.start()
            try:
                client.send(DescribeGroupsRequest(GROUPS), VERSION)
                size_bytes = len(await client.receive_frame())
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert peak < (TIMES_MAX + 1) * size_bytes  # and once in this process's client
            assert inside.broker.answers.used_bytes == 0

    asyncio.run(scenario())


async def deaf(inside: InProcess) -> socket.socket:
    """A client that reads nothing, and for which answers wait already."""
    loop, port = asyncio.get_running_loop(), inside.server.advertised[0].port
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await loop.sock_connect(client, ("127.0.0.1", port))
    while not any(map(held, connections(inside))):
        is_over = partial(has_sent_more, inside, sent(inside))
        await loop.sock_sendall(client, asking(GROUPS[:8]))
        await until(is_over)
    return client


def connections(inside: InProcess) -> list[Connection]:
    """The connections of the broker's listeners."""
    return [connection for listener in inside.server.addresses for connection in listener.connections]


def sent(inside: InProcess) -> int:
    """The bytes of all answers, whether they are taken or not."""
    return sum(one.outbox.sent_bytes + one.outbox.waiting_bytes for one in connections(inside))


def has_sent_more(inside: InProcess, than_bytes: int) -> bool:
    return sent(inside) > than_bytes


def held(connection: Connection) -> int:
    """The bytes that a transport holds back: its client reads nothing."""
    return connection._transport.get_write_buffer_size()


def asking(groups: list[str]) -> bytes:
    """The frame of a request that describes groups."""
    request = DescribeGroupsRequest(groups)
    header = encode_request_header(RequestHeader(request.API_KEY, VERSION, 7, "deaf"))
    frame = header + encode(request, VERSION)
    return pack(">i", len(frame)) + frame


def test_small_answers_that_nobody_reads_are_bounded(tmp_path: Path) -> None:
    """Each was less than a chunk: the transport took them all, whatever it held, and nothing counted them."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await filled(inside)
            client = await deaf(inside)
            with suppress(BlockingIOError):  # it is read from no longer
                for _ in range(5_000):
                    client.send(asking(GROUPS[:8]))
                    await asyncio.sleep(0)
            (connection,) = [one for one in connections(inside) if held(one)]
            assert held(connection) <= CHUNK_BYTES_MAX
            assert connection.outbox.waiting_bytes <= 2 * OUTBOX_BYTES_MAX
            client.close()

    asyncio.run(scenario())


def test_a_client_that_leaves_without_reading_keeps_no_place(tmp_path: Path) -> None:
    """Eight of them, and no list was made any more: a transport that is closed waits for what it holds."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            good = await filled(inside)
            clients = []
            for _ in range(answer_memory.MAKING_MAX):
                clients.append(await deaf(inside))
                await asyncio.get_running_loop().sock_sendall(clients[-1], asking(GROUPS))
                clients[-1].shutdown(socket.SHUT_WR)
                await until(lambda: not any(map(held, connections(inside))))
            answer = await good.call(ListGroupsRequest(), ListGroupsResponse, VERSION)
            assert len(answer.groups) == len(GROUPS)
            for client in clients:
                client.close()

    asyncio.run(scenario())


def test_an_answer_that_grows_too_long_ends_its_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            inside.broker.answers.bounds = AnswerBounds(answer_bytes_max=100_000)
            client = await filled(inside)
            client.send(DescribeGroupsRequest(GROUPS), VERSION)
            assert await client.is_closed()
            await until(lambda: inside.broker.answers.used_bytes == 0)
            client = await inside.connect()
            answer = await client.call(DescribeGroupsRequest(GROUPS[:5]), DescribeGroupsResponse, VERSION)
            assert len(answer.groups) == 5

    asyncio.run(scenario())


def test_an_answer_of_few_and_large_elements_is_long(tmp_path: Path) -> None:
    """It is written in a thread, and counts until it is taken."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client, answers = await filled(inside), inside.broker.answers
            group = inside.broker.groups.shard("g0").image.groups["g0"]
            large = (("range", bytes(4 * 1024 * 1024)),)
            group.members = {name: Member(name, None, "c", "/h", 10_000, 60_000, large) for name in ("a", "b", "c")}
            client.send(DescribeGroupsRequest(["g0"]), VERSION)
            await until(lambda: bool(answers.holders))
            assert answers.used_bytes > 4 * 1024 * 1024
            assert len(await client.receive_frame()) > 12 * 1024 * 1024
            await until(lambda: answers.used_bytes == 0)

    asyncio.run(scenario())


def test_answers_of_fetch_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records stand behind its part that takes memory: who reads them steadily would seem to take nothing."""
    finish, written = Dispatcher._finish, dict[str, int]()

    def noting(dispatcher: Dispatcher, exchange: Exchange, answer: Any) -> None:
        finish(dispatcher, exchange, answer)
        written[exchange.api.name] = exchange.written_bytes

    monkeypatch.setattr(Dispatcher, "_finish", noting)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client = await filled(inside)
            await describe(client)
            partitions = [FetchPartition(number) for number in range(1_000)]
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic_id=ID, partitions=partitions)])
            answer = await client.call(request, FetchResponse, 13)
            assert len(answer.responses[0].partitions) == len(partitions)
            assert written["DescribeGroups"] > 0
            assert written["Fetch"] == 0

    asyncio.run(scenario())


def test_an_answer_that_grows_too_long_is_no_error_in_an_answer() -> None:
    """OffsetFetch from version 8 on has no place for it, and would say that nothing was committed."""
    making = answer_memory.AnswerMemory(Clock(), Unset()).place(("u", ""))  # type: ignore[arg-type]
    making.grow(answer_memory.ANSWER_BYTES_MAX)
    with pytest.raises(ProtocolViolation, match="ask for less"):
        making.grow(1)


def test_a_wrong_name_of_32_kb_is_answered(tmp_path: Path) -> None:
    """The message would be longer than any version can carry."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect()
            request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "9" * 32_740)])
            answer = await client.call(request, DescribeConfigsResponse, 4)
            assert answer.results[0].error_code == ErrorCode.INVALID_REQUEST

    asyncio.run(scenario())


def test_who_asks_for_few_offsets_waits_for_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            inside.broker.answers.bounds = AnswerBounds(making_max=0)
            client = await filled(inside)
            topic = OffsetFetchRequestTopics("t", partition_indexes=[0])
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=[topic])])
            answer = await client.call(request, OffsetFetchResponse, 9)
            assert answer.groups[0].topics[0].partitions[0].committed_offset == -1

    asyncio.run(scenario())


def test_who_does_not_take_an_answer_loses_the_connection_once_others_wait(tmp_path: Path) -> None:
    bounds = AnswerBounds(bytes_max=1, taking_ms=3_600_000, look_ms=10)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            slow, answers = await filled(inside), inside.broker.answers
            answers.bounds = bounds
            for _ in range(8):  # more than the sockets take
                slow.send(DescribeGroupsRequest(GROUPS), VERSION)
            await until(lambda: answers.used_bytes > 0 and bool(answers.holders))
            other = await inside.connect()
            other.send(ListGroupsRequest(), VERSION)
            await until(lambda: answers.waiting_count > 0)
            answers.bounds = replace(bounds, taking_ms=0)
            answer = await other.receive(ListGroupsResponse, VERSION)
            assert len(answer.groups) == len(GROUPS)
            await until(lambda: not answers.holders)
            assert answers.used_bytes == 0

    asyncio.run(scenario())


def test_who_leaves_while_it_waits_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client, answers = await filled(inside), inside.broker.answers
            answers.bounds = AnswerBounds(making_max=1)
            making = answers.place(("u", "c"))
            for _ in range(3):
                leaver = await inside.connect()
                leaver.send(ListGroupsRequest(), VERSION)
                await until(lambda: answers.waiting_count == 1)
                leaver.close()
                await until(lambda: answers.waiting_count == 0)
            client.send(ListGroupsRequest(), VERSION)
            await until(lambda: answers.waiting_count == 1)
            making.end()
            assert len((await client.receive(ListGroupsResponse, VERSION)).groups) == len(GROUPS)
            assert not answers.is_full

    asyncio.run(scenario())


def test_a_request_that_names_much_waits_for_room_before_it_is_served(tmp_path: Path) -> None:
    """Its answer counted without a wait: one client kept those that list waiting for good."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client, answers = await inside.connect(), inside.broker.answers
            answers.bounds = AnswerBounds(making_max=1)
            making = answers.place(("another", ""))
            names = [MetadataRequestTopic(name=f"topic-{number}") for number in range(2_000)]
            client.send(MetadataRequest(names, allow_auto_topic_creation=False), 9)
            await until(lambda: answers.waiting_count == 1)
            making.end()
            assert len((await client.receive(MetadataResponse, 9)).topics) == len(names)
            await until(lambda: (answers.making_count, answers.used_bytes) == (0, 0))

    asyncio.run(scenario())


def test_an_answer_that_proves_long_waits_for_room_before_it_is_written(tmp_path: Path) -> None:
    """Four thousand clients that asked for their assignments took twelve times the bound."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client, answers = await filled(inside), inside.broker.answers
            group = inside.broker.groups.shard("g0").image.groups["g0"]
            group.members = {"a": Member("a", None, "c", "/h", 10_000, 60_000, (("range", bytes(1024 * 1024)),))}
            answers.bounds = AnswerBounds(making_max=1)
            making = answers.place(("another", ""))
            client.send(DescribeGroupsRequest(["g0"]), VERSION)
            await until(lambda: answers.waiting_count == 1)
            assert answers.used_bytes == 0
            making.end()
            assert len(await client.receive_frame()) > 1024 * 1024

    asyncio.run(scenario())


def test_a_long_answer_of_another_controller_counts() -> None:
    """900 bytes for each topic that is made there, without any bound."""

    async def scenario() -> None:
        clock = Clock()
        broker: Any = SimpleNamespace(clock=clock)
        create = APIS[CreateTopicsRequest.API_KEY]
        dispatcher = Dispatcher(broker, {create.key: create}, crash, LoopTime(lambda: 0, Turns()))
        for size, counted in ((1_000, 0), (1_000_000, 1_000_000)):
            exchange = Exchange(create, RequestClient(7, "c", 1, "127.0.0.1", "PLAINTEXT"), 0)
            dispatcher._finish(exchange, Forwarded(bytes(size)))
            assert exchange.written_bytes == counted

    asyncio.run(scenario())


def test_turns_are_of_principals_and_of_addresses_where_nobody_has_logged_in() -> None:
    """By client ids one client would be many, each with a turn before others."""
    known = [RequestClient(1, f"id-{number}", 1, "10.0.0.1", "SASL", user="alice") for number in range(2)]
    unknown = [RequestClient(1, f"id-{number}", 1, f"10.0.0.{number}", "PLAINTEXT") for number in (1, 1, 2)]
    assert {client.queue_name for client in known} == {("alice", "")}
    assert {client.queue_name for client in unknown} == {("ANONYMOUS", "10.0.0.1"), ("ANONYMOUS", "10.0.0.2")}


@pytest.mark.parametrize("leaves", [False, True], ids=["goes on", "its connection ends"])
def test_an_answer_that_waits_for_something_else_gives_its_place_to_others(leaves: bool) -> None:
    async def scenario() -> None:
        memory = answer_memory.AnswerMemory(None, None)  # type: ignore[arg-type]  # there is room all the time
        resting = [memory.place(("monitor", "")) for _ in range(answer_memory.MAKING_MAX)]
        assert memory.is_full
        with ExitStack() as stack:
            for making in resting:
                stack.enter_context(making.resting())
            (await memory.turn(("admin", ""))).end()
            if leaves:
                for making in resting:
                    making.end()
        assert memory.making_count == (0 if leaves else len(resting))
        for making in resting:
            making.end()
        assert memory.making_count == 0

    asyncio.run(scenario())


def test_very_many_slow_clients_are_closed_a_few_in_a_step() -> None:
    clock, closed = Clock(), list[str]()
    memory = answer_memory.AnswerMemory(clock, Unset(), AnswerBounds(bytes_max=1))  # type: ignore[arg-type]
    for _ in range(500):
        memory.held(closed.append).grow(10)
    clock.now_ms = answer_memory.TAKING_MS
    memory.look()
    assert len(closed) == answer_memory.CLOSED_AT_ONCE_MAX
    memory.look()
    assert len(closed) == 2 * answer_memory.CLOSED_AT_ONCE_MAX


def test_clients_have_room_in_turn() -> None:
    """Who has had more bytes waits behind who has had less, however many requests it has sent."""

    async def scenario() -> None:
        memory = answer_memory.AnswerMemory(None, None)  # type: ignore[arg-type]  # there is room all the time
        first = [await memory.turn(("greedy", "")) for _ in range(answer_memory.MAKING_MAX)]
        order: list[str] = []

        async def ask(user: str) -> None:
            making = await memory.turn((user, ""))
            order.append(user)
            making.end()

        tasks = [asyncio.ensure_future(ask("greedy")) for _ in range(4)]
        await asyncio.sleep(0)
        tasks.append(asyncio.ensure_future(ask("modest")))
        await asyncio.sleep(0)
        first[0].made(10_000_000)
        await asyncio.gather(*tasks)
        first[0].end()
        assert order[0] == "modest"
        for making in first[1:]:
            making.end()
        assert (memory.making_count, memory.used_bytes) == (0, 0)

    asyncio.run(scenario())


def test_the_largest_that_are_not_taken_end_where_there_is_no_room() -> None:
    async def scenario() -> None:
        clock = Clock()
        memory = answer_memory.AnswerMemory(clock, Unset(), AnswerBounds(bytes_max=1_000))  # type: ignore[arg-type]
        closed: list[str] = []

        def note(name: str, reason: str) -> None:
            closed.append(name)

        small, large, steady = (memory.held(partial(note, name)) for name in ("s", "l", "t"))
        small.grow(500)
        large.grow(900)
        steady.grow(200)
        clock.now_ms += answer_memory.TAKING_MS - 1
        steady.shrink(0)
        steady.grow(200)
        memory.look()
        assert closed == []
        clock.now_ms += 1
        memory.look()
        assert closed == ["l"], "without it there is room again"

    asyncio.run(scenario())


def test_who_takes_what_waits_in_time_is_not_slow_though_more_comes() -> None:
    async def scenario() -> None:
        clock = Clock()
        memory = answer_memory.AnswerMemory(clock, Unset())  # type: ignore[arg-type]
        held = memory.held(lambda reason: None)
        held.grow(100)
        for _ in range(10):
            clock.now_ms += answer_memory.TAKING_MS - 1
            held.grow(100)
            held.shrink(100)
            assert clock.now_ms - held.since_ms < answer_memory.TAKING_MS
        held.shrink(0)
        assert (memory.used_bytes, memory.holders) == (0, {})

    asyncio.run(scenario())
