"""One run: clients at work, a fault, healing, the next fault; at the end the judgement.

After each fault everything is healed and must become whole by itself: every node serves, every partition has all its
replicas in sync in the eyes of every node, and every partition acknowledges again. Time that this takes is part of
the report, and too much of it is a failure. Which faults come, and whom they hit, follows from the seed.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos import transactions
from tests.chaos.asking import partitions_of
from tests.chaos.copies import LINES_SHOWN_MAX, copies
from tests.chaos.latencies import Others, p99_ms
from tests.chaos.moves import Mover
from tests.chaos.nemeses import ALL, Nemesis
from tests.chaos.nodes import Cluster
from tests.chaos.transactions import Transactions
from tests.chaos.transient import Transient
from tests.chaos.workload import GROUP, QUIET, TOPIC, Workload
from tests.sim.history import WORST_MAX

PARTITIONS: Final = 6
WHOLE_SECONDS_MAX: Final = 90.0
ADMIN_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.1
INTERNAL: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, and how hard."""

    seed: int
    fault_seconds: tuple[float, float]
    calm_seconds: float
    minutes: float = 0.0  # go on for so long; 0: each fault once
    nemeses: Sequence[Nemesis] = ALL
    producers: int = 2
    readers: int = 2
    values_a_second: int = 300  # of each producer
    has_moves: bool = True
    has_transactions: bool = False

    @property
    def topics(self) -> Sequence[str]:
        """Those that must be whole again after each fault."""
        return (TOPIC, INTERNAL, *((*transactions.TOPICS, TRANSACTION_STATE) if self.has_transactions else ()))


@dataclass(slots=True)
class Fault:
    """One fault and what it did to the clients."""

    name: str
    what: str
    lasted_seconds: float
    whole_after_seconds: float
    longest_gap_seconds: float
    note: str = ""


@dataclass(slots=True)
class Report:
    """What was done and what came of it."""

    product: str
    nodes: int
    seed: int
    seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    sent: int = 0
    acknowledged: int = 0
    unknown: int = 0
    moves: dict[str, int] = field(default_factory=dict)
    others: Others = field(default_factory=Others)
    last_strike: str = ""
    topics: int = 0  # that came, were written, read and deleted
    transactions: str = ""
    epochs_raised: int = 0  # by the library of producers, upon an answer out of order or a message given up
    anomalies: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)  # of records that are there twice

    def text(self) -> str:
        """The table that a person reads."""
        lines = [
            f"{self.product}, {self.nodes} nodes, seed {self.seed}: {len(self.faults)} faults in {self.seconds:.0f} s",
            f"{'fault':18}{'times':>6}{'longest gap between acks, s':>30}{'whole again after, s':>24}",
        ]
        for name in dict.fromkeys(fault.name for fault in self.faults):
            own = [fault for fault in self.faults if fault.name == name]
            gap = max(fault.longest_gap_seconds for fault in own)
            whole = max(fault.whole_after_seconds for fault in own)
            lines.append(f"{name:18}{len(own):6}{gap:30.1f}{whole:24.1f}")
        lines += [f"{fault.name}: {fault.note}" for fault in self.faults if fault.note]
        lines += [line for line in (self.others.text(),) if line]
        lines += [f"left out: {what}" for what in self.left_out]
        lines.append(f"{self.sent:,} values sent, {self.acknowledged:,} acknowledged, {self.unknown:,} of unknown fate")
        moved = ", ".join(f"{name} {count}" for name, count in sorted(self.moves.items()))
        lines.append(
            f"meanwhile: {moved or 'nothing moved'}; {self.topics} topics came and went;"
            f" producers raised their epochs {self.epochs_raised} times"
        )
        lines += [line for line in (self.transactions,) if line]
        lines += self.anomalies or ["nothing lost, duplicated, reordered or inconsistent"]
        lines += self.evidence
        return "\n".join(lines)


