"""Keeps the states of share partitions at the share coordinator in step with their groups.

A change goes in three steps: the group notes in its log what is to be made or deleted, the share coordinator is asked,
and the group notes what has been answered. All three of one group go before the next begins: a deletion never overtakes
the initialization that it is to undo, nor the other way round.

Members do not wait for an initialization: they hear of its partitions by a later heartbeat.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from kavka_broker.coordinator.groups.share_groups import ShareGroups
from kavka_broker.coordinator.share.share_state_client import InitialState, Place, ShareStateClient
from kavka_broker.core.consumer_group.subscribed_topics import Described
from kavka_broker.core.share.share_states import UNSET
from kavka_broker.core.share_group import administration
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.share_group.state import NamedPartitions
from kavka_broker.core.share_group.state_partitions import Partitions
from kavka_broker.logs import get
from kavka_broker.loop.exclusive_turns import ExclusiveTurns
from kavka_broker.loop.slices import Slices
from kavka_broker.loop.tasks import watch
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")

T = TypeVar("T")
Answers = Mapping[Place, ErrorCode]

PLACES_PER_TURN_MAX: Final = 500
"""Partitions of topics that are gone through in one turn of the loop."""


class ShareOffsets:
    """The states of the groups of one shard. `states` asks the share coordinator; None while there is none to ask."""

    def __init__(self, groups: ShareGroups, states: Callable[[], ShareStateClient | None], slices: Slices) -> None:
        self._groups = groups
        self._states = states
        self._slices = slices
        self._turns = ExclusiveTurns()
        self._tasks: dict[asyncio.Task[None], None] = {}
        groups.initialize = self._begin_initialization

    def close(self) -> None:
        """Give up what is under way: another broker serves the groups, and asks again."""
        for task in list(self._tasks):
            task.cancel()

    # --- partitions that members wait for -----------------------------------------------------------------------

    def _begin_initialization(self, group_id: str, change: ShareChange) -> None:
        self._spawn(self._initialize_later(group_id, change))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = watch(asyncio.get_running_loop().create_task(work, name="share states"))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _initialize_later(self, group_id: str, change: ShareChange) -> None:
        state = InitialState(change.state_epoch, UNSET)
        wanted = {key: topic.partitions for key, topic in change.initialize.items()}
        try:
            places = {place: state async for some in self._in_turns(_places(wanted)) for place in some}
            async with self._turns.of(group_id):
                # What asks for it has to be committed: a new coordinator would not know of the state.
                await self._groups.change(group_id, _nothing)
                await self._initialize(group_id, places)
        except BrokerError as error:
            log.warning("share_states.not_initialized", group=group_id, reason=str(error))

    async def _initialize(self, group_id: str, places: Mapping[Place, InitialState]) -> Answers:
        """Raises BrokerError where what the share coordinator has answered could not be noted."""
        states = self._states()
        answers = {} if states is None else await states.initialize(group_id, places)
        unknown = ErrorCode.COORDINATOR_NOT_AVAILABLE
        answers = {place: answers.get(place, unknown) async for some in self._in_turns(places) for place in some}
        answered = self._in_turns(answers.items())
        if refused := {place: error async for some in answered for place, error in some if error}:
            (_, index), error = next(iter(refused.items()))
            log.warning("share_states.refused", group=group_id, count=len(refused), partition=index, reason=error.name)
        done = await self._partitions(place for place in answers if place not in refused)
        decide = partial(administration.settle, done=done, failed=await self._partitions(refused))
        await self._groups.change(group_id, decide)
        return answers

    # --- topics that are deleted --------------------------------------------------------------------------------

    def forget_deleted_topics(self) -> Iterator[int]:
        """Forget what groups keep of topics that do not exist any more; the share coordinator deletes their states by
        itself. A group a step; yields how many topics it has looked at.
        """
        for group in self._groups.all():
            if group.states is not None:
                if administration.has_deleted_topics(group, self._groups.topics):
                    self._spawn(self._forget_topics(group.group_id))
                yield 1 + len(group.states.initialized)

    async def _forget_topics(self, group_id: str) -> None:
        decide = partial(administration.forget_deleted_topics, topics=self._groups.topics)
        try:
            await self._groups.change(group_id, decide)
        except BrokerError as error:  # the next heartbeat forgets them too
            log.debug("share_topics.not_removed", group=group_id, reason=str(error))

    # --- what operators ask -------------------------------------------------------------------------------------

    async def alter(self, group_id: str, topics: Mapping[bytes, str], offsets: Mapping[Place, int]) -> Answers:
        """Let a group without members go on at other offsets. `topics` has the names. Raises BrokerError."""
        wanted = {
            topic_id: NamedPartitions(topics[topic_id], partitions)
            for topic_id, partitions in (await self._partitions(offsets)).items()
        }
        async with self._turns.of(group_id):
            decide = partial(administration.alter, wanted=wanted, room_bytes=self._groups.room_bytes)
            change = await self._groups.change(group_id, decide, may_create=True)
            if not wanted:
                return {}
            epoch, in_turns = change.state_epoch, self._in_turns(offsets.items())
            places = {place: InitialState(epoch, offset) async for some in in_turns for place, offset in some}
            return await self._initialize(group_id, places)

    async def delete_topics(self, group_id: str, topics: Sequence[Described]) -> dict[bytes, ErrorCode]:
        """Forget how far a group without members has come in these topics. Returns an error for each topic id that has
        had something to forget. Raises BrokerError.
        """
        async with self._turns.of(group_id):
            change = await self._groups.change(group_id, partial(administration.delete_topics, wanted=topics))
            errors = await self._delete(group_id, change.delete)
            gone = [topic_id for topic_id, error in errors.items() if not error]
            if gone:
                await self._groups.change(group_id, partial(administration.deleted, topic_ids=gone))
            return errors

    async def delete_group(self, group_id: str) -> None:
        """Delete a group without members: its states first. Raises BrokerError."""
        async with self._turns.of(group_id):
            change = await self._groups.change(group_id, partial(administration.delete_all, topics=self._groups.topics))
            for error in (await self._delete(group_id, change.delete)).values():
                if error:
                    raise BrokerError(error, f"the share coordinator has not deleted the states of group {group_id}")
            await self._groups.end(group_id)

    async def _delete(self, group_id: str, asked: Partitions) -> dict[bytes, ErrorCode]:
        """Ask the share coordinator to delete states. Returns an error for each topic."""
        if not asked:
            return {}
        states, asking = self._states(), self._in_turns(_places(asked))
        places = [place async for some in asking for place in some]
        answers = {} if states is None else await states.delete(group_id, places)
        errors = dict.fromkeys(asked, ErrorCode.NONE)
        async for some in self._in_turns(places):
            for place in some:
                errors[place[0]] = errors[place[0]] or answers.get(place, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return errors

    def _in_turns(self, items: Iterable[T]) -> AsyncIterator[Sequence[T]]:
        return self._slices.in_turns(items, PLACES_PER_TURN_MAX)

    async def _partitions(self, places: Iterable[Place]) -> Partitions:
        found = dict[bytes, set[int]]()
        async for some in self._in_turns(places):
            for topic_id, index in some:
                found.setdefault(topic_id, set()).add(index)
        return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}


def _nothing(_: object) -> ShareChange:
    return ShareChange()


def _places(partitions: Partitions) -> Iterator[Place]:
    return ((topic_id, index) for topic_id, indexes in partitions.items() for index in sorted(indexes))
