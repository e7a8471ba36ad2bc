"""Consumers that speak either group protocol, another one perhaps in their next life: a group is rolled there and back.

A member of the classic protocol does what a correct client does. It joins with what it owns, in the classic group
assigns what it is asked to, in the consumer group is assigned, and joins again when it is told to. Eager members give
everything up before they join; cooperative ones (KIP-429) keep what they have until an assignment takes it away, and
what the leader moves to another member is given to nobody at first.
"""

import asyncio
from collections.abc import Mapping
from struct import pack
from types import MappingProxyType
from typing import Any, Final

from kavka_broker.core.group.embedded_protocol import frame_assignment, read_assignment, read_subscription
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kavka_broker.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kavka_broker.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from tests.sim.clients import ANSWER_MS
from tests.sim.consumers import SHARE_OF_SESSION, Consumer
from tests.sim.grouped import ELSEWHERE, Again
from tests.sim.holdings import Held

NEWEST: Final = 3
PROTOCOL: Final = "by turns"
#: The member is none any more, or in no generation that the coordinator knows.
OUT: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID})


class EitherConsumer(Consumer):
    """One member. `topics_by_name` has the ids of the topics that there are."""

    is_cooperative = False
    is_classic = False
    share_of_classic = 0.5
    has_to_leave = False  # so that the others join again
    last_protocol: bool | None = None  # the protocol of its last life: whether it is the classic one
    topics_by_name: Any = None
    _leads_group = False
    _known_topics: Mapping[str, int] = MappingProxyType({})

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self.is_classic = self.random.random() < self.share_of_classic
        if self.last_protocol is not None:
            self.is_classic = self.last_protocol
        self._takes_id()

    def _is_fenced(self) -> None:
        super()._is_fenced()
        self._has_to_join = True

    def _takes_id(self) -> None:
        """Have no member id where the coordinator gives it."""
        if self.is_classic:
            self.member_id, self.regex = "", ""
        self._has_to_join, self._quiet_since, self._leads_group = True, self.loop.time(), False

    def __str__(self) -> str:
        return f"{super().__str__()}, {'classic' if self.is_classic else 'new'} protocol"

    @property
    def _session_seconds(self) -> float:
        """For how long it has what it has if it hears nothing: a rebalance may begin at once, and go on without it."""
        if not self.is_classic:
            return super()._session_seconds
        return min(self.session_ms, self.rebalance_ms) * SHARE_OF_SESSION / 1000

    @property
    def is_settled(self) -> bool:
        return super().is_settled and not (self.is_classic and self._has_to_join)

    def _subscribe(self) -> None:
        super()._subscribe()
        if self.is_classic:
            self.regex, self._has_to_join = "", True

    async def _step(self) -> None:
        """Raises Again."""
        if self.last_protocol not in (None, self.is_classic):
            self.record.forgets(self.name)
            self._begin_anew()
        if self.has_to_leave and self.is_classic and self.epoch:
            self.has_to_leave = False
            await self._leave()
        if not self.is_classic:
            await super()._step()
        elif self._has_to_join or (self._leads_group and self._known_topics != self._topics_now()):
            await self._join()
        else:
            await self._beat_of_classic()
        if self.is_classic and self._fetches:
            await self._fetch_offsets()

    # --- JoinGroup and SyncGroup --------------------------------------------------------------------------------

    async def _join(self) -> None:
        """Join, and take what is assigned. Raises Again."""
        if not self.is_cooperative:
            await self._give_up([*self.owned])
        asked, owned = self.loop.time(), self._by_name(self.owned)
        message = ConsumerProtocolSubscription(list(self.topics), None, owned, self.epoch)
        offered = JoinGroupRequestProtocol(PROTOCOL, pack(">h", NEWEST) + encode(message, NEWEST))
        request = JoinGroupRequest(
            self.group_id, self.session_ms, self.rebalance_ms, self.member_id, self.instance, "consumer", [offered]
        )
        answer: JoinGroupResponse = await self.call(request, JoinGroupResponse, self.rebalance_ms + 5_000)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            raise Again("has a member id")
        if answer.error_code:
            self._is_out(answer.error_code)
        self.member_id, generation = answer.member_id, answer.generation_id
        self.record.is_to_revoke(self.name, asked + self.rebalance_ms * SHARE_OF_SESSION / 1000)
        self._leads_group = answer.leader == self.member_id
        self._known_topics = self._topics_now()
        leads = self._leads_group and not answer.skip_assignment
        await self._sync(generation, self._assign(answer.members) if leads else {})

    def _topics_now(self) -> dict[str, int]:
        """The topics that there are, with their partitions: a leader joins again where they have changed."""
        return {name: self.topics_by_name.partitions(name) for name in self.topics_by_name}

    async def _sync(self, generation: int, given: dict[str, list[Held]]) -> None:
        """Raises Again."""
        assignments = [
            SyncGroupRequestAssignment(
                member, frame_assignment(ConsumerProtocolAssignment(self._by_name(has, Assigned)), NEWEST)
            )
            for member, has in given.items()
        ]
        asked = self.loop.time()
        address = await self.find()
        term = self.leads(address)
        request = SyncGroupRequest(
            self.group_id, generation, self.member_id, self.instance, "consumer", PROTOCOL, assignments
        )
        answer: SyncGroupResponse = await self.call(request, SyncGroupResponse, self.rebalance_ms + 5_000)
        if answer.error_code:
            self._is_out(answer.error_code)
        told = read_assignment(answer.assignment) if answer.assignment else ConsumerProtocolAssignment()
        now, is_current = self.loop.time(), term is not None and term == self.leads(address)
        assigned = frozenset(
            (self.topics_by_name[place.topic], index)
            for place in told.assigned_partitions
            for index in place.partitions
        )
        self.epoch, self._has_to_join = generation, False
        if is_current:
            self.record.told_epoch(generation)
        self._heard_until, self._quiet_since = asked + self._session_seconds, asked
        self.record.gives_up(self.name, ())
        goes = [place for place in self.owned if place not in assigned]
        if goes:
            await asyncio.sleep(self.random.choice((0.0, 0.0, 0.5)))  # its processing ends
            await self._give_up(goes)
            self._has_to_join = True
        self.target = assigned
        self._take(assigned)
        self.record.heartbeats += 1
        self.record.has(self.name, self.owned, now, self._heard_until if is_current else None)

    async def _give_up(self, goes: list[Held]) -> None:
        """Raises Again."""
        for place in goes if self.random.random() < 0.5 else ():
            await self._commit(place, self.epoch)
        self._left += [(place, self.epoch) for place in goes]
        for place in goes:
            self.owned.pop(place, None)
        self.record.gives_up(self.name, goes)

    def _by_name(self, places: Any, kind: type[Any] = TopicPartition) -> list[Any]:
        names = {topic_id: name for name, topic_id in self.topics_by_name.items()}
        found: dict[str, list[int]] = {}
        for topic_id, index in sorted(places):
            found.setdefault(names[topic_id], []).append(index)
        return [kind(name, indexes) for name, indexes in found.items()]

    def _assign(self, members: list[JoinGroupResponseMember]) -> dict[str, list[Held]]:
        """Deal the partitions out evenly, as leader; members keep what they own up to their share."""
        subscriptions = {member.member_id: read_subscription(member.metadata) for member in members}
        given: dict[str, list[Held]] = {member_id: [] for member_id in sorted(subscriptions)}
        owners: dict[Held, list[str]] = {}
        for member_id in given:
            for place in subscriptions[member_id].owned_partitions:
                for index in place.partitions:
                    owners.setdefault((self.topics_by_name[place.topic], index), []).append(member_id)
        for name, topic_id in sorted(self.topics_by_name.items()):
            able = [member_id for member_id in given if name in subscriptions[member_id].topics]
            for index in range(self.topics_by_name.partitions(name)) if able else ():
                held = owners.get((topic_id, index), [])
                least = min(able, key=lambda member_id: len(given[member_id]))
                keeps = [
                    member_id for member_id in held if member_id in able and len(given[member_id]) <= len(given[least])
                ]
                chosen = keeps[0] if keeps else least
                if all(member_id == chosen for member_id in held):
                    given[chosen].append((topic_id, index))
        return given

    # --- Heartbeat and LeaveGroup -------------------------------------------------------------------------------

    async def _beat_of_classic(self) -> None:
        """Raises Again."""
        asked, address = self.loop.time(), await self.find()
        term = self.leads(address)
        request = HeartbeatRequest(self.group_id, self.epoch, self.member_id, self.instance)
        answer = await self.call(request, HeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
        now, is_current = self.loop.time(), term is not None and term == self.leads(address)
        if now >= asked + self._session_seconds:
            raise Again("the answer has come too late")
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._is_out(answer.error_code)
        self._heard_until = asked + self._session_seconds
        if answer.error_code:
            # The rebalance may have begun right after the last heartbeat.
            self.record.is_to_revoke(self.name, self._quiet_since + self.rebalance_ms * SHARE_OF_SESSION / 1000)
            self._has_to_join = True
        else:
            self._quiet_since = asked
        self.record.heartbeats += 1
        self.record.has(self.name, self.owned, now, self._heard_until if is_current else None)

    def _is_out(self, code: int) -> None:
        """Take note of the error of a request of the classic protocol. Raises Again."""
        self._has_to_join = True
        if code in OUT:
            self._is_fenced()
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._begin_anew()
        elif code not in ELSEWHERE | OUT and code != ErrorCode.REBALANCE_IN_PROGRESS:
            self.record.object(f"heartbeat: {self.name} was told {ErrorCode(code).name}")
        self.refused(code)

    async def _leave(self) -> None:
        """Raises Again."""
        if not self.is_classic:
            await super()._leave()
            return
        request = LeaveGroupRequest(self.group_id, "", [MemberIdentity(self.member_id, self.instance)])
        self.record.forgets(self.name)
        self._forget()
        self.doing = "leaves"
        try:
            await self.call(request, LeaveGroupResponse, min(ANSWER_MS, self.session_ms // 2))
        finally:
            self._begin_anew()
        await asyncio.sleep(self.random.choice((0.0, 0.5, 1.5 * self.session_ms / 1000)))
