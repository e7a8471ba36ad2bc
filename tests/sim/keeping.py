"""One who keeps offsets in a topic that is deleted and made again at once, over and over.

What was committed for the former topic counts for no other of its name. Often both changes reach the coordinator
together, so that it never sees the name gone.
"""

import asyncio
from typing import Any, Final

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from tests.sim.clients import ANSWER_MS
from tests.sim.commits import GroupRecord
from tests.sim.grouped import Again, Grouped
from tests.sim.observed import place_of

KEPT_GROUP: Final = "keeps"
KEPT_TOPIC: Final = "spare-of-groups"
PLACE: Final = (KEPT_TOPIC, 0)
REPLACED_SECONDS_MAX: Final = 3.0
LOOK_SECONDS: Final = 0.01
BREATH_SECONDS: Final = 0.001


class Keeper(Grouped):
    """Commits for a topic, replaces it by another of the name, and looks what is committed for that."""

    group_id = KEPT_GROUP
    is_stopping = False
    simulation: Any
    replaced = 0  # topics that came in the place of one with an offset

    def __init__(self, *details: Any) -> None:
        super().__init__(*details)
        self.record = GroupRecord(KEPT_GROUP, may_expire=True)

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                await self._turn()
            except Again:
                await self.pause()
            await self.rest(0.2, 1.0)

    async def _turn(self) -> None:
        await self._learn(KEPT_TOPIC)
        before = self.topic_ids.get(KEPT_TOPIC)
        if before is None or before != self._newest_id():
            await self._replace(before)
        elif await self._commit(before):
            self.replaced += await self._replace(before)

    def _newest_id(self) -> bytes | None:
        topic = self.simulation.invariants.image.topics.get(KEPT_TOPIC)
        return None if topic is None else bytes(topic.topic_id)

    async def _commit(self, topic_id: bytes) -> bool:
        attempt = self.record.register(place_of(KEPT_TOPIC, topic_id, 0)).write(
            self.random.randrange(1_000_000), self.loop.time()
        )
        code = await self.send_commit(PLACE, attempt, -1, "", None)
        if code:
            self.refused(code)
        attempt.ended = self.loop.time()
        return True

    async def _replace(self, before: bytes | None) -> bool:
        """Have the topic deleted and made in one breath; whether another took its place, and was asked for."""
        deleting = DeleteTopicsRequest([DeleteTopicState(KEPT_TOPIC)], [KEPT_TOPIC], 1_000)
        making = CreateTopicsRequest([CreatableTopic(KEPT_TOPIC, 1, -1)], 1_000)
        first, *others = self.random.sample(self._addresses, len(self._addresses))
        await asyncio.gather(
            self._ask(first, deleting, DeleteTopicsResponse),
            *(
                self._ask(address, making, CreateTopicsResponse, number * BREATH_SECONDS)
                for number, address in enumerate([*others, first], 1)
            ),
        )
        end = self.loop.time() + REPLACED_SECONDS_MAX
        while self.loop.time() < end:
            topic_id = self._newest_id()
            if topic_id not in (None, before):
                return await self._look(topic_id)
            await asyncio.sleep(LOOK_SECONDS)
        return False

    async def _ask(self, address: tuple[str, int], request: Message, response: type[Message], after: float = 0) -> None:
        await asyncio.sleep(after)
        try:
            await self.peer(address).ask(request, response, timeout_ms=ANSWER_MS)
        except Unreachable:
            return

    async def _look(self, topic_id: bytes | None) -> bool:
        assert topic_id is not None
        self.topic_ids[KEPT_TOPIC] = topic_id
        for _ in range(5):
            asked = self.loop.time()
            try:
                told = await self.committed(PLACE)
            except Again:
                await self.pause()
                continue
            self.record.told(self.name, place_of(KEPT_TOPIC, topic_id, 0), told, asked)
            return True
        return False
