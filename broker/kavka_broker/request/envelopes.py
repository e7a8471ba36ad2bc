"""A client's request that goes to the active controller in an envelope: as it was, with its principal and address."""

from struct import Struct
from typing import Final, TypeVar

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.default_principal_data import DefaultPrincipalData
from kavka_broker.protocol.messages.envelope_request import EnvelopeRequest
from kavka_broker.protocol.messages.envelope_response import EnvelopeResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.mutation_quota import hold

R = TypeVar("R", bound=Message)

PRINCIPAL_VERSION: Final = 0
_VERSION: Final = Struct(">h")


async def ask_in_envelope(frame: bytes, broker: Broker, client: Client) -> bytes:
    """The active controller's answer to the client's frame, with header. Raises BrokerError, Unreachable where no
    controller answers in time, and ProtocolViolation where the controller does not serve the version.
    """
    envelope = EnvelopeRequest(
        frame, encode_principal(client.user, is_by_token=client.is_by_token), encode_address(client.address)
    )
    answer = await broker.channel.ask(envelope, EnvelopeResponse, timeout_ms=broker.bounds.forward_ms_max)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        # Another controller than when the client asked for the versions: on its next connection it hears the new ones.
        raise ProtocolViolation("the active controller does not serve this version of the request")
    if answer.error_code != ErrorCode.NONE:
        raise BrokerError(ErrorCode(answer.error_code))
    return answer.response_data or b""


async def ask_elsewhere(request: Message, response: type[R], broker: Broker, client: Client) -> R:
    """As `ask_in_envelope`, for a part of the client's request."""
    assert request.API_KEY is not None
    header = RequestHeader(request.API_KEY, client.version, client.correlation_id, client.client_id)
    frame = encode_request_header(header) + encode(request, client.version)
    data = memoryview(await ask_in_envelope(frame, broker, client))
    _, body = read_response_header(request.API_KEY, client.version, data)
    answer = decode(response, client.version, data[body:])
    hold(client, broker, getattr(answer, "throttle_time_ms", 0))
    return answer


def encode_principal(user: str, *, is_by_token: bool = False) -> bytes:
    """Encode a principal as Kafka's DefaultKafkaPrincipalBuilder does: a version and the message."""
    data = DefaultPrincipalData("User", user, is_by_token)
    return _VERSION.pack(PRINCIPAL_VERSION) + encode(data, PRINCIPAL_VERSION)


def decode_principal(data: bytes) -> DefaultPrincipalData:
    """Decode the principal of a forwarded request. Raises ProtocolViolation."""
    if data[: _VERSION.size] != _VERSION.pack(PRINCIPAL_VERSION):
        raise ProtocolViolation(f"a principal of version {data[: _VERSION.size].hex()}")
    return decode(DefaultPrincipalData, PRINCIPAL_VERSION, data[_VERSION.size :])


def encode_address(address: str) -> bytes:
    """Encode an IP address in four or sixteen bytes."""
    from ipaddress import ip_address

    return ip_address(address.partition("%")[0] or "127.0.0.1").packed


def decode_address(data: bytes) -> str:
    """Decode a client's IP address. Raises ProtocolViolation."""
    from ipaddress import ip_address

    try:
        return str(ip_address(data))
    except ValueError:
        raise ProtocolViolation(f"a client's address of {len(data)} bytes") from None
