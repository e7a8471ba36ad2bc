"""Share groups (KIP-932): members that heartbeat, acquire records of the partitions they are assigned, and judge them.

A member does what a correct client does: it fetches at the leader of a partition within a share session, once or again
and again, accepts, releases or rejects what it has acquired, renews its lock, or says nothing of it, and ends the
session. Members subscribe to other topics, leave, crash, sleep past their session, and come back; topics come and go.
What they are given is judged in `deliveries.py`.

| anomaly | meaning |
|---|---|
| epoch-back | the epoch of a member, or of its group, falls |
| epoch-lost | the next coordinator is behind an epoch that a member has been told |
| epoch-ahead | a member is in an epoch before its target is computed, or a target before the group's epoch |
| not-initialized | a partition is a target, and the group does not know of its state |
| uneven | at the end a partition has another number of members than its topic's others, or none |
| unread | at the end the group is behind, though nothing keeps it from reading |
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Final

from kavka_broker.core.metadata.image.topic_names import SHARE_STATE_TOPIC
from kavka_broker.core.share_group.state import ShareGroup
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import share_acknowledge_request as judgements
from kavka_broker.protocol.messages import share_fetch_request as asking
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kavka_broker.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.messages.share_acknowledge_response import ShareAcknowledgeResponse
from kavka_broker.protocol.messages.share_fetch_response import ShareFetchResponse
from kavka_broker.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kavka_broker.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.deliveries import ACCEPT, DELIVERIES_MAX, REJECT, RELEASE, RENEW, Asked, Deliveries, Delivery, Source
from tests.sim.grouped import ELSEWHERE, Again, Grouped
from tests.sim.history import WORST_MAX
from tests.sim.holdings import Held, held_text
from tests.sim.log_starts import Trim
from tests.sim.weak import WeakProducer
from tests.sim.workloads import Workload

SHARE_GROUP: Final = "sharers"
OFFSETS_TOPIC: Final = "__consumer_offsets"
READ: Final = "shared"  # has records, and stays
TOPICS: Final = (READ, "spare-shared1", "spare-shared2")
READ_PARTITIONS: Final = 2
GROUP_RESOURCE: Final = 32
FINAL_EPOCH: Final = -1
AGREED_SECONDS_MAX: Final = 60.0
FENCED: Final = frozenset({
    ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND,
})  # fmt: skip


class Sharer(Grouped):
    """One member. `record` is the whole group's."""

    group_id = SHARE_GROUP
    record: Deliveries
    source_of: Callable[["Sharer", Held], Source | None]
    is_current_leader: Callable[["Sharer", Held], bool]
    leads: Callable[[tuple[str, int]], int | None]
    session_ms, heartbeat_ms = 2_000, 300
    is_calm = False

    def __init__(self, *details: Any) -> None:
        super().__init__(*details)
        self._restlessness = self.random.choice((0.03, 0.08, 0.2))
        self._lives = 0
        self.topics: tuple[str, ...] = (READ,)
        self._grabs = self.stream("grabs")
        self._session = 0  # the epoch of the share session
        self._counts: dict[int, int] = {}  # deliveries of the records that it was given last
        self._begin_anew()

    def __str__(self) -> str:
        has = ", ".join(map(held_text, sorted(self.assigned)))
        return f"{self.member_id} in epoch {self.epoch} has {has or 'nothing'}, {self.doing}"

    def _begin_anew(self) -> None:
        """Be another process."""
        self._lives += 1
        self.member_id = f"{self.name}.{self._lives}"
        self._forget()

    def _forget(self) -> None:
        self.epoch = 0
        self._said: tuple[str, ...] = ()  # the topics that the coordinator has heard of
        self.assigned: frozenset[Held] = frozenset()

    async def run(self) -> None:
        while True:
            try:
                await self._beat()
                await self._read()
                if not self.is_calm and self.random.random() < self._restlessness:
                    await self._go_astray()
            except Again as why:
                self.doing = f"again: {why}"
            await asyncio.sleep(self.random.uniform(0.3, 1.0) * self.heartbeat_ms / 1000)

    # --- heartbeats ---------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Send a heartbeat and take the answer. Raises Again."""
        names = self.topics
        said = list(names) if names != self._said else None
        request = ShareGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch, None, said)
        self._said = ()  # until it has an answer
        address = await self.find()
        term = self.leads(address)
        answer = await self.call(request, ShareGroupHeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
        is_current = term is not None and term == self.leads(address)
        if answer.error_code:
            if answer.error_code in FENCED:
                self._forget()
            elif answer.error_code not in ELSEWHERE:
                name = ErrorCode(answer.error_code).name
                self.record.object(f"heartbeat: {self.member_id} was told {name}: {answer.error_message}")
            self.refused(answer.error_code)
        self.record.heartbeats += 1
        self._said = names
        if is_current and answer.member_epoch < self.epoch:
            self.record.object(f"epoch-back: {self.member_id} was in {self.epoch}, and is in {answer.member_epoch}")
        self.epoch = answer.member_epoch
        if is_current:
            self.record.told_epoch = max(self.record.told_epoch, self.epoch)
        if answer.assignment is not None:
            self.assigned = frozenset(
                (bytes(topic.topic_id), index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            )

    # --- records ------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Acquire records of one partition, and say what becomes of them, in one session. Raises Again."""
        topic_id = self.topic_ids.get(READ)
        places = sorted(place for place in self.assigned if topic_id is None or place[0] == topic_id)
        if not places:
            return
        self.doing = "reads"
        place = self.random.choice(places)
        try:
            peer = await asyncio.wait_for(self.leader((READ, place[1])), ANSWER_MS / 1000)
        except TimeoutError:
            raise Again("nobody says who leads") from None
        if self.topic_ids[READ] != place[0]:
            return
        self._session = 0
        try:
            said: dict[int, int] = {}
            for _ in range(self.random.choice((1, 1, 2, 3))):
                said = await self._judge(peer, place, await self._fetch(peer, place, said))
            await self._say(peer, place, said, FINAL_EPOCH)
        except Unreachable:
            self.forget_leader((READ, place[1]))
            raise Again("the leader does not answer") from None

    def _next_epoch(self) -> int:
        self._session += 1
        return self._session - 1

    async def _fetch(self, peer: Any, place: Held, said: dict[int, int]) -> dict[int, int]:
        """Acquire records, and say what becomes of others; returns the count of deliveries of each. Raises Again and
        Unreachable.
        """
        asked, before = self.loop.time(), self.source_of(self, place)
        was_current = self.is_current_leader(self, place)
        epoch = self._next_epoch()
        batches = [asking.AcknowledgementBatch(offset, offset, [kind]) for offset, kind in sorted(said.items())]
        partition = asking.FetchPartition(place[1], 0, batches)
        topics = [asking.FetchTopic(place[0], [partition])] if not epoch or said else []
        request = asking.ShareFetchRequest(
            self.group_id, self.member_id, epoch, 100, 1, 1 << 20, 10, 5, self.random.randint(0, 1), topics=topics
        )
        counts, self._counts = self._counts, {}
        self.record.says(self.member_id, place, said)
        try:
            answer = await peer.ask(request, ShareFetchResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            self.record.is_unanswered(place)
            raise
        part = self._part_of(answer, place)
        if part is None:
            return {}
        if said and not part.acknowledge_error_code:
            self.record.is_answered(place, said, counts, asked, self.loop.time())
        source = self.source_of(self, place)
        if before is None or source is None or before.window is not source.window:
            source = None  # which of them has given the records is not known
        is_current = was_current and self.is_current_leader(self, place)
        fetch = Asked(self.member_id, place, asked, self.loop.time(), source, is_current)
        for records in part.acquired_records:
            offsets = range(records.first_offset, records.last_offset + 1)
            self.record.acquires(fetch, offsets, records.delivery_count)
            self._counts |= dict.fromkeys(offsets, records.delivery_count)
        return self._counts

    def _part_of(self, answer: Any, place: Held) -> Any:
        """Return what an answer says of a partition, None where that is nothing. Raises Again."""
        if answer.error_code:
            raise Again(ErrorCode(answer.error_code).name)
        parts = [part for topic in answer.responses for part in topic.partitions]
        if parts and parts[0].error_code:
            self.forget_leader((READ, place[1]))
            raise Again(ErrorCode(parts[0].error_code).name)
        return parts[0] if parts else None

    async def _judge(self, peer: Any, place: Held, counts: dict[int, int]) -> dict[int, int]:
        """Decide what becomes of records; returns what is yet to be said. Of some nothing is. Raises Unreachable."""
        if self._grabs.random() < 0.1:
            await self._grab(peer, place)
        chance = self.random.random()
        if chance < 0.3:
            await asyncio.sleep(self.random.uniform(0.0, 0.5))
        elif chance < 0.4 and counts and not self.is_calm:
            self.doing = "is slow"
            await asyncio.sleep(self.random.uniform(0.3, 1.5) * self.record.lock_seconds)
        weights = (8, 2, 1, 1, 1)
        kinds = {
            offset: ACCEPT if self.is_calm else self.random.choices((ACCEPT, RELEASE, REJECT, RENEW, 0), weights)[0]
            for offset in counts
        }
        renewed = {offset: kind for offset, kind in kinds.items() if kind == RENEW}
        said = {offset: kind for offset, kind in kinds.items() if kind not in (0, RENEW)}
        if renewed:
            await self._say(peer, place, renewed, self._next_epoch())
        if self.random.random() < 0.5:
            return said  # with the next fetch, or the end of the session
        await self._say(peer, place, said, self._next_epoch())
        return {}

    async def _grab(self, peer: Any, place: Held) -> None:
        """Accept records that other members have, as no correct client does. Raises Unreachable."""
        others = [offset for offset in self.record.held_by_others(self.member_id, place) if offset not in self._counts]
        offsets, source = others[:3], self.source_of(self, place)
        if not offsets or source is None:
            return
        batches = [judgements.AcknowledgementBatch(offset, offset, [ACCEPT]) for offset in offsets]
        topics = [judgements.AcknowledgeTopic(place[0], [judgements.AcknowledgePartition(place[1], batches)])]
        request = judgements.ShareAcknowledgeRequest(self.group_id, self.member_id, self._next_epoch(), topics=topics)
        said = self.loop.time()
        answer = await peer.ask(request, ShareAcknowledgeResponse, timeout_ms=ANSWER_MS)
        codes = [part.error_code for told in answer.responses for part in told.partitions]
        self.record.grabbed += len(offsets)
        if not answer.error_code and codes == [0]:
            self.record.takes(self.member_id, place, offsets, said, source.window)

    async def _say(self, peer: Any, place: Held, kinds: dict[int, int], epoch: int) -> None:
        """Say what becomes of records. Raises Unreachable."""
        batches = [judgements.AcknowledgementBatch(offset, offset, [kind]) for offset, kind in sorted(kinds.items())]
        topics = [judgements.AcknowledgeTopic(place[0], [judgements.AcknowledgePartition(place[1], batches)])]
        request = judgements.ShareAcknowledgeRequest(
            self.group_id, self.member_id, epoch, RENEW in kinds.values(), topics=topics if kinds else []
        )
        said, counts = self.loop.time(), self._counts
        self.record.says(self.member_id, place, kinds)
        answer = await peer.ask(request, ShareAcknowledgeResponse, timeout_ms=ANSWER_MS)
        codes = [part.error_code for told in answer.responses for part in told.partitions]
        if kinds and not answer.error_code and codes == [0]:
            self.record.is_answered(place, kinds, counts, said, self.loop.time())

    # --- what they do -------------------------------------------------------------------------------------------

    async def _go_astray(self) -> None:
        """Subscribe to something else, leave, crash, or sleep past the session. Raises Again, or returns."""
        match self.random.choices(("subscribes", "leaves", "crashes", "sleeps"), (5, 2, 2, 1))[0]:
            case "subscribes":
                self.topics = tuple(self.random.sample(TOPICS, self.random.randint(1, len(TOPICS))))
            case "leaves":
                await self._leave()
            case "crashes":
                self.doing = "crashed"
                await asyncio.sleep(self.random.choice((0.1, 1.0, 1.5 * self.session_ms / 1000)))
                self._begin_anew()
            case _:
                self.doing = "sleeps"
                await asyncio.sleep(self.session_ms / 1000 * self.random.uniform(0.5, 2.0))

    async def _leave(self) -> None:
        """Leave, whether or not anybody hears it. Raises Again."""
        request = ShareGroupHeartbeatRequest(self.group_id, self.member_id, -1)
        self._forget()
        self.doing = "leaves"
        try:
            await self.call(request, ShareGroupHeartbeatResponse, min(ANSWER_MS, self.session_ms // 2))
        finally:
            self._begin_anew()
        await asyncio.sleep(self.random.choice((0.0, 0.5, 1.5 * self.session_ms / 1000)))


class SharedTopicChanger(Client):
    """Has the topics made and deleted that have no records."""

    is_stopping = False

    async def run(self) -> None:
        pace = self.random.choice((1.5, 4.0, 10.0))
        while not self.is_stopping:
            await asyncio.sleep(self.random.expovariate(1 / pace))
            name = self.random.choice(TOPICS[1:])
            if self.random.random() < 0.4:
                await self.ask_any(DeleteTopicsRequest([DeleteTopicState(name)], [name], 1_000), DeleteTopicsResponse)
            else:
                made = CreatableTopic(name, self.random.randint(1, 4), -1)
                await self.ask_any(CreateTopicsRequest([made], 1_000), CreateTopicsResponse)


class Sharers(Workload):
    """Two to four members, producers of what they read, and one who changes their topics."""

    share = 0.04

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        heartbeat_ms, session_ms = random.choice(("150", "400")), random.choice(("2000", "5000"))
        return {
            "group.share.min.heartbeat.interval.ms": heartbeat_ms,
            "group.share.heartbeat.interval.ms": heartbeat_ms,
            "group.share.min.session.timeout.ms": session_ms,
            "group.share.session.timeout.ms": session_ms,
            "group.share.assignment.interval.ms": random.choice(("0", "300", "1000")),
            "group.share.initialize.retry.interval.ms": "3000",
            "group.share.min.record.lock.duration.ms": "1000",
            "group.share.record.lock.duration.ms": random.choice(("1000", "3000")),
            "group.share.delivery.count.limit": str(DELIVERIES_MAX),
            "share.coordinator.state.topic.num.partitions": "2",
            "share.coordinator.snapshot.update.records.per.snapshot": random.choice(("2", "20", "500")),
            "share.coordinator.state.topic.prune.interval.ms": random.choice(("1000", "300000")),
            "share.coordinator.cold.partition.snapshot.interval.ms": random.choice(("2000", "300000")),
            "offsets.commit.timeout.ms": "3000",
        }

    async def begin(self, admin: Admin) -> None:
        # The share coordinator prunes this log; `replays` judges whether what is left says the same.
        self.simulation.trims[SHARE_STATE_TOPIC] = Trim(is_any=True)
        await admin.create(READ, READ_PARTITIONS, self.shape.replication_factor)
        config = AlterableConfig("share.auto.offset.reset", 0, "earliest")
        configs = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, SHARE_GROUP, [config])])
        while True:
            answer = await admin.ask_any(configs, IncrementalAlterConfigsResponse)
            if isinstance(answer, IncrementalAlterConfigsResponse) and not answer.responses[0].error_code:
                return
            await admin.pause()

    @property
    def _nodes(self) -> Any:
        return self.simulation.nodes

    def clients(self) -> Iterable[Client]:
        settings = self.shape.settings
        self.record = Deliveries()
        self.record.objected = self.simulation.fail
        self.record.is_open, self.record.now = self._is_open, self.loop.time
        self.record.lock_seconds = int(settings["group.share.record.lock.duration.ms"]) / 1000
        self._epochs: dict[str, tuple[Any, int, int]] = {}  # by node: shard, group epoch, assignment epoch
        self.members = [self.as_client(Sharer, f"sharer{n}") for n in range(self.random.choice((2, 3, 4)))]
        for member in self.members:
            member.record, member.leads, member.source_of = self.record, self._leads, self._source_of
            member.is_current_leader = self._is_current_leader
            member.session_ms = int(settings["group.share.session.timeout.ms"])
            member.heartbeat_ms = int(settings["group.share.heartbeat.interval.ms"])
        self._producers = [
            self.as_client(WeakProducer, f"producer of shared {index}") for index in range(READ_PARTITIONS)
        ]
        for index, producer in enumerate(self._producers):
            producer.acks, producer.place = -1, (READ, index)
        self._changer = self.as_client(SharedTopicChanger, "changer of shared topics")
        self._asking = self.as_judge(Grouped, "observer of sharers")
        self._asking.group_id = SHARE_GROUP
        self.simulation.looking.append(self.after_step)
        return [*self.members, *self._producers, self._changer]

    # --- the coordinator ----------------------------------------------------------------------------------------

    def _leads(self, address: tuple[str, int]) -> int | None:
        """The epoch in which a node leads the group's partition, if the newest image has it so too."""
        node = next((other for other in self._nodes if other.host == address[0] and other.is_serving), None)
        topic = self.simulation.invariants.image.topics.get(OFFSETS_TOPIC)
        partition = None if node is None else node.broker.partitions.get(OFFSETS_TOPIC, 0)
        if topic is None or node is None or partition is None or not partition.is_leader:
            return None
        state = topic.partitions[0]
        is_newest = (state.leader, state.leader_epoch) == (node.node_id, partition.leader_epoch)
        return int(partition.leader_epoch) if is_newest else None

    def _source_of(self, member: Sharer, place: Held) -> Source | None:
        """Return what would serve a member's fetch now; None where nothing has yet."""
        address = member.known_leader((READ, place[1]))
        host = None if address is None else address[0]
        node = next((other for other in self._nodes if other.host == host and other.is_serving), None)
        if node is None:
            return None
        fetches = node.broker.as_broker.sharing.fetches
        leader = fetches._leaders.get((SHARE_GROUP, place))
        session = fetches.sessions.by_key.get((SHARE_GROUP, member.member_id))
        if leader is None or leader.window is None or leader.is_closed:
            return None
        return Source(leader.window, session)

    def _is_current_leader(self, member: Sharer, place: Held) -> bool:
        """Whether the node that a member asks leads a partition by the newest image."""
        address = member.known_leader((READ, place[1]))
        topic = self.simulation.invariants.image.topics.by_id(place[0])
        leader = None if topic is None else topic.partitions[place[1]].leader
        return any(address is not None and node.host == address[0] and node.node_id == leader for node in self._nodes)

    def _is_open(self, delivery: Delivery) -> bool:
        """Whether the session goes on in which a record was given out."""
        assert delivery.source is not None
        return any(
            delivery.source.session is session
            for node in self._nodes
            if node.is_serving
            for session in node.broker.as_broker.sharing.fetches.sessions.by_key.values()
        )

    def after_step(self, node: Any) -> None:
        """Look at the group as its coordinator has it."""
        if not node.is_serving:
            return
        shard = node.broker.groups.led.by_partition.get(0)
        if shard is None or shard.is_loading or shard.is_unreadable or shard.log.is_closed:
            return
        group = shard.image.share_groups.get(SHARE_GROUP)
        known, epoch, assignment_epoch = self._epochs.get(node.host, (None, 0, 0))
        is_first = known is not shard and self._leads((node.host, 0)) is not None
        if is_first and (0 if group is None else group.epoch) < self.record.told_epoch:
            what = "no group" if group is None else f"epoch {group.epoch}"
            self.record.object(f"epoch-lost: a member was in {self.record.told_epoch}, and the log has {what}")
        if group is None:
            self._epochs[node.host] = shard, 0, 0
            return
        if known is shard and (group.epoch, group.assignment_epoch) == (epoch, assignment_epoch):
            return
        if known is shard and (group.epoch < epoch or group.assignment_epoch < assignment_epoch):
            self.record.object(f"epoch-back: the group is in {group.epoch}, and was in {epoch}")
        self._epochs[node.host] = shard, group.epoch, group.assignment_epoch
        for problem in amiss_in(group, node.broker.metadata.topics):
            self.record.object(problem)

    # --- the end ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        self._changer.is_stopping = True
        for producer in self._producers:
            producer.is_stopping = True
        for member in self.members:
            member.is_calm, member.topics = True, TOPICS

    def missing(self) -> list[str]:
        """What keeps the group from being at rest."""
        topics = [topic for topic in map(self.simulation.invariants.image.topics.get, TOPICS) if topic is not None]
        places = [(topic.topic_id, index) for topic in topics for index in topic.partitions]
        sharing = -(-len(self.members) // len(places))
        found = []
        for place in places:
            count = sum(place in member.assigned for member in self.members)
            if count != sharing:
                found.append(f"uneven: {held_text(place)} is with {count} members, and not with {sharing}")
        if len({member.epoch for member in self.members}) != 1:
            found.append("members are on their way")
        return [*found, *map(str, self.members)] if found else []

    async def judge(self) -> list[str]:
        record = self.record
        self.reached(
            shared_acquired=record.acquired,
            shared_accepted=record.accepted,
            shared_redelivered=record.redelivered,
            shared_rejected=record.rejected,
            shared_released=len(record.released),
            shared_renewed=record.renewed,
            shared_grabbed=record.grabbed,
            shared_pruned=self.simulation.replays.pruned,
        )
        unread = await self._unread() or self._forgotten()
        return [*record.problems[:WORST_MAX], *unread, *self.simulation.replays.at_the_end()]

    def _forgotten(self) -> list[str]:
        """Records that the group has left behind, and that were to be delivered once more."""
        topic = self.simulation.invariants.image.topics.get(READ)
        written = sorted(
            ((topic.topic_id, index), offset)
            for index, producer in enumerate(self._producers)
            for offset in producer.told.values()
        )
        return list(self.record.forgotten(written))[:WORST_MAX]

    async def _unread(self) -> list[str]:
        """Where the group is behind, once it has had time."""
        end = self.loop.time() + AGREED_SECONDS_MAX
        while True:
            problems = self.missing() or await self.running(self._asking, self._lags())
            if not problems or self.loop.time() > end:
                return list(problems[:WORST_MAX])
            await asyncio.sleep(0.2)

    async def _lags(self) -> list[str]:
        group = DescribeShareGroupOffsetsRequestGroup(SHARE_GROUP, None)
        answer = await self._asking.try_call(
            DescribeShareGroupOffsetsRequest([group]), DescribeShareGroupOffsetsResponse
        )
        if answer is None or answer.groups[0].error_code:
            self._asking.coordinator = None
            return ["nobody describes the group"]
        parts = [part for topic in answer.groups[0].topics if topic.topic_name == READ for part in topic.partitions]
        if len(parts) != READ_PARTITIONS:
            return [f"unread: {len(parts)} partitions are described"]
        return [f"unread: {part}" for part in parts if part.lag]


def amiss_in(group: ShareGroup, topics: Any) -> Iterator[str]:
    """What a coordinator may never have in mind."""
    if group.assignment_epoch > group.epoch:
        yield f"epoch-ahead: the target is of {group.assignment_epoch}, and the group in {group.epoch}"
    for member in group.members.values():
        if member.epoch > group.assignment_epoch:
            epochs = f"{member.epoch}, and the target is of {group.assignment_epoch}"
            yield f"epoch-ahead: {member.member_id} is in {epochs}"
    initialized = {} if group.states is None else group.states.initialized
    for member_id, target in group.targets.items():
        for topic_id, indexes in target.items():
            known = initialized.get(topic_id)
            if topics.by_id(topic_id) is not None and (known is None or not indexes <= known.partitions):
                yield f"not-initialized: {member_id} is to have {held_text((topic_id, min(indexes)))}"
