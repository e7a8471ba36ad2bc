"""What `kavka audit verify` says of the records it has read."""

from dataclasses import replace
from pathlib import Path

import pytest

from kavka_broker.core.audit.chain import Chain
from kavka_broker.core.audit.heads import TrailCluster
from kavka_broker.core.audit.keys import HmacKey, VerifyingKey
from kavka_cli.commands.audit.verify import (
    FAMILIES,
    FOREIGN_MAX,
    cluster_of_trail,
    figures,
    judge,
    lines,
    put_figures,
)
from kavka_cli.output import CommandError
from kavka_cli.target import Target
from kavka_operator.kafka.audit_topic import Read
from tests.unit.operator.fakes import cluster
from tests.unit.operator.person import run

KEY = HmacKey(bytes(range(32)))
FIRST = "1970-01-01T00:00:00+00:00"


def judged(records: list[Read], *keys: VerifyingKey, trail: TrailCluster | None = None) -> tuple[list[str], bool]:
    judgement = judge(records, keys, trail)
    return lines(judgement, keys), judgement.is_sound


def records(source: str, cluster: str = "main-id") -> list[Read]:
    chain = Chain(source, KEY, (), cluster)
    entries = [chain.head(0), chain.event(b"a", 1), chain.event(b"b", 2), chain.end(3)]
    return [Read(0, entry.sequence, entry) for entry in entries]


def with_value(record: Read, value: bytes) -> Read:
    assert record.entry is not None
    return replace(record, entry=replace(record.entry, value=value))


def test_each_chain_has_a_line() -> None:
    mixed = [record for pair in zip(records("1-7"), records("2-7"), strict=True) for record in pair]
    lines, is_sound = judged(mixed, KEY)
    assert is_sound
    words = f"sound: 4 entries, 2 events, 0 lost, proved up to sequence 3 of {FIRST}, ended"
    assert lines == [f"{source}: {words}" for source in ("1-7", "2-7")]


def test_without_a_key_the_words_say_what_that_is_worth() -> None:
    (line,), is_sound = judged(records("1-7")[:2])
    assert is_sound
    words = f"hashes good up to sequence 0 of {FIRST}, signatures not looked at, 1 not proved, not ended"
    assert line == f"1-7: sound: 2 entries, 1 events, 0 lost, {words}"


def test_each_damage_is_named_with_its_place() -> None:
    first, second, third, end = records("1-7")
    lines, is_sound = judged([first, with_value(second, b"y"), with_value(third, b"z"), end])
    assert not is_sound
    assert lines[0].startswith("1-7: DAMAGED: flipped at sequence 1; 2 entries, 0 events, ")
    assert lines[1:] == ["1-7: DAMAGED: flipped at sequence 2"]


def test_a_chain_that_nobody_has_signed_is_not_sound() -> None:
    """By a client that could write to the topic, this was sound, and the exit code 0."""
    chain = Chain("1-777777")
    entries = [chain.event(b"{}", 0) for _ in range(3)]
    (line,), is_sound = judged([Read(0, entry.sequence, entry) for entry in entries], KEY)
    assert not is_sound
    lack = "UNSIGNED: it has no signed head; 3 entries, 3 events, 0 lost, nothing proved, not ended"
    assert line == f"1-777777: {lack}"


def test_a_key_that_was_not_given_is_named() -> None:
    (line,), is_sound = judged(records("1-7"), HmacKey(b"o" * 32))
    assert not is_sound
    assert line.startswith(f"1-7: UNSIGNED: its heads are signed by {KEY.id}, no key of which was given; 4 entries")


def test_a_chain_of_another_cluster_is_told_with_its_id() -> None:
    """Signed with the same key, it was sound, and the exit code 0."""
    other = records("9-7", "other\x1b[2J" + 200 * "x")
    lines, is_sound = judged([*records("1-7"), *other], KEY, trail=TrailCluster("main-id"))
    assert not is_sound
    assert lines[0].startswith("1-7: sound: ")
    damaged = f"DAMAGED: foreign at sequence 0: the head names the cluster 'other\\x1b[2J{91 * 'x'}'; "
    assert lines[1].startswith(f"9-7: {damaged}4 entries, 2 events, 0 lost, nothing proved")