def run(cluster: Cluster, plan: Plan, say: Callable[[str], None] = print) -> Report:
    """Start the cluster, break it as planned, judge."""
    report = Report(cluster.product, len(cluster.nodes), plan.seed)
    began = time.monotonic()
    cluster.start_all()
    create_topics(cluster, {TOPIC: PARTITIONS})
    workload = Workload(cluster.bootstrap, PARTITIONS, plan.producers, plan.readers, plan.values_a_second)
    wait_whole(cluster, (TOPIC,))
    mover = Mover(cluster, workload.places, random.Random(f"moves {plan.seed}"))
    transient = Transient(cluster, workload.failures)
    others = None
    if plan.has_transactions:
        create_topics(cluster, dict.fromkeys(transactions.TOPICS, transactions.PARTITIONS))
        others = Transactions(cluster.bootstrap, plan.seed, workload.failures)
        others.start()
        others.wait_until_they_move()
    workload.start()
    transient.start()
    try:
        wait_for_acknowledgements(workload)
        time.sleep(plan.calm_seconds)
        workload.latencies.reset()  # what came before waited for connections, ids and caches
        time.sleep(plan.calm_seconds)
        if plan.has_moves:
            mover.start()
        for nemesis in schedule(cluster, plan, report, began):
            report.faults.append(suffer(cluster, workload, nemesis, plan, report, say))
            if others is not None:
                others.wait_until_they_move()
        mover.finish()
        transient.finish()
        workload.finish()
        if others is not None:
            others.finish()
    except AssertionError as problem:
        report.anomalies.append(f"not-live: after {report.last_strike or 'the start'}: {problem}")
    finally:
        workload.is_stopping, workload.is_reading = True, False
        mover.stop()
        transient.stop()
        if others is not None:
            others.stop()
    if others is not None:
        report.transactions = others.text()
        report.anomalies += others.anomalies()
    report.moves, report.topics = dict(mover.done), transient.topics
    history = workload.history
    report.seconds = time.monotonic() - began
    report.sent, report.acknowledged = len(history.sends), history.acknowledged_count
    report.unknown = report.sent - report.acknowledged
    report.anomalies += workload.failures + history.anomalies()
    report.epochs_raised = sum(library.raises for library in workload.library.values())
    report.evidence = list(evidence(cluster, workload))
    return report


def evidence(cluster: Cluster, workload: Workload) -> Iterator[str]:
    """Who wrote the copies of records that are there twice, and what their producers' library noted."""
    data = {node.node_id: [disk.data for disk in node.disks] for node in cluster.nodes}
    names: dict[str, None] = {}
    for value, *places in islice(workload.history.doubles(), WORST_MAX):
        names[workload.history.sends[value].producer] = None
        for place, offset in places:
            yield from copies(data, place, offset)
    for name in names:
        lines = list(workload.library[name].lines)[-LINES_SHOWN_MAX:] if name in workload.library else ()
        yield from (f"{name}: {line}" for line in lines)


def schedule(cluster: Cluster, plan: Plan, report: Report, began: float) -> Iterator[Nemesis]:
    """The faults that can be done here: each once, then by chance until the time is over."""
    has_disks = all(node.has_own_disks for node in cluster.nodes)
    able = [
        nemesis
        for nemesis in plan.nemeses
        if (cluster.network.can_cut or not nemesis.needs_network) and (has_disks or not nemesis.needs_disk)
    ]
    report.left_out += [f"{nemesis.name} (needs root)" for nemesis in plan.nemeses if nemesis not in able]
    yield from able
    chance = random.Random(f"schedule {plan.seed}")
    while time.monotonic() - began < plan.minutes * 60:
        yield chance.choice(able)


