"""Topics that nobody creates by hand: the internal ones, which a node makes for itself, and those that clients ask for.

A node asks the controller for an internal topic by CreateTopics, in its own name. Then it waits until its own image has
the topic, so that whoever needs it is not told of a topic that the next request does not know. What a client asks for
by Metadata is created in the name of that client (`api.automatic_topics`); here is only what such a topic looks like.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.topic_names import (
    AUDIT_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.membership.metadata_feed import MetadataFeed
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse

AUDIT_RETENTION_BYTES_MAX: Final = 10 * 1024**3
"""How large a partition of the audit topic may become, so that refusals do not fill a disk: a week of some 30 events
a second, unless the topic or the file of the broker says otherwise.
"""
DEFAULT: Final = -1
COUNTS: Final = ("num.partitions", "default.replication.factor")
CREATE_MS_MAX: Final = 10_000
#: How long the news may take from the controller's commit to this broker's image.
NEWS_MS_MAX: Final = 2_000
#: In one request, which is one decision of the controller.
TOGETHER_MAX: Final = 100

Refusals = dict[str, BrokerError]


class TopicMaker:
    """Creates the topics that a node needs for itself: of the coordinators, and of the audit trail."""

    def __init__(
        self,
        config: BrokerConfig,
        channel: ControllerChannel,
        image: MetadataFeed,
        create_ms_max: int = CREATE_MS_MAX,
    ) -> None:
        self._config = config
        self._create_ms_max = create_ms_max
        self._channel = channel
        self._metadata = image.metadata
        self._waiting: dict[asyncio.Future[None], Sequence[str]] = {}
        self._creations: dict[str, asyncio.Task[Refusals]] = {}
        image.subscribers.append(self._replayed)

    async def create(self, names: Iterable[str]) -> dict[str, BrokerError]:
        """The topics that could not be made, with the reason. An existing topic is fine, and so is one that others have
        asked for meanwhile: each topic is asked for once at a time, and many of them together.
        """
        wanted = dict.fromkeys(names)
        new = [name for name in wanted if name not in self._creations]
        for first in range(0, len(new), TOGETHER_MAX):
            self._begin(new[first : first + TOGETHER_MAX])
        tasks = dict.fromkeys(self._creations[name] for name in wanted)
        # Shielded: a client that goes away must not take the others' topics with it.
        refusals = await asyncio.shield(asyncio.gather(*tasks))
        return {name: error for refused in refusals for name, error in refused.items() if name in wanted}

    def _begin(self, names: Sequence[str]) -> None:
        task = asyncio.get_running_loop().create_task(self._create(names), name=f"create {len(names)} topics")
        self._creations.update(dict.fromkeys(names, task))

        def end(_: "asyncio.Task[Refusals]") -> None:
            for name in names:
                self._creations.pop(name, None)

        task.add_done_callback(end)

    async def _create(self, names: Sequence[str]) -> Refusals:
        request = CreateTopicsRequest([automatic_topic(self._config, name) for name in names], self._create_ms_max)
        try:
            answer = await self._channel.ask(request, CreateTopicsResponse, timeout_ms=self._create_ms_max)
        except Unreachable as problem:
            return {name: BrokerError(ErrorCode.REQUEST_TIMED_OUT, str(problem)) for name in names}
        refused = {
            topic.name: BrokerError(ErrorCode(topic.error_code), topic.error_message)
            for topic in answer.topics
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        }
        await self._known([name for name in names if name not in refused])
        return refused

    async def _known(self, names: Sequence[str]) -> None:
        """Wait a limited time until this broker's image has the topics."""
        if self._knows(names):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = names
        try:
            async with asyncio.timeout(NEWS_MS_MAX / 1000):
                await waiter
        except TimeoutError:
            return
        finally:
            self._waiting.pop(waiter, None)

    def _knows(self, names: Iterable[str]) -> bool:
        return all(self._metadata.topics.get(name) is not None for name in names)

    def _replayed(self, _: Sequence[Message]) -> None:
        for waiter, names in self._waiting.items():
            if not waiter.done() and self._knows(names):
                waiter.set_result(None)


def automatic_topic(config: BrokerConfig, name: str) -> CreatableTopic:
    """The topic as auto-creation makes it: a coordinators' topic with its own settings.

    Any other has the counts that are written in this broker's own file, and where none are, the controller's.
    """
    match name:
        case _ if name == OFFSETS_TOPIC:
            prefix = "offsets.topic"
            configs = {
                "compression.type": "producer",
                "cleanup.policy": "compact",
                "segment.bytes": str(config.whole(f"{prefix}.segment.bytes")),
            }
        case _ if name == TRANSACTIONS_TOPIC:
            prefix = "transaction.state.log"
            configs = {
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "segment.bytes": str(config.whole(f"{prefix}.segment.bytes")),
                "min.insync.replicas": str(config.whole(f"{prefix}.min.isr")),
                "unclean.leader.election.enable": "false",
            }
        case _ if name == SHARE_STATE_TOPIC:
            prefix = "share.coordinator.state.topic"
            configs = {
                "compression.type": "producer",
                "cleanup.policy": "delete",  # its coordinator deletes what does not count any more
                "segment.bytes": str(config.whole(f"{prefix}.segment.bytes")),
                "min.insync.replicas": str(config.whole(f"{prefix}.min.isr")),
                "retention.ms": "-1",
            }
        case _:
            partitions, replicas = (config.whole(key) if key in config.given else DEFAULT for key in COUNTS)
            limits = []
            if name == AUDIT_TOPIC and "log.retention.bytes" not in config.given:
                limits = [CreatableTopicConfig("retention.bytes", str(AUDIT_RETENTION_BYTES_MAX))]
            return CreatableTopic(name, partitions, replicas, configs=limits)
    return CreatableTopic(
        name,
        config.whole(f"{prefix}.num.partitions"),
        config.whole(f"{prefix}.replication.factor"),
        configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
    )
