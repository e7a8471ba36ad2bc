"""Questions of a node to others: against a broker in this process, and against peers that misbehave."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack, unpack_from

import pytest

from kavka_broker.net.outbound import SHARED_BYTES, Frames, Outbound, Remote, is_refused
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.framing import encode_response_parts, read_request_header
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.vote_request import VoteRequest
from kavka_broker.protocol.messages.vote_response import VoteResponse
from tests.support.in_process import running
from tests.support.servers import free_port
from tests.support.waiting import for_ever

TIME_MS = 60_000.0
Answer = Callable[[bytes], Awaitable[bytes | None]]


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[int]:
    """A peer that greets, serves Metadata v1 to v9, and leaves the rest to `answer`; its port."""
    open_writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.append(writer)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                header, _ = read_request_header(memoryview(frame))
                if header.api_key == ApiVersionsRequest.API_KEY:
                    greeting = ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 3), ApiVersion(3, 1, 9)])
                    writer.write(b"".join(encode_response_parts(greeting, header.api_version, header.correlation_id)))
                elif (reply := await answer(frame)) is None:
                    writer.close()
                    return
                else:
                    writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_writers:
            writer.close()


async def metadata_answer(frame: bytes, cluster_id: str = "c") -> bytes:
    header, _ = read_request_header(memoryview(frame))
    return b"".join(
        encode_response_parts(MetadataResponse(cluster_id=cluster_id), header.api_version, header.correlation_id)
    )


async def silence(_: bytes) -> bytes | None:
    await for_ever()
    return None


async def hang_up(_: bytes) -> bytes | None:
    return None


async def wrong_id(frame: bytes) -> bytes | None:
    return b"".join(encode_response_parts(MetadataResponse(), 9, 4711))


async def not_a_message(frame: bytes) -> bytes | None:
    return pack(">ii", 5, unpack_from(">i", frame, 4)[0]) + b"\xff"


async def absurd_size(_: bytes) -> bytes | None:
    return b"GET / HTTP/1.1"[:4] + b"\xff\xff\xff\xff"


def test_a_broker_answers_in_the_newest_version(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            peer = Outbound().to("127.0.0.1", inside.server.advertised[0].port, client_id="node-2")
            unknown = peer.versions
            answer = await peer.ask(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=TIME_MS)
            assert answer.cluster_id == inside.broker.cluster_id
            assert unknown is None
            assert peer.versions is not None
            assert peer.versions[MetadataRequest.API_KEY] == MetadataRequest.VERSIONS
            peer.close()

    asyncio.run(scenario())


def test_many_questions_share_a_connection_and_each_gets_its_answer() -> None:
    async def by_name(frame: bytes) -> bytes | None:
        header, body = read_request_header(memoryview(frame))
        request = decode(MetadataRequest, header.api_version, memoryview(frame)[body:])
        assert request.topics
        return await metadata_answer(frame, request.topics[0].name or "")

    async def scenario() -> None:
        async with answering(by_name) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            names = [f"t{number}" for number in range(50)]
            asked = [
                peer.ask(MetadataRequest([MetadataRequestTopic(name=name)]), MetadataResponse, timeout_ms=TIME_MS)
                for name in names
            ]
            assert [answer.cluster_id for answer in await asyncio.gather(*asked)] == names
            peer.close()

    asyncio.run(scenario())


def test_a_request_that_the_other_side_does_not_know_is_not_sent() -> None:
    async def scenario() -> None:
        async with answering(metadata_answer) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            with pytest.raises(Unreachable, match="does not speak VoteRequest"):
                await peer.ask(VoteRequest(), VoteResponse, timeout_ms=TIME_MS)
            peer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (hang_up, "is lost"),
        (wrong_id, "nobody asked for"),
        (not_a_message, "response header"),
        (absurd_size, "bytes"),
    ],
)
def test_a_peer_that_misbehaves_is_left_and_asked_anew(answer: Answer, words: str) -> None:
    answers = iter([answer, metadata_answer])

    async def next_answer(frame: bytes) -> bytes | None:
        return await next(answers)(frame)

    async def scenario() -> None:
        async with answering(next_answer) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            with pytest.raises(Unreachable, match=words) as raised:
                await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
            assert not raised.value.refused
            assert (await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)).cluster_id == "c"
            peer.close()

    asyncio.run(scenario())


def test_silence_ends_the_connection_for_all_who_wait() -> None:
    async def scenario() -> None:
        arrived = asyncio.Event()

        async def silent(frame: bytes) -> bytes | None:
            arrived.set()
            return await silence(frame)

        async with answering(silent) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            patient = asyncio.ensure_future(peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS))
            await arrived.wait()  # over the connection that the next one ends
            with pytest.raises(Unreachable, match="has not answered"):
                await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=50)
            with pytest.raises(Unreachable, match="has not answered"):
                await patient

    asyncio.run(scenario())


def test_on_a_connection_that_stands_a_question_is_sent_within_its_call() -> None:
    async def scenario() -> None:
        arrived = asyncio.Queue[bytes]()

        async def noted(frame: bytes) -> bytes | None:
            arrived.put_nowait(frame)
            return await metadata_answer(frame)

        async with answering(noted) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
            arrived.get_nowait()
            tasks = asyncio.all_tasks()
            asked = peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
            assert asyncio.all_tasks() == tasks
            await arrived.get()  # though nobody awaits the answer so far
            assert (await asked).cluster_id == "c"
            peer.close()

    asyncio.run(scenario())


def test_a_question_in_the_turn_in_which_the_connection_stands_comes_behind_those_that_waited_for_it() -> None:
    async def scenario() -> None:
        names = list[str | None]()

        async def noted(frame: bytes) -> bytes | None:
            header, body = read_request_header(memoryview(frame))
            asked = decode(MetadataRequest, header.api_version, memoryview(frame)[body:]).topics
            names.append(asked[0].name if asked else None)
            return await metadata_answer(frame)

        async with answering(noted) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")

            def ask(name: str) -> "asyncio.Future[MetadataResponse]":
                request = MetadataRequest([MetadataRequestTopic(name=name)])
                return asyncio.ensure_future(peer.ask(request, MetadataResponse, timeout_ms=TIME_MS))

            asked = [ask("first")]
            assert isinstance(peer, Remote)
            while peer.opening is None:
                await asyncio.sleep(0)
            peer.opening.add_done_callback(lambda _: asked.append(ask("second")))
            await asked[0]
            await asked[1]
            assert names == ["first", "second"]
            peer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("limits_ms", [(60_000, 50), (50, 60_000)])
def test_on_a_connection_that_stands_the_first_limit_counts(limits_ms: tuple[float, float]) -> None:
    answers: Iterator[Answer] = iter([metadata_answer, silence, silence])

    async def next_answer(frame: bytes) -> bytes | None:
        return await next(answers)(frame)

    async def scenario() -> None:
        async with answering(next_answer) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
            asked = [peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=limit_ms) for limit_ms in limits_ms]
            for one in asked:
                with pytest.raises(Unreachable, match="has not answered MetadataRequest within 50 ms"):
                    await one

    asyncio.run(scenario())


def test_a_question_that_nobody_waits_for_any_more_ends_no_connection() -> None:
    answers: Iterator[Answer] = iter([metadata_answer, silence])
    arrived = asyncio.Queue[bytes]()

    async def next_answer(frame: bytes) -> bytes | None:
        arrived.put_nowait(frame)
        return await next(answers)(frame)

    async def scenario() -> None:
        async with answering(next_answer) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
            given_up = asyncio.ensure_future(peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=0))
            patient = asyncio.ensure_future(peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=60_000))
            given_up.cancel()
            for _ in range(2):
                await arrived.get()
            assert not patient.done()
            patient.cancel()
            peer.close()

    asyncio.run(scenario())


def test_a_node_that_nobody_answers_for_is_unreachable() -> None:
    async def scenario() -> None:
        peer = Outbound().to("127.0.0.1", free_port(), client_id="n")
        with pytest.raises(Unreachable) as raised:
            await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
        assert raised.value.refused

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "a\0b"])
def test_a_host_that_is_no_name_is_not_reached(host: str) -> None:
    async def scenario() -> None:
        with pytest.raises(Unreachable, match=r"is no address|not known"):
            await Outbound().to(host, 9, client_id="t").ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
        assert await Outbound().probe(host, 9, TIME_MS) is None

    asyncio.run(scenario())


def test_giving_up_leaves_the_answers_of_others_in_place() -> None:
    async def scenario() -> None:
        async with answering(metadata_answer) as port:
            peer = Outbound().to("127.0.0.1", port, client_id="n")
            first = asyncio.ensure_future(peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS))
            second = asyncio.ensure_future(peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).cluster_id == "c"
            third = asyncio.ensure_future(peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS))
            await asyncio.sleep(0)
            third.cancel()
            assert (await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)).cluster_id == "c"
            peer.close()

    asyncio.run(scenario())


def test_probe_tells_a_listener_from_nobody() -> None:
    async def scenario() -> None:
        async with answering(silence) as port:
            assert await Outbound().probe("127.0.0.1", port, TIME_MS) is True
        assert await Outbound().probe("127.0.0.1", free_port(), TIME_MS) is False

    asyncio.run(scenario())


def test_refused_by_every_address_of_a_host() -> None:
    refused = "[Errno 111] Connect call failed"
    both = f"Multiple exceptions: {refused} ('::1', 1), {refused} ('127.0.0.1', 1)"
    assert is_refused(OSError(both))
    assert not is_refused(OSError(both.replace("111", "113", 1)))
    assert not is_refused(TimeoutError())


def feed(frames: Frames, data: bytes, step: int) -> list[bytes]:
    found: list[bytes] = []
    while data:
        room = frames.room()
        count = min(step, len(room), len(data))
        room[:count] = data[:count]
        data = data[count:]
        found += [bytes(frame) for frame in frames.received(count)]
    return found


@pytest.mark.parametrize("step", [1, 3, 1000, SHARED_BYTES, 10**6])
def test_frames_of_all_sizes_come_out_whole(step: int) -> None:
    sizes = [0, 1, 5, 200, 0, SHARED_BYTES - 4, SHARED_BYTES - 3, 7] if step > 3 else [0, 1, 5, 0, SHARED_BYTES, 7]
    wanted = [bytes([number]) * size for number, size in enumerate(sizes)]
    assert feed(Frames(), b"".join(pack(">i", len(one)) + one for one in wanted), step) == wanted


def test_frames_refuse_a_negative_size() -> None:
    with pytest.raises(ProtocolViolation):
        feed(Frames(), encode(ApiVersionsRequest(), 0) + b"\xff\xff\xff\xff", 8)


def test_who_listens_hears_of_connections_that_break_while_an_answer_is_due() -> None:
    async def scenario() -> None:
        outbound = Outbound()
        told: list[tuple[str, int]] = []
        outbound.on_opened = lambda host, port: told.append(("opened", port))
        outbound.on_broken = lambda host, port: told.append(("broken", port))
        async with answering(hang_up) as port:
            peer = outbound.to("127.0.0.1", port, client_id="n")
            with pytest.raises(Unreachable):
                await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
        assert told == [("opened", port), ("broken", port)]
        told.clear()
        async with answering(metadata_answer) as port:
            peer = outbound.to("127.0.0.1", port, client_id="n")
            await peer.ask(MetadataRequest(), MetadataResponse, timeout_ms=TIME_MS)
            peer.close()
        assert told == [("opened", port)]

    asyncio.run(scenario())
