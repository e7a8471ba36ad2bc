"""A broker in the test's own loop, and a client that speaks in messages of any version."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack
from typing import Any, NoReturn, TypeVar

from kavka_broker.controller.format import AS_CONFIGURED, FormatOptions, Voters, format_directory
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.decide.topics import CreateTopic, Defaults, create_topics
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.runtime.environment import REAL, World
from kavka_broker.runtime.server import Server
from kavka_broker.storage.disk import RealDisk

CLUSTER_ID = "a2F2a2EtaW4tcHJvY2Vzcw"
ORDINARY_PARTITIONS = 8
ROUND_TRIPS = 5
NOW_MS = 1_800_000_000_000
R = TypeVar("R", bound=Message)


class Client:
    """One connection; requests may be sent ahead of their answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.client_id = "test"
        self.reader = reader
        self.writer = writer

    def send(self, request: Message, version: int) -> None:
        assert request.API_KEY is not None
        header = RequestHeader(request.API_KEY, version, 7, self.client_id)
        frame = encode_request_header(header) + encode(request, version)
        self.writer.write(pack(">i", len(frame)) + frame)

    async def receive_frame(self) -> bytes:
        async with asyncio.timeout(60):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)

    async def receive(self, kind: type[R], version: int) -> R:
        frame = memoryview(await self.receive_frame())
        assert kind.API_KEY is not None
        _, body = read_response_header(kind.API_KEY, version, frame)
        return decode(kind, version, frame[body:])

    async def call(self, request: Message, kind: type[R], version: int) -> R:
        self.send(request, version)
        return await self.receive(kind, version)

    async def is_closed(self) -> bool:
        """Wait for the node to close; True unless it sends something instead."""
        async with asyncio.timeout(60):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True  # the node has not read all that was sent

    def close(self) -> None:
        self.writer.close()


class InProcess:
    """A running broker with its clients."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.broker = server.broker
        self._clients: list[Client] = []

    async def connect(self, *, to_controller: bool = False, source: str = "127.0.0.1") -> Client:
        port = (self.server.controllers if to_controller else self.server.advertised)[0].port
        self._clients.append(Client(*await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))))
        return self._clients[-1]

    async def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """A topic, open if it is an ordinary one; its id. Configs with underscores for dots."""
        topic_id = os.urandom(16)
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        command = CreateTopic(name, topic_id, partitions, 1, configs=dotted)
        await self.broker.active.submit(lambda metadata, _: create_topics(metadata, [command], Defaults()))
        for _ in range(min(partitions, ORDINARY_PARTITIONS)):
            await asyncio.sleep(0)
        return topic_id

    async def heard(self) -> None:
        """Wait until the node has acted on all that was sent to it before: what others ask behind it is answered."""
        client = await self.connect()
        for _ in range(ROUND_TRIPS):
            await client.call(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
        client.close()

    def close(self) -> None:
        for client in self._clients:
            client.close()


@asynccontextmanager
async def running(
    directory: Path, settings: Mapping[str, str] | None = None, voters: Voters = AS_CONFIGURED, world: World = REAL
) -> AsyncIterator[InProcess]:
    """A node over `directory`, formatted if it is not, broker and controller unless told otherwise; stopped cleanly at
    the end.
    """
    config = BrokerConfig.parse(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "log.dirs": str(directory),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "share.coordinator.state.topic.num.partitions": "2",
            "share.coordinator.state.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
            **(settings or {}),
        }
    )
    format_directory(
        RealDisk(),
        config,
        CLUSTER_ID,
        FormatOptions(voters, ignore_formatted=True),
        now_ms=NOW_MS,
        random_bytes=os.urandom,
    )
    server = Server(config, crash, world)
    await server.start()
    inside = InProcess(server)
    try:
        yield inside
    finally:
        inside.close()
        await server.stop("the test ends")


@asynccontextmanager
async def following(
    directory: Path, first: InProcess, node_id: int = 2, world: World = REAL
) -> AsyncIterator[InProcess]:
    """Another node of the cluster of `first`, a broker alone. It gives a slow controller half a minute to answer a
    heartbeat: otherwise it would ask again for what it has passed on by the same connection, which may be done already.
    """
    settings = {
        "broker.session.timeout.ms": "60000",
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.quorum.voters": "",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{first.server.controllers[0].port}",
    }
    async with running(directory, settings, Voters(none=True), world) as inside:
        yield inside


def crash(error: BaseException) -> NoReturn:
    raise error


def batch(*values: bytes, timestamp_ms: int | None = None, **options: Any) -> bytes:
    """An uncompressed batch of records without keys, stamped now unless said otherwise."""
    stamp = int(asyncio.get_running_loop().time()) if timestamp_ms is None else timestamp_ms
    records = [Record(offset, stamp, None, value, []) for offset, value in enumerate(values)]
    return bytes(build_batch(records, **options))


def values(records: Sequence[Record]) -> list[bytes | None]:
    return [None if record.value is None else bytes(record.value) for record in records]


def code_of(inside: InProcess, index: int) -> ErrorCode:
    """What a client hears that asks this broker for the leader of a partition of topic `t`."""
    try:
        inside.broker.partitions.leader("t", index)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE
