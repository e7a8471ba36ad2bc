"""Large requests: read in a thread, looked at a part a turn, and their answers written in a thread.

    up to 512 bytes      as they come
    up to 8 KiB          read and written on the loop; an API that has an `Each` takes its elements a part a turn
    above                read and written in a thread besides
    above 16 MiB         refused, Produce excepted, as is who has more than 100,000 elements in all; of what brokers
                         pass on above 4 MiB, and of some APIs, to which nobody has much to say, above 16 KiB
                         (`bytes_max`)

Produce is long for its records, so a thread reads it for its elements alone. An answer with many elements is written
in a thread, however short the question was.

What belongs to one connection stays in order, since its next request waits for the answer. Parts of what the controller
decides are decided one after another, each for itself, unless they may go together (`Each`); those, and parts of all
else, wait for their answers at the same time. Parts of an API that `lists` wait one after another too, and are
encoded as they come, since their answers may be long; however short the request is.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from kavka_broker.loop.message_threads import AT_ONCE_BYTES_MAX
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.codec import bounded_decoder, decoder
from kavka_broker.protocol.encoded_elements import encode_elements
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.message import Message, is_larger, says
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.decoded_requests import taken_bytes
from kavka_broker.request.envelopes import ask_elsewhere
from kavka_broker.request.registry import CONTROLLER
from kavka_broker.request.split_requests import once_each

if TYPE_CHECKING:
    from kavka_broker.request.registry import Answer, Api
    from kavka_broker.request.split_requests import Each

WHOLE_BYTES_MAX: Final = 512
"""A request of this size has a hundred elements at most."""
AT_ONCE_ELEMENTS_MAX: Final = 500
"""Elements of an answer, or of a request with records, that take at most two milliseconds."""
WRITTEN_AT_ONCE_MAX: Final = 256 * 1024
"""Bytes of strings and the like in an answer, which are copied."""


def check_size(api: "Api", size_bytes: int) -> None:
    """Raises ProtocolViolation for a request that is larger than its API allows."""
    if size_bytes > api.bytes_max and not api.pipelined:
        raise ProtocolViolation(f"{api.name} of {size_bytes} bytes; {api.bytes_max} are allowed")


def is_long(answer: Message, api: "Api", client: Client) -> bool:
    """Whether a thread has to write the answer."""
    if api.is_counting:
        return client.has_long_answer or (not api.pipelined and client.size_bytes > AT_ONCE_BYTES_MAX)
    if client.encoded:
        return True
    return client.size_bytes > AT_ONCE_BYTES_MAX or is_larger(answer, AT_ONCE_ELEMENTS_MAX, WRITTEN_AT_ONCE_MAX)


def read_at_once(frame: memoryview, body: int, api: "Api", version: int) -> Message:
    """The request in a frame that is short, or long because of its records. Raises ProtocolViolation, in particular
    TooManyElements where a thread has to read it.
    """
    if len(frame) <= AT_ONCE_BYTES_MAX:
        request, _ = decoder(api.request, version)(frame, body)
    else:
        request, _, _ = bounded_decoder(api.request, version)(frame, body, AT_ONCE_ELEMENTS_MAX)
    return request


async def read_any(frame: memoryview, body: int, api: "Api", broker: Broker, client: Client) -> Message:
    """The request in a frame of any size. Raises ProtocolViolation."""
    if len(frame) > AT_ONCE_BYTES_MAX:
        return await read_large(frame, body, api, broker, client)
    request, _ = decoder(api.request, client.version)(frame, body)
    return request


async def read_large(frame: memoryview, body: int, api: "Api", broker: Broker, client: Client) -> Message:
    """The request in a frame, read in a thread once there is room for it. Raises ProtocolViolation."""
    if not is_of_peer(api, client):
        client.room = await broker.decoded_requests.room(client.queue_name, len(frame))
    request, elements = await broker.message_threads.read(frame, body, api.request, client.version)
    if client.room is not None:
        client.room.settle(taken_bytes(len(frame), elements))
    return request


def handle(request: Message, api: "Api", broker: Broker, client: Client) -> "Answer | Awaitable[Answer]":
    """The handler's answer; a request with many elements is handled in parts."""
    lists = api.lists is not None and (client.size_bytes > WHOLE_BYTES_MAX or api.lists(request))
    if client.making is None and (lists or (api.each and names_much(api, client))):
        if broker.answers.is_full:
            return _handle_in_turn(request, api, broker, client, lists=lists)
        if lists:
            client.making = broker.answers.place(client.queue_name)
    if client.size_bytes <= WHOLE_BYTES_MAX and api.lists is None and not api.once:
        return api.handle(request, broker, client)  # most requests are so
    return _handle_now(request, api, broker, client)


def names_much(api: "Api", client: Client) -> bool:
    """Whether a client's request, of an API with an `Each`, may name many elements."""
    may = client.size_bytes > WHOLE_BYTES_MAX and client.peer is not None and not api.is_counting
    return may and not is_of_peer(api, client)


def is_of_peer(api: "Api", client: Client) -> bool:
    """Whether another node asks: what the controller alone serves, or on a connection that such has come by before."""
    flow = None if client.peer is None else client.peer.flow
    return api.on is CONTROLLER or (flow is not None and flow.is_of_peer)


