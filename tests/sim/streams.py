"""Streams groups (KIP-1071): stream threads that heartbeat, are assigned tasks and give them up.

A member does what Kafka Streams does. It joins with the topology, owns only what it was assigned, gives up what it has
to and says so in its next heartbeat, and forgets everything when it is fenced. Where an answer is lost it says
everything again. Some keep what they have to give up until they are fenced. Members leave, crash, sleep past their
session, and come back; the threads of a process share its id.
Source topics come, go and grow, and internal topics are deleted under the application, which has them created again.
`task_holdings` says what must never be.

    0: streamed0 -> repartition        1: repartition, with state
    2: streamed1, with state           3: streamed2
"""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

from kavka_broker.core.metadata.image.features import STREAMS_VERSION
from kavka_broker.core.streams_group.statuses import StatusCode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kavka_broker.protocol.messages.streams_group_describe_response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from kavka_broker.protocol.messages.streams_group_heartbeat_request import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kavka_broker.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kavka_broker.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kavka_broker.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.grouped import ELSEWHERE, Again, Grouped
from tests.sim.history import WORST_MAX
from tests.sim.holdings import Held, Seen
from tests.sim.task_holdings import Standing, TaskHoldings, task_text, unassigned, unbalanced
from tests.sim.workloads import Workload

STREAMS_GROUP: Final = "application"
OFFSETS_TOPIC: Final = "__consumer_offsets"
SOURCES: Final = {"spare-streamed0": 3, "spare-streamed1": 2, "spare-streamed2": 1}
GROWING: Final = "spare-streamed2"  # of a subtopology without internal topics, which would not fit any more
PARTITIONS_MAX: Final = 5
REPARTITION: Final = "spare-application-repartition"
CHANGELOGS: Final = ("spare-application-1-changelog", "spare-application-2-changelog")
INTERNAL: Final = (REPARTITION, *CHANGELOGS)
STATEFUL: Final = frozenset({b"1", b"2"})
LEAVES: Final = -1
NEVER: Final = float("inf")
LATE_MAX: Final = 3  # heartbeats of a member that keeps what it had to give up, before its coordinator runs the timer
#: Of a session, for which a member that hears nothing has what it has: a coordinator's clock may run a tenth too fast.
SHARE_OF_SESSION: Final = 0.88
AGREED_SECONDS_MAX: Final = 40.0
FENCED: Final = frozenset({
    ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND,
})  # fmt: skip


def topology(replication_factor: int) -> Topology:
    """Return the application's, as its members send it."""
    repartition = TopicInfo(REPARTITION, 0, replication_factor, [KeyValue("cleanup.policy", "delete")])
    logs = [TopicInfo(name, 0, replication_factor, [KeyValue("cleanup.policy", "compact")]) for name in CHANGELOGS]
    parts = [
        Subtopology("0", ["spare-streamed0"], repartition_sink_topics=[REPARTITION]),
        Subtopology("1", state_changelog_topics=logs[:1], repartition_source_topics=[repartition]),
        Subtopology("2", ["spare-streamed1"], state_changelog_topics=logs[1:]),
        Subtopology("3", [GROWING]),
    ]
    return Topology(0, parts)


