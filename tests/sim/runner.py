"""`python -m tests.sim`: many seeds, one after the other, and what they have shown.

Each seed draws the shape of its cluster, its settings and its faults. The last lines say how fast it went, which
faults were injected, and which branches were never reached that must be: a simulation that stays away from the
interesting places proves nothing about them.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from tests.sim.changes import KINDS, OF_VOTERS
from tests.sim.cluster import Outcome, Shape, Simulation
from tests.sim.faults import storm
from tests.sim.playbook import drawn
from tests.sim.playbook import settings as settings_of

STORY_LINES: Final = 60
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
UNHURRIED: Final = str(2**63 - 1)

#: Events of the broker's log that a few hundred seeds have to bring about, and what they stand for.
MUST_BE_REACHED: Final = {
    "broker.ready": "a node serves",
    "broker.fenced": "a broker is taken out, by its session or by a probe",
    "broker.stopped": "a controlled shutdown",
    "controller.inactive": "an active controller is deposed",
    "directory.lost": "a log directory fails under its leaders",
    "isr.expands": "a follower comes in",
    "isr.shrinks": "a follower falls behind",
    "log.diverges": "a follower's log parts from its leader's (KIP-101)",
    "log.truncated": "a log is cut",
    "metadata.snapshot": "a snapshot of the metadata",
    "metadata.snapshot.adopted": "a follower of the quorum far behind takes a snapshot",
    "move.done": "a replica gets into another log directory",
    "move.goes_on": "a move into another log directory outlives its broker",
    "partition.moved_away": "a reassignment is complete",
    "raft.leads": "an election of the quorum",
    "raft.resigned": "a leader of the quorum stops in a controlled way",
    "raft.voters": "a controller gets a vote, or loses it (KIP-853)",
    "raft.truncated": "a voter's log parts from its leader's",
    "replica.begins_anew": "a damaged replica is replaced from a good one",
    "replica.damaged": "a bit that has turned over is found",
    "segment.truncated": "recovery cuts a torn batch",
}


@dataclass(slots=True)
class Totals:
    """What all seeds together have shown."""

    seeds: int = 0
    steps: int = 0
    seconds: float = 0.0
    acknowledged: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.steps += outcome.steps
        self.seconds += outcome.seconds
        self.acknowledged += outcome.acknowledged
        self.faults += outcome.faults
        self.events += outcome.events
        if outcome.failure is not None:
            self.failed.append(outcome.seed)

    @property
    def unreached(self) -> list[str]:
        return [name for name in MUST_BE_REACHED if not self.events[name]]


def shape_of(seed: int, nodes: int | None = None) -> Shape:
    """The cluster that this seed draws."""
    random = Random(f"shape {seed}")
    count = random.choices((1, 3, 4, 5), (1, 8, 2, 1))[0]
    if nodes is not None:
        count = nodes
    min_isr = min(2, count)
    is_synced = count == 1 or random.random() < 0.3
    directories = Random(f"directories {seed}").choice((1, 1, 2))
    has_voters_in_log = Random(f"voters {seed}").random() < 0.4
    changes = tuple(kind for kind in KINDS if random.random() < 0.3)
    workloads = drawn(seed)
    return Shape(
        nodes=count,
        voters=random.choice((3, 3, 5)),
        partitions=random.randint(1, 3),
        producers=random.randint(1, 2),
        readers=random.randint(1, 2),
        min_isr=min_isr,
        seconds=random.choice((6.0, 12.0, 20.0)),
        settings={
            "broker.session.timeout.ms": random.choice(("2000", "5000", "9000")),
            "broker.heartbeat.interval.ms": random.choice(("200", "1000")),
            "replica.lag.time.max.ms": random.choice(("1000", "4000", "30000")),
            "controller.quorum.fetch.timeout.ms": random.choice(("800", "2000")),
            "controller.quorum.election.timeout.ms": random.choice(("400", "1000")),
            "replica.selector.class": random.choice(("", RACK_AWARE)),
            "metadata.log.max.record.bytes.between.snapshots": random.choice(("2000", "20000", "20971520")),
            # So slow that most moves outlive their broker, and have to go on in its next life.
            "replica.alter.log.dirs.io.max.bytes.per.second": Random(f"moves {seed}").choice(("3000", UNHURRIED)),
            **settings_of(seed, workloads),
        },
        topic_configs={
            "message_timestamp_after_max_ms": str(2**62),
            "internal_segment_bytes": random.choice(("2000", "16000", "1048576")),
            **({"flush_messages": "1"} if is_synced else {}),
        },
        changes=(*changes, *OF_VOTERS) if has_voters_in_log else changes,
        workloads=workloads,
        has_voters_in_log=has_voters_in_log,
        directories=directories,
    )


def run_seed(seed: int, nodes: int | None = None, only: Sequence[str] = ()) -> Outcome:
    return Simulation(seed, shape_of(seed, nodes), partial(storm, only=only)).run()


def command_of(seed: int, nodes: int | None = None, only: Sequence[str] = ()) -> str:
    """How to see it again."""
    extra = "" if nodes is None else f" --nodes {nodes}"
    extra += f" --only {','.join(only)}" if only else ""
    return f"python -m tests.sim --first {seed} --seeds 1{extra} --story"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the options say; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--nodes", type=int, help="of the cluster, instead of what the seed draws")
    parser.add_argument("--only", default="", help="of the seed's faults only these, with commas between")
    parser.add_argument("--story", action="store_true", help="print all that happened")
    parser.add_argument("--keep-going", action="store_true", help="run the other seeds where one has failed")
    options = parser.parse_args(arguments)
    only = tuple(options.only.split(",")) if options.only else ()
    started, started_cpu = time.perf_counter(), time.process_time()
    totals = Totals()
    for seed in range(options.first, options.first + options.seeds):
        outcome = run_seed(seed, options.nodes, only)
        totals.add(outcome)
        if options.story:
            print(*outcome.story, sep="\n")
        if options.seeds == 1:
            print(f"seed {seed}: digest {outcome.digest}, {outcome.steps} steps, {outcome.seconds:.1f} s")
        if outcome.failure is not None:
            tell_failure(outcome, command_of(seed, options.nodes, only), is_told=options.story)
            if not options.keep_going:
                break
    sum_up(totals, time.perf_counter() - started, time.process_time() - started_cpu)
    return 1 if totals.failed else 0


def tell_failure(outcome: Outcome, command: str, *, is_told: bool) -> None:
    if not is_told:
        print(*outcome.story[-STORY_LINES:], sep="\n")
    print(f"seed {outcome.seed} failed: {outcome.failure}")
    print(f"replay: {command}", flush=True)


def sum_up(totals: Totals, took_seconds: float, cpu_seconds: float) -> None:
    a_minute, of_cpu = 60 * totals.seeds / took_seconds, 60 * totals.seeds / cpu_seconds
    print(
        f"{totals.seeds} seeds in {took_seconds:.0f} s: {a_minute:.0f} a minute, {of_cpu:.0f} a minute of CPU time\n"
        f"{totals.seconds:.0f} simulated s,"
        f" {totals.steps} steps, {totals.acknowledged} records acknowledged"
    )
    print("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(totals.faults.items())))
    played = sorted((name, count) for name, count in totals.events.items() if name.startswith("played."))
    print("played: " + ", ".join(f"{name.removeprefix('played.')} {count}" for name, count in played))
    for name in totals.unreached:
        print(f"never reached: {name}: {MUST_BE_REACHED[name]}")
    if totals.failed:
        print(f"failed: {', '.join(map(str, totals.failed))}")
    sys.stdout.flush()
