"""A topic whose log start moves: by DeleteRecords, by size or by time, one of them for each seed.

What is trimmed is gone by right: `invariants` says after each step how far a start may have moved. Here is what clients
see: a reader that is out of range goes on at the start that the leader names, and never behind where it was; what was
acknowledged at or above the start is there at the end.
"""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any, Final

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kavka_broker.protocol.messages.delete_records_response import DeleteRecordsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.sim.changes import SET, TOPIC_RESOURCE
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.history import Place, place_text
from tests.sim.log_starts import Trim
from tests.sim.producers import Producer
from tests.sim.readers import Reader
from tests.sim.reigns import hold_fetches, leader_of, let_fetch, send_once, until
from tests.sim.workloads import Workload

TOPIC: Final = "trim"
PLACE: Final[Place] = (TOPIC, 0)
HIGH_WATERMARK: Final = -1
KEPT: Final = {"retention.bytes": ("0", "2000", "5000", "20000"), "retention.ms": ("500", "3000", "9000")}
UNHEARD_RECORDS: Final = 30
HELD_SECONDS_MAX: Final = 1.0
OLD_SECONDS: Final = 12.0  # older than any retention here
#: By broker: its life, its epoch, and the leader epoch.
Counting = dict[int, tuple[int, int, int]]
MODES: Final = ("offsets", "offsets", "high watermark", "size", "time")


class Trimmer(Client):
    """Deletes records, up to an offset behind the newest acknowledged one, or up to the high watermark."""

    mode = "offsets"
    is_stopping = False
    trim: Trim
    simulation: Any
    trimmed = 0

    async def run(self) -> None:
        pace = self.random.choice((0.1, 0.5, 1.5))
        while not self.is_stopping:
            await asyncio.sleep(self.random.expovariate(1 / pace))
            await self._trim()

    async def _trim(self) -> None:
        offset = HIGH_WATERMARK
        if self.mode == "offsets":
            offset = max(0, self.history.newest - self.random.choice((0, 0, 1, 3, 20, 100)))
            self.trim.offset = max(self.trim.offset, offset)
        topic = DeleteRecordsTopic(TOPIC, [DeleteRecordsPartition(0, offset)])
        peer = await self.leader(PLACE)
        asked_of, before = self._leaders[PLACE], self._that_count()
        try:
            answer = await peer.ask(DeleteRecordsRequest([topic], 2_000), DeleteRecordsResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            self.forget_leader(PLACE)
            return
        told = answer.topics[0].partitions[0]
        if told.error_code:
            self.forget_leader(PLACE)
            return
        self.trimmed += 1
        if told.low_watermark < offset:
            self.history.note(f"not-trimmed: {place_text(PLACE)} begins at {told.low_watermark}, not at {offset}")
        self._judge(told.low_watermark, asked_of, before)

    def _judge(self, low_watermark: int, asked_of: tuple[str, int], before: "Counting") -> None:
        """DeletedEverywhere: each replica that counted from the question to the answer begins where the answer says.

        A follower that starts over in the middle of a batch takes its log back to where the batch begins, and only then
        takes the batch. Where its disk is full in between, its log begins too early and holds nothing.
        """
        now = self._that_count()
        leader = next(node for node in self.simulation.nodes if node.host == asked_of[0])
        if now.get(leader.node_id) is None or now.get(leader.node_id) != before.get(leader.node_id):
            return
        for seen in self.simulation.invariants.seen_at(PLACE):
            counted = now.get(seen.node_id) is not None and now[seen.node_id] == before.get(seen.node_id)
            holds_deleted = seen.log_start_offset < min(low_watermark, seen.end_offset)
            if counted and holds_deleted:
                why = f"{seen} begins at {seen.log_start_offset}, and {low_watermark} was answered"
                self.simulation.fail(f"DeletedEverywhere: {why}")

    def _that_count(self) -> "Counting":
        """Replicas for which DeleteRecords has to wait, as every node knows: they are registered and in service."""
        images = [node.broker.quorum.metadata for node in self.simulation.nodes if node.is_serving]
        state = self.simulation.invariants.partition_state(PLACE)
        counting: Counting = {}
        for node in self.simulation.nodes if state is not None else ():
            known = [image.brokers.get(node.node_id) for image in images]
            epochs = {registration.epoch for registration in known if registration and registration.usable}
            is_known = len(epochs) == 1 and all(registration and registration.usable for registration in known)
            if is_known and node.is_serving and node.node_id in state.replicas:
                counting[node.node_id] = (node.lives, epochs.pop(), state.leader_epoch)
        return counting


class Keeper(Client):
    """Has more kept, then less, then more."""

    key = "retention.bytes"
    is_stopping = False

    async def run(self) -> None:
        while not self.is_stopping:
            await asyncio.sleep(self.random.uniform(0.5, 4.0))
            config = AlterableConfig(self.key, SET, self.random.choice(KEPT[self.key]))
            request = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC_RESOURCE, TOPIC, [config])])
            await self.ask_any(request, IncrementalAlterConfigsResponse)


