"""Reports to the audit trail what requests change, on the node that the client asked, once the answer has granted it.

Where the trail loses nothing (`kavka.audit.failure.policy=reject`) a request is promised room for what it may change
before it is decided, and refused where there is none (`audit_backpressure`). Its client may leave meanwhile: it is
decided and reported all the same.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kavka_broker.core.audit.changes import (
    ACLS_DELETED,
    CHANGES,
    ELECTED,
    EXPIRY,
    OF_CONFIGS,
    OF_TOKENS,
    Before,
    Change,
    is_only_asked,
)
from kavka_broker.core.metadata.image.configs import Resource
from kavka_broker.loop.coroutine_time import paid
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.codec import decode
from kavka_broker.protocol.framing import read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.request.audit_backpressure import Refusing, is_let_in, refusal_of_change
from kavka_broker.request.delegation_tokens import find, known

if TYPE_CHECKING:
    from kavka_broker.core.audit.events import Window
    from kavka_broker.request.broker import Broker, Client
    from kavka_broker.request.registry import Answer, Api, Role

ON_LOOP_BYTES_MAX: Final = 16 * 1024
"""Of request and answer: what is larger is looked through in a thread."""
CHANGES_MAX: Final = 5_000
"""Changes of one request that are told one by one; of further ones the number is."""
CHANGES_PER_TURN: Final = 500
BYTES_PER_CHANGE_MIN: Final = 3
"""No change takes less of a request than this, but for those that name nothing."""
Others = Mapping[Change, int]
T = TypeVar("T")


def audited(apis: "Mapping[int, Api]", role: "Role") -> "Mapping[int, Api]":
    """Return the APIs of a role's listeners, of which each tells what it changes; what a broker passes on is told
    there (`forwarding`).
    """
    return {
        key: api if key not in CHANGES or (api.forwarded and role == "broker") else _audited(api)
        for key, api in apis.items()
    }


def _audited(api: "Api") -> "Api":
    def handle(request: Message, broker: "Broker", client: "Client") -> "Answer | Awaitable[Answer]":
        is_told = broker.journal is not None or broker.is_refusing
        if not is_told or not client.has_own_connection:
            return api.handle(request, broker, client)

        async def decided(broker: "Broker") -> "Answer":
            outcome = api.handle(request, broker, client)
            return outcome if outcome is None or isinstance(outcome, Message) else await outcome

        return changed(request, api, broker, client, decided)

    return replace(api, handle=handle)


async def changed(
    request: Message, api: "Api", broker: "Broker", client: "Client", decide: "Callable[[Broker], Awaitable[T]]"
) -> T:
    """Return the answer that `decide` gives, once its changes are told. Raises what that raises."""
    journal = broker.journal
    if api.key not in CHANGES or is_only_asked(request) or (journal is None and not broker.is_refusing):
        return await decide(broker)
    if api.key in OF_TOKENS:
        await find(request.hmac, broker)  # type: ignore[attr-defined]  # from then on it is known
    room = room_for(request, api, broker, client)
    if is_let_in(request, api, broker, client):
        if journal is None:
            return await decide(broker)  # the trail has not begun
        journal.let_in(room)
    elif broker.is_refusing or journal is None or not journal.admit(room):
        broker.refused["change"] += 1
        return await decide(Refusing.of(broker, refusal_of_change(broker)))

    async def told() -> T:
        try:
            was = before(request, api, broker)
            answer = await decide(broker)
            if answer is not None:
                await tell(request, answer, api, broker, client, was, journal.window)
            return answer
        finally:
            journal.end(room)

    return await _unhindered(told(), broker)


async def _unhindered(work: Coroutine[Any, Any, T], broker: "Broker") -> T:
    """Do work that goes on where its client leaves. Raises what it raises."""
    task = asyncio.get_running_loop().create_task(paid(work, broker.slices.time), name="change")
    broker.under_way[task] = None
    task.add_done_callback(broker.under_way.pop)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        watch(task, _raise_assertion)
        raise


def _raise_assertion(error: BaseException) -> None:
    """Hand a failed assertion on: no client gets this answer."""
    if isinstance(error, AssertionError):
        raise error


def room_for(request: Any, api: "Api", broker: "Broker", client: "Client") -> int:
    """Return how many changes a request may make at most that are told one by one."""
    if api.key == ACLS_DELETED:
        return min(CHANGES_MAX, len(broker.metadata.acls))
    if api.key == ELECTED and request.topic_partitions is None:
        return CHANGES_MAX
    restored = sum(len(overrides) for overrides in before(request, api, broker).values())
    return min(CHANGES_MAX, client.size_bytes // BYTES_PER_CHANGE_MIN + 1 + restored)


def before(request: Message, api: "Api", broker: "Broker") -> Before:
    """The overrides of the resources that a request will alter, as they are now; each is replaced, never changed. Of
    a delegation token, its id and its expiry.
    """
    if api.key in OF_TOKENS:
        token = known(request.hmac, broker)  # type: ignore[attr-defined]
        return {} if token is None else {Resource(0, token.token_id): {EXPIRY: str(token.expires_ms)}}
    if api.key not in OF_CONFIGS:
        return {}
    asked: Sequence[Any] = request.resources  # type: ignore[attr-defined]
    named = (Resource(resource.resource_type, resource.resource_name) for resource in islice(asked, CHANGES_MAX))
    return {resource: broker.metadata.configs.of(resource) for resource in named}


async def tell(
    request: Message, answer: Any, api: "Api", broker: "Broker", client: "Client", was: Before, window: "Window"
) -> None:
    """Count the changes that an answer has granted; it may be the bytes that another node has made (`Forwarded`)."""
    given = answer if isinstance(answer, Message) else answer.data
    size = client.size_bytes + (len(given) if isinstance(given, bytes) else 0)
    arguments = request, given, api, client.version, was
    changes, others = found(*arguments) if size <= ON_LOOP_BYTES_MAX else await asyncio.to_thread(found, *arguments)
    async for some in broker.slices.in_turns(changes, CHANGES_PER_TURN):
        for change in some:
            window.changed(client.principal, client.address, client.client_id, change)
    for change, times in others.items():
        window.changed_others(change, times)


def found(
    request: Message, answer: Message | bytes, api: "Api", version: int, was: Before
) -> tuple[list[Change], Others]:
    """The changes that are told one by one, and how many there are of each kind besides."""
    response = answer if isinstance(answer, Message) else _decoded(answer, api, version)
    changes = CHANGES[api.key](request, response, was)
    told = list(islice(changes, CHANGES_MAX))
    return told, Counter(Change(change.operation, change.resource_type, "") for change in changes)


def _decoded(data: bytes, api: "Api", version: int) -> Message:
    """Raises ProtocolViolation."""
    frame = memoryview(data)
    _, body = read_response_header(api.key, version, frame)
    return decode(api.response, version, frame[body:])
