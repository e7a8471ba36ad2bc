"""From what happens to the entries of a chain: counted, bounded, in order, and read again from records."""

import json

import pytest

from kavka_broker.core.audit.chain import Chain, Kind
from kavka_broker.core.audit.cloud_events import entry_of, headers_of
from kavka_broker.core.audit.happenings import KINDS_MAX, LoggedIn, Tally, Window
from kavka_broker.core.audit.journal import BATCH_EVENTS_MAX, HEAD_MS, WAITING_MAX, Journal
from kavka_broker.core.audit.use import NAME_CHARACTERS_MAX
from kavka_broker.core.audit.verification import verify

KEY = bytes(range(32))


def journal() -> Journal:
    return Journal(Chain("1-7", KEY), 0)


def test_a_window_counts_what_is_the_same() -> None:
    window = Window(5)
    for _ in range(3):
        window.logged_in("alice", "10.0.0.1", "EXTERNAL")
    window.logged_in(None, "10.0.0.1", "EXTERNAL")
    expected = [
        Tally(LoggedIn("alice", "10.0.0.1", "EXTERNAL"), 3, 5, 9),
        Tally(LoggedIn(None, "10.0.0.1", "EXTERNAL"), 1, 5, 9),
    ]
    assert window.take(9) == (expected, 0)
    assert window.take(12) == ([], 0)


def test_a_window_has_room_for_so_many_kinds() -> None:
    window = Window(0)
    for number in range(KINDS_MAX + 5):
        window.denied("User:a", "::1", "WRITE", "topic", str(number))
    window.denied("User:a", "::1", "WRITE", "topic", "0")  # known, so there is room
    taken, lost = window.take(1)
    assert (len(taken), lost, taken[0].times) == (KINDS_MAX, 5, 2)


def test_long_names_are_cut() -> None:
    window = Window(0)
    window.denied("User:" + "a" * 1000, "::1", "WRITE", "topic", "b" * 1000)
    (tally,), _ = window.take(1)
    assert max(map(len, tally.happening)) == NAME_CHARACTERS_MAX  # type: ignore[arg-type]


def test_a_clock_that_goes_back_ends_no_window_before_its_start() -> None:
    window = Window(100)
    window.logged_in("a", "::1", "L")
    assert window.take(50)[0][0][2:] == (100, 100)


def test_a_journal_writes_a_chain_that_verifies() -> None:
    kept, entries, now_ms = journal(), [], 0
    for number in range(3 * BATCH_EVENTS_MAX):
        kept.window.denied("User:a", "::1", "WRITE", "topic", str(number))
    kept.close_window(1)
    while kept.waiting:
        now_ms += HEAD_MS // 2
        entries += kept.batch(now_ms)
    entries += kept.batch(now_ms, is_last=True)
    verdict = verify(entries, KEY)
    assert verdict.damage is None
    assert (verdict.events, verdict.lost, verdict.is_ended) == (3 * BATCH_EVENTS_MAX, 0, True)
    assert [entry.kind for entry in entries if entry.kind is not Kind.EVENT] == [Kind.HEAD, Kind.HEAD, Kind.END]


def test_nothing_to_tell_is_no_batch_until_a_head_is_due() -> None:
    kept = journal()
    assert [entry.kind for entry in kept.batch(0)] == [Kind.HEAD]
    assert kept.batch(HEAD_MS - 1) == []
    assert [entry.kind for entry in kept.batch(HEAD_MS)] == [Kind.HEAD]


def test_what_finds_no_room_is_lost_and_counted_in_the_chain() -> None:
    kept = journal()
    for window in range(3):
        for number in range(KINDS_MAX):
            kept.window.denied("User:a", "::1", "WRITE", "topic", f"{window}-{number}")
        kept.close_window(window)
    assert (kept.waiting, kept.dropped_total) == (WAITING_MAX, KINDS_MAX)
    entries = kept.batch(9)
    assert (entries[0].kind, entries[0].lost) == (Kind.LOSS, KINDS_MAX)
    assert verify(entries, KEY).lost == KINDS_MAX
    assert kept.batch(10)[0].kind is Kind.EVENT


def test_entries_are_read_again_from_records() -> None:
    kept = journal()
    kept.window.denied("User:alice", "10.0.0.1", "WRITE", "topic", "ордера")
    kept.window.lost = 3
    kept.close_window(1)
    entries = kept.batch(2)
    assert [entry_of(headers_of(entry), entry.value) for entry in entries] == entries
    assert len(entries) == 3
    event = json.loads(entries[1].value)
    assert (event["metadata"]["uid"], event["resources"][0]["name"]) == ("1-7-1", "ордера")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ce_type", b"com.example"),
        ("ce_type", b"dev.kavka.audit.rumour"),
        ("ce_source", b""),
        ("ce_sequence", b"-1"),
        ("ce_sequence", b"9" * 30),
        ("ce_chaintime", "٣".encode()),
        ("ce_chainlost", None),
        ("ce_chainprevious", b"00"),
        ("ce_chainhash", b"z" * 64),
        ("ce_chainsignature", b"\xff"),
    ],
)
def test_a_foreign_record_is_refused_by_its_header(name: str, text: bytes | None) -> None:
    (entry,) = journal().batch(0)
    headers = [*headers_of(entry), (name, text)]
    with pytest.raises(ValueError, match=f"^{name}: "):
        entry_of(headers, b"")
