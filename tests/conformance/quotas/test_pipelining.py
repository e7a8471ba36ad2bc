"""A producer that does not wait for its answers keeps to its quota too: three replicas, acks=all, all sent at once.

A quota of 100 kB/s lets 1 MB pass at once: five requests of 200 kB. Each one more may begin only when the delay of
those before it is over, so the time until its answer is at least the sum of what they were told to wait.
"""

import time
from pathlib import Path
from struct import pack

import pytest

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from tests.conformance.cluster.history import TOPIC, create_topic
from tests.conformance.quotas.speaker import Speaker
from tests.support.asking import ask
from tests.support.nodes import Nodes, cluster
from tests.support.waiting import until_outside
from tests.support.wire import Connection

pytestmark = pytest.mark.slow

LIMIT = 100_000
SIZE = 200_000
REQUESTS = 8
VERSION = 12  # the last that names topics
CLIENT_ID = "pipelining"


def frame_of(number: int) -> bytes:
    batch = build_batch([(None, bytes(SIZE))])
    topics = [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
    header = encode_request_header(RequestHeader(ProduceRequest.API_KEY, VERSION, number, CLIENT_ID))
    return header + bytes(encode(request, VERSION))


def test_a_producer_with_many_requests_under_way_is_held_from_the_charge_on(tmp_path: Path) -> None:
    with cluster(tmp_path) as nodes:
        leader = address_of_leader(nodes)
        limit(leader)
        told_ms = 0
        with Connection(leader, seconds_max=120) as connection:
            frames = [frame_of(number) for number in range(REQUESTS)]
            started = time.monotonic()
            connection.send(b"".join(pack(">i", len(frame)) + frame for frame in frames))
            for _ in frames:
                answer = connection.receive()
                passed_ms = (time.monotonic() - started) * 1000
                assert answer is not None
                assert passed_ms >= told_ms - 50, "it began before what was sent earlier had been paid for"
                told_ms += throttle_time_ms(answer)
        assert told_ms > 1_000, "the quota was never reached"


def address_of_leader(nodes: Nodes) -> tuple[str, int]:
    admin = create_topic(nodes)
    leader = admin.list_topics(TOPIC).topics[TOPIC].partitions[0].leader
    return nodes[leader].address


def limit(address: tuple[str, int]) -> None:
    entry = EntryData([EntityData("client-id", CLIENT_ID)], [OpData("producer_byte_rate", LIMIT)])
    answer = ask(address, AlterClientQuotasRequest([entry]), AlterClientQuotasResponse)
    assert answer.entries[0].error_code == 0
    with Speaker(address, "admin") as speaker:
        until_outside(lambda: speaker.is_limited(CLIENT_ID, "producer_byte_rate", LIMIT))
    time.sleep(1)  # Apache Kafka applies it a little after it shows it


def throttle_time_ms(answer: bytes) -> int:
    view = memoryview(answer)
    _, body = read_response_header(ProduceRequest.API_KEY, VERSION, view)
    decoded = decode(ProduceResponse, VERSION, view[body:])
    assert decoded.responses[0].partition_responses[0].error_code == 0
    return decoded.throttle_time_ms
