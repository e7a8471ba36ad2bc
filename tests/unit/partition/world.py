"""Replicas of one partition on simulated disks, a controller that does as it is told, and time that a test turns.

Everything a replica does is the broker's own code; only the network is missing: a fetch is a call of the leader's
handler and a call of the follower's.
"""

import asyncio
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState
from kavka_broker.core.partition.isr_proposal import IsrAnswer, IsrChange
from kavka_broker.core.partition.leader import Contact, ProposalOutcome
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.fetch_request import FetchPartition
from kavka_broker.protocol.messages.fetch_response import PartitionData
from kavka_broker.protocol.records.batch import HEADER_BYTES, split_batches
from kavka_broker.protocol.records.record import build_batch, read_records
from kavka_broker.replica.following.fetched_batches import Next, begin, resume_between, take
from kavka_broker.replica.leading.fetch_session_partition import SessionPartition
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.serving.follower_reads import read_as_follower
from kavka_broker.replica.serving.pending_fetch import Follower
from kavka_broker.storage import recovery
from tests.support.sim_disk import SimDisk

TOPIC = "t"
TOPIC_ID = b"0123456789abcdef"
BYTES_MAX = 1 << 20
ROUNDS_MAX = 50


@dataclass(slots=True)
class Clock:
    """Both clocks of the broker, turned by the test."""

    time_ms: int = 1_000_000

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> float:
        return float(self.time_ms)


@dataclass(slots=True)
class Node:
    """One broker: its disk survives it, its partition does not."""

    node_id: int
    disk: SimDisk
    epoch: int = 1
    is_isolated: bool = False
    is_fenced: bool = False
    steps_aside: bool = False  # its disk has refused records
    partition: Partition | None = None
    checkpoint: int = 0
    contacts: dict[int, Contact] = field(default_factory=dict)


class Unlucky(Random):
    """Dice of a loss of power that leave nothing of what was not synced."""

    def random(self) -> float:
        return 1.0

    def choice(self, seq: Any) -> Any:
        return seq[0]

    def randrange(self, *_: int) -> int:  # type: ignore[override]
        return 0


class Host:
    """What a partition sees of the world."""

    hurries_high_watermark = False

    def __init__(self, world: "World", node: Node) -> None:
        self._world = world
        self._node = node
        self.lag_ms_max = world.lag_ms_max

    def contact(self, broker_id: int) -> Contact:
        return self._node.contacts.setdefault(broker_id, Contact())

    def eligible(self, broker_id: int) -> int | None:
        if self._world.last_heard_epoch is not None:
            return self._world.last_heard_epoch
        node = self._world.nodes.get(broker_id)
        return None if node is None or node.is_fenced else node.epoch

    def damaged(self, partition: Partition) -> None:
        """Nothing: the scenarios act as the controller themselves."""

    def sync(self, partition: Partition) -> None:
        """What a thread does where a log is cut; no scenario asks for `flush.messages`."""
        partition.log.durability.sync_records()
        partition.synced()

    def refused(self, partition: Partition) -> None:
        """The broker asks the controller to take it for fenced; the scenario says when that does."""
        self._node.steps_aside = True

    def propose(self, partition: Partition, change: IsrChange) -> None:
        self._world.proposals.append((self._node, partition, change))


