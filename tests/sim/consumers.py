"""Consumer groups of the new protocol (KIP-848): members that heartbeat, are assigned partitions and give them up.

A member does what a correct client does. It owns only what it was assigned, gives up what it has to and says so in its
next heartbeat, and forgets everything when it is fenced. Where an answer is lost it says everything again. Members
subscribe to other topics, leave, crash, sleep past their session, and come back; some are static (KIP-345), leave for a
while, and come back under another member id. Topics come, go and grow. What they commit is not what they have read, but
a number that nobody else commits. `holdings` says what must never be.
"""

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kavka_broker.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
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
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.gatherings import Gatherings
from tests.sim.grouped import COMMIT_MS, ELSEWHERE, Again, Grouped
from tests.sim.history import WORST_MAX
from tests.sim.holdings import Held, Holdings, Seen, Share, held_text, in_one_epoch, unassigned, unbalanced
from tests.sim.workloads import Workload

CONSUMER_GROUP: Final = "consumers"
OFFSETS_TOPIC: Final = "__consumer_offsets"
TOPICS: Final = ("spare-consumed0", "spare-consumed1", "spare-consumed2")
PARTITIONS_MAX: Final = 6
#: Expressions, and the names of topics that they match.
EXPRESSIONS: Final = {"spare-consumed.*": TOPICS, "spare-consumed[12]": TOPICS[1:]}
LEAVES, LEAVES_FOR_A_WHILE = -1, -2
#: Of a session, for which a member that hears nothing has what it has: a coordinator's clock may run a tenth too fast.
SHARE_OF_SESSION: Final = 0.88
SESSIONS_MS: Final = (2_000, 5_000)
AGREED_SECONDS_MAX: Final = 30.0
REBALANCE_HEARTBEAT_MS: Final = 500  # the default of kavka.group.rebalance.heartbeat.interval.ms

#: The member is none any more, or is in no epoch that the coordinator knows.
FENCED: Final = frozenset({
    ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
})  # fmt: skip
#: A commit that is answered so was not written.
REFUSED: Final = FENCED | {
    ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS,
}  # fmt: skip