class StreamThread(Grouped):
    """One member. `record` is the whole group's."""

    group_id = STREAMS_GROUP
    record: TaskHoldings
    leads: Callable[[tuple[str, int]], int | None]  # the epoch in which a node is the coordinator, by the newest image
    topology: Topology
    process_id = ""
    session_ms, rebalance_ms, heartbeat_ms = 2_000, 3_000, 300
    is_calm = False

    def __init__(self, *details: Any) -> None:
        super().__init__(*details)
        self._restlessness = self.random.choice((0.03, 0.08, 0.2))
        self._lives = 0
        self._endpoint = Endpoint(self.name, 7_000) if self.random.random() < 0.5 else None
        self._begin_anew()

    def __str__(self) -> str:
        runs, copies = (", ".join(map(task_text, sorted(tasks))) or "nothing" for tasks in (self.active, self.copies))
        return f"{self.member_id} in epoch {self.epoch} runs {runs}, has standbys of {copies}, {self.doing}"

    def _begin_anew(self) -> None:
        """Be another thread."""
        self._lives += 1
        self.member_id = f"{self.name}.{self._lives}"
        self._forget()

    def _forget(self) -> None:
        """Have nothing, and join."""
        self.epoch, self._endpoint_epoch = 0, -1
        self.active: frozenset[Held] = frozenset()
        self.copies: frozenset[Held] = frozenset()
        self.target: tuple[frozenset[Held], frozenset[Held]] | None = None
        self._says_all = True
        self._said: tuple[frozenset[Held], frozenset[Held]] | None = None
        self._revoked_at = self._unheard_since = 0.0
        self._heard_until = NEVER
        self._told: tuple[float, int | None] = (0.0, None)  # when, and in which term, it was told to give something up
        self._late = 0

    def _is_fenced(self) -> None:
        """Forget everything: others may have it."""
        self.record.forgets(self.name)
        self._forget()

    @property
    def is_settled(self) -> bool:
        return self.epoch > 0 and (self.target is None or self.target == (self.active, self.copies))

    async def run(self) -> None:
        while True:
            try:
                if self.loop.time() > self._heard_until and self.random.random() < 0.7:
                    self._is_fenced()  # as many clients do; the others ask
                await self._beat()
                await self._reconcile()
                if not self.is_calm and self._revoked_at != NEVER and self.random.random() < self._restlessness:
                    await self._go_astray()
            except Again as why:
                self.doing = f"again: {why}"
            await asyncio.sleep(self.random.uniform(0.3, 1.0) * self.heartbeat_ms / 1000)

    # --- heartbeats ---------------------------------------------------------------------------------------------

    def _heartbeat(self) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch, self._endpoint_epoch)
        if self._says_all:
            request.rebalance_timeout_ms = self.rebalance_ms
            request.process_id, request.client_tags = self.process_id, []
            request.user_endpoint = self._endpoint
        if self.epoch == 0:
            request.topology = self.topology
        if self._says_all or (self.active, self.copies) != self._said:
            request.active_tasks, request.standby_tasks = by_subtopology(self.active), by_subtopology(self.copies)
            request.warmup_tasks = []
        return request

    async def _beat(self) -> None:
        """Send a heartbeat and take the answer. Raises Again."""
        asked, request, said = self.loop.time(), self._heartbeat(), (self.active, self.copies)
        self._unheard_since = self._unheard_since or asked
        self._says_all = True  # until it has an answer
        address = await self.find()
        term = self.leads(address)
        answer = await self.call(request, StreamsGroupHeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
        now, is_current = self.loop.time(), term is not None and term == self.leads(address)
        if now >= asked + self._session_seconds:
            raise Again("the answer has come too late")
        if answer.error_code:
            self._refused(answer.error_code, answer.error_message)
        self.record.heartbeats += 1
        self._says_all, self._said = False, said
        if is_current and answer.member_epoch < self.epoch:
            self.record.object(f"epoch-back: {self.member_id} was in {self.epoch}, and is in {answer.member_epoch}")
        self.epoch, self._endpoint_epoch = answer.member_epoch, answer.endpoint_information_epoch
        self._heard_until = asked + self._session_seconds
        if is_current:
            self.record.told_epoch(self.epoch)
        for status in answer.status or ():
            self.record.statuses[StatusCode(status.status_code).name] += 1
        if answer.active_tasks is not None:
            self._is_assigned(tasks_of(answer.active_tasks), tasks_of(answer.standby_tasks))
        if self._revoked_at == NEVER:
            self._keeps(asked, term if is_current else None, is_told=answer.active_tasks is not None)
        self._unheard_since = 0.0
        until = self._heard_until if is_current else None
        self.record.runs(self.name, self.process_id, self.active, self.copies, now, until)

    def _keeps(self, asked: float, term: int | None, *, is_told: bool) -> None:
        """Heartbeat with what it had to give up: a coordinator fences it, which counts the time from when it leads."""
        told_at, told_in = self._told
        if is_told or term is None or term != told_in:
            self._told, self._late = (asked, term), 0
        elif asked > told_at + self.rebalance_ms / 1000 / SHARE_OF_SESSION + 1.0:
            self._late += 1
            if self._late > LATE_MAX:
                self.record.object(f"stuck-revocation: {self.member_id} keeps its tasks, and is not fenced")

    @property
    def _session_seconds(self) -> float:
        return self.session_ms * SHARE_OF_SESSION / 1000

    def _refused(self, code: int, message: str | None) -> None:
        """Take note of the error of a heartbeat. Raises Again."""
        if code in FENCED:
            self._is_fenced()
        elif code not in ELSEWHERE:
            self.record.object(f"heartbeat: {self.member_id} was told {ErrorCode(code).name}: {message}")
        self.refused(code)

    def _is_assigned(self, active: frozenset[Held], copies: frozenset[Held]) -> None:
        """Take what is new at once, where nothing has to be given up before."""
        self.target = active, copies
        if not (self.active - active or self.copies - copies):
            self.active, self.copies = active, copies
            self._revoked_at = 0.0
        elif not self._revoked_at:
            # One in eight gives nothing up, and heartbeats on: its coordinator has to fence it.
            delays = (0.0, 0.3, self.rebalance_ms / 1000, NEVER)
            self._revoked_at = self.loop.time() + self.random.choices(delays, (4, 2, 1, 1))[0]
            # The coordinator may have heard of the first heartbeat that was not answered.
            deadline = self._unheard_since + self.rebalance_ms * SHARE_OF_SESSION / 1000
            self.record.is_to_revoke(self.name, deadline)

    async def _reconcile(self) -> None:
        """Give up what has to be, once its processing has ended, and take the rest. Raises Again."""
        if not self._revoked_at or self.loop.time() < self._revoked_at or self.target is None:
            return
        active, copies = self.target
        self.record.drops(self.name, self.active - active, self.copies - copies)
        self.active, self.copies = active, copies
        self._revoked_at = 0.0
        await self._beat()

    # --- what they do -------------------------------------------------------------------------------------------

    async def _go_astray(self) -> None:
        """Leave, crash, or sleep past the session. Raises Again, or returns."""
        match self.random.choices(("leaves", "crashes", "sleeps"), (3, 2, 1))[0]:
            case "leaves":
                await self._leave()
            case "crashes":
                self.doing = "crashed"
                self.record.forgets(self.name)
                await asyncio.sleep(self.random.choice((0.1, 1.0, 1.5 * self.session_ms / 1000)))
                self._begin_anew()
            case _:
                self.doing = "sleeps"
                await asyncio.sleep(self.session_ms / 1000 * self.random.uniform(0.5, 2.0))

    async def _leave(self) -> None:
        """Leave, whether or not the coordinator hears it. Raises Again."""
        request = StreamsGroupHeartbeatRequest(self.group_id, self.member_id, LEAVES)
        self.record.forgets(self.name)
        self._forget()
        self.doing = "leaves"
        try:
            await self.call(request, StreamsGroupHeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
        finally:
            self._begin_anew()
        await asyncio.sleep(self.random.choice((0.0, 0.5, 1.5 * self.session_ms / 1000)))


def by_subtopology(tasks: Iterable[Held]) -> list[TaskIds]:
    found: dict[str, list[int]] = {}
    for part, index in sorted(tasks):
        found.setdefault(part.decode(), []).append(index)
    return [TaskIds(part, indexes) for part, indexes in found.items()]


def tasks_of(told: Iterable[Any]) -> frozenset[Held]:
    return frozenset((task.subtopology_id.encode(), index) for task in told for index in task.partitions)


class StreamedTopicChanger(Client):
    """Has source topics deleted, created again and grown, and internal topics deleted."""

    is_stopping = is_done = False

    async def run(self) -> None:
        pace = self.random.choice((3.0, 6.0, 12.0))
        while not self.is_stopping:
            await asyncio.sleep(self.random.expovariate(1 / pace))
            match self.random.choices(("source", "internal", "grow"), (2, 2, 3))[0]:
                case "source":
                    await self._delete(self.random.choice(list(SOURCES)))
                    await asyncio.sleep(self.random.choice((0.0, 1.0, 4.0)))
                    await self._create_sources()
                case "internal":
                    await self._delete(self.random.choice(INTERNAL))
                case _:
                    grown = CreatePartitionsTopic(GROWING, self.random.randint(2, PARTITIONS_MAX), None)
                    await self.ask_any(CreatePartitionsRequest([grown], 1_000), CreatePartitionsResponse)
        while not await self._create_sources():
            await self.pause()
        self.is_done = True

    async def _delete(self, name: str) -> None:
        await self.ask_any(DeleteTopicsRequest([DeleteTopicState(name)], [name], 1_000), DeleteTopicsResponse)

    async def _create_sources(self) -> bool:
        """Create those that are not there; a topic never has fewer partitions than before. Returns whether all are."""
        counts = {**SOURCES, GROWING: PARTITIONS_MAX}
        made = [CreatableTopic(name, count, -1) for name, count in counts.items()]
        answer = await self.ask_any(CreateTopicsRequest(made, 1_000), CreateTopicsResponse)
        return isinstance(answer, CreateTopicsResponse) and all(
            topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS for topic in answer.topics
        )


class Streams(Workload):
    """Two to five stream threads in two or three processes, and one client that changes their topics."""

    share = 0.0

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        heartbeat_ms, session_ms = random.choice(("150", "400")), random.choice(("2000", "5000"))
        return {
            "group.streams.min.heartbeat.interval.ms": heartbeat_ms,
            "group.streams.heartbeat.interval.ms": heartbeat_ms,
            "group.streams.min.session.timeout.ms": session_ms,
            "group.streams.session.timeout.ms": session_ms,
            "group.streams.assignment.interval.ms": random.choice(("0", "300", "1000")),
            "group.streams.initial.rebalance.delay.ms": random.choice(("0", "500", "3000")),
            "group.streams.num.standby.replicas": random.choice(("0", "1", "1", "2")),
            "offsets.commit.timeout.ms": "3000",
        }

    async def begin(self, admin: Admin) -> None:
        for name, count in SOURCES.items():
            await admin.create(name, count, self.shape.replication_factor)
        upgrade = UpdateFeaturesRequest(1_000, [FeatureUpdateKey(STREAMS_VERSION, 1)])
        nodes = self.simulation.nodes
        while not all(node.is_serving and node.broker.metadata.features.level(STREAMS_VERSION) for node in nodes):
            await admin.ask_any(upgrade, UpdateFeaturesResponse)
            await admin.pause()

    def clients(self) -> Iterable[Client]:
        settings = self.shape.settings
        self.record = TaskHoldings()
        self.record.objected = self.simulation.fail
        self.record.forgettings = lambda: self.simulation.events.counts["groups.expired"]
        self._seen: dict[str, Seen] = {}
        self._replicas = int(settings["group.streams.num.standby.replicas"])
        processes, rebalance_ms = self.random.choice((2, 3)), self.random.choice((1_500, 4_000))
        count = self.random.choice((2, 3, 4, 5))
        self.members = [self.as_client(StreamThread, f"thread{number}") for number in range(count)]
        for number, member in enumerate(self.members):
            member.record, member.leads = self.record, self._leads
            member.topology = topology(self.shape.replication_factor)
            member.process_id = f"process{number % processes}"
            member.session_ms = int(settings["group.streams.session.timeout.ms"])
            member.heartbeat_ms = int(settings["group.streams.heartbeat.interval.ms"])
            member.rebalance_ms = rebalance_ms
        self._changer = self.as_client(StreamedTopicChanger, "changer of streamed topics")
        self._asking = self.as_client(Grouped, "observer of streams")
        self._asking.group_id = STREAMS_GROUP
        self.simulation.looking.append(self.after_step)
        return [*self.members, self._changer]

    # --- coordinators -------------------------------------------------------------------------------------------

    def _leads(self, address: tuple[str, int]) -> int | None:
        """The epoch in which a node leads the group's partition, if the newest image has it so too."""
        node = next((other for other in self.simulation.nodes if other.host == address[0] and other.is_serving), None)
        return None if node is None else self._epoch_of(node)

    def _epoch_of(self, node: Any) -> int | None:
        topic = self.simulation.invariants.image.topics.get(OFFSETS_TOPIC)
        partition = node.broker.partitions.get(OFFSETS_TOPIC, 0)
        if topic is None or partition is None or not partition.is_leader:
            return None
        state = topic.partitions[0]
        is_newest = (state.leader, state.leader_epoch) == (node.node_id, partition.leader_epoch)
        return int(partition.leader_epoch) if is_newest else None

    def after_step(self, node: Any) -> None:
        """Look at the group, where a step of its coordinator has written anything."""
        if not node.is_serving:
            return
        shard = node.broker.groups.led.by_partition.get(0)
        if shard is None or shard.is_loading or shard.is_unreadable or shard.log.is_closed:
            return
        seen, end_offset = self._seen.get(node.host), shard.partition.log.log_end_offset
        is_first = seen is None or seen.shard is not shard
        if seen is None or is_first:
            seen = self._seen[node.host] = Seen(shard)
        if seen.end_offset != end_offset:
            seen.end_offset = end_offset
            is_first = is_first and self._epoch_of(node) is not None
            self.record.look_at(shard.image.streams_groups.get(STREAMS_GROUP), seen, is_first=is_first)

    # --- the end ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        self._changer.is_stopping = True
        for member in self.members:
            member.is_calm = True
        if self.random.random() < 0.5:
            gone = self.members.pop()
            self.simulation.say(f"{gone.name} is gone for good")
            gone.process.die()  # the other members have to take over its tasks
            self.record.forgets(gone.name)

    def _tasks(self) -> dict[Held, bool]:
        """Every task that there is, and whether it has state."""
        topics = self.simulation.invariants.image.topics
        counts = [(part, topics.get(f"spare-streamed{at}")) for at, part in enumerate((b"0", b"2", b"3"))]
        counts.append((b"1", topics.get(REPARTITION)))
        return {
            (part, index): part in STATEFUL
            for part, topic in counts
            if topic is not None
            for index in range(len(topic.partitions))
        }

    def missing(self) -> list[str]:
        """What keeps the group from being at rest."""
        members = [
            Standing(member.member_id, member.process_id, member.epoch, member.active, member.copies)
            for member in self.members
        ]
        found = [*unassigned(members, self._tasks(), self._replicas), *unbalanced(members)]
        lacking = [name for name in (*SOURCES, *INTERNAL) if self.simulation.invariants.image.topics.get(name) is None]
        found += [f"{name} is not there" for name in lacking]
        if len({member.epoch for member in members}) != 1 or not all(member.is_settled for member in self.members):
            found.append("members are on their way")
        return [*found, *map(str, self.members)] if found else []

    async def judge(self) -> list[str]:
        record = self.record
        self.reached(
            streams_assigned=record.assignments,
            streams_given_up=record.given_up,
            streams_standbys=record.standbys,
            streams_promoted=record.promoted,
            streams_missing_sources=record.statuses["MISSING_SOURCE_TOPICS"],
            streams_missing_internal=record.statuses["MISSING_INTERNAL_TOPICS"],
        )
        return [*record.problems[:WORST_MAX], *await self._disagreement()]

    async def _disagreement(self) -> list[str]:
        """Where the coordinator's description is not what the members have, once it has had time."""
        end = self.loop.time() + AGREED_SECONDS_MAX
        while True:
            described = await self.running(self._asking, self._describe())
            problems = self.missing() or (["no coordinator describes the group"] if described is None else [])
            if described is not None:
                problems += self._differences(described)
            if not problems or self.loop.time() > end:
                return [f"unbalanced: {problem}" for problem in problems[:WORST_MAX]]
            await asyncio.sleep(0.2)

    async def _describe(self) -> DescribedGroup | None:
        answer = await self._asking.try_call(StreamsGroupDescribeRequest([STREAMS_GROUP]), StreamsGroupDescribeResponse)
        if answer is None or answer.groups[0].error_code:
            self._asking.coordinator = None
            return None
        found: DescribedGroup = answer.groups[0]
        return found

    def _differences(self, group: DescribedGroup) -> list[str]:
        epochs = {group.group_epoch, group.assignment_epoch, *(member.epoch for member in self.members)}
        found = [] if len(epochs) == 1 else [f"epochs are {sorted(epochs)}"]
        if group.group_state != "Stable":
            found.append(f"the group is {group.group_state}")
        known = {
            member.member_id: (tasks_of(member.assignment.active_tasks), tasks_of(member.assignment.standby_tasks))
            for member in group.members
        }
        if known != {member.member_id: (member.active, member.copies) for member in self.members}:
            found.append(f"the coordinator knows {sorted(known)}, or they have other tasks")
        return found
