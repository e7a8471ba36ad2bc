"""Streams groups (KIP-1071): stream threads that heartbeat, are assigned tasks and give them up.

A member does what Kafka Streams does. It joins with the topology, owns only what it was assigned, gives up what it has
to and says so in its next heartbeat, and forgets everything when it is fenced. Where an answer is lost it says
everything again. Some keep what they have to give up until they are fenced. Members leave, crash, sleep past their
session, and come back; the threads of a process share its id.
Source topics come, go and grow, and internal topics are deleted under the application, which has them created again.
Threads commit offsets of the topics that their tasks read, also late, in an epoch that they have left (KIP-1251). What
is fenced, has left or has crashed may come back as a zombie: its former process heartbeats and commits with the member
id and the epoch that it had.
`task_holdings` says what must never be.

    0: streamed0 -> repartition        1: repartition, with state
    2: streamed1, with state           3: streamed2
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
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
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
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
from tests.sim.commits import Attempt
from tests.sim.grouped import COMMIT_MS, ELSEWHERE, Again, Grouped
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
READS: Final = {b"0": "spare-streamed0", b"1": REPARTITION, b"2": "spare-streamed1", b"3": GROWING}
LEAVES: Final = -1
NEVER: Final = float("inf")
LATE_MAX: Final = 3  # heartbeats of a member that keeps what it had to give up, before its coordinator runs the timer
#: Of a session, for which a member that hears nothing has what it has: a coordinator's clock may run a tenth too fast.
SHARE_OF_SESSION: Final = 0.88
AGREED_SECONDS_MAX: Final = 40.0
FENCED: Final = frozenset({
    ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND,
})  # fmt: skip
#: A commit that is answered so was not written.
REFUSED: Final = FENCED | {
    ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}  # fmt: skip
LEFT_MAX: Final = 4
ZOMBIES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Zombie:
    """What a thread was before it was fenced, left or crashed, and what its process may still send."""

    member_id: str
    epoch: int
    tasks: tuple[Held, ...]
    ended: float
    gone_in: int | None  # the term of the coordinator that said that it is no member any more


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
    topic_id: Callable[[str], bytes | None]  # by the newest image
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
        self._commits = self.stream("commits")
        self._haunts = self.stream("zombies")
        self._left: list[tuple[Held, int]] = []  # what it has given up, and the epoch in which it had it
        self._zombies: list[Zombie] = []
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
        self._since: dict[Held, int] = {}  # the epoch in which it got each active task
        self._asks = False  # where to go on, once it has got a task
        self.target: tuple[frozenset[Held], frozenset[Held]] | None = None
        self._says_all = True
        self._said: tuple[frozenset[Held], frozenset[Held]] | None = None
        self._revoked_at = self._unheard_since = 0.0
        self._heard_until = NEVER
        self._told: tuple[float, int | None] = (0.0, None)  # when, and in which term, it was told to give something up
        self._late = 0

    def _is_fenced(self, gone_in: int | None = None) -> None:
        """Forget everything: others may have it."""
        self._becomes_zombie(gone_in)
        self.record.forgets(self.name)
        self._forget()

    def _becomes_zombie(self, gone_in: int | None = None) -> None:
        """Keep what its process may still send."""
        if self.epoch > 0:
            zombie = Zombie(self.member_id, self.epoch, tuple(sorted(self.active)), self.loop.time(), gone_in)
            self._zombies = [*self._zombies, zombie][-ZOMBIES_MAX:]

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
                await self._work()
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
            self._refused(answer.error_code, answer.error_message, term if is_current else None)
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
        self.record.member_ids[self.name] = self.member_id
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

    def _refused(self, code: int, message: str | None, term: int | None) -> None:
        """Take note of the error of a heartbeat. Raises Again."""
        if code in FENCED:
            self._is_fenced(term)
            if self._haunts.random() < 0.5:
                self._begin_anew()
        elif code not in ELSEWHERE:
            self.record.object(f"heartbeat: {self.member_id} was told {ErrorCode(code).name}: {message}")
        self.refused(code)

    def _is_assigned(self, active: frozenset[Held], copies: frozenset[Held]) -> None:
        """Take what is new at once, where nothing has to be given up before."""
        self.target = active, copies
        if not (self.active - active or self.copies - copies):
            self._take(active, copies)
            self._revoked_at = 0.0
        elif not self._revoked_at:
            # One in eight gives nothing up, and heartbeats on: its coordinator has to fence it.
            delays = (0.0, 0.3, self.rebalance_ms / 1000, NEVER)
            self._revoked_at = self.loop.time() + self.random.choices(delays, (4, 2, 1, 1))[0]
            # The coordinator may have heard of the first heartbeat that was not answered.
            deadline = self._unheard_since + self.rebalance_ms * SHARE_OF_SESSION / 1000
            self.record.is_to_revoke(self.name, deadline)

    def _take(self, active: frozenset[Held], copies: frozenset[Held]) -> None:
        self._asks = self._asks or bool(active - self.active)
        self._since = {task: self._since.get(task, self.epoch) for task in sorted(active)}
        self.active, self.copies = active, copies

    async def _reconcile(self) -> None:
        """Give up what has to be, once its processing has ended, and take the rest. Raises Again."""
        if not self._revoked_at or self.loop.time() < self._revoked_at or self.target is None:
            return
        goes = sorted(self.active - self.target[0])
        for task in goes if not self.is_calm and self._commits.random() < 0.5 else ():
            await self._commit(task, self.epoch)
        self._left = [*self._left, *((task, self.epoch) for task in goes)][-LEFT_MAX:]
        active, copies = self.target
        self.record.drops(self.name, self.active - active, self.copies - copies)
        self._take(active, copies)
        self._revoked_at = 0.0
        await self._beat()

    # --- offsets ------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Ask where to go on, commit, and let zombies do so. Raises Again."""
        if self._asks and self.active:
            await self._fetch_offset(self._commits.choice(sorted(self.active)))
        if self.is_calm:
            return
        if self.active and self._commits.random() < 0.3:
            await self._commit(self._commits.choice(sorted(self.active)), self.epoch)
        await self._commit_late()
        if self._zombies and self._haunts.random() < 0.25:
            await self._haunt(self._haunts.choice(self._zombies))

    async def _fetch_offset(self, task: Held) -> None:
        """Raises Again."""
        topic_id = self.topic_id(READS[task[0]])
        if topic_id is None:
            return
        asked, address = self.loop.time(), await self.find()
        term = self.leads(address)
        group = OffsetFetchRequestGroup(
            self.group_id, self.member_id, self.epoch, [OffsetFetchRequestTopics("", topic_id, [task[1]])]
        )
        answer = (await self.call(OffsetFetchRequest("", [], [group]), OffsetFetchResponse)).groups[0]
        if answer.error_code:
            self.refused(answer.error_code)
        told = answer.topics[0].partitions[0]
        if told.error_code:
            self.refused(told.error_code)
        self._asks = False
        if term is not None and term == self.leads(address):
            self.record.told(self.name, (topic_id, task[1]), int(told.committed_offset), asked)

    async def _commit_late(self) -> None:
        """Commit in an epoch that it has left: what was on its way meanwhile. Raises Again."""
        while self._left and self.epoch > self._left[0][1]:
            task, epoch = self._left.pop(0)
            if self._commits.random() < 0.4:
                await self._commit(task, epoch)
        former = [task for task in sorted(self._since) if self._since[task] < self.epoch]
        if former and self._commits.random() < 0.1:
            task = self._commits.choice(former)
            await self._commit(task, self._commits.randint(self._since[task], self.epoch - 1))

    async def _commit(self, task: Held, epoch: int) -> None:
        """Commit a number that is nobody else's. Raises Again."""
        address = await self.find()
        term, own_epoch, since = self.leads(address), self.epoch, self._since.get(task)
        attempt, code = await self._send_commit(task, epoch, self.member_id)
        is_due = since is not None and since <= epoch and self._since.get(task) == since
        if code == ErrorCode.STALE_MEMBER_EPOCH and is_due and term is not None and term == self.leads(address):
            has = f"has had {task_text(task)} since {since}"
            self.record.object(f"refused-commit: {self.member_id} {has}, and may not commit in {epoch}")
        if code:
            self.refused(code)
        self.record.committed(self.name, task, attempt, self.loop.time(), is_left=epoch < own_epoch)

    async def _send_commit(self, task: Held, epoch: int, member_id: str) -> tuple[Attempt, int]:
        """Commit an offset of the topic that a task reads; returns it with the error code. Raises Again."""
        topic_id = self.topic_id(READS[task[0]])
        if topic_id is None:
            raise Again("its topic is not there")
        attempt = self.record.register((topic_id, task[1])).write(
            self._commits.randrange(1_000_000_000), self.loop.time(), epoch, member_id
        )
        topic = OffsetCommitRequestTopic("", topic_id, [OffsetCommitRequestPartition(task[1], attempt.offset)])
        request = OffsetCommitRequest(self.group_id, epoch, member_id, None, -1, [topic])
        answer = await self.call(request, OffsetCommitResponse, COMMIT_MS)
        code = int(answer.topics[0].partitions[0].error_code)
        attempt.is_refused = code in REFUSED
        self.record.refused += attempt.is_refused
        return attempt, code

    # --- zombies ------------------------------------------------------------------------------------------------

    async def _haunt(self, zombie: Zombie) -> None:
        """Heartbeat or commit as a thread that this one was before. Raises Again."""
        self.record.haunted += 1
        if zombie.tasks and self._haunts.random() < 0.6:
            task = self._haunts.choice(zombie.tasks)
            attempt, code = await self._send_commit(task, zombie.epoch, zombie.member_id)
            if not code:
                self.record.committed_by_zombie(task, attempt, zombie.ended, self.loop.time())
        elif zombie.member_id != self.member_id:
            await self._beat_as(zombie)

    async def _beat_as(self, zombie: Zombie) -> None:
        """Heartbeat with a former epoch. Raises Again."""
        address = await self.find()
        term = self.leads(address)
        request = StreamsGroupHeartbeatRequest(self.group_id, zombie.member_id, zombie.epoch)
        answer = await self.call(request, StreamsGroupHeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
        is_same = term is not None and term == zombie.gone_in and term == self.leads(address)
        if not answer.error_code and is_same:
            self.record.object(f"zombie-served: {zombie.member_id}, which was fenced in {zombie.epoch}")
        if answer.error_code in FENCED and term == self.leads(address):
            is_fenced = answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH  # and may be a member in a later epoch
            self._is_gone(zombie.member_id, term, zombie.epoch if is_fenced else None)

    def _is_gone(self, member_id: str, term: int | None, epoch: int | None = None) -> None:
        """The coordinator says that a zombie is no member, or none in this epoch: it has to stay so as long as this one
        leads.
        """
        self._zombies = [
            replace(known, gone_in=term)
            if known.member_id == member_id and (epoch is None or known.epoch <= epoch)
            else known
            for known in self._zombies
        ]

    # --- what they do -------------------------------------------------------------------------------------------

    async def _go_astray(self) -> None:
        """Leave, crash, or sleep past the session. Raises Again, or returns."""
        match self.random.choices(("leaves", "crashes", "sleeps"), (3, 2, 1))[0]:
            case "leaves":
                await self._leave()
            case "crashes":
                self.doing = "crashed"
                self._becomes_zombie()
                self.record.forgets(self.name)
                await asyncio.sleep(self.random.choice((0.1, 1.0, 1.5 * self.session_ms / 1000)))
                self._begin_anew()
            case _:
                self.doing = "sleeps"
                await asyncio.sleep(self.session_ms / 1000 * self.random.uniform(0.5, 2.0))

    async def _leave(self) -> None:
        """Leave, whether or not the coordinator hears it. Raises Again."""
        request = StreamsGroupHeartbeatRequest(self.group_id, self.member_id, LEAVES)
        self._becomes_zombie()
        self.record.forgets(self.name)
        self._forget()
        self.doing = "leaves"
        try:
            address = await self.find()
            term = self.leads(address)
            answer = await self.call(request, StreamsGroupHeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
            if not answer.error_code and term == self.leads(address):
                self._is_gone(request.member_id, term)
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

    share = 0.03

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
        self.record = TaskHoldings(may_expire=settings.get("offsets.retention.minutes") is not None)
        self.record.objected = self.simulation.fail
        self.record.forgettings = lambda: self.simulation.events.counts["groups.expired"]
        self._seen: dict[str, Seen] = {}
        self._replicas = int(settings["group.streams.num.standby.replicas"])
        processes, rebalance_ms = self.random.choice((2, 3)), self.random.choice((1_500, 4_000))
        count = self.random.choice((2, 3, 4, 5))
        self.members = [self.as_client(StreamThread, f"thread{number}") for number in range(count)]
        for number, member in enumerate(self.members):
            member.record, member.leads, member.topic_id = self.record, self._leads, self._topic_id
            member.topology = topology(self.shape.replication_factor)
            member.process_id = f"process{number % processes}"
            member.session_ms = int(settings["group.streams.session.timeout.ms"])
            member.heartbeat_ms = int(settings["group.streams.heartbeat.interval.ms"])
            member.rebalance_ms = rebalance_ms
        self._changer = self.as_client(StreamedTopicChanger, "changer of streamed topics")
        self._asking = self.as_judge(Grouped, "observer of streams")
        self._asking.group_id = STREAMS_GROUP
        self.simulation.looking.append(self.after_step)
        return [*self.members, self._changer]

    def _topic_id(self, name: str) -> bytes | None:
        topic = self.simulation.invariants.image.topics.get(name)
        return None if topic is None else bytes(topic.topic_id)

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
            streams_commits=record.commits,
            streams_commits_refused=record.refused,
            streams_taken_over=record.late_taken,
            streams_haunted=record.haunted,
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
