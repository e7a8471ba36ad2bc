"""`kavka audit verify`: whether the audit trail of a cluster is as its brokers wrote it."""

from collections.abc import Iterable
from pathlib import Path

from kavka_broker.core.audit.chain import KEY_BYTES_MIN, Entry
from kavka_broker.core.audit.verification import Verdict, verify
from kavka_operator.cli.targets import Asked, target
from kavka_operator.cli.words import CommandError, complain, say
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.trail import ENTRIES_MAX, Read, read_trail

DAMAGED = 1
UNREADABLE = 2


def verify_trail(asked: Asked, key_file: Path | None) -> int:
    """Print a line for each chain; the exit code: 1 where one is damaged, 2 where nothing can be said."""
    try:
        key = _key(key_file)
        found = target(asked)
        lines, is_sound = judged(read_trail(found.bootstrap, found.security), key)
    except (CommandError, AdminError) as error:
        complain(error)
        return UNREADABLE
    say("\n".join(lines))
    return 0 if is_sound else DAMAGED


def judged(records: Iterable[Read], key: bytes | None) -> tuple[list[str], bool]:
    """Return a line for each chain and each foreign record, and whether all are sound. Raises CommandError."""
    chains: dict[str, list[Entry]] = {}
    lines, whole, count = list[str](), dict[str, bool](), 0
    for record in records:
        if record.entry is None:
            lines.append(f"{record.place}: no entry of a trail: {record.problem}")
            continue
        count += 1
        if count > ENTRIES_MAX:
            raise CommandError(f"the trail has more than {ENTRIES_MAX} entries; shorten the retention of the topic")
        chains.setdefault(record.entry.source, []).append(record.entry)
        whole[record.entry.source] = record.is_whole
    verdicts = {source: verify(entries, key, is_whole=whole[source]) for source, entries in chains.items()}
    is_sound = not lines and all(verdict.damage is None for verdict in verdicts.values())
    lines += [f"{source}: {_words(verdict, key)}" for source, verdict in verdicts.items()]
    return lines or ["no entries"], is_sound


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
