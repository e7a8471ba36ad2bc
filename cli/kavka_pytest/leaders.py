"""Asks one broker who leads: a client of Kafka would ask any of them, and one that is isolated knows what is old."""

import socket
import time
from collections.abc import Sequence
from typing import Final

from kavka_broker.protocol.codec import decoder, encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse

VERSION: Final = 9
SIZE_BYTES: Final = 4
ASK_SECONDS_MAX: Final = 5.0
AGAIN_SECONDS: Final = 0.05
CLIENT_ID: Final = "kavka-pytest"


def leader_known_to(servers: Sequence[str], topic: str, partition: int, seconds_max: float) -> int | None:
    """The leader of a partition, from the first of these brokers (host:port) that knows one; None where none does in
    time.
    """
    deadline = time.monotonic() + seconds_max
    while True:
        for server in servers:
            leader = leaders_at(server, topic).get(partition, -1)
            if leader >= 0:
                return leader
        if time.monotonic() > deadline:
            return None
        time.sleep(AGAIN_SECONDS)


def leaders_at(server: str, topic: str) -> dict[int, int]:
    """The leader of each partition as a broker knows it, -1 where there is none; empty where it does not answer."""
    host, _, port = server.rpartition(":")
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    header = RequestHeader(MetadataRequest.API_KEY, VERSION, 1, CLIENT_ID)
    frame = encode_request_header(header) + encode(request, VERSION)
    try:
        with socket.create_connection((host, int(port)), ASK_SECONDS_MAX) as connection:
            connection.sendall(len(frame).to_bytes(SIZE_BYTES, "big") + frame)
            answer = _answer(connection)
    except OSError:
        return {}
    return {part.partition_index: part.leader_id for found in answer.topics for part in found.partitions}


def _answer(connection: socket.socket) -> MetadataResponse:
    with connection.makefile("rb") as stream:
        size = int.from_bytes(stream.read(SIZE_BYTES), "big")
        body = stream.read(size)
    if not size or len(body) != size:
        raise ConnectionError("the broker has closed the connection")
    frame = memoryview(body)
    _, start = read_response_header(MetadataRequest.API_KEY, VERSION, frame)
    return decoder(MetadataResponse, VERSION)(frame, start)[0]