def test_what_older_heads_do_not_prove_is_said() -> None:
    (line,), is_sound = judged(records("1-7", ""), KEY, trail=TrailCluster("main-id"))
    assert is_sound
    assert line.startswith("1-7: sound: ")
    assert line.endswith(", ended, no head names its cluster")
    (line,), is_sound = judged(records("1-7", ""), KEY, trail=TrailCluster("main-id", is_required=True))
    assert not is_sound
    assert line.startswith("1-7: UNSIGNED: nothing shows that it is of this cluster; 4 entries")


def test_the_cluster_is_the_one_that_was_asked_for_or_that_its_resource_knows() -> None:
    known = cluster().replaced({"status": cluster().status.replaced({"cluster_id": "main-id"})})
    found = Target("main", "127.0.0.1:1", resources=(known,))
    assert cluster_of_trail(found, "") == TrailCluster("main-id")
    assert cluster_of_trail(found, "other-id") == TrailCluster("other-id", is_required=True)


def test_a_topic_without_entries_is_not_sound() -> None:
    lines, is_sound = judged([], KEY)
    assert not is_sound
    assert lines[0].startswith("no entries: each node writes one a minute")


def test_a_beginning_that_retention_has_deleted_is_no_damage() -> None:
    rest = [replace(record, log_start=2) for record in records("1-7")[2:]]
    assert judged(rest, KEY)[1]
    assert not judged([replace(record, log_start=0) for record in rest], KEY)[1]
    assert not judged([replace(record, log_start=1) for record in rest], KEY)[1], (
        "one record was deleted, and two are missing"
    )


def test_a_foreign_record_is_told_by_its_place() -> None:
    lines, is_sound = judged([Read(0, 5, None, "ce_type: '' is none"), *records("1-7")], KEY)
    assert not is_sound
    assert lines[0] == "__audit_events-0 at offset 5: no entry of a trail: ce_type: '' is none"


def test_many_foreign_records_are_told_by_their_number() -> None:
    lines, _ = judged([Read(0, number, None, "none") for number in range(FOREIGN_MAX + 7)], KEY)
    assert lines[FOREIGN_MAX] == "7 more records are no entries of a trail"


def test_a_time_that_no_calendar_has_is_told_all_the_same() -> None:
    (line,), _ = judged([Read(0, 0, Chain("1-7").head(2**62))])
    assert f"of {2**62} ms, " in line


def test_a_key_file_that_is_not_there_is_an_error() -> None:
    code, said = run("audit", "verify", "--bootstrap", "127.0.0.1:1", "--key-file", "/nowhere/key")
    assert (code, said) == (2, "error: --key-file: /nowhere/key cannot be read: No such file or directory\n")


def test_figures_tell_prometheus_what_was_found() -> None:
    first, second, *rest = records("1-7")
    tampered = [first, with_value(second, b"z"), *rest]
    unsigned = [replace(record, entry=Chain("3-7").event(b"", 0)) for record in records("3-7")[:1]]
    older = [*records("2-7"), *records("4-7", "")]
    found = judge([*tampered, *older, *unsigned, Read(0, 5, None, "none")], [KEY])
    told = figures(found, 'a "b"', 1_800_000_000.5).splitlines()
    assert [line for line in told if not line.startswith("#")] == [
        'kavka_audit_verified_timestamp_seconds{cluster="a \\"b\\""} 1800000000.5',
        'kavka_audit_chains{cluster="a \\"b\\"",state="sound"} 2',
        'kavka_audit_chains{cluster="a \\"b\\"",state="unsigned"} 1',
        'kavka_audit_chains{cluster="a \\"b\\"",state="damaged"} 1',
        'kavka_audit_foreign_records{cluster="a \\"b\\""} 1',
        'kavka_audit_verified_events{cluster="a \\"b\\""} 6',
        'kavka_audit_unproved_entries{cluster="a \\"b\\""} 1',
        'kavka_audit_lost_events{cluster="a \\"b\\""} 0',
        'kavka_audit_unnamed_chains{cluster="a \\"b\\""} 1',
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
