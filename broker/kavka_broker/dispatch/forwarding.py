"""Requests that only the active controller can decide, asked of a broker (KIP-590).

    client ── CreateTopics ──> broker ── Envelope(frame, principal, address) ──> active controller
           <── its own answer ──      <── Envelope(the answer, with its header) ──

The frame travels as the client sent it, correlation id and version included, so the answer can be given on without a
look into it. Where the active controller is in this process the handler is asked here, and the envelope is for a
controller that loses the lead before it has decided: the client hears nothing of that. Where no controller answers in
time, the handler is asked here as well: it finds no active controller, and puts that error where the answer of its API
has places for errors.

The controller counts for its quota and says how long the client is to wait; the broker holds the connection back.
"""

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from kavka_broker.dispatch import large_requests
from kavka_broker.dispatch.audit_changes import changed
from kavka_broker.dispatch.large_requests import read_any
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.request.envelopes import ask_in_envelope
from kavka_broker.request.mutation_quota import hold

if TYPE_CHECKING:
    from kavka_broker.request.broker import Broker, Client
    from kavka_broker.request.registry import Answer, Api


THROTTLE_TIME = Struct(">i")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The active controller's answer, header and body, as the client gets it."""

    data: bytes

    def throttle_at(self, api: "Api", version: int) -> int | None:
        """Return where throttle_time_ms is; None where the answer has none. Raises ProtocolViolation."""
        _, first, _, (low, high), *_ = api.response.SCHEMA[0]
        if first != "throttle_time_ms" or not low <= version <= high:
            return None
        return read_response_header(api.key, version, memoryview(self.data))[1]

    def throttle_time_ms(self, api: "Api", version: int) -> int:
        """Return how long the controller wants the client to wait. Raises ProtocolViolation."""
        place = self.throttle_at(api, version)
        return 0 if place is None else int(THROTTLE_TIME.unpack_from(self.data, place)[0])

    def throttled(self, api: "Api", version: int, throttle_time_ms: int) -> "Forwarded":
        """Return the answer with another throttle_time_ms. Raises ProtocolViolation."""
        place = self.throttle_at(api, version)
        if place is None:
            return self
        data = bytearray(self.data)
        THROTTLE_TIME.pack_into(data, place, throttle_time_ms)
        return Forwarded(bytes(data))


async def forward(frame: memoryview, body: int, api: "Api", broker: "Broker", client: "Client") -> "Forwarded | Answer":
    """Have the active controller decide a request; returns its answer. Raises BrokerError and ProtocolViolation."""
    request = await read_any(frame, body, api, broker, client)
    if (refusal := await refused(request, api, broker, client)) is not None:
        return refusal

    async def decide(broker: "Broker") -> "Forwarded | Answer":
        return await _decided(frame, request, api, broker, client)

    return await changed(request, api, broker, client, decide)


async def forward_in_name(request: Message, api: "Api", broker: "Broker", client: "Client") -> "Forwarded | Answer":
    """Have the active controller decide a request that this node makes in the name of a client, and tell the audit
    trail what it has changed. Raises BrokerError and ProtocolViolation.
    """
    header = RequestHeader(api.key, client.version, client.correlation_id, client.client_id)
    frame = memoryview(encode_request_header(header) + encode(request, client.version))
    client.size_bytes = len(frame)

    async def decide(broker: "Broker") -> "Forwarded | Answer":
        return await _decided(frame, request, api, broker, client)

    return await changed(request, api, broker, client, decide)


async def refused(request: Message, api: "Api", broker: "Broker", client: "Client") -> "Answer":
    """Return what this broker alone says of a request; None where nothing."""
    refusal = None if api.refuses is None else api.refuses(request, broker, client)
    return refusal if refusal is None or isinstance(refusal, Message) else await refusal


async def _decided(
    frame: memoryview, request: Message, api: "Api", broker: "Broker", client: "Client"
) -> "Forwarded | Answer":
    if api.is_local is not None and api.is_local(request):
        return await handle(request, api, broker, client)
    if broker.leads:
        answer = await decide_here(request, api, broker, client)
        if answer is not None:
            return answer
    try:
        forwarded = Forwarded(await ask_in_envelope(bytes(frame), broker, client))
    except Unreachable:
        return await handle(request, api, broker, client)
    hold(client, broker, forwarded.throttle_time_ms(api, client.version))
    return forwarded


async def decide_here(request: Message, api: "Api", broker: "Broker", client: "Client") -> "Answer":
    """The answer, or None if the lead was lost before any part was decided. Raises BrokerError."""
    try:
        answer = await handle(request, api, broker, client)
    except BrokerError as error:
        if error.code is not ErrorCode.NOT_CONTROLLER or client.has_decided:
            raise
        return None
    if client.has_decided:
        return answer
    if answer is None or await broker.message_threads.says(answer, ErrorCode.NOT_CONTROLLER, client.size_bytes):
        return None
    return answer


async def handle(request: Message, api: "Api", broker: "Broker", client: "Client") -> "Answer":
    answer = large_requests.handle(request, api, broker, client)
    return answer if answer is None or isinstance(answer, Message) else await answer
