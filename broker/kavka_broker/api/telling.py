"""What a forwarded request has changed, told to the audit trail by the broker that the client asked."""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kavka_broker.core.audit.changes import CHANGES, OF_CONFIGS, Before, Change
from kavka_broker.core.metadata.image.configs import Resource
from kavka_broker.protocol.codec import decode
from kavka_broker.protocol.framing import read_response_header
from kavka_broker.protocol.message import Message

if TYPE_CHECKING:
    from kavka_broker.api.broker import Broker, Client
    from kavka_broker.api.registry import Api

ON_LOOP_BYTES_MAX: Final = 16 * 1024
"""Of request and answer: what is larger is looked through in a thread."""
CHANGES_MAX: Final = 5_000
"""Changes of one request that are told; further ones are lost, and counted as such."""
AT_ONCE_MAX: Final = 500


def before(request: Message, api: "Api", broker: "Broker") -> Before:
    """The overrides of the resources that a request will alter, as they are now; each is replaced, never changed."""
    if broker.audit is None or api.key not in OF_CONFIGS:
        return {}
    asked: Sequence[Any] = request.resources  # type: ignore[attr-defined]
    named = (Resource(resource.resource_type, resource.resource_name) for resource in islice(asked, CHANGES_MAX))
    return {resource: broker.metadata.configs.of(resource) for resource in named}


async def tell(
    request: Message, answer: Message | bytes, api: "Api", broker: "Broker", client: "Client", was: Before
) -> None:
    """Count the changes that an answer has granted; `answer` may be the bytes that another node has made."""
    if broker.audit is None or api.key not in CHANGES:
        return
    size = client.size_bytes + (len(answer) if isinstance(answer, bytes) else 0)
    arguments = request, answer, api, client.version, was
    changes, lost = found(*arguments) if size <= ON_LOOP_BYTES_MAX else await asyncio.to_thread(found, *arguments)
    async for some in broker.slices.pieces(changes, AT_ONCE_MAX):
        if broker.audit is not None:  # the trail may have ended meanwhile
            for change in some:
                broker.audit.changed(client.principal, client.address, client.client_id, change)
    if broker.audit is not None:
        broker.audit.lost += lost


def found(request: Message, answer: Message | bytes, api: "Api", version: int, was: Before) -> tuple[list[Change], int]:
    """The changes that are told, and how many are not."""
    response = answer if isinstance(answer, Message) else _decoded(answer, api, version)
    changes = CHANGES[api.key](request, response, was)
    told = list(islice(changes, CHANGES_MAX))
    return told, sum(1 for _ in changes)


def _decoded(data: bytes, api: "Api", version: int) -> Message:
    """Raises ProtocolViolation."""
    frame = memoryview(data)
    _, body = read_response_header(api.key, version, frame)
    return decode(api.response, version, frame[body:])
