"""`kavka audit verify`: whether the audit trail of a cluster is as its brokers wrote it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kavka_broker.core.audit.chain import KEY_BYTES_MIN, Entry
from kavka_broker.core.audit.verification import Verdict, verify
from kavka_operator.cli.targets import Asked, target
from kavka_operator.cli.words import CommandError, complain, say
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.trail import ENTRIES_MAX, Read, read_trail

DAMAGED = 1
UNREADABLE = 2
FAMILIES: Final[Mapping[str, str]] = {
    "kavka_audit_verified_timestamp_seconds": "When the audit trail was last read and judged.",
    "kavka_audit_chains": "Chains of the audit trail, by whether they are as their nodes wrote them.",
    "kavka_audit_foreign_records": "Records of the audit topic that are no entries of a chain.",
    "kavka_audit_verified_events": "Events of the audit trail that stand before the first damage of their chain.",
    "kavka_audit_lost_events": "Events that nodes say they could not keep.",
}
"""What a verification tells Prometheus, as gauges."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of each chain, and what is said of records that are no entries."""

    verdicts: Mapping[str, Verdict]
    foreign: Sequence[str] = ()

    @property
    def is_sound(self) -> bool:
        """Whether all chains are as their nodes wrote them, and no record is foreign."""
        return not self.foreign and not self.damaged

    @property
    def damaged(self) -> int:
        """Return the number of chains that are not as their nodes wrote them."""
        return sum(verdict.damage is not None for verdict in self.verdicts.values())


def verify_trail(asked: Asked, key_file: Path | None, metrics_file: Path | None = None) -> int:
    """Print a line for each chain; the exit code: 1 where one is damaged, 2 where nothing can be said. What was found
    goes into `metrics_file` too.
    """
    try:
        key = _key(key_file)
        found = target(asked)
        judgement = judge(read_trail(found.bootstrap, found.security), key)
        if metrics_file is not None:
            put_figures(metrics_file, figures(judgement, asked.cluster or found.name, time.time()))
    except (CommandError, AdminError) as error:
        complain(error)
        return UNREADABLE
    say("\n".join(lines(judgement, key)))
    return 0 if judgement.is_sound else DAMAGED


def judge(records: Iterable[Read], key: bytes | None) -> Judgement:
    """Return what the records of a trail show. Raises CommandError."""
    chains: dict[str, list[Entry]] = {}
    foreign, whole, count = list[str](), dict[str, bool](), 0
    for record in records:
        if record.entry is None:
            foreign.append(f"{record.place}: no entry of a trail: {record.problem}")
            continue
        count += 1
        if count > ENTRIES_MAX:
            raise CommandError(f"the trail has more than {ENTRIES_MAX} entries; shorten the retention of the topic")
        chains.setdefault(record.entry.source, []).append(record.entry)
        whole[record.entry.source] = record.is_whole
    verdicts = {source: verify(entries, key, is_whole=whole[source]) for source, entries in chains.items()}
    return Judgement(verdicts, foreign)


def lines(judgement: Judgement, key: bytes | None) -> list[str]:
    """Return a line for each foreign record and each chain."""
    found = [f"{source}: {_words(verdict, key)}" for source, verdict in judgement.verdicts.items()]
    return [*judgement.foreign, *found] or ["no entries"]


def figures(judgement: Judgement, cluster: str, now_s: float) -> str:
    """Return what was found as Prometheus reads it."""
    verdicts = judgement.verdicts.values()
    values: dict[str, dict[str, float]] = {
        "kavka_audit_verified_timestamp_seconds": {"": now_s},
        "kavka_audit_chains": {
            ',state="sound"': len(judgement.verdicts) - judgement.damaged,
            ',state="damaged"': judgement.damaged,
        },
        "kavka_audit_foreign_records": {"": len(judgement.foreign)},
        "kavka_audit_verified_events": {"": sum(verdict.events for verdict in verdicts)},
        "kavka_audit_lost_events": {"": sum(verdict.lost for verdict in verdicts)},
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


def _words(verdict: Verdict, key: bytes | None) -> str:
    signed = f"signed up to entry {verdict.signed}" if key is not None else "signatures not looked at"
    end = "ended" if verdict.is_ended else "not ended"
    words = f"{verdict.entries} entries, {verdict.events} events, {verdict.lost} lost, {signed}, {end}"
    if verdict.damage is None:
        return f"sound: {words}"
    return f"DAMAGED: {verdict.damage.fault} at sequence {verdict.damage.sequence}; before it {words}"


def _key(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        key = file.read_bytes().strip()
    except OSError as problem:
        raise CommandError(f"--key-file: {file} cannot be read: {problem.strerror}") from problem
    if len(key) < KEY_BYTES_MIN:
        raise CommandError(f"--key-file: {file} has {len(key)} bytes; a key has {KEY_BYTES_MIN} or more")
    return key