async def _handle_in_turn(request: Message, api: "Api", broker: Broker, client: Client, *, lists: bool) -> "Answer":
    """As `handle`, once there is room for a long answer. One that does not list has to wait for a place again when it
    proves long: it may wait for a commit, or for others, and must not keep a place meanwhile.
    """
    making = await broker.answers.turn(client.queue_name)
    if lists:
        client.making = making
    else:
        making.end()
    return await _settled(_handle_now(request, api, broker, client))


def _handle_now(request: Message, api: "Api", broker: Broker, client: Client) -> "Answer | Awaitable[Answer]":
    if api.once:
        if client.size_bytes > AT_ONCE_BYTES_MAX:
            return _handle_distinct(request, api, broker, client)
        request = once_each(request, api.once)
    if client.size_bytes > WHOLE_BYTES_MAX or api.lists is not None:
        return handle_in_parts(request, api, broker, client)
    return api.handle(request, broker, client)


async def _handle_distinct(request: Message, api: "Api", broker: Broker, client: Client) -> "Answer":
    """As `handle`, for a large request: a thread looks for elements that are named again."""
    request = await broker.message_threads.run(once_each, request, api.once)
    return await _settled(handle_in_parts(request, api, broker, client))


def handle_in_parts(request: Message, api: "Api", broker: Broker, client: Client) -> "Answer | Awaitable[Answer]":
    """As `handle`, for a request of unknown size."""
    elements = next((elements for elements in api.each if elements.has_elements(request)), None)
    if elements is None:
        return api.handle(request, broker, client)
    parts = elements.parts(request)
    first = next(parts)
    if first is request:
        return api.handle(request, broker, client)
    parts = chain((first,), parts)
    if api.lists is not None and client.peer is not None:
        return _joined_encoded(elements, parts, api, broker, client)
    return _joined(elements, parts, api, broker, client)


async def _joined_encoded(
    elements: "Each", parts: "Iterable[Message]", api: "Api", broker: Broker, client: Client
) -> Message:
    """As `_joined`, where the answer may be very long: what is made of it is encoded before there is more. Raises
    ProtocolViolation where it grows longer than any may be.
    """
    whole: Message | None = None
    encoded: tuple[str, ...] = ()
    for part in parts:
        await broker.slices.turn()
        answer = await _handled(part, api, broker, client)
        assert answer is not None, "only Produce has no answer"
        if getattr(answer, "error_code", 0):
            return answer
        if encoded:
            await _encode_elements(answer, elements, broker, client)
        if whole is None:
            whole = answer
        else:
            elements.join(whole, answer)
        if not encoded and is_larger(whole, AT_ONCE_ELEMENTS_MAX, WRITTEN_AT_ONCE_MAX):
            await _encode_elements(whole, elements, broker, client)
            encoded = elements.answered_path
    assert whole is not None, "a request has at least one part"
    client.encoded = encoded
    return whole


async def _encode_elements(answer: Message, elements: "Each", broker: Broker, client: Client) -> None:
    if client.making is None:
        client.making = await broker.answers.turn(client.queue_name)
    path = elements.answered_path
    client.making.grow(await broker.message_threads.run(encode_elements, answer, client.version, path))


async def _joined(elements: "Each", parts: "Iterable[Message]", api: "Api", broker: Broker, client: Client) -> Message:
    """The answer to all parts, each of which is begun in a turn of its own. Where the lead is lost before the first is
    decided and won again before the last, the refused parts are decided too: no request is refused in part for that.
    """
    said: list[asyncio.Future[Answer]] = []
    answers: list[Any] = []
    undecided: dict[int, Message] = {}
    try:
        for part in parts:
            await broker.slices.turn()
            if api.is_decision and not elements.together:
                answers.append(await _decided(part, api, broker, client))
                if not client.has_decided:
                    undecided[len(answers) - 1] = part
                continue
            answer = api.handle(part, broker, client)
            if answer is not None and not isinstance(answer, Message):
                answer = asyncio.ensure_future(answer)
                said.append(answer)
            answers.append(answer)
        for index, part in undecided.items() if client.has_decided else ():
            answers[index] = await _decided(part, api, broker, client)
        return elements.joined([answer if isinstance(answer, Message) else await answer for answer in answers])
    finally:
        for waiting in said:
            if not waiting.cancel() and not waiting.cancelled():
                waiting.exception()  # marks it as seen: the error of another part is the answer to all


async def _decided(part: Message, api: "Api", broker: Broker, client: Client) -> "Answer":
    """The decision on a part. If the lead was lost after an earlier part, the next controller is asked for the rest: a
    client that asked it for all parts would get errors for those decided already. Raises BrokerError.
    """
    answer: Answer = None
    try:
        answer = await _handled(part, api, broker, client)
        is_lost = answer is not None and says(answer, ErrorCode.NOT_CONTROLLER)
    except BrokerError as error:
        if error.code is not ErrorCode.NOT_CONTROLLER or not client.has_decided:
            raise
        is_lost = True
    if not is_lost:
        client.has_decided = api.forwarded
    elif client.has_decided:
        try:
            return await ask_elsewhere(part, api.response, broker, client)
        except Unreachable:
            return await _handled(part, api, broker, client)
    return answer


async def _handled(request: Message, api: "Api", broker: Broker, client: Client) -> "Answer":
    return await _settled(api.handle(request, broker, client))


async def _settled(answer: "Answer | Awaitable[Answer]") -> "Answer":
    return answer if answer is None or isinstance(answer, Message) else await answer
