"""Clients that nobody knows: they come, do what strangers do, and go. Each visit is one connection.

    python -m tests.chaos.strangers PORTS SECONDS      PORTS as JSON, by listener

They have a process of their own, so that they do not slow down the client that is measured beside them. At the end it
prints how many visits of each kind there were, as JSON.
"""

import asyncio
import json
import random
import ssl
import struct
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest

HOST: Final = "127.0.0.1"
OPEN, TLS, SASL, ADMIN = "OPEN", "TLS", "SASL", "ADMIN"
#: A user without a single right, and its password.
NOBODY: Final = ("nobody", "nobody-secret")
#: A user with a password for SCRAM, which no stranger knows.
SCRAM_USER: Final = "scram"
ANSWER_SECONDS_MAX: Final = 60.0
STALL_SECONDS_MAX: Final = 12.0
"""Longer than a broker waits for a handshake, or for a login as the soak configures it."""
BEGINNING_OF_A_HELLO: Final = bytes.fromhex("1603010200010001fc0303")
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789-.\u00e9\U0001f600"
NAME_CHARACTERS_MAX: Final = 8_000
GROUPS: Final = 100
PIPELINED: Final = 100
#: More than a broker has room for: decisions about access, sessions of Fetch, instances that push metrics, and sensors
#: of one user. Requests beyond the last are throttled, so there are few of those.
DECISIONS, SESSIONS, INSTANCES, CLIENT_IDS = 12_000, 1_500, 18_000, 5_100

Ports = Mapping[str, int]
Visit = Callable[[Ports, random.Random], Awaitable[None]]


class Stranger:
    """One connection, under a client id that is invented for it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self.client_id = client_id
        self._reader = reader
        self.writer = writer

    def send(self, request: Message, version: int) -> None:
        """Send a request, and wait for nothing."""
        assert request.API_KEY is not None
        header = encode_request_header(RequestHeader(request.API_KEY, version, 7, self.client_id))
        frame = header + encode(request, version)
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def receive(self) -> bytes:
        """Return the next answer. Raises OSError and EOFError where none comes."""
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return await self._reader.readexactly(size)

    async def ask(self, request: Message, version: int) -> bytes:
        """Send a request and return its answer. Raises as `receive`."""
        self.send(request, version)
        return await self.receive()

    async def ask_each(self, requests: Sequence[Message], version: int, client_ids: Sequence[str] = ()) -> None:
        """Ask all of them, some ahead of their answers, each by a client id of its own where there are any."""
        for first in range(0, len(requests), PIPELINED):
            some = range(first, min(first + PIPELINED, len(requests)))
            for number in some:
                self.client_id = client_ids[number] if client_ids else self.client_id
                self.send(requests[number], version)
            for _ in some:
                await self.receive()

    async def log_in(self, user: str, password: str) -> None:
        """Log in by PLAIN. Whether that has worked shows by the next request."""
        await self.ask(SaslHandshakeRequest("PLAIN"), 1)
        await self.ask(SaslAuthenticateRequest(f"\0{user}\0{password}".encode()), 2)

    async def stay(self, seconds: float) -> None:
        """Stay, and say nothing, until the broker closes the connection or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._reader.read()


@asynccontextmanager
async def coming(port: int, chance: random.Random, context: ssl.SSLContext | None = None) -> AsyncIterator[Stranger]:
    """A stranger on a connection of its own, who ends it or drops it."""
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context)
    try:
        yield Stranger(reader, writer, invented(chance))
    finally:
        (writer.close if chance.random() < 0.5 else writer.transport.abort)()


