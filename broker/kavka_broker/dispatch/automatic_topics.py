"""Topics that clients have created by asking for them (Metadata), behind the answer and in the name of each client.

    client ── Metadata "orders" ──> broker ── Envelope(CreateTopics "orders", principal, client id) ──> controller
           <── UNKNOWN_TOPIC_OR_PARTITION ──

So the controller charges the quota controller_mutation_rate to that client and refuses what it may not have, and the
audit trail tells who has made the topic. Each connection has its own queue, of which one request at a time is under
way: nobody waits for another client's topics. What a full queue leaves out, and what is refused, the client asks for
again.
"""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from kavka_broker.core.log_once import shortened
from kavka_broker.dispatch.forwarding import Forwarded, forward_in_name
from kavka_broker.logs import get
from kavka_broker.loop.coroutine_time import paid
from kavka_broker.loop.tasks import watch
from kavka_broker.membership.topic_creation import CREATE_MS_MAX, automatic_topic
from kavka_broker.protocol.codec import decode
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.framing import read_response_header
from kavka_broker.protocol.messages.create_topics_request import CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import APIS

log = get("api")

CREATE_TOPICS: Final = 19
VERSION: Final = 7
"""Strict: where the quota is used up, nothing is created."""
FINE: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def begin_creating(broker: Broker, names: Iterable[str], client: Client) -> None:
    """Have topics created in the client's name. Nobody waits for them."""
    queued_max = broker.bounds.queued_topics_max
    client_id, queue = broker.wanted_topics.get(client.peer, (client.client_id, None))
    if queue is not None:
        if client_id == client.client_id:  # who shares a connection asks again
            queue.update(dict.fromkeys(islice(names, queued_max - len(queue))))
        return
    queue = dict.fromkeys(islice(names, queued_max))
    broker.wanted_topics[client.peer] = client_id, queue
    work = paid(_create_all(queue, broker, client), broker.slices.time)
    task = asyncio.get_running_loop().create_task(work, name="create topics")
    broker.creating[task] = None
    watch(task, forget=broker.creating.pop)


async def _create_all(queue: dict[str, None], broker: Broker, client: Client) -> None:
    try:
        while queue:
            names = list(islice(queue, broker.bounds.created_together_max))
            unknown = [name for name in names if broker.metadata.topics.get(name) is None]
            if unknown:
                await _create(unknown, broker, client)
            for name in names:
                del queue[name]
    finally:
        del broker.wanted_topics[client.peer]


async def _create(names: Sequence[str], broker: Broker, client: Client) -> None:
    request = CreateTopicsRequest([automatic_topic(broker.config, name) for name in names], CREATE_MS_MAX)
    report_refusals(await ask_to_create(request, broker, creator_of(client)), broker, client)


def report_refusals(results: Iterable[CreatableTopicResult], broker: Broker, client: Client) -> None:
    """Log the topics that could not be created for a client."""
    now_ms = broker.clock.monotonic_ms()
    for topic in results:
        code = ErrorCode(topic.error_code)
        if code not in FINE and broker.told_once.is_new(now_ms, "topic.not_created", topic.name, code.name):
            log.warning(
                "topic.not_created",
                topic=topic.name,
                error=code.name,
                reason=topic.error_message,
                principal=client.principal,
                client_id=shortened(client.client_id),
            )


def creator_of(client: Client) -> Client:
    """Return the client as the sender of CreateTopics; its own request is answered."""
    maker = Client(VERSION, client.client_id, client.correlation_id, client.address, client.listener, user=client.user)
    maker.role, maker.peer, maker.is_answered = client.role, client.peer, True
    return maker


async def ask_to_create(
    request: CreateTopicsRequest, broker: Broker, creator: Client
) -> Sequence[CreatableTopicResult]:
    """Return what became of each topic, in the name of this client."""
    try:
        return await _asked(request, broker, creator)
    except (BrokerError, ProtocolViolation) as problem:
        code = problem.code if isinstance(problem, BrokerError) else ErrorCode.UNKNOWN_SERVER_ERROR
        return [
            CreatableTopicResult(topic.name, error_code=code, error_message=str(problem)) for topic in request.topics
        ]


async def _asked(request: CreateTopicsRequest, broker: Broker, creator: Client) -> Sequence[CreatableTopicResult]:
    """Raises BrokerError and ProtocolViolation."""
    answer = await forward_in_name(request, APIS[CREATE_TOPICS], broker, creator)
    if isinstance(answer, Forwarded):
        data = memoryview(answer.data)
        _, body = read_response_header(CREATE_TOPICS, VERSION, data)
        return decode(CreateTopicsResponse, VERSION, data[body:]).topics
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics
