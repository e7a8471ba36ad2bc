"""Consumer groups: members that join, sync, heartbeat, read, commit, leave, crash, sleep and come back.

Some are static (KIP-345). One that sleeps past its session commits in its old generation when it wakes. Beside them one
client keeps offsets without being a member, and deletes them, and its group. `commits` says what must never be.
"""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from struct import pack
from typing import Any, Final

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse
from kavka_broker.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka_broker.protocol.messages.offset_delete_response import OffsetDeleteResponse
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from tests.sim.clients import Client
from tests.sim.commits import NOTHING, GroupRecord, Term
from tests.sim.grouped import COMMIT_MS, GROUP, REFUSALS, Again, Grouped
from tests.sim.history import WORST_MAX, Place, place_text
from tests.sim.keeping import Keeper
from tests.sim.outliving import outlived
from tests.sim.readers import Reader
from tests.sim.workloads import Workload

GROUP_METADATA: Final = "__consumer_offsets"  # of one partition
LONER_GROUP: Final = "alone"
TIMEOUTS_MS: Final = ((1_500, 2_500), (6_000, 8_000))  # of sessions and of rebalances
HEARTBEATS_A_SESSION: Final = 3


class Replaced(Exception):
    """Another process has the place of this static member."""


class Member(Reader, Grouped):
    """One member. `record` is the whole group's."""

    record: GroupRecord
    instance: str | None = None
    is_calm = False
    is_replaced = False  # another process is to take its place
    replace: Callable[["Member"], None]
    term_of: Callable[[tuple[str, int]], Term | None]
    session_ms, rebalance_ms = TIMEOUTS_MS[-1]
    member_id = ""
    generation = -1

    def __init__(self, *details: Any) -> None:
        super().__init__(*details)
        self.mine: list[Place] = []
        self._committed: dict[Place, int] = {}
        self._restlessness = self.random.choice((0.0, 0.01, 0.06))
        self._beats_at = 0.0
        self._former: tuple[int, dict[Place, int]] = (-1, {})  # the last generation, and where it was

    def __str__(self) -> str:
        return f"{self.name} {self.member_id[-6:]} of generation {self.generation} has {self.mine}, {self.doing}"

    @property
    def fetch_wait_ms(self) -> int:
        """No longer than a heartbeat may wait: it has no thread of its own for these, as a real consumer has."""
        return min(super().fetch_wait_ms, self.session_ms // HEARTBEATS_A_SESSION)

    async def run(self) -> None:
        while True:
            try:
                await self._take_part()
            except Again as why:
                self.doing = f"again: {why}"
                await asyncio.sleep(self.random.uniform(0.05, 0.3))
            except Replaced:
                self.doing, self.mine = "is replaced", []
                return

    def refused(self, code: int) -> None:
        if self.is_replaced and code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            raise Replaced
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        super().refused(code)

    async def _take_part(self) -> None:
        await self._learn(self._places[0][0])
        if self._places[0][0] not in self.topic_ids:
            raise Again("no metadata")
        joined = await self._join()
        await self._sync(joined)
        await self._commit_late()
        for place in self.mine:
            await self._begin(place)
        while True:
            await self._beat()
            if self.mine:
                await self._work(self.random.choice(self.mine))
            else:
                await asyncio.sleep(0.2)
            if not self.is_calm and self.random.random() < self._restlessness:
                await self._go_astray()

    async def _join(self) -> JoinGroupResponse:
        topic, term = self._places[0][0].encode(), await self._term()
        subscription = pack(">hih", 0, 1, len(topic)) + topic + pack(">i", -1)
        request = JoinGroupRequest(
            self.group_id, self.session_ms, self.rebalance_ms, self.member_id, self.instance, "consumer",
            [JoinGroupRequestProtocol("by turns", subscription)],
        )  # fmt: skip
        answer: JoinGroupResponse = await self.call(request, JoinGroupResponse, self.rebalance_ms + 5_000)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            raise Again("has a member id")
        if answer.error_code:
            self.refused(answer.error_code)
        self.member_id, self.generation = answer.member_id, answer.generation_id
        if not self.instance and term is not None and term == await self._term():
            members = [member.member_id for member in answer.members]
            self.record.joined(self.member_id, answer.leader, self.generation, members, term)
        return answer

    async def _term(self) -> Term | None:
        """The term of the coordinator that it speaks to, as seen from outside."""
        return self.term_of(await self.find())

    async def _sync(self, joined: JoinGroupResponse) -> None:
        given: dict[str, list[str]] = {}
        if joined.leader == self.member_id and not joined.skip_assignment:
            members = sorted(member.member_id for member in joined.members)
            given = {member: [] for member in members}
            for number, place in enumerate(self._places):
                given[members[(number + self.generation) % len(members)]].append(str(place[1]))
        assignments = [SyncGroupRequestAssignment(member, ",".join(parts).encode()) for member, parts in given.items()]
        asked = self.loop.time()
        request = SyncGroupRequest(
            self.group_id, self.generation, self.member_id, self.instance, "consumer", "by turns", assignments
        )
        answer: SyncGroupResponse = await self.call(request, SyncGroupResponse, self.rebalance_ms + 5_000)
        if answer.error_code:
            self.refused(answer.error_code)
        indexes = bytes(answer.assignment).decode().split(",")
        self.mine = [place for place in self._places if str(place[1]) in indexes]
        owner = self.instance or self.member_id
        self.record.assigned(owner, self.generation, self.mine, asked, self.loop.time())
        if self.instance:
            self.record.holds(self.instance, self.member_id, self.loop.time())

    async def _begin(self, place: Place) -> None:
        """At what is committed."""
        asked = self.loop.time()
        told = await self.committed(place)
        self.record.told(self.name, place, told, asked)
        self.positions[place] = self._committed[place] = max(told, 0)

    async def _commit_late(self) -> None:
        """What the generation before had left to commit, now that this one runs: it has to be refused."""
        generation, late = self._former
        self._former = self.generation, {place: self.positions[place] for place in self.mine}
        for place, offset in late.items() if self.random.random() < 0.3 else ():
            attempt = self.record.register(place).write(offset, self.loop.time(), generation, self.member_id)
            code = await self.send_commit(place, attempt, generation, self.member_id, self.instance)
            if not code:
                self.record.committed(self.name, place, attempt, self.loop.time(), self.instance)
            self.record.fenced += attempt.is_refused

    async def _beat(self) -> None:
        if self.loop.time() < self._beats_at:
            return
        self._beats_at = self.loop.time() + self.random.uniform(0.3, 1.5)
        request = HeartbeatRequest(self.group_id, self.generation, self.member_id, self.instance)
        code = (await self.call(request, HeartbeatResponse)).error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS and self.random.random() < 0.7:
            for place in self.mine:
                await self._commit(place)
        if code:
            self.refused(code)

    async def _work(self, place: Place) -> None:
        self.doing = f"reads {place_text(place)}@{self.positions[place]}"
        records = await self.fetch(place)
        self.record.has_read(place, [offset for offset, _ in records])
        if self.random.random() < 0.3:
            await self._commit(place)

    async def _commit(self, place: Place) -> None:
        offset = self.positions[place]
        if offset == self._committed[place]:
            return
        attempt = self.record.register(place).write(offset, self.loop.time(), self.generation, self.member_id)
        code = await self.send_commit(place, attempt, self.generation, self.member_id, self.instance)
        if code:
            self.record.fenced += attempt.is_refused
            self.refused(code)
        self.record.committed(self.name, place, attempt, self.loop.time(), self.instance)
        self._committed[place] = offset

    async def _go_astray(self) -> None:
        """Leave, crash, or sleep past the session and commit as if nothing had been. Raises Again after it."""
        if self.instance and not self.is_replaced and self.random.random() < 0.5:
            self.is_replaced = True  # and goes on until it hears of it
            self.replace(self)
            return
        match self.random.choice(("leaves", "crashes", "sleeps")):
            case "leaves":
                identity = MemberIdentity(self.member_id, self.instance)
                await self.call(LeaveGroupRequest(self.group_id, "", [identity]), LeaveGroupResponse)
                self.member_id = ""
            case "crashes":
                self.doing = "crashed"
                await asyncio.sleep(self.random.choice((0.1, 2.0, 9.0)))
                self.member_id = ""
            case _:
                self.doing = "sleeps"
                await asyncio.sleep(self.session_ms / 1000 + self.random.uniform(0.0, 3.0))
                for place in self.mine:
                    self.record.has_read(place, [offset for offset, _ in await self.fetch(place)])
                    await self._commit(place)
        raise Again("went astray")


class Loner(Grouped):
    """Keeps offsets in a group without members; deletes them now and then, and the whole group."""

    group_id = LONER_GROUP
    record: GroupRecord
    places: tuple[Place, ...] = ()
    is_stopping = False

    async def run(self) -> None:
        while not self.is_stopping:
            await asyncio.sleep(self.random.uniform(0.05, 0.5))
            await self._learn(self.places[0][0])
            if self.places[0][0] in self.topic_ids:
                await self._turn(self.random.choice(self.places))

    async def _turn(self, place: Place) -> None:
        try:
            match self.random.choices(("look", "commit", "delete", "delete all"), (5, 5, 1, 1))[0]:
                case "look":
                    asked = self.loop.time()
                    self.record.told(self.name, place, await self.committed(place), asked)
                case "commit":
                    await self._commit(place, self.random.randrange(1_000_000))
                case "delete":
                    await self._delete(place)
                case _:
                    await self._delete_group()
        except Again:
            await self.pause()

    async def _commit(self, place: Place, offset: int) -> None:
        attempt = self.record.register(place).write(offset, self.loop.time())
        code = await self.send_commit(place, attempt, -1, "", None)
        if code:
            self.refused(code)
        attempt.ended = self.loop.time()

    async def _delete(self, place: Place) -> None:
        attempt = self.record.register(place).write(NOTHING, self.loop.time())
        topic = OffsetDeleteRequestTopic(place[0], [OffsetDeleteRequestPartition(place[1])])
        answer = await self.call(OffsetDeleteRequest(self.group_id, [topic]), OffsetDeleteResponse, COMMIT_MS)
        code = answer.error_code or answer.topics[0].partitions[0].error_code
        attempt.is_refused = code in REFUSALS
        if code:
            self.refused(code)
        attempt.ended = self.loop.time()

    async def _delete_group(self) -> None:
        attempts = [self.record.register(place).write(NOTHING, self.loop.time()) for place in self.places]
        answer = await self.call(DeleteGroupsRequest([self.group_id]), DeleteGroupsResponse, COMMIT_MS)
        code = answer.results[0].error_code
        for attempt in attempts:
            attempt.is_refused = code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP)
        if code:
            self.refused(code)
        for attempt in attempts:
            attempt.ended = self.loop.time()


class Groups(Workload):
    """Two or three members, some of them static, and a loner."""

    share = 0.45

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        expiring = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
        return {
            "group.min.session.timeout.ms": "1000",
            "group.initial.rebalance.delay.ms": random.choice(("0", "500")),
            "offsets.commit.timeout.ms": "3000",
            **(expiring if random.random() < 0.25 else {}),
        }

    def clients(self) -> Iterable[Client]:
        may_expire = self.shape.settings.get("offsets.retention.minutes") is not None
        self.record = GroupRecord(GROUP, may_expire=may_expire)
        self.alone = GroupRecord(LONER_GROUP, may_expire=may_expire)
        self.record.forgettings = lambda: self.simulation.events.counts["groups.expired"]
        static = Random(f"static {self.simulation.seed}").choice((0, 0, 1, 3))
        self.members = [
            self.as_client(Member, f"member{number}", self.simulation.places)
            for number in range(self.random.choice((2, 3)))
        ]
        self.timeouts_ms = self.random.choice(TIMEOUTS_MS)
        for number, member in enumerate(self.members):
            self._prepare(member, f"instance{number}" if number < static else None)
        loner = self.as_client(Loner, "loner")
        loner.record, loner.places = self.alone, tuple(self.simulation.places)
        self._keeper = self.as_client(Keeper, "keeper of offsets")
        self._keeper.simulation = self.simulation
        return [*self.members, loner, self._keeper]

    def _prepare(self, member: Member, instance: str | None) -> None:
        member.session_ms, member.rebalance_ms = self.timeouts_ms
        member.record, member.instance, member.replace = self.record, instance, self._replace
        member.term_of = self._term_of

    def _term_of(self, address: tuple[str, int]) -> Term | None:
        node = next((other for other in self.simulation.nodes if other.host == address[0] and other.is_serving), None)
        partition = None if node is None else node.broker.partitions.get(GROUP_METADATA, 0)
        return None if node is None or partition is None else (node.process.name, partition.leader_epoch)

    def _replace(self, former: Member) -> None:
        """Another process begins under the name of a static member that still runs."""
        member = self.as_client(Member, f"{former.name}.{len(self.members)}", self.simulation.places)
        self._prepare(member, former.instance)
        member.is_calm = former.is_calm
        self.members.append(member)
        self.simulation.run_client(member)

    def stop(self) -> None:
        for member in self.members:
            member.is_calm = True
        if self.random.random() < 0.5:
            self.simulation.say(f"{self.members[0].name} is gone for good")
            self.members[0].process.die()  # the other members have to take over its partitions

    def missing(self) -> list[str]:
        """A group that stands still is an error, with its cause named."""
        behind = [
            f"group {GROUP} has committed {place_text(place)} to {self.record.register(place).last}, not to {end}"
            for place in self.simulation.places
            if (end := self.simulation.invariants.truths[place].end_offset) not in self._committed_ends(place)
        ]
        return [*behind, *map(str, self.members)] if behind else []

    def _committed_ends(self, place: Place) -> tuple[int, int]:
        register = self.record.register(place)
        return max(register.last, 0), max(register.told, 0)

    async def judge(self) -> list[str]:
        record = self.record
        self.reached(
            generations=record.generations,
            commits=record.commits,
            commits_refused=record.fenced,
            partitions_taken_over=record.taken_over,
            topics_replaced=self._keeper.replaced,
            offsets_deleted=sum(
                attempt.offset < 0 and attempt.ended is not None
                for place in self.simulation.places
                for attempt in self.alone.register(place).attempts
            ),
        )
        return [
            *self.record.problems[:WORST_MAX],
            *self.alone.problems[:WORST_MAX],
            *self._keeper.record.problems,
            *self.history.anomalies(),
        ]

    async def afterwards(self) -> list[str]:
        return await outlived(self, self.as_judge(Grouped, "observer of groups"))
