"""A replica on its way into another log directory while its broker is killed: it arrives, with every record, once."""

import asyncio
import time
from collections.abc import Callable

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kavka_broker.replica.hosting.moves import PIECE_BYTES
from tests.conformance.crashes.test_kill import SECONDS_MAX, Acknowledged, read_all
from tests.support.in_process import Client, R
from tests.support.servers import Server, is_apache_kafka
from tests.support.topics import create_topic

pytestmark = pytest.mark.skipif(is_apache_kafka(), reason="its rate can only be set while it runs")

RECORDS_BEFORE = 20_000
#: More than three lives copy, each of which takes a piece and then waits.
LOG_BYTES = 5 * PIECE_BYTES
RECORDS_AFTER = 1_000
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def ask(server: Server, request: Message, kind: type[R], version: int) -> R:
    async def call() -> R:
        client = Client(*await asyncio.open_connection(*server.address))
        try:
            return await client.call(request, kind, version)
        finally:
            client.close()

    return asyncio.run(call())


def places(server: Server, topic: str) -> dict[str, bool]:
    """The directories with a log of the topic; whether it is only a copy yet."""
    described = ask(server, DescribeLogDirsRequest(None), DescribeLogDirsResponse, 4)
    return {
        directory.log_dir: part.is_future_key
        for directory in described.results
        for one in directory.topics
        if one.name == topic
        for part in one.partitions
    }


def log_bytes(server: Server, topic: str) -> int:
    described = ask(server, DescribeLogDirsRequest(None), DescribeLogDirsResponse, 4)
    topics = [one for directory in described.results for one in directory.topics]
    return sum(part.partition_size for one in topics if one.name == topic for part in one.partitions)


def unhurried(server: Server) -> None:
    """From its next start on nothing holds the copy back."""
    path = server.directory / "server.properties"
    path.write_text(path.read_text().replace(f"{RATE}=1\n", ""))


def test_a_move_goes_on_whatever_ends_the_broker(start: Callable[..., Server], name: str) -> None:
    server = start(**{"log.dirs": "data,more", RATE: "1"})
    create_topic(server, name)
    producer = Acknowledged(server, name)
    while log_bytes(server, name) < LOG_BYTES:
        producer.send(RECORDS_BEFORE)
        producer.flush()
    ((before, is_copy),) = places(server, name).items()
    assert not is_copy
    described = ask(server, DescribeLogDirsRequest(None), DescribeLogDirsResponse, 4)
    after = next(directory.log_dir for directory in described.results if directory.log_dir != before)
    wanted = AlterReplicaLogDirsRequest([AlterReplicaLogDir(after, [AlterReplicaLogDirTopic(name, [0])])])
    answered = ask(server, wanted, AlterReplicaLogDirsResponse, 2)
    assert answered.results[0].partitions[0].error_code == ErrorCode.NONE
    for end in (server.kill, server.stop):
        assert places(server, name) == {before: False, after: True}
        producer.send(RECORDS_AFTER)
        end()
        server.start()
    unhurried(server)
    server.kill()
    server.start()
    deadline = time.monotonic() + SECONDS_MAX
    while places(server, name) != {after: False}:
        assert time.monotonic() < deadline, places(server, name)
        producer.send(10)
        time.sleep(0.1)
    producer.flush()
    server.kill()
    server.start()
    assert places(server, name) == {after: False}
    assert not producer.failures
    assert read_all(server, name, 1) == producer.at
