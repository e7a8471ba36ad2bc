"""`kavka audit verify`: whether the audit trail of a cluster is as its nodes wrote it, and up to where that is proved.

The exit code, the metric and the words of a chain are of one state: sound, unsigned or damaged. The trail is read once,
and what is kept does not grow with its length. With `--engine spark` hashes are computed by Spark; the verdicts are the
same.
"""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kavka_broker.core.audit.heads import TrailCluster
from kavka_broker.core.audit.keys import KeyProblemError, VerifyingKey, verifying_key
from kavka_broker.core.audit.trail_check import TooManyChainsError, TrailCheck
from kavka_broker.core.audit.verification import DAMAGES_MAX, Damage, Fault, State, Verdict
from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.audit_topic import Read, place_of, read_trail
from kavka_operator.kafka.offsets_and_lag import Onlooker
from kavka_operator.optional_libraries import lacking

HELP = "Say whether the audit trail is as its nodes wrote it, and up to where. Exit code 1 where not, 2 on errors."
NOT_SOUND = 1
UNREADABLE = 2
CLUSTER_LENGTH_MAX: Final = 100
"""Characters of another cluster's id that a line repeats: without keys, any text may stand there."""
FOREIGN_MAX: Final = 100
"""Foreign records that are told one by one; of others the number."""
NO_ENTRIES: Final = (
    "no entries: each node writes one a minute, so the topic was emptied or made again, or no node keeps a trail"
)
FAMILIES: Final[Mapping[str, str]] = {
    "kavka_audit_verified_timestamp_seconds": "When the audit trail was last read and judged.",
    "kavka_audit_chains": "Chains of the audit trail, by what was found: sound, unsigned or damaged.",
    "kavka_audit_foreign_records": "Records of the audit topic that are no entries of a chain.",
    "kavka_audit_verified_events": "Events of the audit trail that stand in the place where their node wrote them.",
    "kavka_audit_unproved_entries": "Entries of the audit trail that no signed head vouches for (yet).",
    "kavka_audit_lost_events": "Events that nodes say they could not keep.",
    "kavka_audit_unnamed_chains": "Chains of the audit trail whose cluster nothing names, as older nodes wrote them.",
}
"""What a verification tells Prometheus, as gauges."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of each chain, and what is said of records that are no entries."""

    verdicts: Mapping[str, Verdict]
    foreign: Sequence[str] = ()
    foreign_total: int = 0

    @property
    def is_sound(self) -> bool:
        """Whether there are chains, all of them sound, and no record is foreign."""
        return bool(self.verdicts) and not self.foreign_total and self.states[State.SOUND] == len(self.verdicts)

    @property
    def states(self) -> Mapping[State, int]:
        """Return the number of chains of each state."""
        counts = Counter(verdict.state for verdict in self.verdicts.values())
        return {state: counts[state] for state in State}