def invented(chance: random.Random, characters_max: int = NAME_CHARACTERS_MAX) -> str:
    """A name that nobody had before: a short one, or a long one, or one of letters that take four bytes each."""
    letters = LETTERS if chance.random() < 0.2 else LETTERS[:-2]
    stem = "".join(chance.choices(letters, k=16))
    return stem * (chance.choice((1, 1, 4, characters_max // 4)) // 16 or 1) + f"{chance.getrandbits(64):016x}"


def trusting() -> ssl.SSLContext:
    """A client that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


# --- visits, each of one kind ---------------------------------------------------------------------------------------


async def ask_without_a_login(ports: Ports, chance: random.Random) -> None:
    """On a listener that asks for none, where the rules let it do nothing."""
    async with coming(ports[OPEN], chance) as stranger:
        await stranger.ask(ApiVersionsRequest(invented(chance, 400), "1"), 4)
        await stranger.ask(MetadataRequest([MetadataRequestTopic(name=invented(chance, 200))]), 9)
        await stranger.ask(find(chance), 4)


async def come_and_go(ports: Ports, chance: random.Random) -> None:
    """Say nothing at all."""
    async with coming(ports[chance.choice((OPEN, TLS, SASL))], chance):
        pass


async def finish_a_handshake(ports: Ports, chance: random.Random) -> None:
    """Speak TLS, ask for versions, and leave."""
    async with coming(ports[TLS], chance, trusting()) as stranger:
        await stranger.ask(ApiVersionsRequest(invented(chance, 400), "1"), 4)


async def refuse_the_certificate(ports: Ports, chance: random.Random) -> None:
    """Speak TLS, and trust no authority."""
    with suppress(ssl.SSLError):
        async with coming(ports[TLS], chance, ssl.create_default_context()):
            pass


async def stall_in_a_handshake(ports: Ports, chance: random.Random) -> None:
    """Send the beginning of a handshake, or less, and wait."""
    async with coming(ports[TLS], chance) as stranger:
        stranger.writer.write(BEGINNING_OF_A_HELLO[: chance.randrange(len(BEGINNING_OF_A_HELLO) + 1)])
        await stranger.stay(chance.uniform(0, STALL_SECONDS_MAX))


async def send_garbage(ports: Ports, chance: random.Random) -> None:
    """Send bytes that are no handshake, or no frame."""
    async with coming(ports[chance.choice((OPEN, TLS, SASL, ADMIN))], chance) as stranger:
        stranger.writer.write(b"\0\0" + chance.randbytes(chance.randrange(2_000)))
        await stranger.stay(chance.uniform(0, 3))


async def leave_a_login_half_way(ports: Ports, chance: random.Random) -> None:
    """Begin a login, and stay until it is over: at once, behind a question, a mechanism, or the first of two tokens."""
    async with coming(ports[SASL], chance) as stranger:
        steps = chance.randrange(4)
        if steps > 0:
            await stranger.ask(ApiVersionsRequest(invented(chance, 400), "1"), 4)
        if steps > 1:
            await stranger.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)
        if steps > 2:
            await stranger.ask(SaslAuthenticateRequest(f"n,,n={SCRAM_USER},r={chance.getrandbits(64)}".encode()), 2)
        await stranger.stay(STALL_SECONDS_MAX)


async def guess_a_password(ports: Ports, chance: random.Random) -> None:
    """Log in as a user that there is not, by a name of any length."""
    async with coming(ports[SASL], chance) as stranger:
        await stranger.log_in(invented(chance), "guessed")
        await stranger.stay(STALL_SECONDS_MAX)


async def ask_without_a_right(ports: Ports, chance: random.Random) -> None:
    """Log in, and ask for what the rules do not allow, by names that nobody had before."""
    async with coming(ports[SASL], chance) as stranger:
        await stranger.log_in(*NOBODY)
        await stranger.ask(find(chance), 4)
        await stranger.ask(MetadataRequest([MetadataRequestTopic(name=invented(chance, 200))]), 9)
        await stranger.ask(fetch(chance), 12)
        await stranger.ask(GetTelemetrySubscriptionsRequest(chance.randbytes(16)), 0)


async def ask_the_admin_port(ports: Ports, chance: random.Random) -> None:
    """Read the metrics, or ask for them and read nothing."""
    async with coming(ports[ADMIN], chance) as stranger:
        stranger.writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"[: chance.choice((10, 100))])
        await stranger.stay(chance.uniform(0, STALL_SECONDS_MAX))


def find(chance: random.Random) -> FindCoordinatorRequest:
    """A request about groups that there are not, by names that may be kept or are too long for that."""
    characters_max = chance.choice((200, NAME_CHARACTERS_MAX))
    return FindCoordinatorRequest(coordinator_keys=[invented(chance, characters_max) for _ in range(GROUPS)])


def fetch(chance: random.Random) -> FetchRequest:
    """A request that begins a session, about a topic that there is not."""
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=0,
        topics=[FetchTopic(invented(chance, 200), bytes(16), [FetchPartition()])],
    )


#: By kind: what a visit does, and how many visits begin in a second.
VISITS: Final[Mapping[Visit, float]] = {
    ask_without_a_login: 4,
    come_and_go: 20,
    finish_a_handshake: 10,
    refuse_the_certificate: 4,
    stall_in_a_handshake: 10,
    send_garbage: 8,
    leave_a_login_half_way: 8,
    guess_a_password: 6,
    ask_without_a_right: 4,
    ask_the_admin_port: 0.5,
}


async def visit_all(ports: Ports, seconds: float, seed: int = 1) -> Counter[str]:
    """Let strangers come for so long; returns the visits of each kind, those that the broker cut short too."""
    done: Counter[str] = Counter()
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    async def visit(kind: Visit) -> None:
        with suppress(OSError, EOFError, TimeoutError):
            await kind(ports, chance)
        done[kind.__name__] += 1

    async def keep_coming(kind: Visit, a_second: float) -> None:
        there: set[asyncio.Task[None]] = set()
        while loop.time() < end:
            task = asyncio.create_task(visit(kind))
            there.add(task)
            task.add_done_callback(there.discard)
            await asyncio.sleep(chance.expovariate(a_second))
        await asyncio.gather(*there)

    await asyncio.gather(*(keep_coming(kind, a_second) for kind, a_second in VISITS.items()))
    return done


async def fill_caches(ports: Ports, seed: int = 2) -> None:
    """Ask about more names than any cache of the broker has room for, as fast as it answers."""
    chance = random.Random(seed)
    async with coming(ports[SASL], chance) as stranger:
        await stranger.log_in(*NOBODY)
        await stranger.ask_each([find(chance) for _ in range(DECISIONS // GROUPS)], 4)
        await stranger.ask_each([fetch(chance) for _ in range(SESSIONS)], 12)
        pushes = [GetTelemetrySubscriptionsRequest(chance.randbytes(16)) for _ in range(INSTANCES)]
        await stranger.ask_each(pushes, 0)


async def fill_quotas(ports: Ports, seed: int = 3) -> None:
    """Ask by more client ids than clients without a login, and a user, may have sensors of their own."""
    chance = random.Random(seed)
    client_ids = [invented(chance) for _ in range(CLIENT_IDS)]
    for listener in (OPEN, SASL):
        async with coming(ports[listener], chance) as stranger:
            if listener == SASL:
                await stranger.log_in(*NOBODY)
            await stranger.ask_each([MetadataRequest([])] * len(client_ids), 9, client_ids)


def main() -> None:
    ports, seconds = json.loads(sys.argv[1]), float(sys.argv[2])
    print(json.dumps(asyncio.run(visit_all(ports, seconds))))


if __name__ == "__main__":
    main()
