"""Envelope (58): a client's request that a broker passes on to the active controller (KIP-590).

- The request in it runs as the client's own: with its principal, address, client id and version.
- Only what brokers forward may be in it; anything else is INVALID_REQUEST. What cannot be read, because of its version
  or otherwise, is UNSUPPORTED_VERSION: the broker closes the client's connection. A principal that cannot be read is
  PRINCIPAL_DESERIALIZATION_FAILURE.
- A controller that does not lead, or loses the lead before it has decided anything, answers NOT_CONTROLLER for the
  whole: the broker looks for the new one, and its client hears nothing of it. One that loses it in between asks the new
  one for the rest by itself.
Versions: 0, flexible.
"""

from kavka_broker.protocol.errors import ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import read_request_header
from kavka_broker.protocol.messages.envelope_request import EnvelopeRequest
from kavka_broker.protocol.messages.envelope_response import EnvelopeResponse
from kavka_broker.request.broker import Broker, Client, Connected
from kavka_broker.request.envelopes import decode_address, decode_principal
from kavka_broker.request.registry import APIS, CONTROLLER, api


@api(EnvelopeRequest, EnvelopeResponse, versions=(0, 0), on=CONTROLLER)
async def envelope(request: EnvelopeRequest, broker: Broker, client: Client) -> EnvelopeResponse:
    if not broker.leads:
        return EnvelopeResponse(None, ErrorCode.NOT_CONTROLLER)
    frame = memoryview(request.request_data)
    try:
        peer = Connected(decode_address(request.client_host_address), client.listener)
    except ProtocolViolation:
        return EnvelopeResponse(None, ErrorCode.INVALID_REQUEST)
    peer.is_enveloped = True
    try:
        principal = decode_principal(request.request_principal or b"")
        peer.user, peer.is_by_token = principal.name, principal.token_authenticated
    except ProtocolViolation:
        return EnvelopeResponse(None, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    try:
        header, _ = read_request_header(frame)
        inner = APIS.get(header.api_key)
        if inner is None or not inner.forwarded:
            return EnvelopeResponse(None, ErrorCode.INVALID_REQUEST)
        answer, data, has_decided = await broker.serve_enveloped(frame, peer)
    except ProtocolViolation:
        return EnvelopeResponse(None, ErrorCode.UNSUPPORTED_VERSION)
    if (
        not has_decided
        and answer is not None
        and await broker.message_threads.says(answer, ErrorCode.NOT_CONTROLLER, len(frame))
    ):
        return EnvelopeResponse(None, ErrorCode.NOT_CONTROLLER)
    return EnvelopeResponse(data)