class World:
    """Brokers 1 to n, all of them replicas; the first leads."""

    def __init__(self, count: int, *, min_isr: int = 1, lag_ms_max: float = 30_000, seed: int | None = None) -> None:
        self.last_heard_epoch: int | None = None  # of all brokers, where no news of registrations comes
        self.clock = Clock()
        self.dice = Unlucky() if seed is None else Random(seed)
        self.lag_ms_max = lag_ms_max
        self.config = LogConfig(min_insync_replicas=min_isr)
        ids = tuple(range(1, count + 1))
        self.state = PartitionState(ids, ids, 1)
        self.proposals: list[tuple[Node, Partition, IsrChange]] = []
        self.refusal: ErrorCode | None = None  # what the controller says to proposals; None: it takes them
        self.nodes: dict[int, Node] = {}
        for node_id in ids:
            disk = SimDisk(now_ms=self.clock.time_ms)
            disk.make_directory("/data")
            disk.sync_directory("/data")
            self.nodes[node_id] = Node(node_id, disk)
        for node in self.nodes.values():
            self.start(node)

    # --- brokers ------------------------------------------------------------------------------------------------

    def start(self, node: Node) -> None:
        log = recovery.open_log(node.disk, f"/data/{TOPIC}-0", self.config, recover=True, now_ms=self.clock.time_ms)
        log.topic_id = TOPIC_ID
        high_watermark = max(log.log_start_offset, min(node.checkpoint, log.log_end_offset))
        host = Host(self, node)
        node.contacts.clear()
        node.partition = Partition(TOPIC, 0, log, self.state, node.node_id, self.clock, host, high_watermark)
        if not node.partition.is_leader:
            begin(node.partition)

    def stop(self, node: Node, *, loses_power: bool) -> None:
        """kill -9, or the plug: what was not synced is gone, or part of it is."""
        assert node.partition is not None
        node.checkpoint = node.partition.high_watermark
        node.partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        node.partition = None
        node.epoch += 1
        if loses_power:
            node.disk.crash(self.dice)
        else:
            node.disk.kill()

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.partition is not None]

    # --- the controller -----------------------------------------------------------------------------------------

    def decide(self, **changes: object) -> None:
        """A decision of the controller: everybody who is not cut off hears of it."""
        if "leader" in changes:
            changes["leader_epoch"] = self.state.leader_epoch + 1
        partition_epoch = self.state.partition_epoch + 1
        self.state = self.state._replace(partition_epoch=partition_epoch, **changes)  # type: ignore[arg-type]
        for node in self.alive:
            if not node.is_isolated:
                self.tell(node)

    def tell(self, node: Node) -> None:
        partition = node.partition
        assert partition is not None
        epoch = partition.leader_epoch
        partition.apply(self.state)
        if not partition.is_leader and partition.leader_epoch != epoch:
            begin(partition)

    def elect(self, leader: int | None = None, *, unclean: bool = False) -> None:
        """The wanted leader, or the first of the ISR that is alive."""
        if leader is None:
            usable = [n for n in self.state.isr if n != self.state.leader and self._is_usable(n)]
            leader = usable[0] if usable else NO_LEADER
        if unclean:
            self.decide(leader=leader, isr=(leader,))
        elif leader == NO_LEADER:
            self.decide(leader=leader)
        else:
            assert leader in self.state.isr, f"{leader} is not in sync: {self.state.isr}"
            self.decide(leader=leader)

    def _is_usable(self, node_id: int) -> bool:
        node = self.nodes[node_id]
        return node.partition is not None and not node.is_fenced

    def fence(self, node: Node) -> None:
        """Out of the ISR unless it is the last, and out of the lead."""
        node.is_fenced = True
        isr = tuple(n for n in self.state.isr if n != node.node_id) or self.state.isr
        if self.state.leader == node.node_id:
            usable = [n for n in isr if self._is_usable(n)]
            self.decide(isr=isr, leader=usable[0] if usable else NO_LEADER)
        elif isr != self.state.isr:
            self.decide(isr=isr)

    def unfence(self, node: Node) -> None:
        node.is_fenced = False
        if self.state.leader == NO_LEADER and node.node_id in self.state.isr:
            self.decide(leader=node.node_id)
        for other in self.alive:
            if other.partition is not None:
                other.partition.followers_changed()

    def answer_proposals(self) -> list[IsrChange]:
        """The controller looks at what was proposed by those it can hear."""
        heard = [one for one in self.proposals if not one[0].is_isolated]
        self.proposals = [one for one in self.proposals if one[0].is_isolated]
        for _, partition, change in heard:
            answer = self._judge(change)
            if partition.leadership is None:
                continue
            if partition.isr_answered(change, answer) is ProposalOutcome.AGAIN:
                self.proposals.append((self.nodes[change.isr[0].broker_id], partition, change))
            if answer.error == ErrorCode.NONE:
                partition.apply(self.state)  # the metadata comes behind the answer
        return [change for _, _, change in heard]

    def _judge(self, change: IsrChange) -> IsrAnswer:
        state = self.state
        if self.refusal is not None:
            return IsrAnswer(self.refusal)
        if change.leader_epoch != state.leader_epoch:
            return IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH)
        if change.partition_epoch != state.partition_epoch:
            return IsrAnswer(ErrorCode.INVALID_UPDATE_VERSION)
        for member in change.isr:
            node = self.nodes[member.broker_id]
            if node.is_fenced or member.broker_epoch not in (-1, node.epoch):
                return IsrAnswer(ErrorCode.INELIGIBLE_REPLICA)
        isr = tuple(member.broker_id for member in change.isr)
        self.state = state._replace(isr=isr, partition_epoch=state.partition_epoch + 1)
        answer = IsrAnswer(ErrorCode.NONE, state.leader, state.leader_epoch, isr, self.state.partition_epoch)
        for node in self.alive:
            if not node.is_isolated and node.node_id != state.leader:
                self.tell(node)
        return answer

    # --- replication --------------------------------------------------------------------------------------------

    def fetch(self, node: Node) -> PartitionData | None:
        """One fetch of a follower, from whom it takes for its leader; None where that cannot be reached."""
        partition = node.partition
        assert partition is not None
        leader = self.nodes.get(partition.state.leader)
        if partition.is_leader or leader is None or leader.partition is None:
            return None
        if node.is_isolated or leader.is_isolated:
            return None
        data = self._ask(leader.partition, node)
        if take(partition, data, self.clock.time_ms) is Next.LOOK_UP:
            log = leader.partition.log
            resume_between(partition, log.log_start_offset, log.log_end_offset)
        return data

    def _ask(self, leader: Partition, node: Node) -> PartitionData:
        partition = node.partition
        assert partition is not None
        log = partition.log
        wanted = FetchPartition(
            0, partition.leader_epoch, log.log_end_offset, log.epochs.latest, log.log_start_offset, BYTES_MAX
        )
        try:
            leader.check_epoch(partition.leader_epoch)
            if not leader.is_leader:
                raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            follower = Follower(node.node_id, node.epoch)
            data = read_as_follower(leader, SessionPartition(TOPIC, wanted), follower, BYTES_MAX, True)
        except BrokerError as error:
            return PartitionData(0, error.code, -1)
        assert isinstance(data.records, list | bytes)
        data.records = b"".join(data.records) if isinstance(data.records, list) else data.records
        return data

    def settle(self) -> None:
        """Fetches and answers until nothing changes any more."""
        for _ in range(ROUNDS_MAX):
            before = self._picture()
            for node in self.alive:
                self.fetch(node)
            self.answer_proposals()
            if self._picture() == before:
                return
        raise AssertionError("it does not settle")

    def _picture(self) -> list[object]:
        parts = [node.partition for node in self.alive if node.partition is not None]
        return [self.state, *((p.log.log_end_offset, p.high_watermark, p.log.epochs.entries, p.isr) for p in parts)]

    # --- clients ------------------------------------------------------------------------------------------------

    def produce(self, node: Node, value: bytes, acks: int) -> "tuple[int, asyncio.Future[None] | None]":
        """Append a batch at `node`: its first offset, and what acks=all waits for. Raises BrokerError."""
        assert node.partition is not None
        batch = build_batch([(None, one) for one in value.split(b"+")], timestamp_ms=self.clock.time_ms)
        appended = node.partition.append(memoryview(batch), acks)
        return appended.base_offset, node.partition.when_committed(appended.last_offset) if acks == -1 else None


def records_of(partition: Partition) -> list[tuple[int, int, bytes]]:
    """Offset, leader epoch and value of every record in a log."""
    log, found = partition.log, list[tuple[int, int, bytes]]()
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        for part in log.read(offset, BYTES_MAX).parts:
            for header, batch in split_batches(part):
                assert len(batch) > HEADER_BYTES
                for record in read_records(batch):
                    if record.offset >= offset:
                        found.append((record.offset, header.leader_epoch, bytes(record.value or b"")))
                offset = header.next_offset
    return found


def with_min_isr(config: LogConfig, min_isr: int) -> LogConfig:
    return replace(config, min_insync_replicas=min_isr)
