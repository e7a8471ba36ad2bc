"""Internal topics of streams groups, created behind the answer and in the name of the member's client.

As for topics that Metadata asks for (`automatic_topics`) the controller charges the quota controller_mutation_rate to
that client, and the audit trail tells who has made the topics. That the client may create them is known before.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from kavka_broker.core.streams_group.topology import InternalTopic
from kavka_broker.dispatch.automatic_topics import FINE, ask_to_create, creator_of, report_refusals
from kavka_broker.loop.coroutine_time import paid
from kavka_broker.loop.tasks import watch
from kavka_broker.membership.topic_creation import CREATE_MS_MAX, TOGETHER_MAX
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.request.broker import Broker, Client

__all__ = ["begin_creating_internal"]

DEFAULT: Final = -1


def begin_creating_internal(broker: Broker, topics: Sequence[InternalTopic], client: Client, again_ms: int) -> None:
    """Have the internal topics created that are not being created yet. One that cannot be made is asked for again
    `again_ms` later at the earliest.
    """
    by_name = {topic.name: topic for topic in topics}
    names = broker.internal_topics.begin(by_name, broker.clock.monotonic_ms())
    if not names:
        return
    wanted = {name: by_name[name] for name in names}
    work = paid(_create_all(wanted, broker, client, again_ms), broker.slices.time)
    task = asyncio.get_running_loop().create_task(work, name="create internal topics")
    broker.creating[task] = None
    watch(task, forget=broker.creating.pop)


async def _create_all(topics: Mapping[str, InternalTopic], broker: Broker, client: Client, again_ms: int) -> None:
    try:
        wanted = list(topics.values())
        for first in range(0, len(wanted), TOGETHER_MAX):
            await _create(wanted[first : first + TOGETHER_MAX], broker, client, again_ms)
    finally:
        for name in topics:
            broker.internal_topics.end(name)


async def _create(topics: Sequence[InternalTopic], broker: Broker, client: Client, again_ms: int) -> None:
    request = CreateTopicsRequest([_creatable(topic) for topic in topics], CREATE_MS_MAX)
    results = await ask_to_create(request, broker, creator_of(client))
    report_refusals(results, broker, client)
    until_ms = broker.clock.monotonic_ms() + again_ms
    for result in results:
        if result.error_code not in FINE:
            reason = result.error_message or ErrorCode(result.error_code).name
            broker.internal_topics.fail(result.name, reason, until_ms)


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        topic.name,
        topic.partitions,
        topic.replication_factor or DEFAULT,
        configs=[CreatableTopicConfig(key, value) for key, value in topic.configs],
    )
