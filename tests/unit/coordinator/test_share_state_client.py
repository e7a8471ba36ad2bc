"""Questions to share coordinators on several brokers, of which one does not answer."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from kavka_broker.coordinator.share import share_state_client
from kavka_broker.coordinator.share.share_state_client import ShareStateClient
from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC
from kavka_broker.loop.slices import Slices
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import delete_share_group_state_response as deleted
from kavka_broker.protocol.messages.delete_share_group_state_request import DeleteShareGroupStateRequest
from tests.support.waiting import until
from tests.unit.coordinator.fakes import Clock


class Broker:
    """A broker that deletes what it is asked to; one that is `silent` never answers, until it is given up."""

    def __init__(self, *, silent: bool = False) -> None:
        self.is_silent = silent
        self.requests = 0
        self.given_up = asyncio.Event()

    async def ask(
        self, request: DeleteShareGroupStateRequest, _: object, *, timeout_ms: int
    ) -> deleted.DeleteShareGroupStateResponse:
        del timeout_ms
        self.requests += 1
        if self.is_silent:
            await self.given_up.wait()
            raise Unreachable("no answer")
        return deleted.DeleteShareGroupStateResponse(
            [
                deleted.DeleteStateResult(
                    topic.topic_id, [deleted.PartitionResult(part.partition) for part in topic.partitions]
                )
                for topic in request.topics
            ]
        )


def test_a_broker_that_does_not_answer_holds_up_its_own_share_partitions_alone() -> None:
    async def scenario() -> None:
        brokers = {1: Broker(silent=True), 2: Broker(), 3: Broker()}
        topic = SimpleNamespace(partitions=[SimpleNamespace(leader=number) for number in brokers])
        metadata = SimpleNamespace(topics={SHARE_STATE_TOPIC: topic})
        connections, clock = SimpleNamespace(to=brokers.get), Clock()
        pacing = SimpleNamespace(clock=clock, slices=Slices())
        client = ShareStateClient(
            9, cast(Any, metadata), cast(Any, None), cast(Any, connections), cast(Any, None), cast(Any, pacing)
        )
        places = [(bytes(16), index) for index in range(6 * share_state_client.PER_REQUEST_MAX)]
        deleting = asyncio.ensure_future(client.delete("g", places))
        await until(lambda: min(broker.requests for broker in brokers.values()) >= 1)
        await until(lambda: min(brokers[2].requests, brokers[3].requests) >= 2)
        clock.ms += share_state_client.GIVE_UP_MS
        brokers[1].given_up.set()
        answers = await deleting
        assert set(answers) == set(places)
        assert set(answers.values()) == {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert brokers[1].requests == 1, "what is left is asked for again later, all at once"

    asyncio.run(scenario())
