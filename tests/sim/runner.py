"""`python -m tests.sim`: many seeds, in one process or several, and what they have shown.

Each seed draws the shape of its cluster, its settings and its faults. The last lines say how fast it went, which
faults were injected and which were refused because they might have taken what is promised, and which branches were
never reached that must be: a simulation that stays away from the interesting places proves nothing about them.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.sim.cluster import Outcome
from tests.sim.ledger import SLICE_SEEDS, Ledger, Run, commit_here, spans
from tests.sim.totals import Totals
from tests.sim.workers import STORY_LINES, run_seeds

ROOT: Final = Path(__file__).parents[2]

PLAYED: Final = "played."  # marks of the workloads

#: Events of the broker's log that a few hundred seeds have to bring about, and what they stand for.
MUST_BE_REACHED: Final = {
    "broker.started": "a node serves",
    "broker.fenced": "a broker is taken out, by its session or by a probe",
    "broker.stopped": "a controlled shutdown",
    "controller.deactivated": "an active controller is deposed",
    "directory.failed": "a log directory fails, at a start or later",
    "log.damaged": "a read meets what cannot be",
    "stray.moved": "a log that nobody may use is set aside",
    "partition.not_opened": "a replica has no log that it may use",
    "directory.lost": "a log directory fails under its leaders",
    "isr_expansion.proposed": "a follower comes in",
    "isr_shrink.proposed": "a follower falls behind",
    "log.diverged": "a follower's log parts from its leader's (KIP-101)",
    "cleaning.done": "a compacted log is cleaned",
    "log.truncated": "a log is cut",
    "metadata.snapshot.written": "a snapshot of the metadata",
    "metadata.snapshot.adopted": "a follower of the quorum far behind takes a snapshot",
    "move.done": "a replica gets into another log directory",
    "move.resumed": "a move into another log directory outlives its broker",
    "partition.moved": "a reassignment is complete",
    "raft.election.won": "an election of the quorum",
    "raft.leader.resigned": "a leader of the quorum stops in a controlled way",
    "raft.voters.changed": "a controller gets a vote, or loses it (KIP-853)",
    "raft.log.truncated": "a voter's log parts from its leader's",
    "played.changes_told": "a change that the audit trail has to tell",
    "played.changes_refused": "a change that is refused as the trail has no room",
    "played.brokers_cordoned": "a broker that takes no new replicas",
    "played.placed_beside_cordoned": "a topic that begins while a broker is cordoned",
    "played.trails_spoilt": "an audit topic that takes nothing",
    "played.coordinators_outlived": "a group whose coordinator dies with one of its members",
    "played.commits": "an offset that a group's member commits",
    "played.commits_refused": "a commit of a generation that is over",
    "played.foreign_set_aside": "a directory of a user's that a start has found in its way",
    "played.gave_way": "a connection that is closed for one of a broker's",
    "played.greedy_answers": "answers to clients that ask for more than their share",
    "played.generations": "a generation of a group",
    "played.keys_written": "records of a compacted topic",
    "played.records_cleaned": "records of it that are gone at the end",
    "played.loose_records": "records of a topic that may lose some",
    "played.logs_replayed": "a coordinator that is compared with what its log says",
    "played.records_compacted": "records that cleanings take out of copies of such logs",
    "played.long_answers": "a long question that is answered",
    "played.long_questions_left": "one whose client leaves before that",
    "played.logins": "a user that is let in by its password",
    "played.logins_refused": "a password that was never given",
    "played.logins_missed": "a connection that is closed as it does not log in",
    "played.logins_renewed": "a login that is proved again on its connection",
    "played.logins_ended": "a connection that ends with its login",
    "played.members_outlived": "a group that goes on without a member that is gone",
    "played.offsets_deleted": "offsets of a group that are deleted",
    "played.topics_replaced": "a topic that comes in the place of one for which a group has committed",
    "played.handovers": "a broker that is let go once all others know who leads",
    "played.partitions_taken_over": "a member that goes on where another has committed",
    "played.tokens_shown": "a user that is let in by a delegation token",
    "played.tokens_refused": "a delegation token that is over, or another secret",
    "played.issued_shown": "a user that is let in by the token of an authorization server",
    "played.issued_refused": "such a token that is over, does not hold yet, is another's or changed",
    "played.tokens_removed": "a delegation token that is ended",
    "played.passwords": "a password that takes the place of another",
    "played.pushes_taken": "metrics that a broker takes of a client",
    "played.readers_started_over": "a reader whose next record has been trimmed",
    "played.records_deleted": "DeleteRecords that every replica alive has heard of",
    "played.replicas_held_back": "a follower that comes back under a quota of a byte a second",
    "played.rushed": "connections of an address under a rate",
    "played.sessions_named": "a fetch session of a client that names topics by name",
    "played.sessions_without_room": "a client that gets no session for want of room for its names",
    "played.sieges": "a node that is out for good, and others that go on",
    "played.strangers_refused": "a connection too many of one address",
    "played.topics_recreated": "a topic made again under the name of one that was deleted just now",
    "played.transactions_aborted": "values of an aborted transaction",
    "played.consumers_gathered": "members of such a group that come together, and are assigned together",
    "played.consumers_held": "a first heartbeat that waits for others",
    "played.consumed_assigned": "a partition that a member of a KIP-848 group gets",
    "played.consumed_commits": "an offset that such a member commits",
    "played.consumed_commits_refused": "a commit of an epoch that is over, or of a topic that is gone",
    "played.consumed_given_up": "a partition that it gives up for another",
    "played.consumed_succeeded": "a static member that comes back under another id, and has its partitions",
    "played.consumed_taken_over": "a member that goes on where another has committed",
    "played.shared_accepted": "a record that a member of a share group accepts",
    "played.shared_redelivered": "a record that a member gets after another delivery",
    "played.shared_rejected": "a record that a member rejects",
    "played.shared_grabbed": "a record that a member accepts though another one has it",
    "played.shared_renewed": "a record whose lock a member renews",
    "played.group_upgrades": "a classic group that becomes a consumer group with its members",
    "played.group_downgrades": "a consumer group that becomes a classic one with its members",
    "played.coordinated_aborted": "an aborted transaction of a coordinator of the cluster",
    "played.coordinated_committed": "a committed transaction of a coordinator of the cluster",
    "played.transactions_committed": "values of a committed transaction",
    "played.turns_waited_for": "a client that waits for its turn on a loop",
    "played.unregistered": "a broker that is forgotten while it is down",
    "played.last_moves": "a replica that moves when all is quiet",
    "played.last_reigns": "a leader that is followed by another, with a record that nobody else has",
    "played.limited_values": "values of a topic that limits its producers",
    "played.throttled_values": "values of a client under a quota",
    "played.waited_for_room": "connections that wait until others leave",
    "played.weak_records": "records that acks=0 and acks=1 have brought",
    "replica.restarted": "a damaged replica is replaced from a good one",
    "replica.damaged": "a bit that has turned over is found",
    "segment.truncated": "recovery cuts a torn batch",
}


def command_of(seed: int, nodes: int | None = None, only: Sequence[str] = ()) -> str:
    """How to see it again."""
    extra = "" if nodes is None else f" --nodes {nodes}"
    extra += f" --only {','.join(only)}" if only else ""
    return f"python -m tests.sim --first {seed} --seeds 1{extra} --story"


def why_failed(outcome: Outcome, nodes: int | None = None) -> str:
    """The end of the story of a seed that has failed, what is violated, and how to see it again."""
    why = f"seed {outcome.seed}: {outcome.failure}"
    return "\n".join([*outcome.story[-STORY_LINES:], why, f"replay: {command_of(outcome.seed, nodes)}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the options say; the exit status."""
    options = parse(arguments)
    seeds = range(options.first, options.first + options.seeds)
    started = time.perf_counter()
    totals = run_slice(seeds, options) if options.ledger is None else run_slices(seeds, options)
    sum_up(totals, time.perf_counter() - started)
    return 1 if totals.failed else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run them")
    parser.add_argument("--nodes", type=int, help="of the cluster, instead of what the seed draws")
    parser.add_argument("--only", default=(), type=words, help="of the seed's faults only these, with commas between")
    parser.add_argument("--story", action="store_true", help="print all that happened")
    parser.add_argument("--keep-going", action="store_true", help="run the other seeds where one has failed")
    parser.add_argument(
        "--ledger",
        type=Path,
        help="a file: go on behind what it has, add what comes, print its table and whose digests differ from before",
    )
    return parser.parse_args(arguments)


