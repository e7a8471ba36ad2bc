"""Requests as messages, over one connection each: for what no client library would send, or tell all about."""

from struct import pack
from typing import TypeVar

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from tests.support.wire import ANSWER_SECONDS_MAX, Connection

R = TypeVar("R", bound=Message)


def ask(
    address: tuple[str, int],
    request: Message,
    kind: type[R],
    version: int | None = None,
    seconds_max: float = ANSWER_SECONDS_MAX,
) -> R:
    """The answer to a request, in its newest version unless one is named. Raises OSError where no node answers."""
    with Connection(address, seconds_max) as connection:
        return ask_on(connection, request, kind, version)


def ask_on(connection: Connection, request: Message, kind: type[R], version: int | None = None) -> R:
    """As `ask`, on a connection that is there."""
    assert request.API_KEY is not None
    chosen = request.VERSIONS[1] if version is None else version
    header = encode_request_header(RequestHeader(request.API_KEY, chosen, 7, "asking"))
    frame = header + encode(request, chosen)
    connection.send(pack(">i", len(frame)) + frame)
    answer = connection.receive()
    if answer is None:
        raise ConnectionResetError(f"closed on {type(request).__name__} v{chosen} without an answer")
    view = memoryview(answer)
    _, body = read_response_header(request.API_KEY, chosen, view)
    return decode(kind, chosen, view[body:])
