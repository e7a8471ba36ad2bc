"""Requests that only the active controller can decide, asked of a broker (KIP-590).

    client ── CreateTopics ──> broker ── Envelope(frame, principal, address) ──> active controller
           <── its own answer ──      <── Envelope(the answer, with its header) ──

The frame travels as the client sent it, correlation id and version included, so the answer can be given on without a
look into it. Where the active controller is in this process the handler is asked here, and the envelope is for a
controller that loses the lead before it has decided: the client hears nothing of that. Where no controller answers in
time, the handler is asked here as well: it finds no active controller, and puts that error where the answer of its API
has places for errors.
"""

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from kavka_broker.api import large_requests
from kavka_broker.api.large_requests import read_any
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.default_principal_data import DefaultPrincipalData
from kavka_broker.protocol.messages.envelope_request import EnvelopeRequest
from kavka_broker.protocol.messages.envelope_response import EnvelopeResponse

if TYPE_CHECKING:
    from kavka_broker.api.broker import Broker, Client
    from kavka_broker.api.registry import Answer, Api

#: As long as Apache Kafka's brokers go on looking for a controller.
FORWARD_MS_MAX: Final = 60_000
PRINCIPAL_VERSION: Final = 0
_VERSION: Final = Struct(">h")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The active controller's answer: header and body, as its client is to get it."""

    data: bytes


async def forward(frame: bytes, body: int, api: "Api", broker: "Broker", client: "Client") -> "Forwarded | Answer":
    """Have a request decided by the active controller, wherever that is, and give its answer back."""
    request = await read_any(frame, body, api, broker, client)
    if broker.leads:
        said = await decide_here(request, api, broker, client)
        if said is not None:
            return said
    envelope = EnvelopeRequest(frame, encode_principal(client.user), encode_address(client.address))
    try:
        answer = await broker.channel.ask(envelope, EnvelopeResponse, timeout_ms=FORWARD_MS_MAX)
    except Unreachable:
        return await handle(request, api, broker, client)
    if answer.error_code != ErrorCode.NONE:
        raise BrokerError(ErrorCode(answer.error_code))
    return Forwarded(answer.response_data or b"")


async def decide_here(request: Message, api: "Api", broker: "Broker", client: "Client") -> "Answer":
    """The answer, or None where the lead was lost before there was one."""
    try:
        said = await handle(request, api, broker, client)
    except BrokerError as error:
        if error.code is not ErrorCode.NOT_CONTROLLER:
            raise
        return None
    if said is None or await broker.large_requests.says(said, ErrorCode.NOT_CONTROLLER, client.size_bytes):
        return None
    return said


async def handle(request: Message, api: "Api", broker: "Broker", client: "Client") -> "Answer":
    said = large_requests.handle(request, api, broker, client)
    return said if said is None or isinstance(said, Message) else await said


def encode_principal(user: str) -> bytes:
    """As Kafka's DefaultKafkaPrincipalBuilder writes it: a version and the message."""
    data = DefaultPrincipalData("User", user)
    return _VERSION.pack(PRINCIPAL_VERSION) + encode(data, PRINCIPAL_VERSION)


def decode_principal(data: bytes) -> DefaultPrincipalData:
    if data[: _VERSION.size] != _VERSION.pack(PRINCIPAL_VERSION):
        raise ProtocolViolation(f"a principal of version {data[: _VERSION.size].hex()}")
    return decode(DefaultPrincipalData, PRINCIPAL_VERSION, data[_VERSION.size :])


def encode_address(address: str) -> bytes:
    """Four or sixteen bytes."""
    from ipaddress import ip_address

    return ip_address(address.partition("%")[0] or "127.0.0.1").packed


def decode_address(data: bytes) -> str:
    from ipaddress import ip_address

    try:
        return str(ip_address(data))
    except ValueError:
        raise ProtocolViolation(f"a client's address of {len(data)} bytes") from None