def words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def run_slice(seeds: Sequence[int], options: argparse.Namespace) -> Totals:
    """All of the seeds, or up to the first that fails."""
    totals = Totals()
    lines = None if options.story else STORY_LINES
    running = run_seeds(seeds, options.nodes, options.only, jobs=options.jobs, lines=lines)
    for outcome, cpu_seconds in running:
        totals.add(outcome, cpu_seconds)
        if options.story:
            print(*outcome.story, sep="\n")
        if options.seeds == 1:
            print(f"seed {outcome.seed}: digest {outcome.digest}, {outcome.steps} steps, {outcome.seconds:.1f} s")
        if outcome.failure is not None:
            tell_failure(outcome, command_of(outcome.seed, options.nodes, options.only), is_told=options.story)
            if not options.keep_going:
                break
    running.close()
    return totals


def run_slices(seeds: range, options: argparse.Namespace) -> Totals:
    """What the ledger lacks, slice by slice; the totals of all that it has of this run."""
    asked = " ".join(f"{name} {value}" for name, value in (("nodes", options.nodes), ("only", options.only)) if value)
    ledger = Ledger(options.ledger, Run(commit_here(ROOT), asked))
    missing = ledger.missing(seeds)
    for start in range(0, len(missing), SLICE_SEEDS):
        totals = run_slice(missing[start : start + SLICE_SEEDS], options)
        ledger.add(totals)
        if totals.failed and not options.keep_going:
            break
    print(ledger.table())
    for run, changed in ledger.changed().items():
        print(f"digests that differ from those of {run}: {spans(changed) or 'none'}")
    return ledger.totals()