class SlowReader(Reader):
    """Rests for seconds, so that what it would have read next may be gone."""

    starts_over = True

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.random.choice((0.1, 1.0, 4.0)))
            records = await self.fetch(PLACE)
            if records:
                self.history.polled(self.name, PLACE, records, 0)


class Trimming(Workload):
    """One producer, one reader that starts over where it has to, and one who deletes."""

    share = 0.4

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {
            "log.retention.check.interval.ms": random.choice(("200", "2000")),
            "replica.high.watermark.checkpoint.interval.ms": random.choice(("300", "5000")),
        }

    async def begin(self, admin: Admin) -> None:
        self.mode = self.random.choice(MODES)
        configs = {"internal_segment_bytes": self.random.choice(("1000", "2000", "16000"))}
        if self.mode == "size":
            configs["retention_bytes"] = self.random.choice(KEPT["retention.bytes"])
        if self.mode == "time":
            configs["retention_ms"] = self.random.choice(KEPT["retention.ms"])
        self._trim = Trim(
            is_by_size=self.mode == "size", is_by_time=self.mode == "time", is_any=self.mode == "high watermark"
        )
        self.simulation.trims[TOPIC] = self._trim
        self.simulation.say(f"{TOPIC} is trimmed by {self.mode}: {configs}")
        await admin.create(TOPIC, 1, self.shape.replication_factor, **configs)

    def clients(self) -> Iterable[Client]:
        self._producer = self.as_client(Producer, "trimmed", [PLACE])
        self._reader = self.as_client(SlowReader, "slow reader", [PLACE])
        self._trimmer = self.as_client(Trimmer, "trimmer")
        self._trimmer.mode, self._trimmer.trim, self._trimmer.simulation = self.mode, self._trim, self.simulation
        by_request = self.mode in ("offsets", "high watermark")
        self._keeper = self.as_client(Keeper, "keeper")
        self._keeper.key = "retention.bytes" if self.mode == "size" else "retention.ms"
        return [self._producer, self._reader, self._trimmer if by_request else self._keeper]

    def missing(self) -> list[str]:
        """Followers that have not heard of what was deleted; by retention each replica deletes for itself."""
        if self._trim.is_by_size or self._trim.is_by_time:
            return []
        seen = self.simulation.invariants.seen_at(PLACE)
        least = max((replica.log_start_offset for replica in seen if replica.is_leader), default=0)
        behind = [replica for replica in seen if replica.log_start_offset < least]
        return [f"{replica} begins at {replica.log_start_offset}, its leader at {least}" for replica in behind]

    async def afterwards(self) -> list[str]:
        """Records that nobody gets from their leader grow old there, and many: retention waits for the followers."""
        leader, state = leader_of(self.simulation, PLACE), self.simulation.invariants.partition_state(PLACE)
        if not (self._trim.is_by_size or self._trim.is_by_time) or leader is None:
            return []
        followers = [self.simulation.nodes[replica - 1] for replica in state.isr if replica != state.leader]
        holds = hold_fetches(self.simulation, followers)
        try:
            await until(self.simulation, lambda: all(hold.pipes for hold in holds), HELD_SECONDS_MAX)
            for _ in range(UNHEARD_RECORDS):
                await send_once(self.simulation, PLACE, leader)
            await asyncio.sleep(OLD_SECONDS)
        finally:
            let_fetch(self.simulation, followers, holds)
        return []

    async def judge(self) -> list[str]:
        last = self.as_judge(SlowReader, "last trim reader", [PLACE])
        found = await self.running(last, last.read_all(PLACE))
        self.history.read_finally(PLACE, found, last.started_at[PLACE])
        self.reached(records_deleted=self._trimmer.trimmed, readers_started_over=self._reader.times_over)
        return self.history.anomalies()
