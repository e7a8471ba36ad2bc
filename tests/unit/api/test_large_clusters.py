"""Short questions about all that there is: what a turn does does not grow with the cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from kavka_broker.api.a46_list_partition_reassignments import list_partition_reassignments
from kavka_broker.api.a74_list_config_resources import list_config_resources
from kavka_broker.core.metadata.image.configs import ResourceType
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.loop.slices import Slices
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from kavka_broker.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.request.broker import Broker, Client
from tests.support.turns import Turns

#: Both are more than a slice: ten pieces where no time goes by, and a piece may be 1,000 partitions.
FEW: Final = 12_000
MANY: Final = 24_000
MOVING: Final = PartitionState((1, 2), (1,), 1, adding=(2,))

Ask = Callable[[Broker], Message | asyncio.Task[Any]]


def of_topics(count: int) -> Metadata:
    image = Metadata()
    for number in range(count):
        image.replay(TopicRecord(f"t{number}", number.to_bytes(16, "big")))
    return image


def of_one_topic(partitions: int) -> Metadata:
    image = of_topics(1)
    image.topics.replay_partitions(bytes(16), dict.fromkeys(range(partitions), MOVING))
    return image


def resources(broker: Broker) -> Message | asyncio.Task[Any]:
    request = ListConfigResourcesRequest([ResourceType.TOPIC])
    return list_config_resources(request, broker, cast(Client, SimpleNamespace(version=1)))


def moves(broker: Broker) -> Message | asyncio.Task[Any]:
    request = ListPartitionReassignmentsRequest(60_000, None)
    return list_partition_reassignments(request, broker, cast(Client, SimpleNamespace(version=0)))


def most_calls(ask: Ask, image: Metadata) -> tuple[int, Message]:
    """The most calls in one turn of the loop, and the answer."""

    async def answered() -> Message:
        said = ask(cast(Broker, SimpleNamespace(metadata=image, slices=Slices())))
        return said if isinstance(said, Message) else cast(Message, await cast(Awaitable[Any], said))

    async def run() -> tuple[int, Message]:
        turns = Turns()
        with turns.counting():
            answer = await asyncio.create_task(answered())
        return turns.most, answer

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("ask", "image_of", "found"),
    [
        (resources, of_topics, lambda answer: len(answer.config_resources)),
        (moves, of_one_topic, lambda answer: len(answer.topics[0].partitions)),
    ],
    ids=["configs", "moves"],
)
def test_no_turn_grows_with_the_cluster(
    ask: Ask, image_of: Callable[[int], Metadata], found: Callable[[Any], int]
) -> None:
    few, _ = most_calls(ask, image_of(FEW))
    many, answer = most_calls(ask, image_of(MANY))
    assert many < 1.2 * few
    assert found(answer) == MANY
