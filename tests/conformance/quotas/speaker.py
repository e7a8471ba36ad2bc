"""A client on one connection, whose requests and answers are messages: what a throttled client gets to see."""

import time
from collections.abc import Mapping, Sequence
from struct import pack
from typing import Self, TypeVar

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from kavka_broker.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from kavka_broker.protocol.records.record import build_batch
from tests.support.wire import Connection

SIZE = 600_000
SERVED_SECONDS_MAX = 60.0
NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
LAST_WITH_NAMES = 12  # Produce and Fetch name topics by id from 13
TOPIC = "throttled"
R = TypeVar("R", bound=Message)


class Speaker:
    """A client of one name, on one connection."""

    def __init__(self, address: tuple[str, int], client_id: str) -> None:
        self._connection = Connection(address)
        self._client_id = client_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log_in(self, user: str, password: str) -> None:
        """Log in by PLAIN."""
        self.ask(SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse, 1)
        proof = SaslAuthenticateRequest(f"\0{user}\0{password}".encode())
        assert self.ask(proof, SaslAuthenticateResponse, 2).error_code == 0

    def send(self, request: Message, version: int) -> None:
        """Send a request, and do not wait for its answer."""
        assert request.API_KEY is not None
        header = encode_request_header(RequestHeader(request.API_KEY, version, 7, self._client_id))
        frame = header + encode(request, version)
        self._connection.send(pack(">i", len(frame)) + frame)

    def ask(self, request: Message, kind: type[R], version: int) -> R:
        """The answer to a request."""
        self.send(request, version)
        assert request.API_KEY is not None
        answer = self._connection.receive()
        assert answer is not None
        _, body = read_response_header(request.API_KEY, version, memoryview(answer))
        return decode(kind, version, memoryview(answer)[body:])

    def produce(self) -> int:
        """Send `SIZE` bytes; the milliseconds to wait.

        A broker may hear of a topic a little after the controller has answered.
        """
        batch = build_batch([(None, bytes(SIZE))])
        topics = [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])]
        request = ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topics)
        deadline = time.monotonic() + SERVED_SECONDS_MAX
        while True:
            answer = self.ask(request, ProduceResponse, LAST_WITH_NAMES)
            code = answer.responses[0].partition_responses[0].error_code
            if code not in NOT_YET or time.monotonic() > deadline:
                assert code == 0
                return answer.throttle_time_ms
            time.sleep(0.05)

    def fetch(self, offset: int) -> tuple[int, int]:
        """The milliseconds to wait, and the bytes that came."""
        wanted = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1)  # one batch, whatever its size
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=[FetchTopic(TOPIC, partitions=[wanted])]
        )
        answer = self.ask(request, FetchResponse, LAST_WITH_NAMES)
        return answer.throttle_time_ms, sum(len(p.records or b"") for t in answer.responses for p in t.partitions)

    def answer_bytes(self) -> int:
        """The size of the answer, which is left where it is."""
        return self._connection.receive_size()

    def is_closed(self) -> bool:
        """Wait for the broker to close; True unless it answers instead."""
        return self._connection.is_closed()

    def limit(self, client_id: str, key: str, limit: float) -> None:
        """Set a quota on a client id."""
        self.set_quotas([("client-id", client_id)], {key: limit})

    def set_quotas(self, entity: Sequence[tuple[str, str | None]], limits: Mapping[str, float | None]) -> None:
        """Set quotas of an entity; None takes one away."""
        operations = [OpData(key, limit or 0.0, remove=limit is None) for key, limit in limits.items()]
        entry = EntryData([EntityData(kind, name) for kind, name in entity], operations)
        answer = self.ask(AlterClientQuotasRequest([entry]), AlterClientQuotasResponse, 1)
        assert answer.entries[0].error_code == 0

    def is_limited(self, client_id: str, key: str, limit: float) -> bool:
        """Whether the broker knows this quota; it may hear of it a little after the controller has answered."""
        request = DescribeClientQuotasRequest([ComponentData("client-id", 0, client_id)], True)
        answer = self.ask(request, DescribeClientQuotasResponse, 1)
        assert answer.error_code == 0, answer.error_message
        return [(one.key, one.value) for found in answer.entries or [] for one in found.values] == [(key, limit)]

    def close(self) -> None:
        self._connection.close()