class TrailReading:
    """Collects what a verification finds while it reads a trail."""

    def __init__(self, keys: Sequence[VerifyingKey], trail: TrailCluster | None = None) -> None:
        self.check = TrailCheck(keys, trail)
        self._foreign: list[str] = []
        self._foreign_total = 0

    def add_foreign(self, partition: int, offset: int, problem: str) -> None:
        """Take a record that is no entry."""
        self._foreign_total += 1
        if len(self._foreign) < FOREIGN_MAX:
            self._foreign.append(f"{place_of(partition, offset)}: no entry of a trail: {problem}")

    def judgement(self) -> Judgement:
        """Return what was found. Nothing can be added any more."""
        return Judgement(self.check.verdicts(), self._foreign, self._foreign_total)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka audit verify`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)
    words = "A key that signs the trail (kavka.audit.key.file), or its public key; once for each key of the time."
    parser.add_argument("--key-file", type=Path, metavar="FILE", action="append", default=[], help=words)
    words = (
        "The id of the cluster whose trail this has to be; chains that name none are UNSIGNED then. Left out: the id in"
        " the status of the KafkaCluster, or the one that the brokers tell, and chains of older nodes may name none."
    )
    parser.add_argument("--cluster-id", metavar="ID", default="", help=words)
    words = "Where to write what was found for Prometheus, as the textfile collector of node-exporter reads it."
    parser.add_argument("--metrics-file", type=Path, metavar="FILE", help=words)
    words = "What computes the hashes: this process, or Spark on as many processors as it is given (%(default)s)."
    parser.add_argument("--engine", choices=("python", "spark"), default="python", help=words)


def run(options: Namespace) -> int:
    """Print a line for each chain; the exit code: 1 where one is not sound, 2 where nothing can be said. What was found
    goes into the metrics file too.
    """
    try:
        asked = target_options(options, labels=("cluster",))
        keys = [_key(file) for file in options.key_file]
        found = find_target(asked)
        judgement = _judged(options.engine, found, keys, cluster_of_trail(found, options.cluster_id))
        if options.metrics_file is not None:
            put_figures(options.metrics_file, figures(judgement, asked.cluster or found.name, time.time()))
    except (CommandError, AdminError) as error:
        complain(error)
        return UNREADABLE
    say("\n".join(lines(judgement, keys)))
    return 0 if judgement.is_sound else NOT_SOUND


def cluster_of_trail(found: Target, wanted: str) -> TrailCluster:
    """Return whose trail it has to be: the cluster that is wanted, otherwise by its resource, otherwise by what its
    brokers tell. Raises AdminError.
    """
    if wanted:
        return TrailCluster(wanted, is_required=True)
    clusters = (resource for resource in found.resources if isinstance(resource, KafkaCluster))
    known = next((cluster.status.cluster_id for cluster in clusters if cluster.status.cluster_id), None)
    if known is not None:
        return TrailCluster(known)
    with closing(Onlooker(found.bootstrap, found.security)) as client:
        return TrailCluster(client.cluster_id())


def _judged(engine: str, found: Target, keys: Sequence[VerifyingKey], trail: TrailCluster) -> Judgement:
    if engine == "python":
        return judge(read_trail(found.bootstrap, found.security), keys, trail)
    for extra, *modules in (("audit", "kavka_audit_run", "kavka_audit", "duckdb"), ("spark", "pyspark")):
        if lack := lacking("kavka audit verify --engine spark", extra, *modules):
            raise CommandError(lack)
    from kavka_audit_run.verification import read_by_spark

    reading = TrailReading(keys, trail)
    with _in_words():
        read_by_spark(found, reading.check, reading.add_foreign)
    return reading.judgement()


def judge(records: Iterable[Read], keys: Sequence[VerifyingKey], trail: TrailCluster | None = None) -> Judgement:
    """Return what the records of a trail show, which has to be that of a cluster. Raises CommandError."""
    reading = TrailReading(keys, trail)
    with _in_words():
        for record in records:
            if record.entry is not None:
                reading.check.add(record.partition, record.log_start, record.entry)
            else:
                reading.add_foreign(record.partition, record.offset, record.problem)
    return reading.judgement()


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except TooManyChainsError as error:
        raise CommandError(f"the trail has {error}") from None


def lines(judgement: Judgement, keys: Sequence[VerifyingKey]) -> list[str]:
    """Return a line for each foreign record, each chain, and each damage beyond the first of a chain."""
    found = list(judgement.foreign)
    if judgement.foreign_total > len(found):
        found.append(f"{judgement.foreign_total - len(found)} more records are no entries of a trail")
    for source, verdict in judgement.verdicts.items():
        found.append(f"{source}: {_words(verdict, keys)}")
        found += [f"{source}: DAMAGED: {_place(damage)}" for damage in verdict.damages[1:]]
        if verdict.damages_total > DAMAGES_MAX:
            found.append(f"{source}: DAMAGED: {verdict.damages_total - DAMAGES_MAX} more places")
    return found if judgement.verdicts else [*found, NO_ENTRIES]


def figures(judgement: Judgement, cluster: str, now_s: float) -> str:
    """Return what was found as Prometheus reads it."""
    verdicts = judgement.verdicts.values()
    values: dict[str, dict[str, float]] = {
        "kavka_audit_verified_timestamp_seconds": {"": now_s},
        "kavka_audit_chains": {f',state="{state}"': count for state, count in judgement.states.items()},
        "kavka_audit_foreign_records": {"": judgement.foreign_total},
        "kavka_audit_verified_events": {"": sum(verdict.events for verdict in verdicts)},
        "kavka_audit_unproved_entries": {"": sum(verdict.tail for verdict in verdicts)},
        "kavka_audit_lost_events": {"": sum(verdict.lost for verdict in verdicts)},
        "kavka_audit_unnamed_chains": {"": sum(verdict.is_unnamed for verdict in verdicts)},
    }
    name = cluster.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    told = []
    for family, words in FAMILIES.items():
        told += [f"# HELP {family} {words}", f"# TYPE {family} gauge"]
        told += [f'{family}{{cluster="{name}"{labels}}} {value:.15g}' for labels, value in values[family].items()]
    return "\n".join(told) + "\n"


def put_figures(file: Path, text: str) -> None:
    """Write a file that is whole whenever it is read. Raises CommandError."""
    beside = file.with_name(f".{file.name}.new")
    try:
        beside.write_text(text)
        beside.replace(file)
    except OSError as problem:
        raise CommandError(f"--metrics-file: {file} cannot be written: {problem.strerror}") from problem


def _words(verdict: Verdict, keys: Sequence[VerifyingKey]) -> str:
    end = "ended" if verdict.is_ended else "not ended"
    words = f"{verdict.entries} entries, {verdict.events} events, {verdict.lost} lost, {_proof(verdict, keys)}, {end}"
    if verdict.is_unnamed:
        words += ", no head names its cluster"
    match verdict.state:
        case State.SOUND:
            return f"sound: {words}"
        case State.UNSIGNED:
            return f"UNSIGNED: {_lack(verdict)}; {words}"
    assert verdict.damage is not None, "a damaged chain has a damage"
    return f"DAMAGED: {_place(verdict.damage)}; {words}"


def _proof(verdict: Verdict, keys: Sequence[VerifyingKey]) -> str:
    """Say up to where a chain is proved, and by what."""
    if verdict.proved_sequence < 0:
        return "nothing proved"
    place = f"sequence {verdict.proved_sequence} of {_moment(verdict.proved_ms)}"
    words = f"proved up to {place}" if keys else f"hashes good up to {place}, signatures not looked at"
    return f"{words}, {verdict.tail} not proved" if verdict.tail else words


def _moment(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"  # no year of four digits: without keys any time may stand there


def _lack(verdict: Verdict) -> str:
    if verdict.unknown_keys:
        return f"its heads are signed by {', '.join(verdict.unknown_keys)}, no key of which was given"
    if verdict.proved_sequence < 0:
        return "it has no signed head"
    if verdict.lacks_cluster:
        return "nothing shows that it is of this cluster"
    return f"no head vouches for its last {verdict.tail} entries, and none is under way"


def _place(damage: Damage) -> str:
    words = f"{damage.fault} at sequence {damage.sequence}"
    match damage.fault:
        case Fault.MISSING:
            return f"{words}: the chain {damage.chain}, which it names"
        case Fault.FOREIGN:
            return f"{words}: the head names the cluster {damage.cluster[:CLUSTER_LENGTH_MAX]!a}"
    return words


def _key(file: Path) -> VerifyingKey:
    try:
        return verifying_key(file.read_bytes())
    except OSError as problem:
        raise CommandError(f"--key-file: {file} cannot be read: {problem.strerror}") from problem
    except KeyProblemError as problem:
        raise CommandError(f"--key-file: {file} {problem}") from None
