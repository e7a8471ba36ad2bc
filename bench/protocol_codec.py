"""What decoding and encoding cost, in microseconds: the floor under every request.

CPU time, and the best of several repeats: what is least disturbed by whatever else the machine does:

    python -m bench.protocol_codec [NAME ...]

Produce and Fetch are those of librdkafka and the Java clients: by topic name (v9, v12) and by topic id (v13, v16).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from time import process_time
from timeit import Timer

from kavka_broker.protocol.codec import decoder, encoder, parts_encoder
from kavka_broker.protocol.compiler.decoder import compile_decoder
from kavka_broker.protocol.compiler.encoder import compile_encoder
from kavka_broker.protocol.framing import (
    RequestHeader,
    encode_request_header,
    encode_response_parts,
    read_request_header,
)
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

REPEATS = 7
SECONDS_A_REPEAT = 0.05
TOPIC = "flights"
TOPIC_ID = bytes(range(16))
BATCH_BYTES = 1000
FETCHED_BYTES = 100_000


def messages() -> Iterator[tuple[str, Message, int]]:
    """The messages of the table, each with its version."""
    for version in (9, 13):
        yield "Produce request, 1 partition", produce_request(), version
        yield "Produce response, 1 partition", produce_response(), version
    for version in (12, 16):
        for partitions in (1, 10, 100):
            yield f"Fetch request, {partitions} partitions", fetch_request(partitions), version
            yield f"Fetch response, {partitions} partitions", fetch_response(partitions), version
    yield "Metadata request, 1 topic", MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 12
    yield "Metadata response, 6 partitions", metadata_response(6), 12
    yield "Metadata response, 100 partitions", metadata_response(100), 12


def produce_request() -> ProduceRequest:
    partition = PartitionProduceData(0, bytes(BATCH_BYTES))
    return ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, TOPIC_ID, [partition])])


def produce_response() -> ProduceResponse:
    partition = PartitionProduceResponse(index=0, base_offset=12345, log_start_offset=0)
    return ProduceResponse([TopicProduceResponse(TOPIC, TOPIC_ID, [partition])])


def fetch_request(partitions: int) -> FetchRequest:
    wanted = [FetchPartition(number, 3, 12345, partition_max_bytes=1 << 20) for number in range(partitions)]
    topic = FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=wanted)
    return FetchRequest(max_wait_ms=500, min_bytes=1, session_id=7, session_epoch=1, topics=[topic])


def fetch_response(partitions: int) -> FetchResponse:
    records = memoryview(bytes(FETCHED_BYTES))
    found = [
        PartitionData(number, 0, 12345, 12345, 0, aborted_transactions=None, records=records)
        for number in range(partitions)
    ]
    return FetchResponse(session_id=7, responses=[FetchableTopicResponse(TOPIC, TOPIC_ID, found)])


def metadata_response(partitions: int) -> MetadataResponse:
    brokers = [MetadataResponseBroker(number, f"kavka-{number}.kavka", 9092, None) for number in range(3)]
    found = [
        MetadataResponsePartition(0, number, number % 3, 1, [0, 1, 2], [0, 1, 2], []) for number in range(partitions)
    ]
    topic = MetadataResponseTopic(0, TOPIC, TOPIC_ID, partitions=found)
    return MetadataResponse(brokers=brokers, cluster_id="kavka", controller_id=0, topics=[topic])


def best_us(call: Callable[[], object]) -> float:
    """The quickest of several repeats."""
    timer = Timer(call, timer=process_time)
    count, _ = timer.autorange()
    count = max(1, int(count * SECONDS_A_REPEAT / 0.2))
    return min(timer.repeat(REPEATS, count)) / count * 1e6


def compile_ms(kind: type[Message], version: int) -> float:
    """What the first use of a version costs."""
    started = process_time()
    compile_decoder(kind, version)
    compile_encoder(kind, version)
    return (process_time() - started) * 1e3


def table(names: list[str]) -> Iterator[str]:
    """The lines of the table."""
    yield f"{'us':40} {'decode':>8} {'encode':>8} {'parts':>8} {'bytes':>9} {'compile ms':>11}"
    for name, message, version in messages():
        if not names or any(each.lower() in name.lower() for each in names):
            yield line(name, message, version)


def line(name: str, message: Message, version: int) -> str:
    """One message's figures."""
    kind = type(message)
    encoded = memoryview(encoder(kind, version)(message))
    calls = (
        partial(decoder(kind, version), encoded, 0),
        partial(encoder(kind, version), message),
        partial(parts_encoder(kind, version), message),
    )
    figures = " ".join(f"{best_us(call):8.2f}" for call in calls)
    return f"{f'{name}, v{version}':40} {figures} {len(encoded):9} {compile_ms(kind, version):11.1f}"


def headers() -> Iterator[str]:
    """What stands before every message."""
    frame = memoryview(encode_request_header(RequestHeader(0, 9, 1234, "rdkafka")) + bytes(100))
    response = produce_response()
    yield f"{'request header v2':40} {best_us(lambda: read_request_header(frame)):8.2f}"
    yield f"{'whole produce response v9':40} {'':8} {best_us(lambda: encode_response_parts(response, 9, 1234)):8.2f}"


def main() -> None:
    """Print the table."""
    for row in table(sys.argv[1:]):
        print(row, flush=True)
    for row in headers():
        print(row)


if __name__ == "__main__":
    main()
