"""What `kavka audit verify` says of the records it has read."""

from dataclasses import replace
from pathlib import Path

import pytest

from kavka_broker.core.audit.chain import Chain
from kavka_operator.cli.verifying import FAMILIES, figures, judge, lines, put_figures
from kavka_operator.cli.words import CommandError
from kavka_operator.kafka.trail import Read
from tests.unit.operator.person import run

KEY = bytes(range(32))


def judged(records: list[Read], key: bytes | None) -> tuple[list[str], bool]:
    judgement = judge(records, key)
    return lines(judgement, key), judgement.is_sound


def records(source: str) -> list[Read]:
    chain = Chain(source, KEY)
    entries = [chain.head(0), chain.event(b"a", 1), chain.event(b"b", 2), chain.end(3)]
    return [Read(f"at {entry.sequence}", entry) for entry in entries]


def test_each_chain_has_a_line() -> None:
    mixed = [record for pair in zip(records("1-7"), records("2-7"), strict=True) for record in pair]
    lines, is_sound = judged(mixed, KEY)
    assert is_sound
    assert lines == [
        f"{source}: sound: 4 entries, 2 events, 0 lost, signed up to entry 4, ended" for source in ("1-7", "2-7")
    ]


def test_damage_is_named_with_its_place() -> None:
    first, second, *rest = records("1-7")
    assert second.entry is not None
    tampered = [first, replace(second, entry=replace(second.entry, value=b"z")), *rest]
    lines, is_sound = judged(tampered, None)
    assert not is_sound
    assert lines[0].startswith("1-7: DAMAGED: flipped at sequence 1; before it 1 entries")


def test_a_beginning_that_retention_has_deleted_is_no_damage() -> None:
    rest = [replace(record, is_whole=False) for record in records("1-7")[2:]]
    assert judged(rest, KEY)[1]
    assert not judged(records("1-7")[2:], KEY)[1]


def test_a_foreign_record_is_told_by_its_place() -> None:
    lines, is_sound = judged([Read("__audit_events-0 at offset 5", None, "ce_type: '' is none"), *records("1-7")], KEY)
    assert not is_sound
    assert lines[0] == "__audit_events-0 at offset 5: no entry of a trail: ce_type: '' is none"


def test_a_key_file_that_is_not_there_is_an_error() -> None:
    code, said = run("audit", "verify", "--bootstrap", "127.0.0.1:1", "--key-file", "/nowhere/key")
    assert (code, said) == (2, "error: --key-file: /nowhere/key cannot be read: No such file or directory\n")


def test_figures_tell_prometheus_what_was_found() -> None:
    first, second, *rest = records("1-7")
    assert second.entry is not None
    tampered = [first, replace(second, entry=replace(second.entry, value=b"z")), *rest]
    found = judge([*tampered, *records("2-7"), Read("__audit_events-0 at offset 5", None, "none")], KEY)
    told = figures(found, 'a "b"', 1_800_000_000.5).splitlines()
    assert [line for line in told if not line.startswith("#")] == [
        'kavka_audit_verified_timestamp_seconds{cluster="a \\"b\\""} 1800000000.5',
        'kavka_audit_chains{cluster="a \\"b\\"",state="sound"} 1',
        'kavka_audit_chains{cluster="a \\"b\\"",state="damaged"} 1',
        'kavka_audit_foreign_records{cluster="a \\"b\\""} 1',
        'kavka_audit_verified_events{cluster="a \\"b\\""} 2',
        'kavka_audit_lost_events{cluster="a \\"b\\""} 0',
    ]
    assert sum(line.startswith("# TYPE") for line in told) == len(FAMILIES)


def test_figures_are_whole_whenever_they_are_read(tmp_path: Path) -> None:
    file = tmp_path / "audit.prom"
    put_figures(file, "old\n")
    put_figures(file, "new\n")
    assert file.read_text() == "new\n"
    assert [path.name for path in tmp_path.iterdir()] == ["audit.prom"]
    with pytest.raises(CommandError, match=r"--metrics-file: .*nowhere.* cannot be written: No such file"):
        put_figures(tmp_path / "nowhere" / "audit.prom", "")
