"""An audit trail that may lose nothing, while its topic takes nothing for a time and nodes fail.

| rule | broken where |
|---|---|
| TrailIsSound | a chain has an entry too many or too few, or one that is not as its node wrote it; or the chain |
|              | before does not end where it says, as its node has kept something else on its disk; or a head |
|              | does not name the cluster |
| NothingIsLost | a chain says that its node has lost events, although its policy is to reject |
| ChangesAreTold | who was asked tells of a granted change neither by name nor, of super users, among others |
| RefusedIsNotDone | a change was refused for lack of room, and is told |

The auditee gives a config of a topic a value that nobody else gives. It also makes the audit topic unwritable for a
time, by the length of its batches, and mends it; the buffers of nodes hold a few events, so they are full at once.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from kavka_broker.core.audit.chain import Entry, Kind
from kavka_broker.core.audit.cloud_events import entry_of
from kavka_broker.core.audit.events import Changed
from kavka_broker.core.audit.heads import TrailCluster
from kavka_broker.core.audit.keys import verifying_key
from kavka_broker.core.audit.trail_check import TrailCheck
from kavka_broker.core.audit.usage import OTHERS
from kavka_broker.core.audit.verification import State
from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kavka_broker.protocol.records.record import read_records
from tests.sim.changes import SET, TOPIC_RESOURCE
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.workloads import Workload

TOPIC: Final = "audited"
KEY_FILE: Final = Path(__file__).with_name("audit.key")
SMALL, LARGE = "1", str(1 << 20)
HELD_MAX: Final = "4"
LATE_SECONDS: Final = 15.0
"""After which a change that nobody has answered is not carried out any more: brokers pass it on for ten."""


class Change(NamedTuple):
    """A change that was asked for: the chain of the node that was asked, and what came of it."""

    source: str
    value: str
    code: int


class Auditee(Client):
    """Changes a config again and again, and spoils the audit topic now and then."""

    is_stopping = False
    is_done = False
    simulation: Any

    async def run(self) -> None:
        self.changes: list[Change] = []
        self.spoilt = 0
        self._is_late_until = 0.0  # until when a change of before may come behind the one that mends
        count = 0
        while not self.is_done:
            await self.rest(0.05, 0.4)
            if self.is_stopping:
                is_last = asyncio.get_running_loop().time() >= self._is_late_until
                self.is_done = is_last and await self._bound(LARGE)
                continue
            if self.random.random() < 0.15:
                wanted = self.random.choice((SMALL, LARGE))
                self.spoilt += await self._bound(wanted) and wanted == SMALL
            count += 1
            await self._change(str(10**12 + count))

    async def _bound(self, size_bytes: str) -> bool:
        """Set how long a batch of the trail may be: one byte takes none."""
        answer = await self.ask_any(
            altered(AUDIT_TOPIC, "max.message.bytes", size_bytes), IncrementalAlterConfigsResponse
        )
        if not isinstance(answer, IncrementalAlterConfigsResponse):
            self._is_late_until = asyncio.get_running_loop().time() + LATE_SECONDS
            return False
        return not answer.responses[0].error_code

    async def _change(self, value: str) -> None:
        node = self.random.choice(self.simulation.nodes)
        source, address = source_of(node), (node.host, self._addresses[0][1])
        request = altered(TOPIC, "retention.bytes", value)
        try:
            answer = await self.peer(address).ask(request, IncrementalAlterConfigsResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return
        if source is not None and source == source_of(node):
            self.changes.append(Change(source, value, answer.responses[0].error_code))


def altered(topic: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(key, SET, value)
    return IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC_RESOURCE, topic, [config])])


def journal_of(node: Any) -> Any:
    """What a node that lives keeps of its trail; None before that has begun."""
    auditing = getattr(node.server, "_auditing", None)
    return auditing.journal if node.is_alive and auditing is not None else None


def has_waiting(node: Any) -> bool:
    """Whether a node that lives has changes that its trail does not tell yet.

    Other events may wait at any time: nodes whose logins are short log in again and again.
    """
    journal = journal_of(node)
    return journal is not None and bool(
        journal.waiting
        or any(isinstance(happening, Changed) for happening in journal.window._counts)
        or journal.promised
        or node.server._auditing._unsent
    )


def source_of(node: Any) -> str | None:
    """The chain of a node that lives."""
    journal = journal_of(node)
    return None if journal is None else journal._chain.source


class Audited(Workload):
    """One auditee, on a topic of its own."""

    share = 0.15

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        return {
            "kavka.audit.key.file": str(KEY_FILE),
            "kavka.audit.failure.policy": "reject",
            "kavka.audit.interval.ms": random.choice(("1000", "60000")),
            "kavka.audit.buffer.events": HELD_MAX,
        }

    async def begin(self, admin: Admin) -> None:
        await admin.create(TOPIC, 1, self.shape.replication_factor)
        await admin.create(AUDIT_TOPIC, 1, self.shape.replication_factor)

    def clients(self) -> Iterable[Client]:
        self._auditee = self.as_client(Auditee, "auditee")
        self._auditee.simulation = self.simulation
        return [self._auditee]

    def stop(self) -> None:
        self._auditee.is_stopping = True

    def missing(self) -> list[str]:
        """Trails that have not been written yet."""
        if not self._auditee.is_done:
            return ["the auditee has not mended the audit topic"]
        return [f"{node.host} has events that wait" for node in self.simulation.nodes if has_waiting(node)]

    async def judge(self) -> list[str]:
        chains: dict[str, list[Entry]] = {}
        trail = list(self._entries())
        for entry in trail:
            chains.setdefault(entry.source, []).append(entry)
        changes = self._auditee.changes
        refused = {change.value for change in changes if change.code == ErrorCode.POLICY_VIOLATION}
        granted = [change for change in changes if not change.code]
        self.reached(changes_told=len(granted), changes_refused=len(refused), trails_spoilt=self._auditee.spoilt)
        return [*self._unsound(trail), *self._untold(chains, granted), *self._done(chains, refused)]

    def _entries(self) -> Iterator[Entry]:
        """The trail, as the leader of its topic has it."""
        for node in self.simulation.nodes:
            try:
                partition = node.broker.partitions.leader(AUDIT_TOPIC, 0)
            except BrokerError:
                continue
            end = partition.high_watermark
            batches = (found for found in node.batches() if found[0] == (AUDIT_TOPIC, 0))
            for *_, header, batch in sorted(batches, key=lambda found: found[3].base_offset):
                if header.base_offset < end:
                    for record in read_records(batch):
                        yield entry_of(record.headers, record.value)
            return

    def _unsound(self, trail: list[Entry]) -> Iterator[str]:
        (cluster,) = {node.broker.cluster_id for node in self.simulation.nodes if node.is_serving}
        check = TrailCheck([verifying_key(KEY_FILE.read_bytes())], TrailCluster(cluster, is_required=True))
        for entry in trail:
            check.add(0, 0, entry)
        for source, verdict in check.verdicts().items():
            if verdict.state is State.DAMAGED:
                yield f"TrailIsSound: {source}: {verdict.damage}"
            if verdict.lacks_cluster:
                yield f"TrailIsSound: {source} names no cluster"
            if verdict.lost:
                yield f"NothingIsLost: {source} has lost {verdict.lost} events"

    def _untold(self, chains: dict[str, list[Entry]], granted: list[Change]) -> Iterator[str]:
        living = {source_of(node) for node in self.simulation.nodes}
        ended = {source for source, entries in chains.items() if entries[-1].kind is Kind.END}
        told = {source: set(values_of(entries)) for source, entries in chains.items()}
        unnamed = Counter({source: sum(map(unnamed_by, entries)) for source, entries in chains.items()})
        for change in granted:
            if change.source in living | ended and change.value not in told.get(change.source, ()):
                unnamed[change.source] -= 1
                if unnamed[change.source] < 0:
                    yield f"ChangesAreTold: {change.source} was asked for {change.value}, and its chain does not tell"

    def _done(self, chains: dict[str, list[Entry]], refused: set[str]) -> Iterator[str]:
        for source, entries in chains.items():
            for value in sorted(refused.intersection(values_of(entries))):
                yield f"RefusedIsNotDone: {source} tells of {value}, which was refused"


def unnamed_by(entry: Entry) -> int:
    """How many changes of topics an entry tells without their names."""
    if entry.kind is not Kind.EVENT:
        return 0
    event = json.loads(entry.value)
    is_change = any(found.get("name") == OTHERS and found["type"] == "topic" for found in event.get("resources", ()))
    return int(event["count"]) if is_change else 0


def values_of(entries: Iterable[Entry]) -> Iterator[str]:
    """The values that a chain says the topic was given."""
    for entry in entries:
        if entry.kind is Kind.EVENT:
            resource = json.loads(entry.value).get("resources", [{}])[0]
            if resource.get("name") == TOPIC and resource.get("data"):
                yield str(resource["data"]["value"])