class Consumer(Grouped):
    """One member. `record` is the whole group's."""

    group_id = CONSUMER_GROUP
    record: Holdings
    leads: Callable[[tuple[str, int]], int | None]  # the epoch in which a node is the coordinator, by the newest image
    answered: Callable[[tuple[str, int], float], None]  # told of each answer of a coordinator, and when it was asked
    instance: str | None = None
    assignor: str | None = None
    session_ms, rebalance_ms = SESSIONS_MS[0], 3_000
    heartbeat_ms = 300
    is_calm = False

    def __init__(self, *details: Any) -> None:
        super().__init__(*details)
        self._restlessness = self.random.choice((0.03, 0.08, 0.2))
        self._lives = 0
        self._left: list[tuple[Held, int]] = []  # what it has given up, and the epoch in which it had it
        self._is_back = False  # after it has left for a while
        self.topics: tuple[str, ...] = ()
        self.regex = ""
        self._subscribe()
        self._begin_anew()

    def __str__(self) -> str:
        has = ", ".join(map(held_text, sorted(self.owned)))
        return f"{self.member_id} in epoch {self.epoch} has {has or 'nothing'}, {self.doing}"

    def _subscribe(self) -> None:
        count = self.random.choices(range(len(TOPICS) + 1), (1, 6, 6, 6))[0]
        self.topics = tuple(self.random.sample(TOPICS, count))
        self.regex = self.random.choice(list(EXPRESSIONS)) if self.random.random() < 0.15 else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all topics that it subscribes to."""
        return tuple(dict.fromkeys((*self.topics, *EXPRESSIONS.get(self.regex, ()))))

    def _begin_anew(self) -> None:
        """Be another process."""
        self._lives += 1
        self.member_id = f"{self.name}.{self._lives}"
        self._forget()

    def _forget(self) -> None:
        """Have nothing, and join."""
        self.epoch = 0
        self.owned: dict[Held, int] = {}  # each with the epoch in which it was assigned
        self.target: frozenset[Held] | None = None
        self._says_all = True
        self._revoked_at = self._unheard_since = 0.0
        self._heard_until = float("inf")
        self._said: frozenset[Held] = frozenset()
        self._said_names: tuple[tuple[str, ...], str] = ((), "")

    def _is_fenced(self) -> None:
        """Forget everything: others may have it. Commits that are on their way may arrive yet."""
        self._left = [(place, self.epoch) for place in self.owned]
        self.record.forgets(self.name)
        self._forget()

    @property
    def is_settled(self) -> bool:
        return self.epoch > 0 and (self.target is None or self.target == frozenset(self.owned))

    async def run(self) -> None:
        while True:
            try:
                await self._take_part()
            except Again as why:
                self.doing = f"again: {why}"
            await asyncio.sleep(self.random.uniform(0.3, 1.0) * self.heartbeat_ms / 1000)

    async def _take_part(self) -> None:
        if self.loop.time() > self._heard_until and self.random.random() < 0.7:
            self._is_fenced()  # as many clients do; the others ask
        await self._step()
        await self._commit_late()
        if self.owned and not self.is_calm and self.random.random() < 0.3:
            await self._commit(self.random.choice(list(self.owned)), self.epoch)
        if not self.is_calm and self.random.random() < self._restlessness:
            await self._go_astray()

    async def _step(self) -> None:
        """Ask the coordinator, and do what it says. Raises Again."""
        await self._beat()
        await self._reconcile()

    # --- heartbeats ---------------------------------------------------------------------------------------------

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        owned = frozenset(self.owned)
        request = ConsumerGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch, self.instance)
        if self._says_all:
            request.rebalance_timeout_ms = self.rebalance_ms
            request.server_assignor = self.assignor
        if self._says_all or (self.topics, self.regex) != self._said_names:
            request.subscribed_topic_names = list(self.topics)
            request.subscribed_topic_regex = self.regex
        if self._says_all or owned != self._said:
            request.topic_partitions = by_topic(owned)
        return request

    async def _beat(self) -> None:
        """Send a heartbeat and take the answer. Raises Again."""
        asked, request, owned = self.loop.time(), self._heartbeat(), frozenset(self.owned)
        names = self.topics, self.regex
        self._unheard_since = self._unheard_since or asked
        self._says_all = True  # until it has an answer
        address = await self.find()
        term = self.leads(address)
        answer = await self.call(request, ConsumerGroupHeartbeatResponse, self._patience_ms())
        now, is_current = self.loop.time(), term is not None and term == self.leads(address)
        if now >= asked + self._session_seconds:
            raise Again("the answer has come too late")
        if answer.error_code:
            self._refused(answer.error_code, answer.error_message)
        self.record.heartbeats += 1
        self.record.succeeded += self._is_back and bool(answer.assignment and answer.assignment.topic_partitions)
        self._is_back = False
        self._says_all, self._said, self._said_names = False, owned, names
        if is_current and answer.member_epoch < self.epoch:
            self.record.object(f"epoch-back: {self.member_id} was in {self.epoch}, and is in {answer.member_epoch}")
        if not answer.member_epoch:
            self.record.object(f"epoch-zero: {self.member_id} has joined, and is in epoch 0")
        self.epoch = answer.member_epoch
        self._heard_until = asked + self._session_seconds
        if is_current:
            self.record.told_epoch(self.epoch)
            self.answered(address, asked)
        if answer.assignment is not None:
            self._is_assigned(
                frozenset(
                    (topic.topic_id, index)
                    for topic in answer.assignment.topic_partitions
                    for index in topic.partitions
                )
            )
        self._unheard_since = 0.0
        self.record.has(self.name, self.owned, now, self._heard_until if is_current else None)

    def _patience_ms(self) -> int:
        """For how long it waits for the answer of a heartbeat."""
        return min(ANSWER_MS, self.session_ms // 2)

    @property
    def _session_seconds(self) -> float:
        return self.session_ms * SHARE_OF_SESSION / 1000

    def _refused(self, code: int, message: str | None = None) -> None:
        """Take note of the error of a heartbeat. Raises Again."""
        if code in FENCED:
            self._is_fenced()
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._begin_anew()
        elif code not in ELSEWHERE | FENCED and code != ErrorCode.UNRELEASED_INSTANCE_ID:
            self.record.object(f"heartbeat: {self.member_id} was told {ErrorCode(code).name}: {message}")
        self.refused(code)

    def _is_assigned(self, target: frozenset[Held]) -> None:
        """Take what is new at once, where nothing has to be given up before."""
        self.target = target
        goes = self.owned.keys() - target
        if not goes:
            self._take(target)
            self._revoked_at = 0.0
        elif not self._revoked_at:
            self._revoked_at = self.loop.time() + self.random.choice((0.0, 0.0, 0.3, self.rebalance_ms / 1000))
            # The coordinator may have heard of the first heartbeat that was not answered.
            deadline = self._unheard_since + self.rebalance_ms * SHARE_OF_SESSION / 1000
            self.record.is_to_revoke(self.name, deadline)

    def _take(self, target: frozenset[Held]) -> None:
        for place in sorted(target - self.owned.keys()):
            self.owned[place] = self.epoch
        self._new = True

    async def _reconcile(self) -> None:
        """Give up what has to be, once its processing has ended, and take the rest. Raises Again."""
        if self._revoked_at and self.loop.time() >= self._revoked_at and self.target is not None:
            goes = [place for place in self.owned if place not in self.target]
            for place in goes if self.random.random() < 0.5 else ():
                await self._commit(place, self.epoch)
            self._left += [(place, self.epoch) for place in goes]
            for place in goes:
                self.owned.pop(place, None)
            self._revoked_at = 0.0
            self.record.gives_up(self.name, goes)
            self._take(self.target)
            await self._beat()
        if self._fetches:
            await self._fetch_offsets()

    _new = False

    @property
    def _fetches(self) -> bool:
        return self._new and bool(self.owned) and self.epoch > 0

    # --- offsets ------------------------------------------------------------------------------------------------

    async def _fetch_offsets(self) -> None:
        """Ask where to go on. Raises Again."""
        place = self.random.choice(list(self.owned))
        asked, address = self.loop.time(), await self.find()
        term = self.leads(address)
        wanted = OffsetFetchRequestTopics("", place[0], [place[1]])
        group = OffsetFetchRequestGroup(self.group_id, self.member_id, self.epoch, [wanted])
        answer = (await self.call(OffsetFetchRequest("", [], [group]), OffsetFetchResponse)).groups[0]
        if answer.error_code:
            self.refused(answer.error_code)
        told = answer.topics[0].partitions[0]
        if told.error_code:
            self.refused(told.error_code)
        self._new = False
        if term is not None and term == self.leads(address):
            self.record.told(self.name, place, int(told.committed_offset), asked)

    async def _commit(self, place: Held, epoch: int) -> None:
        """Commit a number that is nobody else's. Raises Again."""
        address = await self.find()
        term, own_epoch, since = self.leads(address), self.epoch, self.owned.get(place)
        attempt = self.record.register(place).write(
            self.random.randrange(1_000_000_000), self.loop.time(), epoch, self.member_id
        )
        partition = OffsetCommitRequestPartition(place[1], attempt.offset)
        topic = OffsetCommitRequestTopic("", place[0], [partition])
        request = OffsetCommitRequest(self.group_id, epoch, self.member_id, self.instance, -1, [topic])
        answer = await self.call(request, OffsetCommitResponse, COMMIT_MS)
        code = int(answer.topics[0].partitions[0].error_code)
        attempt.is_refused = code in REFUSED
        self.record.refused += attempt.is_refused
        is_due = since is not None and since <= epoch and self.owned.get(place) == since
        if code == ErrorCode.STALE_MEMBER_EPOCH and is_due and term is not None and term == self.leads(address):
            has = f"has had {held_text(place)} since {since}"
            self.record.object(f"refused-commit: {self.member_id} {has}, and may not commit in {epoch}")
        if code:
            self.refused(code)
        self.record.committed(self.name, place, attempt, self.loop.time(), is_left=epoch < own_epoch)

    async def _commit_late(self) -> None:
        """Commit in an epoch that it has left: what was on its way meanwhile. Raises Again."""
        self._left = self._left[-4:]
        while self._left and self.epoch > self._left[0][1]:
            place, epoch = self._left.pop(0)
            if self.random.random() < 0.4:
                await self._commit(place, epoch)
        former = [since for since in self.owned.values() if since < self.epoch]
        if former and self.random.random() < 0.1:
            place = self.random.choice([place for place, since in self.owned.items() if since < self.epoch])
            await self._commit(place, self.random.randint(self.owned[place], self.epoch - 1))

    # --- what they do -------------------------------------------------------------------------------------------

    async def _go_astray(self) -> None:
        """Subscribe to something else, leave, crash, or sleep past the session. Raises Again, or returns."""
        leaves = 2 if self.instance is None else 6
        match self.random.choices(("subscribes", "leaves", "crashes", "sleeps"), (5, leaves, 2, 1))[0]:
            case "subscribes":
                self._subscribe()
                self.doing = "subscribes"
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
        """Leave, for a while if it is static in most cases, whether or not anybody hears it. Raises Again."""
        for_a_while = self.instance is not None and self.random.random() < 0.75
        request = ConsumerGroupHeartbeatRequest(
            self.group_id, self.member_id, LEAVES_FOR_A_WHILE if for_a_while else LEAVES, self.instance
        )
        self.record.forgets(self.name)
        self._forget()
        self.doing = "leaves for a while" if for_a_while else "leaves"
        try:
            await self.call(request, ConsumerGroupHeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
        finally:
            self._begin_anew()
        self._is_back = for_a_while
        await asyncio.sleep(self.random.choice((0.0, 0.5, 1.5 * self.session_ms / 1000)))
        if self.random.random() < 0.4:
            self._subscribe()


def by_topic(places: Iterable[Held]) -> list[TopicPartitions]:
    found: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(places):
        found.setdefault(topic_id, []).append(index)
    return [TopicPartitions(topic_id, indexes) for topic_id, indexes in found.items()]


class TopicChanger(Client):
    """Has topics made, deleted and grown."""

    is_stopping = False
    may_delete = True

    async def run(self) -> None:
        pace = self.random.choice((1.5, 4.0, 10.0))
        while not self.is_stopping:
            await asyncio.sleep(self.random.expovariate(1 / pace))
            name = self.random.choice(TOPICS)
            match self.random.choices(("delete", "make", "grow"), (2, 4, 3))[0]:
                case "delete" if not self.may_delete:
                    continue
                case "delete":
                    request = DeleteTopicsRequest([DeleteTopicState(name)], [name], 1_000)
                    await self.ask_any(request, DeleteTopicsResponse)
                case "make":
                    made = CreatableTopic(name, self.random.randint(1, 3), -1)
                    await self.ask_any(CreateTopicsRequest([made], 1_000), CreateTopicsResponse)
                case _:
                    grown = CreatePartitionsTopic(name, self.random.randint(2, PARTITIONS_MAX), None)
                    await self.ask_any(CreatePartitionsRequest([grown], 1_000), CreatePartitionsResponse)


class Consumers(Workload):
    """Two to four members, some of them static, and one who changes their topics."""

    share = 0.06
    kind: type[Consumer] = Consumer
    static_counts: tuple[int, ...] = (0, 1, 4)

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        heartbeat_ms, session_ms = random.choice(("150", "400")), str(random.choice(SESSIONS_MS))
        return {
            "group.consumer.min.heartbeat.interval.ms": heartbeat_ms,
            "group.consumer.heartbeat.interval.ms": heartbeat_ms,
            "group.consumer.min.session.timeout.ms": session_ms,
            "group.consumer.session.timeout.ms": session_ms,
            "group.consumer.assignment.interval.ms": random.choice(("0", "300", "1000")),
            "offsets.commit.timeout.ms": "3000",
        }

    async def begin(self, admin: Admin) -> None:
        for name in TOPICS[:2]:
            await admin.create(name, self.random.randint(1, 4), self.shape.replication_factor)

    def clients(self) -> Iterable[Client]:
        settings = self.shape.settings
        self.record = Holdings(may_expire=settings.get("offsets.retention.minutes") is not None)
        self.record.objected = self.simulation.fail
        self.record.forgettings = lambda: self.simulation.events.counts["groups.expired"]
        self._seen: dict[str, Seen] = {}
        assignment_ms, rebalance_ms = int(settings["group.consumer.assignment.interval.ms"]), REBALANCE_HEARTBEAT_MS
        faults = self.simulation.faults
        self.gatherings = Gatherings(assignment_ms, rebalance_ms, self.record.object, lambda: faults["clock_step"] > 0)
        static, self._assignor = self.random.choice(self.static_counts), self.random.choice((None, "uniform", "range"))
        rebalance_ms = self.random.choice((1_500, 4_000))
        self.members = [self.as_client(self.kind, f"consumer{n}") for n in range(self.random.choice((2, 3, 4)))]
        for number, member in enumerate(self.members):
            member.record, member.leads, member.assignor = self.record, self._leads, self._assignor
            member.answered = self._answered
            member.instance = f"instance{number}" if number < static else None
            member.session_ms = int(settings["group.consumer.session.timeout.ms"])
            member.heartbeat_ms = int(settings["group.consumer.heartbeat.interval.ms"])
            member.rebalance_ms = rebalance_ms
        self._asking = self.as_judge(Grouped, "observer of consumers")
        self._asking.group_id = CONSUMER_GROUP
        self.simulation.looking.append(self.after_step)
        return [*self.members, self.as_client(TopicChanger, "changer of consumed topics")]

    # --- coordinators -------------------------------------------------------------------------------------------

    def _leads(self, address: tuple[str, int]) -> int | None:
        """The epoch in which a node leads the group's partition, if the newest image has it so too."""
        node = next((other for other in self.simulation.nodes if other.host == address[0] and other.is_serving), None)
        return None if node is None else self._epoch_of(node)

    def _answered(self, address: tuple[str, int], asked: float) -> None:
        """Look whether the coordinator has computed what was due when a member asked."""
        node = next(other for other in self.simulation.nodes if other.host == address[0])
        shard = self._shard_of(node)
        group = None if shard is None else shard.image.consumer_groups.get(CONSUMER_GROUP)
        if group is not None:
            self.gatherings.answered(shard, group, asked)

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
        shard = self._shard_of(node)
        if shard is None:
            return
        self.gatherings.look_at_held(shard, self.loop.time())
        seen, end_offset = self._seen.get(node.host), shard.partition.log.log_end_offset
        is_first = seen is None or seen.shard is not shard
        if seen is None or is_first:
            seen = self._seen[node.host] = Seen(shard)
        if seen.end_offset != end_offset:
            seen.end_offset = end_offset
            is_first = is_first and self._epoch_of(node) is not None
            classic = shard.image.groups.get(CONSUMER_GROUP)
            generation = classic.generation if classic is not None and classic.members else None
            group = shard.image.consumer_groups.get(CONSUMER_GROUP)
            self.record.look(group, generation, seen, is_first=is_first)
            self.gatherings.look(shard, group, self.loop.time())

    def _shard_of(self, node: Any) -> Any:
        """The group's partition, where the node is its coordinator as far as it knows; else None."""
        shard = node.broker.groups.led.by_partition.get(0) if node.is_serving else None
        is_usable = shard is not None and not (shard.is_loading or shard.is_unreadable or shard.log.is_closed)
        return shard if is_usable else None

    # --- the end ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        for member in self.members:
            member.is_calm = True
        if self.random.random() < 0.5:
            gone = self.members.pop()
            self.simulation.say(f"{gone.name} is gone for good")
            gone.process.die()  # the other members have to take over its partitions
            self.record.forgets(gone.name)

    def _shares(self) -> list[Share]:
        topics = self.simulation.invariants.image.topics
        return [
            Share(
                member.member_id,
                {topic.topic_id: len(topic.partitions) for topic in map(topics.get, member.names) if topic is not None},
                frozenset(member.owned),
                member.epoch,
            )
            for member in self.members
        ]

    def missing(self) -> list[str]:
        """What keeps the group from being at rest."""
        shares = self._shares()
        found = [*unassigned(shares), *unbalanced(shares, self._assignor or "uniform")]
        if not in_one_epoch(shares) or not all(member.is_settled for member in self.members):
            found.append("members are on their way")
        return [*found, *map(str, self.members)] if found else []

    async def judge(self) -> list[str]:
        record = self.record
        self.reached(
            consumed_assigned=record.assignments,
            consumed_given_up=record.given_up,
            consumed_commits=record.commits,
            consumed_commits_refused=record.refused,
            consumed_succeeded=record.succeeded,
            consumed_taken_over=record.late_taken,
        )
        return [*record.problems[:WORST_MAX], *await self._disagreement()]

    async def _disagreement(self) -> list[str]:
        """Where the coordinator's description is not what the members have, once it has had time."""
        end = self.loop.time() + AGREED_SECONDS_MAX
        while True:
            described = await self.running(self._asking, self._describe())
            problems = self.missing() or (["nobody describes the group"] if described is None else [])
            if described is not None:
                problems += self._differences(described)
            if not problems or self.loop.time() > end:
                return [f"unbalanced: {problem}" for problem in problems[:WORST_MAX]]
            await asyncio.sleep(0.2)

    async def _describe(self) -> DescribedGroup | None:
        answer = await self._asking.try_call(
            ConsumerGroupDescribeRequest([CONSUMER_GROUP]), ConsumerGroupDescribeResponse
        )
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
            member.member_id: frozenset(
                (topic.topic_id, index) for topic in member.assignment.topic_partitions for index in topic.partitions
            )
            for member in group.members
        }
        has = {member.member_id: frozenset(member.owned) for member in self.members}
        if known != has:
            found.append(
                f"the coordinator knows {sorted(known)}, and there are {sorted(has)}, or they have other things"
            )
        return found
