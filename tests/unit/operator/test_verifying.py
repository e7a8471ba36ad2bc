"""What `kavka audit verify` says of the records it has read."""

from dataclasses import replace

from kavka_broker.core.audit.chain import Chain
from kavka_operator.cli.verifying import judged
from kavka_operator.kafka.trail import Read
from tests.unit.operator.person import run

KEY = bytes(range(32))


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