def tell_failure(outcome: Outcome, command: str, *, is_told: bool) -> None:
    if not is_told:
        print(*outcome.story[-STORY_LINES:], sep="\n")
    print(f"seed {outcome.seed} failed: {outcome.failure}")
    print(f"replay: {command}", flush=True)


def sum_up(totals: Totals, took_seconds: float) -> None:
    count, cpu_seconds = len(totals.digests), max(totals.cpu_seconds, 0.001)
    print(
        f"{count} seeds in {took_seconds:.0f} s, {cpu_seconds:.0f} s of CPU time: "
        f"{60 * count / cpu_seconds:.0f} seeds in a minute of it, "
        f"{totals.seconds / cpu_seconds:.1f} simulated s in a second of it"
    )
    print(
        f"{totals.seconds:.0f} simulated s, {totals.steps} steps, "
        f"{totals.acknowledged} records acknowledged, digest of totals {totals.digest}"
    )
    print(f"faults: {told(totals.faults)}")
    played = Counter({name[len(PLAYED) :]: count for name, count in totals.events.items() if name.startswith(PLAYED)})
    print(f"played: {told(played)}")
    print(f"refused for safety: {told(totals.refused)}")
    for name in totals.unreached(MUST_BE_REACHED):
        print(f"never reached: {name}: {MUST_BE_REACHED[name]}")
    if totals.failed:
        print(f"failed: {', '.join(map(str, totals.failed))}")
    sys.stdout.flush()


def told(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