def suffer(
    cluster: Cluster, workload: Workload, nemesis: Nemesis, plan: Plan, report: Report, say: Callable[[str], None]
) -> Fault:
    """One fault from the strike until all is whole again."""
    chance = random.Random(f"{plan.seed} {len(report.faults)}")
    report.others.were_calm(workload.latencies.of(workload.places))
    workload.gaps.reset()
    workload.latencies.reset()
    struck = time.monotonic()
    what = nemesis.strike(cluster, chance)
    report.last_strike = f"{nemesis.name}: {what}"
    time.sleep(chance.uniform(*plan.fault_seconds))
    note = beside_the_slow(cluster, workload, report.others)
    healed = time.monotonic()
    cluster.start_all()
    wait_whole(cluster, plan.topics)
    whole = time.monotonic()
    wait_for_acknowledgements(workload)
    workload.wait_until_the_group_moves()
    cluster.are_votes_kept = False
    fault = Fault(nemesis.name, what, healed - struck, whole - healed, workload.gaps.worst(), note)
    say(
        f"{len(report.faults) + 1:4} {nemesis.name:17} {what}; lasted {fault.lasted_seconds:.1f} s,"
        f" whole after {fault.whole_after_seconds:.1f} s, longest gap {fault.longest_gap_seconds:.1f} s"
    )
    if workload.failures:
        raise AssertionError("; ".join(workload.failures))
    workload.latencies.reset()
    time.sleep(plan.calm_seconds)
    return fault


def beside_the_slow(cluster: Cluster, workload: Workload, others: Others) -> str:
    """The cost of a slow node to clients that have no replica on it; empty where no node is slow."""
    if not cluster.struck:
        return ""
    asked = next(node for node in cluster.nodes if node.node_id not in cluster.struck)
    try:
        seen = partitions_of(asked.address, TOPIC)
    except TimeoutError:
        return f"node {asked.node_id}, which is not slow, did not answer in time"
    found = workload.latencies.of([(TOPIC, one.index) for one in seen if not set(one.replicas) & set(cluster.struck)])
    others.were_beside(found)
    return f"p99 of partitions without a replica there {p99_ms(found):.0f} ms" if found else "no partition beside it"


def create_topics(cluster: Cluster, partitions: Mapping[str, int]) -> None:
    admin = AdminClient({**QUIET, "bootstrap.servers": cluster.bootstrap})
    wanted = [NewTopic(topic, count, 3, config={"min.insync.replicas": "2"}) for topic, count in partitions.items()]
    limits = {"operation_timeout": ADMIN_SECONDS_MAX, "request_timeout": ADMIN_SECONDS_MAX}
    for created in admin.create_topics(wanted, **limits).values():
        created.result(ADMIN_SECONDS_MAX)
    # Ask for the group once, so that its topic is there before the first fault.
    consumer = Consumer({**QUIET, "bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    deadline = time.monotonic() + ADMIN_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)
            break
        except KafkaException:
            time.sleep(POLL_SECONDS)
    consumer.close()


def wait_whole(cluster: Cluster, topics: Sequence[str]) -> None:
    """Until every node sees every replica in sync."""
    deadline = time.monotonic() + WHOLE_SECONDS_MAX
    while missing := what_is_missing(cluster, topics):
        if time.monotonic() > deadline:
            raise AssertionError(f"not whole after {WHOLE_SECONDS_MAX:g} s: {missing}")
        time.sleep(POLL_SECONDS)


def what_is_missing(cluster: Cluster, topics: Sequence[str]) -> str:
    """The first thing that is not as it should be, in words; nothing where all is well."""
    for node in cluster.nodes:
        for topic in topics:
            try:
                seen = partitions_of(node.address, topic)
            except OSError as problem:
                return f"node {node.node_id} does not answer ({problem})"
            if not seen:
                return f"node {node.node_id} does not know {topic}"
            broken = [partition for partition in seen if not partition.is_whole]
            if broken:
                return f"node {node.node_id} says of {topic}: {broken[0]}"
    return ""


def wait_for_acknowledgements(workload: Workload) -> None:
    """Until every partition has acknowledged something that was not yet there."""
    began = time.monotonic()
    deadline = began + WHOLE_SECONDS_MAX
    while True:
        waiting = [place for place in workload.places if workload.gaps.last.get(place, 0.0) <= began]
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"no acknowledgement from {waiting} in {WHOLE_SECONDS_MAX:g} s")
        time.sleep(POLL_SECONDS)
